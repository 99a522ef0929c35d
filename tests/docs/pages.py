"""Turns a page of the documentation into its examples, and an example's output into what can be compared."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

# What differs from run to run and says nothing about the example. Everything else is compared as it stands.
MASKS = (
    (re.compile(r"\b(prf|ses|msg|tok|req|dec|note)_[0-9A-HJKMNP-TV-Z]{26}\b"), r"\1_<id>"),
    (re.compile(r"\b[0-9A-HJKMNP-TV-Z]{26}\b"), "<id>"),  # in the key of a session that nobody named
    (re.compile(r"\bgwp_[0-9A-Za-z]{49}\b"), "gwp_<token>"),
    (re.compile(r"\bgwt_[\w.-]+"), "gwt_<token>"),
    (re.compile(r"\b[0-9a-f]{64}\b"), "<hash>"),
    (re.compile(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)?"), "<time>"),
    (re.compile(r"\b\d{4}-\d\d-\d\d\b"), "<day>"),
    (re.compile(r"(epoch(?:\": |: | ))\d+", re.IGNORECASE), r"\1<epoch>"),  # counts every change since the founding
    (re.compile(r"127\.0\.0\.1:\d+"), "<address>"),
    (re.compile(r"(?<=\S) {2,}"), "  "),  # columns are as wide as the ids in them
)


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: its language, its text, the line of the page that it begins in, and whether it follows another
    with nothing but an empty line between."""

    language: str
    text: str
    line: int
    follows: bool


@dataclass(frozen=True, slots=True)
class Example:
    """A command, or a Python program, and what it prints."""

    program: str
    expected: str
    line: int


def blocks(page: str) -> Iterator[Block]:
    """The fenced blocks of a page, in order."""
    end = -1
    for found in _FENCE.finditer(page):
        follows = end >= 0 and not page[end : found.start()].strip()
        end = found.end()
        yield Block(found[1], found[2], page.count("\n", 0, found.start()) + 1, follows)


def examples(page: str) -> Iterator[Example]:
    """What can be run: each command of a `console` block, and each `python` block with the `text` block below it."""
    found = list(blocks(page))
    for block, below in zip_longest(found, found[1:]):
        if block.language == "console":
            yield from _commands(block)
        elif block.language == "python":
            expected = below.text if below is not None and below.follows and below.language == "text" else ""
            yield Example(_heredoc(block.text), expected, block.line)


def _commands(block: Block) -> Iterator[Example]:
    """`$ ` begins a command, `> ` goes on with it; all else is what it prints."""
    command: list[str] = []
    output: list[str] = []
    begun = block.line
    for number, line in enumerate(block.text.splitlines(), start=block.line + 1):
        if line.startswith("$ "):
            if command:
                yield Example("\n".join(command), "\n".join(output), begun)
            command, output, begun = [line[2:]], [], number
        elif line == ">" or (line.startswith("> ") and not output):
            command.append(line[2:])
        else:
            output.append(line)
    yield Example("\n".join(command), "\n".join(output), begun)


def _heredoc(program: str) -> str:
    return f"python - <<'END_OF_EXAMPLE'\n{program}END_OF_EXAMPLE"


def masked(text: str) -> str:
    """The text with everything that differs from run to run in one spelling, and without spaces at line ends."""
    for pattern, replacement in MASKS:
        text = pattern.sub(replacement, text)
    return "\n".join(line.rstrip() for line in text.strip("\n").split("\n"))


def fits(expected: str, printed: str) -> bool:
    """Whether a page shows what was printed: `…` stands for the rest of a line, or alone for any number of lines."""
    lines = masked(expected).split("\n")
    wanted = "".join(r"(?:.*\n)*?" if line == "…" else _line(line) for line in lines)
    return re.fullmatch(wanted, f"{masked(printed)}\n") is not None


def _line(line: str) -> str:
    return ".*".join(re.escape(part) for part in line.split("…")) + r"\n"
