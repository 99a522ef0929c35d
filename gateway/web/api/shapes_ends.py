"""What is said of rows that end by themselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from typing_extensions import TypedDict

from gateway.policy.rows import Row, written

MOST: Final = 50  # the soonest


class EndShape(TypedDict):
    """A row that ends soon."""

    line: int
    text: str
    until: str


def ends(rows: Sequence[Row]) -> list[EndShape]:
    """The soonest of the rows, which come so."""
    return [{"line": row.line, "text": row.text, "until": written(row.until)} for row in rows[:MOST] if row.until]
