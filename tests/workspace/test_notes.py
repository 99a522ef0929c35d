"""Notes of a day: one entry more, and nothing that passes for another."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import Invalid, NotFound, TooLarge, Unavailable
from gateway.model import ProfileId, TenantId
from gateway.workspace.files import Workspace
from gateway.workspace.locks import FileLocks, file_key
from gateway.workspace.notes import NOTE_LIMIT, append_note, entry_sha256, render_entry
from gateway.workspace.problems import FileNotText, FileUnsafe

ACME = TenantId("acme")
ALICE = ProfileId("prf_01JD0000000000000000000000")
TODAY = "memory/2026-03-03.md"


def test_a_note_begins_with_its_day_and_grows_by_bullets(workspace: Workspace, locks: FileLocks, flight: Path) -> None:
    """issue 2, `memory_append`; the format is OpenClaw's, so that its chunker finds the entries."""
    first = append_note(workspace, locks, ACME, TODAY, "The Lisbon desk opens at 05:00.")
    append_note(workspace, locks, ACME, TODAY, "Fog at Porto.\n\nFlights 214 and 216 are late.\n")

    assert (flight / TODAY).read_text() == (
        "# 2026-03-03\n\n- The Lisbon desk opens at 05:00.\n- Fog at Porto.\n      Flights 214 and 216 are late.\n"
    )
    assert (first.path, first.entry) == (TODAY, "- The Lisbon desk opens at 05:00.\n")
    assert first.sha256 == entry_sha256("The Lisbon desk opens at 05:00.")
    assert first.sha256 == hashlib.sha256(first.entry.encode()).hexdigest()


def test_a_personal_note_goes_to_its_person(workspace: Workspace, locks: FileLocks, flight: Path) -> None:
    """design section 9: a person's notes feed only their own memory."""
    append_note(workspace, locks, ACME, f"users/{ALICE}/{TODAY}", "Mine.")

    assert (flight / "users" / ALICE / TODAY).read_text() == "# 2026-03-03\n\n- Mine.\n"
    assert not (flight / TODAY).exists()


@pytest.mark.parametrize(
    ("existing", "whole"),
    [
        ("", "- New.\n"),
        ("# 2026-03-03\n\n- Old.", "# 2026-03-03\n\n- Old.\n- New.\n"),
        ("free text\r\n", "free text\r\n- New.\n"),
    ],
)
def test_what_was_there_stays_byte_for_byte(
    workspace: Workspace, locks: FileLocks, flight: Path, existing: str, whole: str
) -> None:
    """An existing OpenClaw workspace is taken as it is."""
    workspace.replace(TODAY, existing)

    append_note(workspace, locks, ACME, TODAY, "New.")

    assert (flight / TODAY).read_bytes().decode() == whole


@pytest.mark.parametrize(
    ("text", "entry"),
    [
        ("# Rules", "- \\# Rules\n"),
        ("- a\n- b\n# c", "- \\- a\n      - b\n      # c\n"),
        ("1. one\n2. two", "- 1\\. one\n      2. two\n"),
        ("> quoted", "- \\> quoted\n"),
        ("***", "- \\***\n"),
        ("```sh\nrm x\n```", "- \\```sh\n      rm x\n      ```\n"),
        ("-5 °C at the gate", "- -5 °C at the gate\n"),
        ("*important* and 12 apples", "- *important* and 12 apples\n"),
        ("a\u2028# b\x0b- c\x85d", "- a\n      # b\n      - c\n      d\n"),
        ("a\tb\r\n\tc", "- a\tb\n      c\n"),
    ],
)
def test_markdown_in_an_entry_stays_inside_it(text: str, entry: str) -> None:
    """An entry must not fake a heading or another bullet: each has an origin of its own (design section 9)."""
    assert render_entry(text) == entry


@given(st.text(alphabet=st.sampled_from("ab #->*+1.`~=_\n\r\u2028\t")).filter(lambda text: text.strip()))
def test_an_entry_has_one_line_that_begins_one(text: str) -> None:
    """The same, for whatever a model may write."""
    first, *others = render_entry(text).splitlines()

    assert first.startswith("- ")
    assert not re.match(r"(#{1,6}|[-+*]|[0-9]+[.)])(\s|$)|>|```|~~~", first[2:])
    assert all(line.startswith(" " * 6) for line in others)


@pytest.mark.parametrize("text", ["", " \n\t\n", "x" * 4001, "😀" * 2001, "a\0b", "\x1b[31mred", "half \ud83d"])
def test_an_entry_that_is_no_note_is_refused(workspace: Workspace, locks: FileLocks, flight: Path, text: str) -> None:
    """design section 12: bad input names the field and the rule, and changes nothing."""
    with pytest.raises(Invalid) as refusal:
        append_note(workspace, locks, ACME, TODAY, text)

    assert [fault.field for fault in refusal.value.faults] == ["text"]
    assert not (flight / "memory").exists()
    append_note(workspace, locks, ACME, TODAY, "x" * 4000)


@pytest.mark.parametrize(
    "path", ["MEMORY.md", "memory/MEMORY.md", "memory/x.md", "AGENTS.md", "../x", "memory/2026-02-30.md"]
)
def test_only_the_note_of_a_day_is_appended_to(workspace: Workspace, locks: FileLocks, flight: Path, path: str) -> None:
    """design section 9: one writer of MEMORY.md, and rules are for people to write."""
    with pytest.raises(Invalid) as refusal:
        append_note(workspace, locks, ACME, path, "text")

    assert [fault.field for fault in refusal.value.faults] == ["path"]
    assert list(flight.iterdir()) == []


def test_a_full_note_takes_no_more(workspace: Workspace, locks: FileLocks, flight: Path) -> None:
    """A note over what can be read would be lost to everybody."""
    whole = "x" * (NOTE_LIMIT - len("\n- 12345\n"))
    workspace.replace(TODAY, whole)

    with pytest.raises(TooLarge):
        append_note(workspace, locks, ACME, TODAY, "123456")
    assert (flight / TODAY).read_text() == whole
    append_note(workspace, locks, ACME, TODAY, "12345")
    assert (flight / TODAY).stat().st_size == NOTE_LIMIT


def test_a_note_waits_for_the_lock_and_for_a_last_look(
    workspace: Workspace, locks: FileLocks, flight: Path, tmp_path: Path
) -> None:
    """design section 12: an effect comes after its last check, or not at all."""

    def revoked() -> None:
        raise NotFound

    with FileLocks(tmp_path / "locks").hold(file_key(ACME, "flight", TODAY)), pytest.raises(Unavailable):
        append_note(workspace, locks, ACME, TODAY, "text")
    with pytest.raises(NotFound):
        append_note(workspace, locks, ACME, TODAY, "text", recheck=revoked)
    assert list(flight.iterdir()) == []
    append_note(workspace, locks, ACME, TODAY, "text", recheck=lambda: None)


def test_a_note_that_is_a_link_or_no_text_is_refused(workspace: Workspace, locks: FileLocks, flight: Path) -> None:
    """design section 6, confinement."""
    (flight / "memory").mkdir()
    (flight / "AGENTS.md").write_text("rules\n")
    (flight / TODAY).symlink_to(flight / "AGENTS.md")
    (flight / "memory" / "2026-03-04.md").write_bytes(b"\xff")

    with pytest.raises(FileUnsafe):
        append_note(workspace, locks, ACME, TODAY, "text")
    with pytest.raises(FileNotText):
        append_note(workspace, locks, ACME, "memory/2026-03-04.md", "text")
    assert (flight / "AGENTS.md").read_text() == "rules\n"
