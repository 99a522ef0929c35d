"""Turns rows that end by themselves soon into sentences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gateway.web.api.shapes_ends import EndShape


def sentences(ends: Iterable[EndShape]) -> Iterator[str]:
    """One for each row."""
    for row in ends:
        yield f"Line {row['line']} ends by itself at {row['until']}: {row['text']}"
