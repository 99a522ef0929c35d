"""Turns a batch of drafts into rows of messages, numbered in the order of the batch, in one transaction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime

from sqlalchemy import Connection, bindparam, exists, or_, select

from gateway.backends.sql.acting import Actor
from gateway.backends.sql.folding import fold
from gateway.backends.sql.prepared import Prepared
from gateway.backends.sql.tables import messages, participants, sessions, tenants
from gateway.errors import Unauthenticated
from gateway.model import Message, SessionId, TenantId
from gateway.ports import MessageDraft

Draft = tuple[TenantId, MessageDraft, Actor | None]
Outcome = Message | Unauthenticated | None
_Accepted = tuple[TenantId, MessageDraft]
_Place = tuple[TenantId, SessionId]

_OPEN = select(sessions.c.incarnation).where(
    sessions.c.tenant == bindparam("of"), sessions.c.id == bindparam("name"), sessions.c.archived_at.is_(None)
)
_takes_part = exists().where(
    participants.c.tenant == sessions.c.tenant,
    participants.c.root == sessions.c.root,
    participants.c.profile == bindparam("person"),
)
_MEMBER = Prepared(
    select(sessions.c.id).where(
        sessions.c.tenant == bindparam("of"),
        sessions.c.id == bindparam("name"),
        or_(sessions.c.owner == bindparam("person"), _takes_part),
    )
)
_COUNT = (
    tenants.update()
    .where(tenants.c.id == bindparam("of"))
    .values(last_message=tenants.c.last_message + bindparam("new"))
    .returning(tenants.c.last_message)
)
_TOUCH = (
    sessions.update()
    .where(
        sessions.c.tenant == bindparam("of"),
        sessions.c.id == bindparam("name"),
        or_(sessions.c.last_message_at.is_(None), sessions.c.last_message_at < bindparam("at")),
    )
    .values(last_message_at=bindparam("at"))
)


def append_all(drafts: Sequence[Draft], connection: Connection) -> list[Outcome]:
    """The stored message of each draft; None where its session is gone, archived, or another incarnation by now,
    or where it is from a member who has left since; a refusal where the request it came with is nobody's by now."""
    open_now = _incarnations({(tenant, draft.session) for tenant, draft, _ in drafts}, connection)
    refusals = _refusals({actor for _, _, actor in drafts if actor is not None}, connection)
    accepted = [
        (tenant, draft)
        for tenant, draft, actor in drafts
        if actor not in refusals
        and open_now.get((tenant, draft.session)) == draft.incarnation
        and _may_write(tenant, draft, connection)
    ]
    numbers = _take_numbers(Counter(tenant for tenant, _ in accepted), connection)
    stored: dict[int, Message] = {}
    for tenant, draft in accepted:
        stored[id(draft)] = _numbered(draft, numbers[tenant])
        numbers[tenant] += 1
    if accepted:
        _insert(accepted, stored, connection)
    return [stored.get(id(draft)) or refusals.get(actor) for _, draft, actor in drafts]


def _refusals(actors: set[Actor], connection: Connection) -> dict[Actor | None, Unauthenticated]:
    refusals: dict[Actor | None, Unauthenticated] = {}
    for actor in actors:
        try:
            actor.check(connection)
        except Unauthenticated as refusal:
            refusals[actor] = refusal
    return refusals


def _may_write(tenant: TenantId, draft: MessageDraft, connection: Connection) -> bool:
    if draft.member is None:
        return True
    return bool(_MEMBER.rows(connection, of=tenant, name=draft.session, person=draft.member))


def _numbered(draft: MessageDraft, number: int) -> Message:
    fields = asdict(draft)
    del fields["member"]
    return Message(number=number, **fields)


def _incarnations(places: set[_Place], connection: Connection) -> dict[_Place, int]:
    found = {}
    for tenant, session in places:
        incarnation = connection.scalar(_OPEN, {"of": tenant, "name": session})
        if incarnation is not None:
            found[tenant, session] = incarnation
    return found


def _take_numbers(wanted: Counter[TenantId], connection: Connection) -> dict[TenantId, int]:
    """The first of the tenant's next numbers. The counter never falls, so that a deleted message's is not given again
    and "from their joining on" stays exact."""
    first = {}
    for tenant, count in wanted.items():
        last = connection.scalar(_COUNT, {"of": tenant, "new": count})
        first[tenant] = int(last or 0) - count + 1
    return first


def _insert(accepted: Sequence[_Accepted], stored: dict[int, Message], connection: Connection) -> None:
    rows = [asdict(stored[id(draft)]) | {"tenant": tenant, "folded": fold(draft.content)} for tenant, draft in accepted]
    connection.execute(messages.insert(), rows)
    newest: dict[_Place, datetime] = {}
    for tenant, draft in accepted:
        place = (tenant, draft.session)
        newest[place] = max(draft.created_at, newest.get(place, draft.created_at))
    touched = [{"of": tenant, "name": session, "at": at} for (tenant, session), at in newest.items()]
    connection.execute(_TOUCH, touched)
