"""Turns kinds of sessions into how many there are of each, and the newest: what a draft of the policy concerns."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, func, select

from gateway.backends.sql.tables import sessions
from gateway.model import ANY_AGENT, AgentName, TenantId
from gateway.ports import SessionTally


def tally(
    tenant: TenantId, kinds: Sequence[tuple[AgentName, bool]], most: int, newest: int, connection: Connection
) -> list[SessionTally]:
    """Each kind, in order. Counts up to `most`, so that it takes no longer however many there are."""
    return [_of_kind(tenant, agent, private, most, newest, connection) for agent, private in kinds]


def _of_kind(
    tenant: TenantId, agent: AgentName, private: bool, most: int, newest: int, connection: Connection
) -> SessionTally:
    of_kind = (
        sessions.c.tenant == tenant,
        sessions.c.private.is_(private),
        sessions.c.incognito.is_(False),
        *(() if agent == ANY_AGENT else (sessions.c.agent == agent,)),
    )
    some = select(sessions.c.id).where(*of_kind).limit(most).subquery()
    keys = select(sessions.c.key).where(*of_kind).order_by(sessions.c.id.desc()).limit(newest)
    return SessionTally(
        agent=agent,
        private=private,
        sessions=connection.scalar(select(func.count()).select_from(some)) or 0,
        newest=tuple(connection.scalars(keys)),
    )
