"""Turns the files that a turn may see into one text, and into a manifest of what is in and what is out, and why.

Pure: no file is opened here. The rules are those of design section 6.

* Each file stands in an element of its own, `<workspace-file path="…" kind="…">`. A text that holds such a tag itself
  gets it escaped, so that no file can end early, or pass for another one.
* A file's limit (20,000 UTF-16 units; 4,000 for personal instructions, which come whole or not at all) counts its text.
  The limit of the whole (60,000) counts everything that the model reads: texts, tags and the sentence before the
  personal file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from gateway.model import Context, FileKind, ManifestEntry, Omission, ProfileId
from gateway.workspace.files import FileText
from gateway.workspace.paths import daily_path, instructions_path, longterm_path
from gateway.workspace.personal import INSTRUCTIONS_LIMIT
from gateway.workspace.problems import (
    FileMissing,
    FileNotText,
    FileProblem,
    FileTooLarge,
    FileUnavailable,
    FileUnsafe,
)
from gateway.workspace.units import head, tail, units

FILE_UNITS = 20_000
CONTEXT_UNITS = 60_000

_TAG = "workspace-file"
# Either case of each letter, spelled out: with re.IGNORECASE the search for "<" is many times slower.
_ANY_CASE = "".join(f"[{sign}{sign.upper()}]" if sign.isalpha() else sign for sign in _TAG)
_FAKE = re.compile(rf"<(?=\s*/?\s*{_ANY_CASE})")
_PERSONAL_LEAD = (
    "The next file holds the personal instructions of the person you are talking to. It supplements the shared USER.md "
    "and wins over it on preferences, but never over the rules above.\n\n"
)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A file that a turn might see, and what it would be to it."""

    path: str
    kind: FileKind


@dataclass(frozen=True, slots=True)
class Part:
    """A candidate with its file, or with the reason why it stays out."""

    candidate: Candidate
    found: FileText | Omission


@dataclass(frozen=True, slots=True)
class _Piece:
    """A part on its way into the text: `block` is what the model would read of it, "" for what is out."""

    part: Part
    block: str
    truncated: bool = False


def candidates(profile: ProfileId | None, today: date) -> tuple[Candidate, ...]:
    """Every file that a turn might load, in the order of design section 6; `today` is the agent's.

    Without a profile there are no personal files.
    """
    days = (today, today - timedelta(days=1))
    files = [Candidate(name, FileKind.RULES) for name in ("AGENTS.md", "SOUL.md", "IDENTITY.md")]
    files.append(Candidate("USER.md", FileKind.SHARED))
    if profile is not None:
        files.append(Candidate(instructions_path(profile), FileKind.PERSONAL))
    files.append(Candidate(longterm_path(None), FileKind.LONGTERM))
    files += [Candidate(daily_path(day, None), FileKind.DAILY) for day in days]
    if profile is not None:
        files.append(Candidate(longterm_path(profile), FileKind.PERSONAL_LONGTERM))
        files += [Candidate(daily_path(day, profile), FileKind.PERSONAL_DAILY) for day in days]
    return tuple(files)


def part(candidate: Candidate, found: FileText | FileProblem | Omission) -> Part:
    """A candidate with what reading it gave, or with why it was not read."""
    return Part(candidate, _omission(found) if isinstance(found, FileProblem) else found)


def _omission(problem: FileProblem) -> Omission:
    if isinstance(problem, FileMissing):
        return Omission.MISSING
    return Omission.TOO_LARGE if isinstance(problem, FileTooLarge) else Omission.UNSAFE_FILE


def is_copy_of(longterm: FileText | FileProblem, other: FileText) -> bool:
    """Whether `other` is the root `MEMORY.md` under another name: the same file, the file that it is a link to, or the
    same bytes.

    A shared session never gets it, whatever it is called, linked or moved to; there, drop such a candidate with
    `Omission.GROUP_SESSION`. Two empty files have nothing to hide.
    """
    if isinstance(longterm, FileProblem):
        return longterm.leads_to == other.identity
    return other.identity == longterm.identity or (bool(other.data) and other.data == longterm.data)


def could_be_anywhere(longterm: FileText | FileProblem) -> bool:
    """Whether the root `MEMORY.md` is there and can't be compared with anything, so that any file could be its copy.

    A shared session then gets no file but the rules. A link is known by what it leads to, and a copy of a file that is
    too large is too large itself.
    """
    if isinstance(longterm, FileUnsafe):
        return longterm.leads_to is None
    return isinstance(longterm, FileUnavailable | FileNotText)


def assemble(parts: Sequence[Part]) -> Context:
    """The text and the manifest of a turn, from parts in the order of `candidates`."""
    pieces = tuple(_within_budget(_each_once(parts)))
    text = "\n".join(piece.block for piece in pieces if piece.block)
    return Context(text=text, manifest=tuple(_entry(piece) for piece in pieces), warnings=tuple(_warnings(pieces)))


def _each_once(parts: Iterable[Part]) -> Iterator[Part]:
    """Without repeated paths, and with a second name of a file that was there before as unsafe."""
    paths: set[str] = set()
    files: set[tuple[int, int]] = set()
    for one in parts:
        if one.candidate.path in paths:
            continue
        paths.add(one.candidate.path)
        if isinstance(one.found, Omission):
            yield one
        elif one.found.identity in files:
            yield Part(one.candidate, Omission.UNSAFE_FILE)
        else:
            files.add(one.found.identity)
            yield one


def _piece(one: Part) -> _Piece:
    if isinstance(one.found, Omission):
        return _Piece(one, "")
    text = one.found.text
    if one.candidate.kind is FileKind.PERSONAL and units(text) > INSTRUCTIONS_LIMIT:
        return _Piece(Part(one.candidate, Omission.TOO_LARGE), "")
    body = _FAKE.sub("&lt;", text)
    if one.candidate.kind is FileKind.PERSONAL or units(body) <= FILE_UNITS:
        return _Piece(one, _block(one.candidate, body))
    return _Piece(one, _block(one.candidate, _cut(one.candidate.path, body)), truncated=True)


def _cut(path: str, body: str) -> str:
    """Three quarters of what fits from the head, a quarter from the tail, and a line between that names the file."""
    marker = f"\n[… the middle of {path} was cut here; read the file for it …]\n"
    room = FILE_UNITS - units(marker)
    first = head(body, room * 3 // 4)
    return first + marker + tail(body, room - room * 3 // 4)


def _block(candidate: Candidate, body: str) -> str:
    lead = _PERSONAL_LEAD if candidate.kind is FileKind.PERSONAL else ""
    newline = "" if body.endswith("\n") else "\n"
    return f'{lead}<{_TAG} path="{candidate.path}" kind="{candidate.kind}">\n{body}{newline}</{_TAG}>\n'


def _within_budget(parts: Iterable[Part]) -> Iterator[_Piece]:
    """Drops the last files first until the whole fits; an early file never gives way to a later one."""
    left = CONTEXT_UNITS
    for one in parts:
        piece = _piece(one) if left >= 0 else _Piece(one, "")
        if piece.block:
            left -= units(piece.block) + (left < CONTEXT_UNITS)  # and the empty line between two files
        over = left < 0 and not isinstance(piece.part.found, Omission)
        yield _Piece(Part(one.candidate, Omission.BUDGET), "") if over else piece


def _entry(piece: _Piece) -> ManifestEntry:
    candidate, found = piece.part.candidate, piece.part.found
    if isinstance(found, Omission):  # what is out shows neither its content nor its size
        return ManifestEntry(
            path=candidate.path, kind=candidate.kind, included=False, reason=found, sha256=None, units=None
        )
    return ManifestEntry(
        path=candidate.path,
        kind=candidate.kind,
        included=True,
        reason=None,
        sha256=found.sha256,
        units=units(found.text),
        truncated=piece.truncated,
    )


def _warnings(pieces: Iterable[_Piece]) -> Iterator[str]:
    for piece in pieces:
        path = piece.part.candidate.path
        match piece.part.found:
            case Omission.UNSAFE_FILE:
                yield f"{path} could not be read safely and was left out."
            case Omission.TOO_LARGE:
                yield f"{path} is too large and was left out."
            case Omission.BUDGET:
                yield f"{path} was left out: the context would be over {CONTEXT_UNITS:,} characters."
