"""Turns the text of a policy document into lines of trimmed fields with their columns; knows nothing of their words.

Our own reader, because Casbin's splits at brackets, keeps what it can't read and never says where.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, TypeVar

from gateway.errors import Fault

FoundT = TypeVar("FoundT")

FIELD: Final = "text"  # the argument of the API that all these faults are about
MOST_FAULTS: Final = 100  # nobody reads more at once, and a long text of nothing else is no work for us

_NOT_PLAIN = re.compile(r"[^\t -~]")
# Comments may be in any script, but hold nothing that shows a reader another text than the machine reads.
_NOT_IN_COMMENTS = re.compile(
    "[\x00-\x08\x0a-\x1f\x7f-\x9f\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)


@dataclass(frozen=True, slots=True)
class Field:
    """One trimmed field and the column (from 1) where it begins."""

    text: str
    column: int


@dataclass(frozen=True, slots=True)
class Line:
    """One row of the document, not yet understood."""

    number: int
    fields: tuple[Field, ...]


def fault(rule: str, message: str, line: int | None = None, column: int | None = None) -> Fault:
    """A fault of a document, at its place."""
    return Fault(field=FIELD, rule=rule, message=message, line=line, column=column)


def shown(text: str) -> str:
    """A piece of a document inside a message: short, and with everything unusual escaped."""
    escaped = text[:41].encode("ascii", "backslashreplace").decode()
    escaped = "".join(letter if " " <= letter <= "~" else f"\\x{ord(letter):02x}" for letter in escaped)
    return f"`{escaped[:40]}…`" if len(escaped) > 40 else f"`{escaped}`"


def lines(text: str, faults: list[Fault], plain: Callable[[int, str], FoundT | None]) -> Iterator[Line | FoundT]:
    """The rows of `text`, one a line; what can't be a row is added to `faults` and left out.

    `plain` may read a line whole, where it is written without anything unusual, as most are. Ends early once `faults`
    holds more than `MOST_FAULTS`, the reader's own included.
    """
    for number, raw in enumerate(text.split("\n"), start=1):
        if len(faults) > MOST_FAULTS:
            return
        # Editors on Windows end a line with CR LF; a CR anywhere else would hide what follows it on some screens.
        line = raw.removesuffix("\r")
        found = plain(number, line)
        if found is not None:
            yield found
            continue
        code, _, comment = line.partition("#")
        _check_comment(comment, number, len(code) + 2, faults)
        if not code.strip(" \t"):
            continue
        fields = tuple(_fields(code))
        bad = list(_strange_letters(fields, number))
        if bad:
            faults.extend(bad)
        else:
            yield Line(number, fields)


def _check_comment(comment: str, number: int, column: int, faults: list[Fault]) -> None:
    found = _NOT_IN_COMMENTS.search(comment)
    if found:
        message = f"A comment can't hold {_named(found[0])}; take it out."
        faults.append(fault("characters", message, number, column + found.start()))


def _fields(code: str) -> Iterator[Field]:
    start = 0
    for piece in code.split(","):
        kept = piece.strip(" \t")
        indent = len(piece) - len(piece.lstrip(" \t")) if kept else 0
        yield Field(kept, start + indent + 1)
        start += len(piece) + 1


def _strange_letters(fields: tuple[Field, ...], number: int) -> Iterator[Fault]:
    for field in fields:
        found = _NOT_PLAIN.search(field.text)
        if found:
            message = f"{_named(found[0])} can't be in a row; write it in plain letters (a-z, 0-9 and : / * _ -)."
            yield fault("characters", message, number, field.column + found.start())


def _named(letter: str) -> str:
    name = unicodedata.name(letter, "a control character").lower()
    return f"U+{ord(letter):04X} ({name})"
