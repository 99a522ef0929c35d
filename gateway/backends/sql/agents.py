"""Turns rows of agents into the configured agents of a tenant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from functools import partial
from typing import Any

from sqlalchemy import Connection, Select, select

from gateway.backends.sql.store import Store
from gateway.backends.sql.tables import AnyRow, agents
from gateway.backends.sql.tenants import raise_epoch
from gateway.keys import LONGEST_WORD
from gateway.model import Agent, AgentName, TenantId

_COLUMNS = (agents.c.tenant, agents.c.name, agents.c.workspace, agents.c.title, agents.c.timezone)


class SqlAgents:
    """`ports.Agents` on the store."""

    def __init__(self, database: Store) -> None:
        self._database = database

    async def all(self, tenant: TenantId) -> Sequence[Agent]:
        """Every agent, by name."""
        return await self._database.read(partial(_read, _of(tenant).order_by(agents.c.name)))

    async def find(self, tenant: TenantId, name: AgentName) -> Agent | None:
        """One agent."""
        if len(name) > LONGEST_WORD:
            return None
        found = await self._database.read(partial(_read, _of(tenant).where(agents.c.name == name)))
        return found[0] if found else None

    async def add(self, agent: Agent, now: datetime) -> None:
        """A new agent; raises the epoch. Raises Conflict where the name or the folder is taken."""

        def insert(connection: Connection) -> None:
            connection.execute(agents.insert(), asdict(agent) | {"created_at": now})
            raise_epoch(connection, agent.tenant)

        taken = f"There is an agent {agent.name!r} or an agent on the folder {agent.workspace!r} already."
        await self._database.write(insert, taken=taken)


def _of(tenant: TenantId) -> Select[Any]:
    return select(*_COLUMNS).where(agents.c.tenant == tenant)


def _read(query: Select[Any], connection: Connection) -> list[Agent]:
    return [_agent(row) for row in connection.execute(query)]


def _agent(row: AnyRow) -> Agent:
    return Agent(
        tenant=TenantId(row.tenant),
        name=AgentName(row.name),
        workspace=row.workspace,
        title=row.title,
        timezone=row.timezone,
    )
