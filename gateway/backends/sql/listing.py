"""Turns a scope, a caller's filter and a place into the one statement that lists sessions, newest first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Integer,
    Select,
    Text,
    and_,
    bindparam,
    func,
    literal,
    select,
    union_all,
)

from gateway.backends.sql.folding import fold
from gateway.backends.sql.holding import holds
from gateway.backends.sql.prepared import Prepared
from gateway.backends.sql.scopes import TENANT, Rights, Walk, parameters, walks
from gateway.backends.sql.session_rows import COLUMNS
from gateway.backends.sql.tables import EPOCH, sessions, to_instant
from gateway.model import Scope, TenantId
from gateway.ports import SessionFilter

_KEPT = 256  # statements: one for each set of rights and filter in use
_BEFORE = bindparam("before", type_=Text())
_PAGE = bindparam("page", type_=Integer())
_TITLE = bindparam("title_part", type_=Text())
_SINCE = bindparam("since", type_=BigInteger())


class Listings:
    """The statements of lists, each compiled once for everybody with the same rights who narrows alike."""

    def __init__(self) -> None:
        self._prepared = lru_cache(maxsize=_KEPT)(_prepare)

    def rows(
        self,
        connection: Connection,
        tenant: TenantId,
        scope: Scope,
        narrow: SessionFilter,
        *,
        before: str | None,
        limit: int,
    ) -> Sequence[Sequence[Any]]:
        """At most `limit` rows of sessions below the id `before`, newest first."""
        shape = _shape(narrow)
        prepared = self._prepared(Rights.of(scope), shape, before is not None)
        if prepared is None:
            return ()
        wanted = {
            "title_part": "" if narrow.title is None else fold(narrow.title),
            "since": 0 if narrow.active_since is None else to_instant(narrow.active_since),
        }
        return prepared.rows(connection, **parameters(tenant, scope), **wanted, before=before or "", page=limit)


def _shape(narrow: SessionFilter) -> SessionFilter:
    """The filter without the values that are parameters of its statement."""
    title = None if narrow.title is None else ""
    return replace(narrow, title=title, active_since=None if narrow.active_since is None else EPOCH)


def _prepare(rights: Rights, narrow: SessionFilter, continued: bool) -> Prepared | None:
    conditions = _conditions(narrow)
    pages = [_first(walk, conditions, continued) for walk in walks(rights, narrow)]
    if not pages:
        return None
    found = (union_all(*pages) if len(pages) > 1 else pages[0]).subquery()
    newest = select(found.c.id).order_by(found.c.id.desc()).limit(_PAGE).subquery()
    return Prepared(
        select(*COLUMNS)
        .select_from(newest.join(sessions, and_(sessions.c.tenant == TENANT, sessions.c.id == newest.c.id)))
        .order_by(newest.c.id.desc())
    )


def _first(walk: Walk, conditions: list[ColumnElement[bool]], continued: bool) -> Select[Any]:
    # Each walk stops after a page of ids, so that the cost is that of a page and not of the tenant.
    query = walk.with_sessions().where(*conditions) if conditions else walk.query
    if continued:
        query = query.where(walk.session < _BEFORE)
    return select(query.order_by(walk.session.desc()).limit(_PAGE).subquery().c.id)


def _conditions(narrow: SessionFilter) -> list[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = []
    if narrow.kinds is not None:
        conditions.append(sessions.c.kind.in_([literal(kind.value) for kind in sorted(narrow.kinds)]))
    if narrow.title is not None:
        conditions.append(holds(sessions.c.title_folded, _TITLE))
    if narrow.active_since is not None:
        # A session nobody has written in yet is as old as its opening.
        conditions.append(func.coalesce(sessions.c.last_message_at, sessions.c.created_at, type_=BigInteger) >= _SINCE)
    if narrow.archived is not None:
        archived = sessions.c.archived_at.is_not(None)
        conditions.append(archived if narrow.archived else ~archived)
    return conditions
