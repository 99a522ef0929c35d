"""Turns audit records into each tenant's keyed hash chain, and reads it back (design section 12)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy import ColumnElement, Connection, bindparam, select

from gateway.backends.sql import cursors
from gateway.backends.sql.audit_records import INDEXED, ChainHash, decode, encode, indexed, storable
from gateway.backends.sql.audit_verify import verify
from gateway.backends.sql.bulk import BulkInsert
from gateway.backends.sql.checkpoints import Checkpoint, Checkpoints, Found
from gateway.backends.sql.decisions import read_decisions
from gateway.backends.sql.prepared import Prepared
from gateway.backends.sql.store import Store
from gateway.backends.sql.tables import audit, from_instant, to_instant
from gateway.errors import Unavailable
from gateway.model import AuditRecord, TenantId
from gateway.ports import AuditFilter, ChainReport, MadeBy, Page, RecordedDecisions, StoredRecord

_CURSOR = "audit"
_COLUMNS = (audit.c.sequence, audit.c.hash, audit.c.body, *(audit.c[name] for name in INDEXED))
_HEAD = Prepared(
    select(audit.c.sequence, audit.c.hash)
    .where(audit.c.tenant == bindparam("of"))
    .order_by(audit.c.sequence.desc())
    .limit(1)
)
_HASH = Prepared(select(audit.c.hash).where(audit.c.tenant == bindparam("of"), audit.c.sequence == bindparam("place")))
_INSERT = BulkInsert("audit", ("tenant", "sequence", "hash", "body", *INDEXED))


@dataclass(frozen=True, slots=True)
class _End:
    """The last record of a tenant's chain, and what was found wrong before it was written."""

    tenant: TenantId
    sequence: int
    hash: bytes
    incident: str | None = None


class SqlAudit:
    """`ports.Audit` on the store. `folder` is outside the database and holds the signed checkpoints."""

    def __init__(self, database: Store, folder: Path, key: bytes) -> None:
        self._database = database
        self._checkpoints = Checkpoints(folder, key)
        self._hash = ChainHash(key)
        self._unsigned: list[_End] = []

    async def append(self, records: Sequence[AuditRecord]) -> None:
        """Durable when it returns; records of several tenants each go to their own chain, in order.

        Raises Unavailable, with nothing written, where the store or the checkpoints can't be written, and where the
        chain was signed with another key.
        """
        if not records:
            return
        by_tenant: dict[TenantId, list[AuditRecord]] = {}
        for record in records:
            by_tenant.setdefault(record.tenant, []).append(record)
        await self._database.write(partial(self._append, by_tenant), after=self._sign, apart=True)

    async def read(
        self, tenant: TenantId, narrow: AuditFilter, *, limit: int, cursor: str | None, ascending: bool = False
    ) -> Page[StoredRecord]:
        """Newest first, or oldest first. Raises Invalid for what is no cursor."""
        place = None if cursor is None else cursors.read_number(_CURSOR, cursor)
        conditions = [audit.c.tenant == tenant, *_conditions(narrow)]
        if place is not None:
            conditions.append(audit.c.sequence > place if ascending else audit.c.sequence < place)
        order = audit.c.sequence.asc() if ascending else audit.c.sequence.desc()
        query = select(*_COLUMNS).where(*conditions).order_by(order).limit(limit + 1)

        def work(connection: Connection) -> list[StoredRecord]:
            return [_stored(tenant, row) for row in connection.execute(query)]

        return cursors.page(_CURSOR, await self._database.read(work), limit, lambda stored: stored.sequence)

    async def decisions(
        self, tenant: TenantId, since: datetime, *, most: int, made_by: MadeBy | None = None
    ) -> RecordedDecisions:
        """What was decided from `since` on; see `decisions.read_decisions`."""
        return await self._database.read(partial(read_decisions, tenant, since, most, made_by))

    async def verify(self, tenant: TenantId) -> ChainReport:
        """Reads the whole chain and the signed checkpoint outside the database; see `audit_verify`."""
        return await self._database.read(partial(verify, tenant, self._hash, self._checkpoints))

    # ── in the write ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _append(self, by_tenant: dict[TenantId, list[AuditRecord]], connection: Connection) -> list[_End]:
        while self._unsigned:
            self._sign_one(self._unsigned[0])
            del self._unsigned[0]
        return [self._append_to(tenant, records, connection) for tenant, records in by_tenant.items()]

    def _append_to(self, tenant: TenantId, records: list[AuditRecord], connection: Connection) -> _End:
        head = _HEAD.rows(connection, of=tenant)
        sequence, previous = head[0] if head else (0, self._hash.first(tenant))
        incident = self._incident(tenant, sequence, connection)
        encoded = encode(records)
        hashes = self._hash.chain(previous, (body for _, body in encoded))
        # For bytes, and for words that are more than a plain text, the driver looks for an adapter each time, in vain:
        # that was a quarter of the whole insert.
        plain = tuple if connection.dialect.name == "sqlite" else storable
        rows = [
            (tenant, number, bytearray(digest), bytearray(body), *plain(indexed(record)))
            for number, ((record, body), digest) in enumerate(zip(encoded, hashes, strict=True), sequence + 1)
        ]
        _INSERT(connection, rows)
        return _End(tenant, sequence + len(rows), hashes[-1], incident)

    def _incident(self, tenant: TenantId, head: int, connection: Connection) -> str | None:
        """What is wrong with the end of the chain before anything is added, which would hide it."""
        checkpoint = self._checkpoints.look(tenant)
        if checkpoint.found is Found.OTHER_KEY:
            raise Unavailable("The audit was signed with another key. Restore audit.key from the backup.")
        if checkpoint.found is Found.MISSING and head == 0:
            # Before the first record: a process that dies right after it leaves no chain without a checkpoint.
            self._checkpoints.advance(tenant, 0, self._hash.first(tenant))
            return None
        if checkpoint.found is not Found.GOOD:
            return f"when record {head + 1} was added, the checkpoint was {checkpoint.found.value}"
        return self._cut(tenant, checkpoint, head, connection)

    def _cut(self, tenant: TenantId, checkpoint: Checkpoint, head: int, connection: Connection) -> str | None:
        if checkpoint.sequence == 0:
            return None
        signed = _HASH.rows(connection, of=tenant, place=checkpoint.sequence)
        if signed and signed[0][0] == checkpoint.hash:
            return None
        return f"when record {head + 1} was added, record {checkpoint.sequence}, which was signed, was gone or another"

    def _sign(self, ends: list[_End]) -> None:
        for end in ends:
            try:
                self._sign_one(end)
            except OSError:
                # The records are durable, and writing them again would double them. The next append signs first, and
                # fails where that can't be done.
                self._unsigned.append(end)

    def _sign_one(self, end: _End) -> None:
        self._checkpoints.advance(end.tenant, end.sequence, end.hash, end.incident)


def _conditions(narrow: AuditFilter) -> list[ColumnElement[bool]]:
    wanted = {
        audit.c.kind: narrow.kind,
        audit.c.profile: narrow.person,
        audit.c.agent: narrow.agent,
        audit.c.session: narrow.session,
        audit.c.action: narrow.action,
        audit.c.effect: narrow.effect,
        audit.c.code: narrow.code,
        audit.c.decision: narrow.decision,
    }
    conditions = [column == value for column, value in wanted.items() if value is not None]
    if narrow.since is not None:
        conditions.append(audit.c.at >= to_instant(narrow.since))
    if narrow.until is not None:
        conditions.append(audit.c.at < to_instant(narrow.until))
    return conditions


def _stored(tenant: TenantId, row: Sequence[Any]) -> StoredRecord:
    sequence, digest, body, *columns = row
    try:
        record = decode(body)
    except (ValueError, TypeError, KeyError, AttributeError):
        record = _unreadable(tenant, dict(zip(INDEXED, columns, strict=True)))
    return StoredRecord(sequence=sequence, record=record, hash=digest.hex() if isinstance(digest, bytes) else "")


def _unreadable(tenant: TenantId, columns: dict[str, Any]) -> AuditRecord:
    """What the columns say of a record whose body somebody broke; the others can still be read, and `verify` tells."""
    at = from_instant(columns.pop("at"))
    unknown: dict[str, Any] = {
        "request": "",
        "surface": "",
        "operation": "",
        "epoch": 0,
        "details": {"unreadable": True},
    }
    return AuditRecord(at=at, tenant=tenant, **columns, **unknown)
