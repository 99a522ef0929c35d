"""Turns a scope and the words of a query into the one statement that finds messages, newest first.

The scope is applied before a row counts, so that neither the order nor the limit depends on text outside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    Integer,
    Select,
    Text,
    and_,
    bindparam,
    case,
    false,
    func,
    select,
    union_all,
)

from gateway.backends.sql.holding import holds
from gateway.backends.sql.prepared import Prepared
from gateway.backends.sql.scopes import ME, TENANT, Rights, Walk, parameters, walks
from gateway.backends.sql.session_rows import COLUMNS
from gateway.backends.sql.tables import messages, participants, sessions
from gateway.model import ABOVE_ALL_MESSAGES, Scope, SessionId, TenantId
from gateway.ports import SessionFilter

MESSAGE_COLUMNS: tuple[Column[Any], ...] = tuple(
    column for column in messages.columns if column.name not in ("tenant", "folded")
)

_KEPT = 256  # statements: one for each set of rights and number of words in use
_LIMIT = bindparam("page", type_=Integer())
_SESSION = bindparam("only", type_=Text())
_EVERYTHING = SessionFilter()


class Searches:
    """The statements of searches, each compiled once for everybody with the same rights."""

    def __init__(self) -> None:
        self._prepared = lru_cache(maxsize=_KEPT)(_prepare)

    def rows(
        self,
        connection: Connection,
        tenant: TenantId,
        scope: Scope,
        words: Sequence[str],
        *,
        session: SessionId | None,
        limit: int,
    ) -> Sequence[Sequence[Any]]:
        """At most `limit` rows of `session_rows.COLUMNS` followed by `MESSAGE_COLUMNS`, newest message first."""
        prepared = self._prepared(Rights.of(scope), len(words), session is not None)
        if prepared is None:
            return ()
        held = {_word(number): word for number, word in enumerate(words)}
        return prepared.rows(connection, **parameters(tenant, scope), **held, only=session or "", page=limit)


def _word(number: int) -> str:
    return f"word{number}"


def _prepare(rights: Rights, words: int, one_session: bool) -> Prepared | None:
    found = [_newest(walk, words, one_session) for walk in walks(rights, _EVERYTHING)]
    if not found:
        return None
    numbers = (union_all(*found) if len(found) > 1 else found[0]).subquery()
    hits = select(numbers.c.number).order_by(numbers.c.number.desc()).limit(_LIMIT).subquery()
    message = and_(messages.c.tenant == TENANT, messages.c.number == hits.c.number)
    session = and_(sessions.c.tenant == TENANT, sessions.c.id == messages.c.session)
    joined = hits.join(messages, message).join(sessions, session)
    return Prepared(select(*COLUMNS, *MESSAGE_COLUMNS).select_from(joined).order_by(hits.c.number.desc()))


def _newest(walk: Walk, words: int, one_session: bool) -> Select[Any]:
    # The empty text makes the whole tenant's messages be walked from the newest, instead of all of its sessions' first.
    of_message = messages.c.session.concat("") if walk.whole_tenant and not one_session else messages.c.session
    holding = [holds(messages.c.folded, bindparam(_word(number), type_=Text())) for number in range(words)]
    query = (
        walk.with_sessions()
        .join(messages, and_(messages.c.tenant == TENANT, walk.session == of_message))
        .where(messages.c.incarnation == sessions.c.incarnation, *holding, messages.c.number > _joined_after())
        .with_only_columns(messages.c.number)
    )
    if one_session:
        query = query.where(walk.session == _SESSION)
    return select(query.order_by(messages.c.number.desc()).limit(_LIMIT).subquery().c.number)


def _joined_after() -> ColumnElement[int]:
    """As `policy/relations.readable_after`: who takes part reads from their joining on; a private session's owner, and
    who reads by a row for `any`, from the first message; a shared one's owner who does not take part reads nothing."""
    joined = select(participants.c.joined_after).where(
        participants.c.tenant == TENANT, participants.c.root == sessions.c.root, participants.c.profile == ME
    )
    owns_shared = and_(sessions.c.owner == ME, sessions.c.private == false())
    return func.coalesce(joined.scalar_subquery(), case((owns_shared, ABOVE_ALL_MESSAGES), else_=0))
