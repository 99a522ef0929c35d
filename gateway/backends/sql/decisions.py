"""Turns a tenant's recorded decisions of a while into each different one and how often it was made (policy preview)."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

import orjson
from sqlalchemy import ColumnElement, Connection, func, select

from gateway.backends.sql.tables import audit, to_instant
from gateway.model import AuditRecord, TenantId
from gateway.ports import MadeBy, Recorded, RecordedDecisions

_CHUNK: Final = 5_000
_MIX, _RANGE = 2_654_435_761, 2**32  # Knuth's multiplicative hash
_LATEST: Final = timedelta(minutes=5)  # no request that a version decided is recorded later after the next one came
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
)
_PLACES: Final = tuple(AuditRecord._fields.index(name) for name in _KEPT)
_DETAILS: Final = AuditRecord._fields.index("details")
_VERSION: Final = AuditRecord._fields.index("policy_version")


class _Body(NamedTuple):
    """What is read of a record: its facts, when it was made and by which version, and whether it speaks of somebody."""

    recorded: Recorded
    at: int
    version: int | None
    about: bool


def read_decisions(
    tenant: TenantId, since: datetime, most: int, made_by: MadeBy | None, connection: Connection
) -> RecordedDecisions:
    """Decisions from `since` on. Of more than `most` about as many, by their places in the chain: the same each time.

    The place is mixed first, since requests come in patterns: every third record may be of one kind.
    """
    window, at_most = _window(tenant, since, made_by, connection)
    if at_most > most:
        at_most = connection.scalar(select(func.count()).select_from(audit).where(window)) or 0
    share = min(1.0, most / max(1, at_most))
    if share < 1:
        window &= (audit.c.sequence * _MIX) % _RANGE < int(_RANGE * share)
    counts: Counter[Recorded] = Counter()
    unreadable = about_others = 0
    reader, narrowed = _Reader(), _Narrowed(made_by)
    for body in _bodies(window, connection):
        try:
            one = reader.read(body)
        except (ValueError, TypeError, KeyError, IndexError):
            unreadable += 1
            continue
        if not narrowed.holds(one):
            continue
        if one.about:
            about_others += 1
        else:
            counts[narrowed.placed(one)] += 1
    seen = counts.total() + about_others + unreadable
    return RecordedDecisions(counts=counts, seen=seen, share=share, unreadable=unreadable, about_others=about_others)


def _window(
    tenant: TenantId, since: datetime, made_by: MadeBy | None, connection: Connection
) -> tuple[ColumnElement[bool], int]:
    """Where the decisions are, and how many there can be: accesses lie among them."""
    begin, of_tenant = to_instant(since), audit.c.tenant == tenant
    end = connection.scalar(select(func.max(audit.c.sequence)).where(of_tenant)) or 0
    first = _first_since(tenant, begin, end, connection)
    window = of_tenant & (audit.c.sequence >= first) & (audit.c.kind == "decision") & (audit.c.at >= begin)
    if made_by is not None and made_by.until is not None:
        window &= audit.c.at < to_instant(made_by.until + _LATEST)
    return window, end - first + 1


def _bodies(window: ColumnElement[bool], connection: Connection) -> Iterator[bytes]:
    query = select(audit.c.body).where(window).order_by(audit.c.sequence)
    for chunk in connection.execution_options(yield_per=_CHUNK).execute(query).scalars().partitions(_CHUNK):
        yield from chunk


def _first_since(tenant: TenantId, begin: int, end: int, connection: Connection) -> int:
    """The place in the chain where `begin` is. Times rise with it, but for records that overtook others in a batch."""
    low, high = 1, end + 1
    while low < high:
        middle = (low + high) // 2
        query = select(audit.c.at).where(audit.c.tenant == tenant, audit.c.sequence >= middle)
        at = connection.scalar(query.order_by(audit.c.sequence).limit(1))
        low, high = (low, middle) if at is None or at >= begin else (middle + 1, high)
    return max(1, low - _CHUNK)


class _Reader:
    """Reads bodies without making a whole record of each: there are hundreds of thousands.

    Their words and subjects are the same few again and again, and each is kept once.
    """

    def __init__(self) -> None:
        self._words: dict[str, str] = {}
        self._subjects: dict[tuple[str, ...], frozenset[str]] = {}

    def read(self, body: bytes) -> _Body:
        """Raises ValueError, TypeError, KeyError or IndexError for a body that nobody here wrote."""
        found: Any = orjson.loads(body)
        at: Any
        if isinstance(found, dict):  # of the first stores
            fields: list[Any] = [found.get(name) for name in _KEPT]
            at, details, version = to_instant(datetime.fromisoformat(found["at"])), found.get("details"), None
        else:
            fields, at, details = [found[place] for place in _PLACES], found[0], found[_DETAILS]
            version = found[_VERSION] if len(found) > _VERSION else None
        profile, subjects, *others, operation, code, session = fields
        if not (isinstance(at, int) and isinstance(operation, str) and isinstance(code, str)):
            raise TypeError
        once, key = self._once, tuple(subjects)
        held = self._subjects.get(key)
        if held is None:
            held = self._subjects[key] = frozenset(map(once, key))
        words = once(profile), held, *map(once, others), once(operation), once(code), once(session)
        return _Body(Recorded(*words), at, version, "about" in (details or {}))

    def _once(self, word: Any) -> Any:  # as it was read: of any type
        if word is None:
            return None
        known = self._words.get(word)
        if known is None:
            if not isinstance(word, str):
                raise TypeError
            known = self._words[word] = word
        return known


class _Narrowed:
    """Which records were made by a version, and which of its moments had come."""

    def __init__(self, made_by: MadeBy | None) -> None:
        self._version = None if made_by is None else made_by.version
        until = None if made_by is None else made_by.until
        self._until = None if until is None else to_instant(until)
        self._moments = [to_instant(one) for one in made_by.moments] if made_by is not None else []

    def holds(self, one: _Body) -> bool:
        """Of a record that doesn't say its version, by when it was made."""
        if self._version is None:
            return True
        if one.version is not None:
            return one.version == self._version
        return self._until is None or one.at < self._until

    def placed(self, one: _Body) -> Recorded:
        """The facts, with how many of the moments had come."""
        return one.recorded._replace(period=bisect_right(self._moments, one.at)) if self._moments else one.recorded
