"""Turns an audit record into the JSON that its hash covers, and back."""

from __future__ import annotations

import hashlib
from dataclasses import fields as fields_of
from datetime import datetime
from typing import Any

import orjson

from gateway.backends.sql.tables import to_instant
from gateway.model import AuditRecord, TenantId

_BLOCK = 64  # of SHA-256; the key is never longer
_OPTIONS = orjson.OPT_NON_STR_KEYS

# The columns beside the body, for those who filter: each repeats what the body says, and `verify` compares them.
INDEXED = ("at", "kind", "profile", "agent", "session", "action", "effect", "code", "decision")


def encode(record: AuditRecord) -> tuple[AuditRecord, bytes]:
    """The record as it is stored, and its JSON, in the order of its fields. The hash covers these very bytes, and they
    are kept; nobody makes them again.

    Never fails, since a record that can't be written would be lost: half a surrogate pair becomes its escape.
    """
    try:
        return record, orjson.dumps(record, option=_OPTIONS, default=repr)
    except orjson.JSONEncodeError:
        fields = _printable({field.name: getattr(record, field.name) for field in fields_of(record)})
        fit = AuditRecord(**fields | {"subjects": tuple(fields["subjects"])})
        return fit, orjson.dumps(fit, option=_OPTIONS, default=repr)


def decode(body: bytes) -> AuditRecord:
    """The record. Raises ValueError, TypeError or KeyError for a body that nobody here wrote."""
    fields: dict[str, Any] = orjson.loads(body)
    at, subjects = datetime.fromisoformat(fields.pop("at")), tuple(fields.pop("subjects"))
    return AuditRecord(at=at, subjects=subjects, **fields)


def indexed(record: AuditRecord) -> tuple[object, ...]:
    """The values of the columns `INDEXED`."""
    return (
        to_instant(record.at),
        record.kind,
        record.profile,
        record.agent,
        record.session,
        record.action,
        record.effect,
        record.code,
        record.decision,
    )


class ChainHash:
    """The hash of a record: keyed, over the one before it and its own JSON.

    HMAC-SHA256 (RFC 2104) with the key's two blocks hashed once: that is most of the cost of a short record.
    """

    def __init__(self, key: bytes) -> None:
        block = key.ljust(_BLOCK, b"\0")
        self._inner = hashlib.sha256(bytes(byte ^ 0x36 for byte in block))
        self._outer = hashlib.sha256(bytes(byte ^ 0x5C for byte in block))

    def __call__(self, previous: bytes, body: bytes) -> bytes:
        inner, outer = self._inner.copy(), self._outer.copy()
        inner.update(previous + body)
        outer.update(inner.digest())
        return outer.digest()

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
