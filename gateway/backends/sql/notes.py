"""Turns rows of notes into where each note came from, kept outside its text (design section 9)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from functools import partial

from sqlalchemy import Connection, select

from gateway.backends.sql.store import Store
from gateway.backends.sql.tables import AnyRow, notes
from gateway.model import AgentName, ProfileId, SessionId, TenantId
from gateway.ports import NoteRecord


class SqlNotes:
    """`ports.Notes` on the store."""

    def __init__(self, database: Store) -> None:
        self._database = database

    async def add(self, note: NoteRecord) -> None:
        """Stores it before the note is written. Raises Conflict where the id is taken."""

        def insert(connection: Connection) -> None:
            connection.execute(notes.insert(), asdict(note))

        await self._database.write(insert)

    async def of_path(self, tenant: TenantId, agent: AgentName, path: str) -> Sequence[NoteRecord]:
        """The records of one file, oldest first."""
        return await self._database.read(partial(_of_path, tenant, agent, path))


def _of_path(tenant: TenantId, agent: AgentName, path: str, connection: Connection) -> list[NoteRecord]:
    query = (
        select(notes)
        .where(notes.c.tenant == tenant, notes.c.agent == agent, notes.c.path == path)
        .order_by(notes.c.created_at, notes.c.id)
    )
    return [_note(row) for row in connection.execute(query)]


def _note(row: AnyRow) -> NoteRecord:
    return NoteRecord(
        id=row.id,
        tenant=TenantId(row.tenant),
        agent=AgentName(row.agent),
        path=row.path,
        sha256=row.sha256,
        provenance=row.provenance,
        author=ProfileId(row.author),
        session=None if row.session is None else SessionId(row.session),
        created_at=row.created_at,
    )
