"""Turns rows of tainted turns into what a turn may not do any more (design section 9)."""

from __future__ import annotations

from datetime import datetime
from functools import partial

from sqlalchemy import Connection, select

from gateway.backends.sql.store import Store
from gateway.backends.sql.tables import tainted_turns
from gateway.model import TenantId


class SqlTaintedTurns:
    """`ports.TaintedTurns` on the store."""

    def __init__(self, database: Store) -> None:
        self._database = database

    async def add(self, tenant: TenantId, turn: str, until: datetime, now: datetime) -> None:
        """Durable when it returns. What has ended by `now` is forgotten."""

        def work(connection: Connection) -> None:
            connection.execute(tainted_turns.delete().where(tainted_turns.c.until <= now))
            if not _holds(tenant, turn, connection):  # nobody else writes meanwhile
                connection.execute(tainted_turns.insert().values(tenant=tenant, turn=turn, until=until))

        await self._database.write(work)

    async def holds(self, tenant: TenantId, turn: str) -> bool:
        """Whether this turn was reported."""
        return await self._database.read(partial(_holds, tenant, turn))


def _holds(tenant: TenantId, turn: str, connection: Connection) -> bool:
    query = select(tainted_turns.c.turn).where(tainted_turns.c.tenant == tenant, tainted_turns.c.turn == turn)
    return connection.scalar(query) is not None
