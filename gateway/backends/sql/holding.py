"""Turns "this text is in that one" into each database's own function: never a pattern, never a language's rules."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Boolean, ColumnElement
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import GenericFunction


class holds(GenericFunction[bool]):  # noqa: N801 - reads as the function that it is in a statement
    """Whether the first text holds the second one, character for character."""

    type = Boolean()
    inherit_cache = True

    def __init__(self, text: ColumnElement[Any], part: ColumnElement[Any]) -> None:
        super().__init__(text, part)


@compiles(holds)
def _on_sqlite(element: holds, compiler: SQLCompiler, **options: Any) -> str:
    return f"instr({compiler.process(element.clauses, **options)}) > 0"


@compiles(holds, "postgresql")
def _on_postgresql(element: holds, compiler: SQLCompiler, **options: Any) -> str:
    return f"strpos({compiler.process(element.clauses, **options)}) > 0"
