"""Turns drafts into numbered messages, in the order of their commits, and reads them back."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextvars import Context
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from sqlalchemy import Connection, bindparam, select

from gateway.backends.sql import cursors, folding
from gateway.backends.sql.acting import Actor, acting
from gateway.backends.sql.appending import append_all
from gateway.backends.sql.prepared import Prepared
from gateway.backends.sql.searching import MESSAGE_COLUMNS, Searches
from gateway.backends.sql.session_rows import COLUMNS, session_of
from gateway.backends.sql.store import Budget, Store
from gateway.backends.sql.tables import from_instant, messages, sessions
from gateway.errors import Conflict, GatewayError, Invalid, Unavailable
from gateway.model import Message, Scope, Session, SessionId, TenantId
from gateway.ports import MessageDraft, Page

_CURSOR = "history"
_CONTENT = [column.name for column in MESSAGE_COLUMNS].index("content")
PAGE_BYTES = 4 * 1024 * 1024  # of content on one page
_MOST_WORDS = 8
_SEARCHING = Budget(1.5, "That search takes too long. Narrow it: name one session, or words that fewer messages hold.")
_TAKEN = "A message with this id is stored already."


@dataclass(frozen=True, slots=True)
class _Waiting:
    tenant: TenantId
    draft: MessageDraft
    actor: Actor | None
    outcome: asyncio.Future[Message | None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


@dataclass(frozen=True, slots=True)
class _Transcript:
    tenant: TenantId
    session: SessionId
    incarnation: int

    def named(self) -> dict[str, object]:
        """The parameters of the statements below."""
        return {"of": self.tenant, "name": self.session, "incarnation": self.incarnation}


class SqlTranscripts:
    """`ports.Transcripts` on the store. Appends that come while one is being written are written together."""

    def __init__(self, database: Store) -> None:
        self._database = database
        self._searches = Searches()
        self._waiting: list[_Waiting] = []
        self._writing: asyncio.Task[None] | None = None

    async def append(self, tenant: TenantId, draft: MessageDraft) -> Message | None:
        """Durable when it returns, and the session's `last_message_at` with it. None where the session is gone,
        archived, or another incarnation by now, or where a draft is from a member who no longer is one. Raises
        Conflict for an id that is taken, Invalid for a text that can't be stored, Unauthenticated where the running
        request's profile is not active any more."""
        one = _Waiting(tenant, draft, acting())
        self._waiting.append(one)
        if self._writing is None or self._writing.done():
            # A task of its own: a caller that gives up must not take the others' messages with it.
            # Nobody's request either: each draft is looked at for the request that it came with.
            self._writing = asyncio.create_task(self._write_waiting(), context=Context())
        return await one.outcome

    async def history(
        self, tenant: TenantId, session: SessionId, *, incarnation: int, after: int, limit: int, cursor: str | None
    ) -> Page[Message] | None:
        """Messages numbered above `after`, oldest first; None where the session is gone or another incarnation by now.
        Long ones make a page of fewer than `limit`. Raises Invalid for what is no cursor of this session's.

        A cursor names the last message by its id: its number counts the whole tenant's messages, which is nobody's
        business who may not read them."""
        last = None if cursor is None else cursors.read(_CURSOR, cursor)
        room = _Room(PAGE_BYTES)

        def work(connection: Connection) -> list[Message] | None:
            here = _Transcript(tenant, session, incarnation)
            above = after if last is None else max(after, _number_of(last, here, connection))
            return _messages(_OLDEST, here, above, limit + 1, room, connection)

        found = await self._database.read(work)
        if found is None:
            return None
        return cursors.page(_CURSOR, found, min(limit, room.fitting), lambda message: message.id)

    async def latest(
        self, tenant: TenantId, session: SessionId, *, incarnation: int, after: int, limit: int
    ) -> Sequence[Message] | None:
        """The newest `limit` messages above `after`, oldest of them first; None as in `history`."""
        here = _Transcript(tenant, session, incarnation)
        found = await self._database.read(partial(_messages, _NEWEST, here, after, limit, None))
        return None if found is None else found[::-1]

    async def search(
        self, tenant: TenantId, scope: Scope, query: str, *, session: SessionId | None, limit: int
    ) -> Sequence[tuple[Session, Message]]:
        """Messages in scope that hold every word of `query` (folded), newest first, each participant only from their
        joining on, and only of each session's incarnation now. A query without a word finds nothing. Raises Invalid for
        more words than a search may have, Unavailable where it takes too long."""
        words = folding.words(query)
        if not words:
            return ()
        if len(words) > _MOST_WORDS:  # of a few signs, folding makes many words
            raise Invalid.of("query", "too_many_words", f"Search for at most {_MOST_WORDS} words.")

        def work(connection: Connection) -> list[tuple[Session, Message]]:
            rows = self._searches.rows(connection, tenant, scope, words, session=session, limit=limit)
            return [(session_of(row[: len(COLUMNS)]), _message(row[len(COLUMNS) :])) for row in rows]

        return await self._database.read(work, budget=_SEARCHING)

    async def _write_waiting(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting, []
            await self._write(batch)

    async def _write(self, batch: list[_Waiting]) -> None:
        drafts = [(one.tenant, one.draft, one.actor) for one in batch]
        try:
            written = await self._database.write(partial(append_all, drafts), taken=_TAKEN)
        except (Conflict, Invalid) as error:
            if len(batch) == 1:
                _settle(batch, error)
                return
            # One of them has an id that is taken or a text that can't be stored: the others are not to suffer for it.
            for one in batch:
                await self._write([one])
        except GatewayError as error:
            _settle(batch, error)
        else:
            for one, outcome in zip(batch, written, strict=True):
                if isinstance(outcome, GatewayError):
                    _settle([one], outcome)
                elif not one.outcome.done():
                    one.outcome.set_result(outcome)
        finally:
            # Nobody waits for ever, whatever went wrong; those who were answered are left alone.
            _settle(batch, Unavailable("The message could not be stored. Send it again."))


def _settle(batch: list[_Waiting], error: GatewayError) -> None:
    for one in batch:
        if not one.outcome.done():
            one.outcome.set_exception(error)


class _Room:
    """Counts messages into a page of so many bytes of content; the first one always fits."""

    def __init__(self, size: int) -> None:
        self._left = size
        self.fitting = 0

    def is_over(self, row: Sequence[Any]) -> bool:
        """Whether this message does not fit any more; it is the one that says that the list goes on."""
        self._left -= len(row[_CONTENT].encode())
        if self._left < 0 and self.fitting:
            return True
        self.fitting += 1
        return False


_BASE = select(*MESSAGE_COLUMNS).where(
    messages.c.tenant == bindparam("of"),
    messages.c.session == bindparam("name"),
    messages.c.incarnation == bindparam("incarnation"),
    messages.c.number > bindparam("above"),
)
_OLDEST = Prepared(_BASE.order_by(messages.c.number).limit(bindparam("page")))
_NEWEST = Prepared(_BASE.order_by(messages.c.number.desc()).limit(bindparam("page")))
_INCARNATION = Prepared(
    select(sessions.c.incarnation).where(sessions.c.tenant == bindparam("of"), sessions.c.id == bindparam("name"))
)
_NUMBER = Prepared(
    select(messages.c.number).where(
        messages.c.tenant == bindparam("of"),
        messages.c.id == bindparam("message"),
        messages.c.session == bindparam("name"),
        messages.c.incarnation == bindparam("incarnation"),
    )
)


def _number_of(message: str, here: _Transcript, connection: Connection) -> int:
    """Raises Invalid for a message that is not of this transcript, whether or not there is one elsewhere."""
    rows = _NUMBER.rows(connection, message=message, **here.named())
    if not rows:
        raise cursors.not_a_cursor()
    number: int = rows[0][0]
    return number


def _messages(
    prepared: Prepared, here: _Transcript, above: int, limit: int, room: _Room | None, connection: Connection
) -> list[Message] | None:
    now = _INCARNATION.rows(connection, of=here.tenant, name=here.session)
    if not now or now[0][0] != here.incarnation:
        return None
    named = here.named() | {"above": above, "page": limit}
    rows = prepared.rows_until(connection, room.is_over, **named) if room else prepared.rows(connection, **named)
    return [_message(row) for row in rows]


def _message(row: Sequence[Any]) -> Message:
    number, message, session, incarnation, role, name, content, sender, created_at = row
    return Message(
        id=message,
        number=number,
        session=session,
        incarnation=incarnation,
        role=role,
        name=name,
        content=content,
        sender=sender,
        created_at=from_instant(created_at),
    )
