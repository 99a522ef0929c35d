"""Turns a statement into its text once, for reads on the hot path: building and checking it costs more than running it.

Rows come as the driver gives them: times as microseconds, flags as 0 and 1, or as False and True.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from typing import Any

from sqlalchemy import Connection, CursorResult, Select
from sqlalchemy.sql.compiler import SQLCompiler


class Prepared:
    """A statement with named parameters (`bindparam`), compiled at its first use on each kind of database."""

    def __init__(self, statement: Select[Any]) -> None:
        self._statement = statement
        self._compiled: dict[str, SQLCompiler] = {}

    def rows(self, connection: Connection, **named: object) -> Sequence[Sequence[Any]]:
        """All rows of the statement with these parameters."""
        return self._found(connection, named).all()

    def rows_until(
        self, connection: Connection, enough: Callable[[Sequence[Any]], bool], **named: object
    ) -> Sequence[Sequence[Any]]:
        """The rows up to the first that is `enough`, itself included; those behind it are not read from the disk."""
        rows: list[Sequence[Any]] = []
        with closing(self._found(connection, named)) as found:
            while (row := found.fetchone()) is not None:
                rows.append(row)
                if enough(row):
                    break
        return rows

    def _found(self, connection: Connection, named: Mapping[str, object]) -> CursorResult[Any]:
        kind = connection.dialect.name
        compiled = self._compiled.get(kind)
        if compiled is None:
            compiled = self._compiled[kind] = self._compile(connection)
        values = compiled.construct_params(dict(named))
        ordered = tuple(values[name] for name in compiled.positiontup or ())
        return connection.exec_driver_sql(compiled.string, ordered)

    def _compile(self, connection: Connection) -> SQLCompiler:
        compiled = self._statement.compile(dialect=connection.dialect)
        if not isinstance(compiled, SQLCompiler):  # what a select always is; the type says it less exactly
            raise TypeError("only a query can be prepared")
        return compiled
