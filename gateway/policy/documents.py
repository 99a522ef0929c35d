"""Turns the text of a policy document into checked rows, or into every fault it has, each with its place.

Nothing reaches Casbin that did not pass here (design section 7, "Documents").
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Final

from gateway.errors import Fault, Invalid
from gateway.model import Action
from gateway.policy.collector import spared
from gateway.policy.grammar import read_line, read_plain
from gateway.policy.inheritance import MOST_LEVELS, Inheritance
from gateway.policy.rows import ALLOW, DENY, Link, Row, written
from gateway.policy.tokens import MOST_FAULTS, fault, lines

MOST_BYTES: Final = 16 * 1024 * 1024
MOST_ROWS: Final = 200_000
MANY_ROWS: Final = 256  # of one subject on one agent; the first decision reads each of them


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A policy document that holds no fault. Without rows it denies everything."""

    text: str
    rows: tuple[Row, ...]
    links: tuple[Link, ...]


def parse(text: str) -> Document:
    """The document in `text`.

    Raises Invalid with every fault, up to a hundred: its line and column, the rule it breaks and what to write instead.
    """
    with spared(len(text)):
        document, faults = _read(text)
    if faults:
        raise Invalid(faults)
    return document


def lint(text: str, now: datetime) -> tuple[tuple[Fault, ...], tuple[Fault, ...]]:
    """Every fault of `text`, up to a hundred, and warnings: what is allowed to stand there and is perhaps not meant."""
    document, faults = _read(text)
    return faults, tuple(sorted(_warnings(document, now), key=_place))


def _place(found: Fault) -> tuple[int, int, str]:
    return found.line or 0, found.column or 0, found.rule


def _read(text: str) -> tuple[Document, tuple[Fault, ...]]:
    """What could be read, and all faults by line."""
    faults: list[Fault] = []
    read: list[Row | Link] = []
    for line in lines(text, faults, read_plain) if _fits(text, faults) else ():
        if len(read) == MOST_ROWS:
            place = line.line if isinstance(line, Row) else line.number
            faults.append(fault("size", f"A document has at most {MOST_ROWS:,} rows; this is one more.", place))
            break
        found = line if isinstance(line, Row) else read_line(line, faults)
        if found is not None:
            read.append(found)
    faults.extend(islice(_repeated(read), MOST_FAULTS + 1))
    links = tuple(found for found in read if isinstance(found, Link))
    faults.extend(islice(_endless(links), MOST_FAULTS + 1))
    rows = tuple(found for found in read if isinstance(found, Row))
    return Document(text=text, rows=rows, links=links), _first(faults)


def _first(faults: Sequence[Fault]) -> tuple[Fault, ...]:
    """The faults by line; where there are more than `MOST_FAULTS`, that many and a last one that says so."""
    found = tuple(sorted(faults, key=_place))
    if len(found) <= MOST_FAULTS:
        return found
    return *found[:MOST_FAULTS], fault("more", f"And more: these are the first {MOST_FAULTS}. Mend them and try again.")


def _fits(text: str, faults: list[Fault]) -> bool:
    if text.startswith("\ufeff"):
        faults.append(fault("characters", "The text begins with a byte order mark; save it as UTF-8 without.", 1, 1))
    if len(text) <= MOST_BYTES and len(text.encode("utf-8", "surrogatepass")) <= MOST_BYTES:
        return not faults
    faults.append(fault("size", f"The document is larger than {MOST_BYTES // 1024**2} MiB; say it in fewer rows."))
    return False


def _repeated(read: Sequence[Row | Link]) -> Iterator[Fault]:
    first: dict[object, int] = {}
    for found in read:
        key = (found.values, found.until) if isinstance(found, Row) else (found.child, found.parent)
        line = first.setdefault(key, found.line)
        if line != found.line:
            yield fault("duplicate", f"The same row stands in line {line}; take one out.", found.line, 1)


def _endless(links: Sequence[Link]) -> Iterator[Fault]:
    circles, chains = Inheritance(links).faults()
    for link in circles:
        message = f"{link.child} would hold itself through {link.parent}; take one of the circle's g rows out."
        yield fault("circle", message, link.line, 1)
    for link in chains:
        message = f"{link.child} holds roles through more than {MOST_LEVELS} steps; link it closer to that role."
        yield fault("chain", message, link.line, 1)


def _warnings(document: Document, now: datetime) -> Iterator[Fault]:
    inheriting: dict[str, list[str]] = {}
    for link in document.links:
        inheriting.setdefault(link.parent, []).append(link.child)
    for row in document.rows:
        if row.effect == DENY and row.subject in inheriting:
            names = ", ".join(sorted(inheriting[row.subject])[:5])
            message = f"This deny also holds for {names}, through g, and no allow lifts it."
            yield fault("inherited_deny", message, row.line, 1)
        if row.until is not None and not row.live(now):
            yield fault("ended", f"This row ended at {written(row.until)}; take it out.", row.line, 1)
        if row.effect == ALLOW and row.action == Action.IMPERSONATE:
            message = "This lets somebody read as somebody else; no shipped role may. Give it an end (until)."
            yield fault("impersonate", message, row.line, 1)
    yield from _crowded(document.rows)


def _crowded(rows: Sequence[Row]) -> Iterator[Fault]:
    counts: Counter[tuple[str, str]] = Counter()
    for row in rows:
        place = (row.subject, row.agent)
        counts[place] += 1
        if counts[place] == MANY_ROWS + 1:
            message = f"{row.subject} has more than {MANY_ROWS} rows on agent {row.agent}; first answers will be slow."
            yield fault("many_rows", message, row.line, 1)
