"""Turns a tenant's recorded decisions of a while into each different one and how often it was made (policy preview)."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import Any, Final

import orjson
from sqlalchemy import Connection, func, select

from gateway.backends.sql.tables import audit, to_instant
from gateway.model import AuditRecord, TenantId
from gateway.ports import Recorded, RecordedDecisions

_CHUNK: Final = 5_000
_MIX, _RANGE = 2_654_435_761, 2**32  # Knuth's multiplicative hash
_KEPT: Final = (
    "profile",
    "subjects",
    "agent",
    "resource",
    "relation",
    "whose",
    "chat",
    "action",
    "operation",
    "code",
    "session",
    "target",
)
_PLACES: Final = tuple(AuditRecord._fields.index(name) for name in _KEPT)
_DETAILS: Final = AuditRecord._fields.index("details")


def read_decisions(tenant: TenantId, since: datetime, most: int, connection: Connection) -> RecordedDecisions:
    """Decisions from `since` on. Of more than `most` one in so many, by its place in the chain: the same each time.

    The place is mixed first, since requests come in patterns: every third record may be of one kind.
    """
    begin, end = (
        to_instant(since),
        connection.scalar(select(func.max(audit.c.sequence)).where(audit.c.tenant == tenant)),
    )
    first = _first_since(tenant, begin, end or 0, connection)
    window = (audit.c.tenant == tenant) & (audit.c.sequence >= first) & (audit.c.kind == "decision")
    recorded = (end or 0) - first + 1
    if recorded > most:  # accesses among them, so there may be fewer decisions
        recorded = connection.scalar(select(func.count()).select_from(audit).where(window)) or 0
    every = max(1, -(-recorded // most))
    counts: Counter[Recorded] = Counter()
    seen = unreadable = about_others = 0
    chosen = window & (audit.c.at >= begin)
    if every > 1:
        chosen &= (audit.c.sequence * _MIX) % _RANGE < _RANGE // every
    query = select(audit.c.body).where(chosen).order_by(audit.c.sequence)
    for chunk in connection.execution_options(yield_per=_CHUNK).execute(query).scalars().partitions(_CHUNK):
        for body in chunk:
            seen += 1
            try:
                one, about = _recorded(body)
            except (ValueError, TypeError, KeyError, IndexError):
                unreadable += 1
                continue
            if about:
                about_others += 1
            else:
                counts[one] += 1
    return RecordedDecisions(counts=counts, seen=seen, every=every, unreadable=unreadable, about_others=about_others)


def _first_since(tenant: TenantId, begin: int, end: int, connection: Connection) -> int:
    """The place in the chain where `begin` is. Times rise with it, but for records that overtook others in a batch."""
    low, high = 1, end + 1
    while low < high:
        middle = (low + high) // 2
        query = select(audit.c.at).where(audit.c.tenant == tenant, audit.c.sequence >= middle)
        at = connection.scalar(query.order_by(audit.c.sequence).limit(1))
        low, high = (low, middle) if at is None or at >= begin else (middle + 1, high)
    return max(1, low - _CHUNK)


def _recorded(body: bytes) -> tuple[Recorded, bool]:
    """The facts of a body, without making a whole record of each: there are hundreds of thousands."""
    found: Any = orjson.loads(body)
    if isinstance(found, dict):  # of the first stores
        fields: list[Any] = [found.get(name) for name in _KEPT]
        details = found.get("details") or {}
    else:
        fields, details = [found[place] for place in _PLACES], found[_DETAILS]
    fields[1] = frozenset(fields[1])
    return Recorded(*fields), "about" in details
