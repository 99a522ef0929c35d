"""Turns something worth keeping into one more entry of a day's note (design sections 6 and 8)."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date

from gateway.errors import Invalid, TooLarge
from gateway.model import TenantId
from gateway.workspace.files import FILE_LIMIT, FileText, Workspace
from gateway.workspace.locks import Locks, file_key
from gateway.workspace.paths import day_of
from gateway.workspace.problems import FileMissing
from gateway.workspace.units import units

ENTRY_LIMIT = 4_000  # UTF-16 code units
NOTE_LIMIT = FILE_LIMIT  # a note that grew over what can be read would be lost to everybody

# What would start a block of its own (CommonMark 0.31 section 4 and 5): heading, quote, bullet, number, fence, rule.
_BLOCK = re.compile(r"([0-9]{0,9})(?=((#{1,6}|[-+*]|(?<=[0-9])[.)])(\s|$)|>|```|~~~|([-_*][ \t]*){3,}$))")
# Deep enough that no line can be a heading, a bullet or a quote inside the entry (CommonMark 0.31 section 4.4: an
# indented line can't interrupt a paragraph).
_INDENT = " " * 6


@dataclass(frozen=True, slots=True)
class AppendedNote:
    """What was written: the entry as it stands in the file, and its hash, under which its origin is kept."""

    path: str
    entry: str
    sha256: str


def render_entry(text: str) -> str:
    """`text` as one bullet, ending in a newline; its further lines are indented, so that none can pass for another.

    Deterministic: who must record an entry's origin before writing it takes `entry_sha256` of the same text.

    Raises:
        Invalid: nothing in it, over 4,000 UTF-16 units, or control characters.

    """
    _require_printable(text)
    if units(text) > ENTRY_LIMIT:
        raise Invalid.of("text", "length", f"Keep a note within {ENTRY_LIMIT:,} characters.")
    lines = [line.strip() for line in text.splitlines()]
    lines = [line for line in lines if line]
    if not lines:
        raise Invalid.of("text", "required", "Say what to note.")
    first = _BLOCK.sub(r"\1\\", lines[0], count=1) if _BLOCK.match(lines[0]) else lines[0]
    return "".join([f"- {first}\n", *(f"{_INDENT}{line}\n" for line in lines[1:])])


def entry_sha256(text: str) -> str:
    """The hash that `append_note` will report for this text. Raises Invalid as `render_entry` does."""
    return hashlib.sha256(render_entry(text).encode()).hexdigest()


def check_room(workspace: Workspace, path: str, entry: str) -> None:
    """Raises what `append_note` would where the note is as it is now: before its origin is put on record."""
    _with_entry(workspace, path, render_entry(entry))


def append_note(
    workspace: Workspace,
    locks: Locks,
    tenant: TenantId,
    path: str,
    entry: str,
    *,
    recheck: Callable[[], None] | None = None,
) -> AppendedNote:
    """Adds one bullet to the note of a day, under the file's lock; a new note gets its day as heading.

    `recheck` is called just before the rename; what it raises goes up, and nothing is changed.

    Raises:
        Invalid: the entry, or a path that is no day's note.
        TooLarge: the note would be over 1 MiB.
        Unavailable: the lock was not free in time, or was lost.
        FileProblem: the file that is there, or the way to it, can't be used.

    """
    bullet = render_entry(entry)

    def look_again() -> None:
        if recheck is not None:
            recheck()
        held.check()  # last: all else may take longer than a lock lasts

    with locks.hold(file_key(tenant, workspace.folder, path)) as held:
        workspace.replace(path, _with_entry(workspace, path, bullet), before_rename=look_again)
    return AppendedNote(path, bullet, entry_sha256(entry))


def _with_entry(workspace: Workspace, path: str, bullet: str) -> str:
    day = day_of(path)
    if day is None:
        raise Invalid.of("path", "daily_note", "Notes go to the file of a day, such as memory/2026-03-03.md.")
    whole = _so_far(workspace, path, day) + bullet
    if len(whole.encode()) > NOTE_LIMIT:
        raise TooLarge(f"The note of {day.isoformat()} is full ({NOTE_LIMIT:,} bytes). Shorten it by hand.")
    return whole


def _so_far(workspace: Workspace, path: str, day: date) -> str:
    try:
        found: FileText = workspace.read(path, limit=NOTE_LIMIT)
    except FileMissing:
        return f"# {day.isoformat()}\n\n"
    return found.text if found.text.endswith("\n") or not found.text else f"{found.text}\n"


def _require_printable(text: str) -> None:
    odd = {"Cc", "Cs"}
    lines = "".join(text.splitlines()).replace("\t", " ")
    if any(unicodedata.category(character) in odd for character in lines):
        raise Invalid.of("text", "text", "A note is plain text: it holds a control character. Remove it.")
