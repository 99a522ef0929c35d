"""Turns rows of sessions into sessions, their lineage and who takes part; a list is one statement (design 7)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import TypeVar

from sqlalchemy import Connection, func, literal, select

from gateway.backends.sql import cursors, trees
from gateway.backends.sql.folding import fold
from gateway.backends.sql.listing import Listings
from gateway.backends.sql.notices import tell
from gateway.backends.sql.session_rows import facts_of, find_facts, is_as_authorised, participants_of, session_of
from gateway.backends.sql.store import Store
from gateway.backends.sql.tables import Instant, lineage, memberships, sessions
from gateway.backends.sql.tally import tally
from gateway.model import AgentName, Notice, Participant, ProfileId, Scope, Session, SessionFacts, SessionId, TenantId
from gateway.ports import Page, SessionFilter, SessionTally

ResultT = TypeVar("ResultT")
_CURSOR = "sessions"
_KEY_TAKEN = "There is a session under this key already, or no such tenant."


class SqlSessions:
    """`ports.Sessions` on the store."""

    def __init__(self, database: Store) -> None:
        self._database = database
        self._listings = Listings()

    async def create(self, session: Session, participants: Sequence[ProfileId]) -> SessionFacts:
        """Stores a new session; participants (of a root only) join now. Raises Conflict where the key is taken or the
        parent is gone."""
        work = partial(trees.insert, session, participants)
        return await self._database.write(work, taken=_KEY_TAKEN)

    async def find(self, tenant: TenantId, reference: str) -> SessionFacts | None:
        """By key or `ses_…` id, byte for byte; with the participants of its root."""
        return await self._database.read(partial(find_facts, tenant, reference))

    async def list(
        self, tenant: TenantId, scope: Scope, narrow: SessionFilter, *, limit: int, cursor: str | None
    ) -> Page[Session]:
        """The sessions in `scope`, newest first by id, as one SQL statement. Raises Invalid for what is no cursor."""
        before = None if cursor is None else cursors.read(_CURSOR, cursor)

        def work(connection: Connection) -> list[Session]:
            rows = self._listings.rows(connection, tenant, scope, narrow, before=before, limit=limit + 1)
            return [session_of(row) for row in rows]

        return cursors.page(_CURSOR, await self._database.read(work), limit, lambda session: session.id)

    async def tally(
        self, tenant: TenantId, kinds: Sequence[tuple[AgentName, bool]], *, most: int, newest: int
    ) -> Sequence[SessionTally]:
        """Of each agent (`*`: all) and whether private, how many there are; see `tally`."""
        return await self._database.read(partial(tally, tenant, kinds, most, newest))

    async def participants(
        self, tenant: TenantId, roots: Collection[SessionId]
    ) -> Mapping[SessionId, Sequence[Participant]]:
        """Who takes part in each of these roots now."""

        def work(connection: Connection) -> dict[SessionId, Sequence[Participant]]:
            return {root: participants_of(tenant, root, connection) for root in roots}

        return await self._database.read(work)

    async def set_title(
        self, tenant: TenantId, session: SessionId, title: str | None, *, expected: SessionFacts | None
    ) -> SessionFacts | None:
        """Renames; None where there is no such session, or not as expected."""
        return await self._write_as(expected, partial(_update, tenant, session, _title(title)))

    async def set_participants(
        self,
        tenant: TenantId,
        root: SessionId,
        people: Sequence[ProfileId],
        now: datetime,
        *,
        expected: SessionFacts | None,
        told: Sequence[Notice] = (),
    ) -> SessionFacts | None:
        """Those who stay keep their joining; new ones join now; the rest leave. Raises Conflict without the owner."""
        return await self._write_as(expected, partial(trees.replace_participants, tenant, root, people, now), told)

    async def set_title_and_participants(
        self,
        tenant: TenantId,
        root: SessionId,
        title: str | None,
        people: Sequence[ProfileId],
        now: datetime,
        *,
        expected: SessionFacts | None,
        told: Sequence[Notice] = (),
    ) -> SessionFacts | None:
        """Both in one transaction, or neither."""

        def work(connection: Connection) -> SessionFacts | None:
            changed = trees.replace_participants(tenant, root, people, now, connection)
            return changed and _update(tenant, root, _title(title), connection)

        return await self._write_as(expected, work, told)

    async def set_owner(
        self,
        tenant: TenantId,
        root: SessionId,
        owner: ProfileId,
        now: datetime,
        *,
        expected: SessionFacts | None,
        told: Sequence[Notice] = (),
    ) -> SessionFacts | None:
        """Reassigns the whole tree; a new owner who did not take part joins now."""
        return await self._write_as(expected, partial(trees.reassign, tenant, root, owner, now), told)

    async def takes_part(self, tenant: TenantId, profile: ProfileId) -> bool:
        """Whether a profile owns a listed session or takes part in one."""
        return await self._database.read(partial(_takes_part, tenant, profile))

    async def agents_of_tree(self, tenant: TenantId, root: SessionId) -> Sequence[AgentName]:
        """The agents of a root and all that it spawned, each once."""
        return await self._database.read(partial(_agents_of_tree, tenant, root))

    async def join(self, tenant: TenantId, root: SessionId, person: ProfileId, now: datetime) -> SessionFacts | None:
        """One more who takes part; who does already keeps their joining. None where there is no such root."""
        return await self._database.write(partial(trees.join, tenant, root, person, now))

    async def leave(
        self, tenant: TenantId, root: SessionId, people: Collection[ProfileId], heir: ProfileId, now: datetime
    ) -> SessionFacts | None:
        """These take part no longer; what one of them owned is `heir`'s. None where there is no such root."""
        return await self._database.write(partial(trees.leave, tenant, root, people, heir, now))

    async def archive(
        self, tenant: TenantId, session: SessionId, now: datetime, *, expected: SessionFacts | None
    ) -> SessionFacts | None:
        """Archives; repeating it keeps the first time."""
        first = func.coalesce(sessions.c.archived_at, literal(now, Instant()))
        return await self._write_as(expected, partial(_update, tenant, session, {"archived_at": first}))

    async def reset(
        self, tenant: TenantId, session: SessionId, *, expected: SessionFacts | None
    ) -> SessionFacts | None:
        """Starts the next incarnation, which is not archived; id, key and lineage stay."""
        values = {"incarnation": sessions.c.incarnation + 1, "archived_at": None, "last_message_at": None}
        return await self._write_as(expected, partial(_update, tenant, session, values))

    async def delete(self, tenant: TenantId, session: SessionId, *, expected: SessionFacts | None) -> int:
        """Removes the session, its descendants and their transcripts; how many sessions went."""
        return await self._write_as(expected, partial(trees.remove, tenant, session)) or 0

    async def _write_as(
        self,
        expected: SessionFacts | None,
        work: Callable[[Connection], ResultT],
        told: Sequence[Notice] = (),
    ) -> ResultT | None:
        """What `work` writes; None, and nothing written, where the session is no longer as it was authorised."""

        def guarded(connection: Connection) -> ResultT | None:
            if expected is not None and not is_as_authorised(expected, connection):
                return None
            written = work(connection)
            tell(told if written is not None else (), connection)
            return written

        return await self._database.write(guarded)


def _takes_part(tenant: TenantId, profile: ProfileId, connection: Connection) -> bool:
    theirs = select(memberships.c.session).where(memberships.c.tenant == tenant, memberships.c.profile == profile)
    return connection.execute(theirs.limit(1)).first() is not None


def _agents_of_tree(tenant: TenantId, root: SessionId, connection: Connection) -> list[AgentName]:
    beneath = select(lineage.c.session).where(lineage.c.tenant == tenant, lineage.c.ancestor == root)
    whole = (sessions.c.tenant == tenant) & ((sessions.c.id == root) | sessions.c.id.in_(beneath))
    found = connection.scalars(select(sessions.c.agent).where(whole).distinct().order_by(sessions.c.agent))
    return [AgentName(agent) for agent in found]


def _title(title: str | None) -> dict[str, object]:
    return {"title": title, "title_folded": None if title is None else fold(title)}


def _update(
    tenant: TenantId, session: SessionId, values: Mapping[str, object], connection: Connection
) -> SessionFacts | None:
    mine = (sessions.c.tenant == tenant) & (sessions.c.id == session)
    connection.execute(sessions.update().where(mine).values(dict(values)))
    return facts_of(tenant, session, connection)
