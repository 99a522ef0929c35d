"""Turns two documents into the rows that differ: added, removed, or changed in one field.

Comments, order and spaces say nothing to a decision, so they are no difference.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from gateway.policy.documents import Document
from gateway.policy.rows import Link, Row, written

NO_END: Final = "no end"

# In the order of trying: a row that only ends later is that row, before it is one that changed whom it is for.
_FIELDS: Final = ("until", "effect", "action", "chat", "whose", "visibility", "resource", "agent", "subject")

Fields = tuple[str, ...]
KeyT = TypeVar("KeyT")
ValueT = TypeVar("ValueT")


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """A row that is another one now in `field` alone."""

    before: Row
    after: Row
    field: str

    @property
    def words(self) -> tuple[str, str]:
        """What the field said and what it says."""
        at = _FIELDS.index(self.field)
        return _fields(self.before)[at], _fields(self.after)[at]


@dataclass(frozen=True, slots=True, kw_only=True)
class Differences:
    """What one document has and the other has not, each in the order of its own lines."""

    added: tuple[Row, ...]
    removed: tuple[Row, ...]
    changed: tuple[Changed, ...]
    added_links: tuple[Link, ...]
    removed_links: tuple[Link, ...]

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.changed or self.added_links or self.removed_links)


def differences(before: Document, after: Document) -> Differences:
    """What happened to the rows of `before` on the way to `after`.

    Each row is read a few times and none is compared with every other: a long document takes as long as its reading.
    """
    removed, added = rows_apart(before, after)
    removed_links, added_links = links_apart(before, after)
    changed = _pairs(removed, added)
    gone, come = {one.before.line for one in changed}, {one.after.line for one in changed}
    return Differences(
        added=tuple(row for row in added if row.line not in come),
        removed=tuple(row for row in removed if row.line not in gone),
        changed=changed,
        added_links=tuple(added_links),
        removed_links=tuple(removed_links),
    )


def rows_apart(before: Document, after: Document) -> tuple[list[Row], list[Row]]:
    """The rows that are gone, and those that came; one that changed is in both. Takes a while for long documents."""
    return _apart({_fields(row): row for row in before.rows}, {_fields(row): row for row in after.rows})


def links_apart(before: Document, after: Document) -> tuple[list[Link], list[Link]]:
    """The same of the `g` rows."""
    return _apart(
        {(link.child, link.parent): link for link in before.links},
        {(link.child, link.parent): link for link in after.links},
    )


def _apart(before: Mapping[KeyT, ValueT], after: Mapping[KeyT, ValueT]) -> tuple[list[ValueT], list[ValueT]]:
    # One by one: a difference of two large sets is a single step, and nothing else of the process runs meanwhile.
    return (
        [value for key, value in before.items() if key not in after],
        [value for key, value in after.items() if key not in before],
    )


def _pairs(removed: Sequence[Row], added: Sequence[Row]) -> tuple[Changed, ...]:
    """Rows that are alike but for one field, each used once, by the lines of what they are now."""
    found: list[Changed] = []
    for at, field in enumerate(_FIELDS):
        waiting = _by_the_rest(removed, at)
        left: list[Row] = []
        for row in added:
            same = waiting.get(_rest(row, at))
            if same:
                found.append(Changed(before=same.popleft(), after=row, field=field))
            else:
                left.append(row)
        removed, added = [row for rows in waiting.values() for row in rows], left
    return tuple(sorted(found, key=lambda one: one.after.line))


def _by_the_rest(rows: Iterable[Row], at: int) -> dict[Fields, deque[Row]]:
    groups: dict[Fields, deque[Row]] = {}
    for row in rows:
        groups.setdefault(_rest(row, at), deque()).append(row)
    return groups


def _rest(row: Row, at: int) -> Fields:
    fields = _fields(row)
    return fields[:at] + fields[at + 1 :]


def _fields(row: Row) -> Fields:
    """The words of a row in the order of `_FIELDS`."""
    end = NO_END if row.until is None else written(row.until)
    return (end, *reversed(row.values))
