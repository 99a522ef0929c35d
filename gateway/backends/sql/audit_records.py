"""Turns an audit record into the JSON that its hash covers, and back."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

import orjson

from gateway.backends.sql.tables import from_instant, to_instant
from gateway.model import AuditRecord, TenantId

_BLOCK = 64  # of SHA-256; the key is never longer
_OPTIONS = orjson.OPT_NON_STR_KEYS

# The columns beside the body, for those who filter: each repeats what the body says, and `verify` compares them.
INDEXED = ("at", "kind", "profile", "agent", "session", "action", "effect", "code", "decision")


_LINE_END = orjson.Fragment(b"\n")


def encode(records: Sequence[AuditRecord]) -> list[tuple[AuditRecord, bytes]]:
    """Each record as it is stored, and its JSON: a list of its fields, in their order. The hash covers these very
    bytes, and they are kept; nobody makes them again.

    A list, since naming 25 fields costs more than everything else that is done to a record. Never fails, since a record
    that can't be written would be lost: half a surrogate pair becomes its escape.
    """
    # The whole batch in one call, which spares each record a buffer. In a text a line end is written as an escape,
    # so that those between the records are the only ones.
    parts: list[object] = []
    for record in records:
        parts += (_fields(record), _LINE_END)
    try:
        lines = orjson.dumps(parts, option=_OPTIONS, default=repr)
    except orjson.JSONEncodeError:
        return [_encode_one(record) for record in records]
    return list(zip(records, lines[1:-3].split(b",\n,"), strict=True))


def _encode_one(record: AuditRecord) -> tuple[AuditRecord, bytes]:
    try:
        return record, _dumped(record)
    except orjson.JSONEncodeError:
        fields = _printable(record._asdict())
        fit = AuditRecord(**fields | {"subjects": tuple(fields["subjects"])})
        return fit, _dumped(fit)


def _dumped(record: AuditRecord) -> bytes:
    return orjson.dumps(_fields(record), option=_OPTIONS, default=repr)


def _fields(record: AuditRecord) -> tuple[object, ...]:
    return to_instant(record.at), *record[1:]


def decode(body: bytes) -> AuditRecord:
    """The record. Raises ValueError, TypeError, KeyError or AttributeError for a body that nobody here wrote.

    A body of the first stores is an object, with the names of the fields.
    """
    found: Any = orjson.loads(body)
    if isinstance(found, list):
        at, *others = found
        fields = dict(zip(AuditRecord._fields[1 : len(found)], others, strict=True))
        return AuditRecord(at=from_instant(at), subjects=tuple(fields.pop("subjects")), **fields)
    at, subjects = datetime.fromisoformat(found.pop("at")), tuple(found.pop("subjects"))
    return AuditRecord(at=at, subjects=subjects, **found)


def indexed(record: AuditRecord) -> tuple[object, ...]:
    """The values of the columns `INDEXED`."""
    return (
        to_instant(record.at),
        record.kind,
        record.profile,
        record.agent,
        record.session,
        None if record.action is None else str(record.action),
        record.effect,
        record.code,
        record.decision,
    )


def storable(columns: Sequence[object]) -> tuple[object, ...]:
    """The columns as PostgreSQL can hold them, none of whose texts holds a NUL character. The body has it, escaped."""
    return tuple(one.replace("\0", "\\0") if isinstance(one, str) and "\0" in one else one for one in columns)


class ChainHash:
    """The hash of a record: keyed, over the one before it and its own JSON.

    HMAC-SHA256 (RFC 2104) with the key's two blocks hashed once: that is most of the cost of a short record.
    """

    def __init__(self, key: bytes) -> None:
        block = key.ljust(_BLOCK, b"\0")
        self._inner = hashlib.sha256(bytes(byte ^ 0x36 for byte in block))
        self._outer = hashlib.sha256(bytes(byte ^ 0x5C for byte in block))

    def __call__(self, previous: bytes, body: bytes) -> bytes:
        return self.chain(previous, (body,))[0]

    def chain(self, previous: bytes, bodies: Iterable[bytes]) -> list[bytes]:
        """The hash of each of `bodies`, which follow `previous` one after the other."""
        begun, ended, hashes = self._inner.copy, self._outer.copy, []
        for body in bodies:
            inner, outer = begun(), ended()
            inner.update(previous + body)
            outer.update(inner.digest())
            previous = outer.digest()
            hashes.append(previous)
        return hashes

    def first(self, tenant: TenantId) -> bytes:
        """What the first record of a tenant's chain follows, so that no chain can be passed off as another's."""
        return self(b"audit chain of ", tenant.encode())


def _printable(value: Any) -> Any:  # JSON of any shape
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {_printable(str(key)): _printable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_printable(item) for item in value]
    return value
