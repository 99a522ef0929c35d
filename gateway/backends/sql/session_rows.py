"""Turns a row of `sessions` into a session, and reads the facts about one inside a running transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, bindparam, select

from gateway.backends.sql.prepared import Prepared
from gateway.backends.sql.tables import from_instant, participants, sessions
from gateway.model import Kind, Participant, ProfileId, Session, SessionFacts, SessionId, TenantId

COLUMNS = tuple(column for column in sessions.columns if column.name != "title_folded")

_BY_ID = Prepared(select(*COLUMNS).where(sessions.c.tenant == bindparam("of"), sessions.c.id == bindparam("name")))
_BY_KEY = Prepared(select(*COLUMNS).where(sessions.c.tenant == bindparam("of"), sessions.c.key == bindparam("name")))
_PEOPLE = Prepared(
    select(participants.c.profile, participants.c.joined_after, participants.c.joined_at)
    .where(participants.c.tenant == bindparam("of"), participants.c.root == bindparam("name"))
    .order_by(participants.c.joined_at, participants.c.profile)
)


def find_facts(tenant: TenantId, reference: str, connection: Connection) -> SessionFacts | None:
    """The session under this key or id with the participants of its root. No key begins like an id."""
    query = _BY_ID if reference.startswith("ses_") else _BY_KEY
    rows = query.rows(connection, of=tenant, name=reference)
    if not rows:
        return None
    session = session_of(rows[0])
    return SessionFacts(session=session, participants=participants_of(tenant, session.root, connection))


def facts_of(tenant: TenantId, session: SessionId, connection: Connection) -> SessionFacts | None:
    """The same by id alone."""
    return find_facts(tenant, session, connection) if session.startswith("ses_") else None


def is_as_authorised(expected: SessionFacts, connection: Connection) -> bool:
    """Whether all that a permit was decided by still holds: owner, incarnation, archive, and who takes part since when.

    Asked in the transaction that writes, so that a request in flight can't undo what was answered meanwhile.
    """
    now = facts_of(expected.session.tenant, expected.session.id, connection)
    return now is not None and _decided_by(now) == _decided_by(expected)


def _decided_by(facts: SessionFacts) -> tuple[object, ...]:
    session = facts.session
    people = frozenset((one.profile, one.joined_after) for one in facts.participants)
    return session.owner, session.incarnation, session.archived_at, people


def participants_of(tenant: TenantId, root: SessionId, connection: Connection) -> tuple[Participant, ...]:
    """Who takes part in a root, in the order of their joining."""
    return tuple(
        Participant(profile=ProfileId(profile), joined_after=after, joined_at=from_instant(at))
        for profile, after, at in _PEOPLE.rows(connection, of=tenant, name=root)
    )


def session_of(row: Sequence[Any]) -> Session:
    """The session in a row of `COLUMNS`, as the driver gives it."""
    (tenant, session, key, agent, kind, private, title, owner, creator, parent, parent_key, root, root_agent, path) = (
        row[:14]
    )
    incarnation, incognito, sandboxed, created_at, last_message_at, archived_at = row[14:]
    return Session(
        tenant=tenant,
        id=session,
        key=key,
        agent=agent,
        kind=Kind(kind),
        private=bool(private),
        title=title,
        owner=owner,
        creator=creator,
        parent=parent,
        parent_key=parent_key,
        root=root,
        root_agent=root_agent,
        path=path,
        incarnation=incarnation,
        incognito=bool(incognito),
        sandboxed=bool(sandboxed),
        created_at=from_instant(created_at),
        last_message_at=None if last_message_at is None else from_instant(last_message_at),
        archived_at=None if archived_at is None else from_instant(archived_at),
    )
