"""Turns many rows into few statements of the driver's.

On SQLite `executemany` gives the interpreter's lock back and takes it again for each row. Beside a busy event loop it
waits for the lock each time, and the writer falls behind; a statement with many rows waits once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

from sqlalchemy import Connection

from gateway.backends.sql.database import driver

# Each statement's text is one of these, so that the driver's cache knows it. Thirteen columns of 1,024 rows stay well
# below the 32,766 parameters that SQLite takes.
_SIZES = (1024, 512, 256, 128, 64, 32, 16, 8, 4, 2, 1)

Row = Sequence[object]


class BulkInsert:
    """Inserts rows into `columns` of `table`; both come from our own tables, never from a caller."""

    def __init__(self, table: str, columns: Sequence[str]) -> None:
        row = f"({', '.join('?' * len(columns))})"
        numbered = ", ".join(f"${number}" for number in range(1, len(columns) + 1))
        head = f"INSERT INTO {table} ({', '.join(columns)}) VALUES "  # noqa: S608 - names of ours
        self._statements = {size: head + ", ".join([row] * size) for size in _SIZES}
        self._one = f"{head}({numbered})"

    def __call__(self, connection: Connection, rows: Sequence[Row]) -> None:
        """Inserts `rows`, in order, inside the transaction that is open."""
        if connection.dialect.name != "sqlite":
            connection.exec_driver_sql(self._one, [tuple(row) for row in rows])  # asyncpg sends them in one go
            return
        raw = driver(connection)
        for part in _parts(rows):
            raw.execute(self._statements[len(part)], list(chain.from_iterable(part)))


def _parts(rows: Sequence[Row]) -> Iterator[Sequence[Row]]:
    done = 0
    for size in _SIZES:
        while len(rows) - done >= size:
            yield rows[done : done + size]
            done += size
