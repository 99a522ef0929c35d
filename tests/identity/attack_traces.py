"""Turns the world before and after an attack into what the attack left behind."""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Self

from sqlalchemy import Connection, select

from gateway.backends.sql import tables
from gateway.ports import AuditFilter, StoredRecord
from tests.identity.attacking import World

_AUDIT = frozenset({"audit"})  # the one table that a refusal may write to
_SEEN = re.compile(r"last_\w+_at|seen_at")  # columns that say when somebody was here
_NEWEST = 50  # records of the audit: more than one request and what came right before it


@dataclass(frozen=True)
class Told:
    """What the gateway wrote down: codes of access records, of denied decisions, and of what it counted for nobody."""

    audited: list[str]
    decided: list[str]
    counted: list[str]


class Traces:
    """Compares the world with what it was."""

    def __init__(self, world: World, lines: int, records: set[str], state: dict[str, Any]) -> None:
        self._world = world
        self._lines = lines
        self._records = records
        self._state = state

    @classmethod
    async def before(cls, world: World) -> Self:
        """From here on is what the attack did."""
        world.home.gateway.refusals.flush()
        records = {one.hash for one in await _newest(world)}
        return cls(world, len(world.logs.lines), records, await _state(world))

    async def unchanged(self) -> bool:
        """Whether no row and no file is another than before."""
        return await _state(self._world) == self._state

    async def told(self) -> Told:
        """What was written down since then."""
        self._world.home.gateway.refusals.flush()
        lines = self._world.logs.lines[self._lines :]
        counted = [line["code"] for line in lines if line["event"] == "refused" for _ in range(line["count"])]
        new = [one.record for one in await _newest(self._world) if one.hash not in self._records]
        return Told(
            audited=[one.code for one in new if one.kind == "access"],
            decided=[one.code for one in new if one.kind == "decision" and one.effect == "deny"],
            counted=counted,
        )


async def _newest(world: World) -> list[StoredRecord]:
    audit = world.home.gateway.stores.audit
    pages = [
        await audit.read(one.tenant, AuditFilter(), limit=_NEWEST, cursor=None, ascending=False)
        for one in (world.home, world.there)
    ]
    return [one for page in pages for one in page.items]


async def _state(world: World) -> dict[str, Any]:
    """Every row of every table but the audit, and every file of every workspace."""
    files = [path for path in world.home.gateway.folders.root.rglob("*") if path.is_file()]
    return {
        "files": {str(path): sha256(path.read_bytes()).hexdigest() for path in files},
        "rows": await world.home.gateway.stores.database.read(_rows),
    }


def _rows(connection: Connection) -> dict[str, list[str]]:
    return {
        table.name: sorted(
            map(repr, connection.execute(select(*(one for one in table.columns if not _SEEN.fullmatch(one.name)))))
        )
        for table in tables.metadata.sorted_tables
        if table.name not in _AUDIT
    }
