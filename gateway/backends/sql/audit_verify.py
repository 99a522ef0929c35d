"""Turns a tenant's chain and its checkpoint into a report that names every fault (design section 12)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import Connection, select

from gateway.backends.sql.audit_records import INDEXED, ChainHash, decode, indexed, storable
from gateway.backends.sql.checkpoints import Checkpoint, Checkpoints, Found
from gateway.backends.sql.tables import audit
from gateway.model import TenantId
from gateway.ports import ChainReport

_COLUMNS = (audit.c.sequence, audit.c.hash, audit.c.body, *(audit.c[name] for name in INDEXED))
_CHUNK = 1_000

_OTHER_KEY = "the checkpoint was signed with another key: restore audit.key, nothing can be checked with this one"


def verify(tenant: TenantId, hashing: ChainHash, checkpoints: Checkpoints, connection: Connection) -> ChainReport:
    """Streams the chain. A changed, removed, added, moved or renumbered record, a cut tail, a checkpoint that is
    missing or forged, and another key all show; so does what was found when the chain was written on."""
    # Before the snapshot begins: a record that is written meanwhile must not look like one that is missing.
    checkpoint = checkpoints.read(tenant)
    if checkpoint.found is Found.OTHER_KEY:
        return ChainReport(records=0, faults=(_OTHER_KEY,))
    walk = _Walk(tenant, hashing, checkpoint)
    chain = select(*_COLUMNS).where(audit.c.tenant == tenant).order_by(audit.c.sequence)
    rows = connection.execution_options(yield_per=_CHUNK).execute(chain)
    faults = [fault for row in rows for fault in walk.step(row)]
    return ChainReport(records=walk.records, faults=(*checkpoint.incidents, *faults, *walk.end()))


class _Walk:
    """Follows a chain record by record; after a fault it goes on from what is stored."""

    def __init__(self, tenant: TenantId, chain: ChainHash, checkpoint: Checkpoint) -> None:
        self._tenant = tenant
        self._hash = chain
        self._checkpoint = checkpoint
        self._previous: bytes = chain.first(tenant)
        self._last = 0
        self.records = 0

    def step(self, row: Sequence[Any]) -> Iterator[str]:
        """The faults of one record."""
        sequence, stored_hash, stored_body, *columns = row
        # SQLite keeps a text or a null where somebody put one; that must read as a fault and not end the reading.
        digest, body = _bytes(stored_hash), _bytes(stored_body)
        self.records += 1
        if sequence != self._last + 1:
            yield _missing(self._last + 1, sequence - 1)
            yield f"record {sequence} follows one that is missing, so that it can't be checked itself"
        elif self._hash(self._previous, body) != digest:
            yield f"record {sequence} was changed, moved, or follows one that was removed"
        if not _columns_agree(body, columns):
            yield f"record {sequence} has columns that say something else than its text"
        if sequence == self._checkpoint.sequence and digest != self._checkpoint.hash:
            yield f"record {sequence} is not the one that the checkpoint signed"
        self._previous, self._last = digest, sequence

    def end(self) -> Iterator[str]:
        """What is wrong once all records have been read."""
        found = self._checkpoint.found
        if found is Found.FORGED:
            yield "the checkpoint is forged: its signature does not fit"
        if found is Found.MISSING and self.records:
            yield "the checkpoint is missing, so that a cut tail can't be excluded"
        if found is Found.GOOD and self._checkpoint.sequence > self._last:
            yield f"the tail was cut: {_missing(self._last + 1, self._checkpoint.sequence)}"


def _bytes(stored: object) -> bytes:
    return stored if isinstance(stored, bytes) else b""


def _missing(first: int, last: int) -> str:
    return f"record {first} is missing" if first == last else f"records {first} to {last} are missing"


def _columns_agree(body: bytes, columns: list[Any]) -> bool:
    try:
        return storable(indexed(decode(body))) == storable(columns)
    except (ValueError, TypeError, KeyError, AttributeError):
        return False
