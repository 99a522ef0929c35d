"""Turns a change of one session into the rows of its whole tree: lineage, participants, and each person's list."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, bindparam, cast, exists, false, or_, select

from gateway.backends.sql.folding import fold
from gateway.backends.sql.session_rows import COLUMNS, facts_of, participants_of
from gateway.backends.sql.tables import lineage, memberships, participants, profiles, sessions, tenants
from gateway.errors import Conflict, Invalid
from gateway.model import Participant, ProfileId, Session, SessionFacts, SessionId, TenantId

_COLUMN_NAMES = tuple(column.name for column in COLUMNS)


def insert(session: Session, people: Sequence[ProfileId], connection: Connection) -> SessionFacts:
    """Stores a session, and the people of a root. Raises Conflict where the parent of a child is gone or archived.

    A child is given its root's owner of this moment, who may not be the one that the caller read.
    """
    if session.parent is not None:
        session = replace(session, owner=_owner_of_tree(session, connection))
    connection.execute(sessions.insert(), session_row(session))
    connection.execute(lineage.insert(), lineage_rows(session))
    if session.parent is None:
        _join(session.tenant, session.id, people, session.created_at, connection)
    joined = participants_of(session.tenant, session.root, connection)
    listed = membership_rows(session, [one.profile for one in joined])
    if listed:
        connection.execute(memberships.insert(), listed)
    return SessionFacts(session=session, participants=joined)


def session_row(session: Session) -> dict[str, Any]:
    """The row of `sessions`."""
    row = {name: getattr(session, name) for name in _COLUMN_NAMES}
    return row | {"title_folded": None if session.title is None else fold(session.title)}


def lineage_rows(session: Session) -> list[dict[str, str]]:
    """A row for the session itself and for each of its ancestors."""
    ancestors = session.path.rstrip("/").split("/")
    return [{"tenant": session.tenant, "ancestor": one, "session": session.id} for one in ancestors]


def membership_rows(session: Session, people: Collection[ProfileId]) -> list[dict[str, Any]]:
    """A row for the owner and each participant; none for an incognito session, which no list shows."""
    if session.incognito:
        return []
    return [
        {
            "tenant": session.tenant,
            "profile": person,
            "agent": session.agent,
            "session": session.id,
            "private": session.private,
            "own": person == session.owner,
        }
        for person in dict.fromkeys([session.owner, *people])
    ]


def replace_participants(
    tenant: TenantId, root: SessionId, people: Sequence[ProfileId], now: datetime, connection: Connection
) -> SessionFacts | None:
    """Those who stay keep their joining; new ones join now; the rest leave. Raises Conflict without the owner."""
    owner = _owner_of_root(tenant, root, connection)
    if owner is None:
        return None
    if owner not in people:
        raise Conflict("The owner takes part as long as they own it. Give it to somebody else first.")
    before = {one.profile for one in participants_of(tenant, root, connection)}
    left, new = before - set(people), [person for person in dict.fromkeys(people) if person not in before]
    leaving = (participants.c.tenant == tenant) & (participants.c.root == root) & participants.c.profile.in_(left)
    connection.execute(participants.delete().where(leaving))
    _join(tenant, root, new, now, connection)
    _relist(tenant, root, left.union(new), connection)
    return facts_of(tenant, root, connection)


def reassign(
    tenant: TenantId, root: SessionId, owner: ProfileId, now: datetime, connection: Connection
) -> SessionFacts | None:
    """Gives the whole tree to `owner`, who joins now if they did not take part."""
    before = _owner_of_root(tenant, root, connection)
    if before is None:
        return None
    if owner not in {one.profile for one in participants_of(tenant, root, connection)}:
        _join(tenant, root, [owner], now, connection)
    whole = (sessions.c.tenant == tenant) & sessions.c.id.in_(_beneath(tenant, root))
    connection.execute(sessions.update().where(whole).values(owner=owner))
    _relist(tenant, root, {ProfileId(before), owner}, connection)
    return facts_of(tenant, root, connection)


def join(
    tenant: TenantId, root: SessionId, person: ProfileId, now: datetime, connection: Connection
) -> SessionFacts | None:
    """One more who takes part; who does already keeps their joining."""
    if _owner_of_root(tenant, root, connection) is None:
        return None
    if person not in {one.profile for one in participants_of(tenant, root, connection)}:
        _join(tenant, root, [person], now, connection)
        _relist(tenant, root, {person}, connection)
    return facts_of(tenant, root, connection)


def leave(  # one argument for each thing that it depends on
    tenant: TenantId,
    root: SessionId,
    people: Collection[ProfileId],
    heir: ProfileId,
    now: datetime,
    connection: Connection,
) -> SessionFacts | None:
    """These take part no longer; where one of them owns the tree, it is `heir`'s from now on."""
    owner = _owner_of_root(tenant, root, connection)
    if owner is None:
        return None
    if owner in people:
        reassign(tenant, root, heir, now, connection)
    leaving = (participants.c.tenant == tenant) & (participants.c.root == root) & participants.c.profile.in_(people)
    connection.execute(participants.delete().where(leaving))
    _relist(tenant, root, people, connection)
    return facts_of(tenant, root, connection)


def remove(tenant: TenantId, session: SessionId, connection: Connection) -> int:
    """Removes a session and all beneath it; participants, messages and list rows go with them."""
    whole = (sessions.c.tenant == tenant) & sessions.c.id.in_(_beneath(tenant, session))
    return connection.execute(sessions.delete().where(whole)).rowcount


def _owner_of_tree(session: Session, connection: Connection) -> ProfileId:
    parent = (sessions.c.tenant == session.tenant) & (sessions.c.id == session.parent)
    is_open = sessions.c.archived_at.is_(None)
    owner = connection.scalar(select(sessions.c.owner).where(parent, sessions.c.root == session.root, is_open))
    if owner is None:
        raise Conflict("The session that this one was to belong to is gone or archived.")
    return ProfileId(owner)


def _owner_of_root(tenant: TenantId, session: SessionId, connection: Connection) -> str | None:
    query = select(sessions.c.owner).where(
        sessions.c.tenant == tenant, sessions.c.id == session, sessions.c.root == session
    )
    return connection.scalar(query)


def _join(
    tenant: TenantId, root: SessionId, people: Sequence[ProfileId], now: datetime, connection: Connection
) -> None:
    if not people:
        return
    _check_active(tenant, people, connection)
    newest = connection.scalar(select(tenants.c.last_message).where(tenants.c.id == tenant))
    joining = [Participant(profile=person, joined_after=newest or 0, joined_at=now) for person in dict.fromkeys(people)]
    connection.execute(
        participants.insert(),
        [
            {"tenant": tenant, "root": root, "profile": one.profile, "joined_after": one.joined_after, "joined_at": now}
            for one in joining
        ],
    )


def _check_active(tenant: TenantId, people: Collection[ProfileId], connection: Connection) -> None:
    """Raises Invalid where one of them was merged away or disabled since the caller looked: their place in a session
    would be nobody's."""
    active = select(profiles.c.id).where(
        profiles.c.tenant == tenant,
        profiles.c.id.in_(people),
        profiles.c.merged_into.is_(None),
        profiles.c.disabled == false(),
    )
    if set(people) - set(connection.scalars(active)):
        message = "This names somebody who is not of your organisation."
        raise Invalid.of("participants", "unknown_person", message)


def _beneath(tenant: TenantId, session: SessionId) -> Any:  # SQLAlchemy has no name for "a select of one column"
    return select(lineage.c.session).where(lineage.c.tenant == tenant, lineage.c.ancestor == session)


_takes_part = exists().where(
    participants.c.tenant == sessions.c.tenant,
    participants.c.root == sessions.c.root,
    participants.c.profile == bindparam("person"),
)
_LISTED = (
    select(
        sessions.c.tenant,
        cast(bindparam("person"), participants.c.profile.type).label("profile"),
        sessions.c.agent,
        sessions.c.id,
        sessions.c.private,
        (sessions.c.owner == bindparam("person")).label("own"),
    )
    .join(lineage, (lineage.c.tenant == sessions.c.tenant) & (lineage.c.session == sessions.c.id))
    .where(
        lineage.c.tenant == bindparam("of"),
        lineage.c.ancestor == bindparam("top"),
        sessions.c.incognito == false(),
        or_(sessions.c.owner == bindparam("person"), _takes_part),
    )
)
_RELIST = memberships.insert().from_select(["tenant", "profile", "agent", "session", "private", "own"], _LISTED)


def _relist(tenant: TenantId, root: SessionId, people: Collection[ProfileId], connection: Connection) -> None:
    """Makes these people's lists fit the tree again."""
    if not people:
        return
    stale = memberships.c.profile.in_(people) & memberships.c.session.in_(_beneath(tenant, root))
    connection.execute(memberships.delete().where(memberships.c.tenant == tenant, stale))
    connection.execute(_RELIST, [{"person": person, "of": tenant, "top": root} for person in sorted(people)])
