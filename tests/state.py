"""Turns a house into everything that it keeps, so that a refusal can be proven to have changed nothing."""

from __future__ import annotations

import re
from hashlib import sha256
from typing import Any

from sqlalchemy import Connection, select

from gateway.backends.sql import tables
from tests.house import House

_AUDIT = frozenset({"audit"})  # the one table that a refusal may write to
_SEEN = re.compile(r"last_\w+_at|seen_at")  # columns that say when somebody was here


async def state_of(home: House) -> dict[str, Any]:
    """Every row of every table but the audit, and every file of every workspace."""
    files = [path for path in home.gateway.folders.root.rglob("*") if path.is_file()]
    return {
        "files": {str(path): sha256(path.read_bytes()).hexdigest() for path in files},
        "rows": await home.gateway.stores.database.read(_rows),
    }


def _rows(connection: Connection) -> dict[str, list[str]]:
    return {
        table.name: sorted(
            map(repr, connection.execute(select(*(one for one in table.columns if not _SEEN.fullmatch(one.name)))))
        )
        for table in tables.metadata.sorted_tables
        if table.name not in _AUDIT
    }
