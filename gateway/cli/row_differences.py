"""Turns the differences of two documents into the lines of a terminal, or into an object."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gateway.cli import output
from gateway.policy.differences import Changed, Differences
from gateway.policy.rows import Link, Row


def shape(found: Differences) -> dict[str, Any]:
    """The object that `--json` prints."""
    return {
        "added": [_row(row) for row in _both(found.added, found.added_links)],
        "removed": [_row(row) for row in _both(found.removed, found.removed_links)],
        "changed": [_changed(one) for one in found.changed],
    }


def tell(found: Differences) -> None:
    """Prints each row with its line, a changed one as what it was and what it is, and then how many there are."""
    if not found:
        output.say("Only comments or order differ.")
        return
    entries = [
        *((row.line, [f"-{_line(row)}"]) for row in _both(found.removed, found.removed_links)),
        *((row.line, [f"+{_line(row)}"]) for row in _both(found.added, found.added_links)),
        *((one.after.line, list(_lines_of(one))) for one in found.changed),
    ]
    for _, lines in sorted(entries, key=lambda entry: entry[0]):
        for line in lines:
            output.say(line)
    output.say(_counts(found))


def _counts(found: Differences) -> str:
    """`2 rows added, 1 changed.` There has to be a difference."""
    numbers = {
        "added": len(found.added) + len(found.added_links),
        "removed": len(found.removed) + len(found.removed_links),
        "changed": len(found.changed),
    }
    said = [(number, word) for word, number in numbers.items() if number]
    (first, word), *rest = said
    return ", ".join([f"{output.counted(first, 'row')} {word}", *(f"{number} {word}" for number, word in rest)]) + "."


def _both(rows: tuple[Row, ...], links: tuple[Link, ...]) -> list[Row | Link]:
    both: list[Row | Link] = [*rows, *links]
    return sorted(both, key=lambda row: row.line)


def _line(row: Row | Link) -> str:
    return f"{row.line:>5}: {row.text}"


def _lines_of(one: Changed) -> Iterator[str]:
    before, after = one.words
    yield f"-{_line(one.before)}"
    yield f"+{_line(one.after)}"
    yield f"        {one.field}: {before} -> {after}"


def _row(row: Row | Link) -> dict[str, Any]:
    return {"line": row.line, "text": row.text}


def _changed(one: Changed) -> dict[str, Any]:
    before, after = one.words
    return {
        "field": one.field,
        "from": before,
        "to": after,
        "before": _row(one.before),
        "after": _row(one.after),
    }
