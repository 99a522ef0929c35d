"""A person's own instructions: read, saved, and never lost."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from gateway.errors import Conflict, Invalid, NotFound, PreconditionFailed, Unavailable
from gateway.model import ProfileId, TenantId
from gateway.workspace.files import Workspace
from gateway.workspace.locks import FileLocks, file_key
from gateway.workspace.personal import Instructions, read_instructions, save_instructions
from gateway.workspace.problems import FileNotText, FileUnsafe

ACME = TenantId("acme")
ALICE = ProfileId("prf_01JD0000000000000000000000")
BOB = ProfileId("prf_01JD0000000000000000000001")


def allowed() -> None:
    """A recheck that finds everything as it was."""


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.fixture
def file(flight: Path) -> Path:
    return flight / "users" / ALICE / "USER.md"


def test_a_save_needs_the_hash_that_was_read(workspace: Workspace, locks: FileLocks, file: Path) -> None:
    """design section 6: `null` for a new file; a stale one is a conflict with the current hash, and nothing is lost."""
    assert read_instructions(workspace, ALICE) == Instructions("", None, 0)

    first = save_instructions(workspace, locks, ACME, ALICE, "Be brief. 😀", None, allowed)
    assert first == Instructions("Be brief. 😀", sha256("Be brief. 😀"), 12)
    assert read_instructions(workspace, ALICE) == first
    for stale in (None, "0" * 64, ""):
        with pytest.raises(PreconditionFailed) as refusal:
            save_instructions(workspace, locks, ACME, ALICE, "Be long.", stale, allowed)
        assert refusal.value.current == first.sha256
        assert file.read_text() == "Be brief. 😀"
    second = save_instructions(workspace, locks, ACME, ALICE, "Be long.", first.sha256, allowed)
    assert read_instructions(workspace, ALICE) == second
    file.unlink()
    with pytest.raises(PreconditionFailed) as refusal:
        save_instructions(workspace, locks, ACME, ALICE, "Be brief.", second.sha256, allowed)
    assert refusal.value.current is None
    assert not file.exists()


def test_one_persons_save_touches_nobody_elses_file(workspace: Workspace, locks: FileLocks, flight: Path) -> None:
    """issue 2: only the requester's own file."""
    save_instructions(workspace, locks, ACME, ALICE, "Be brief.", None, allowed)
    save_instructions(workspace, locks, ACME, BOB, "Be long.", None, allowed)

    assert read_instructions(workspace, ALICE).content == "Be brief."
    assert read_instructions(workspace, BOB).content == "Be long."
    assert not (flight / "USER.md").exists()
    with pytest.raises(FileUnsafe):
        read_instructions(workspace, ProfileId("../flight"))


def test_empty_instructions_are_a_file(workspace: Workspace, locks: FileLocks, file: Path) -> None:
    """reference/openclaw-visibility 2.4: empty content is a valid save."""
    saved = save_instructions(workspace, locks, ACME, ALICE, "", None, allowed)

    assert saved == Instructions("", sha256(""), 0) == read_instructions(workspace, ALICE)
    assert file.read_bytes() == b""


@pytest.mark.parametrize(
    ("good", "bad"),
    [("😀" * 2000, "😀" * 2001), ("x" * 4000, "x" * 4001), ("😀", "\ud83d"), ("退" * 4000, "退" * 4001)],
)
def test_the_limit_is_four_thousand_units(
    workspace: Workspace, locks: FileLocks, file: Path, good: str, bad: str
) -> None:
    """reference/openclaw-visibility 2.4: UTF-16 units, and text only."""
    with pytest.raises(Invalid) as refusal:
        save_instructions(workspace, locks, ACME, ALICE, bad, None, allowed)
    assert [fault.field for fault in refusal.value.faults] == ["content"]
    assert not file.parent.exists()

    assert save_instructions(workspace, locks, ACME, ALICE, good, None, allowed).units <= 4000


def test_a_file_made_too_long_by_hand_can_be_read_and_mended(
    workspace: Workspace, locks: FileLocks, file: Path
) -> None:
    """It is left out of turns; the person must be able to see why, and shorten it."""
    workspace.replace(f"users/{ALICE}/USER.md", "x" * 5000)

    found = read_instructions(workspace, ALICE)
    assert (found.units, len(found.content)) == (5000, 5000)
    save_instructions(workspace, locks, ACME, ALICE, "short", found.sha256, allowed)
    assert file.read_text() == "short"


def test_rights_are_looked_at_again_under_the_lock(
    workspace: Workspace, locks: FileLocks, flight: Path, tmp_path: Path
) -> None:
    """design section 6: rights, merge and hash again under the lock, just before the atomic rename."""
    other = FileLocks(tmp_path / "locks", wait_s=0)

    def revoked() -> None:
        with pytest.raises(Unavailable), other.hold(file_key(ACME, "flight", f"users/{ALICE}/USER.md")):
            pytest.fail("the lock was not held")
        raise NotFound

    with pytest.raises(NotFound):
        save_instructions(workspace, locks, ACME, ALICE, "Be brief.", None, revoked)
    assert list(flight.iterdir()) == []
    with pytest.raises(PreconditionFailed):
        save_instructions(workspace, locks, ACME, ALICE, "Be brief.", "0" * 64, revoked)


def test_an_edit_by_hand_between_check_and_rename_is_a_conflict(
    workspace: Workspace, locks: FileLocks, file: Path
) -> None:
    """An editor takes no lock; the hash is compared at the last moment too."""
    first = save_instructions(workspace, locks, ACME, ALICE, "Be brief.", None, allowed)

    def edit() -> None:
        file.write_text("by hand")

    with pytest.raises(PreconditionFailed) as refusal:
        save_instructions(workspace, locks, ACME, ALICE, "Be long.", first.sha256, edit)
    assert refusal.value.current == sha256("by hand")
    assert file.read_text() == "by hand"


def test_a_save_waits_for_its_turn(workspace: Workspace, locks: FileLocks, file: Path, tmp_path: Path) -> None:
    """Whoever holds the lock of this file keeps others out; of another file, not."""
    held = FileLocks(tmp_path / "locks")

    with held.hold(file_key(ACME, "flight", f"users/{ALICE}/USER.md")):
        with pytest.raises(Unavailable):
            save_instructions(workspace, locks, ACME, ALICE, "Be brief.", None, allowed)
        assert not file.exists()
        save_instructions(workspace, locks, ACME, BOB, "Be brief.", None, allowed)
    save_instructions(workspace, locks, ACME, ALICE, "Be brief.", None, allowed)


def test_a_file_that_is_no_text_is_neither_shown_as_empty_nor_replaced(
    workspace: Workspace, locks: FileLocks, file: Path
) -> None:
    """reference/openclaw-visibility 2.4: strict UTF-8; an error, not a replacement."""
    file.parent.mkdir(parents=True)
    file.write_bytes(b"\xff\xfe")

    with pytest.raises(FileNotText) as refusal:
        read_instructions(workspace, ALICE)
    assert isinstance(refusal.value, Conflict)
    for expected in (None, hashlib.sha256(b"\xff\xfe").hexdigest()):
        with pytest.raises(FileNotText):
            save_instructions(workspace, locks, ACME, ALICE, "Be brief.", expected, allowed)
    assert file.read_bytes() == b"\xff\xfe"


def test_a_linked_file_or_folder_is_refused(workspace: Workspace, locks: FileLocks, flight: Path) -> None:
    """reference/openclaw-visibility 2.5: links, hard or soft, are refused for reading and writing."""
    save_instructions(workspace, locks, ACME, BOB, "Bob's", None, allowed)
    (flight / "users" / ALICE).symlink_to(flight / "users" / BOB)

    with pytest.raises(FileUnsafe):
        read_instructions(workspace, ALICE)
    with pytest.raises(FileUnsafe):
        save_instructions(workspace, locks, ACME, ALICE, "Alice's", sha256("Bob's"), allowed)
    (flight / "users" / ALICE).unlink()
    (flight / "users" / ALICE).mkdir()
    os.link(flight / "users" / BOB / "USER.md", flight / "users" / ALICE / "USER.md")
    with pytest.raises(FileUnsafe):
        save_instructions(workspace, locks, ACME, ALICE, "Alice's", sha256("Bob's"), allowed)
    assert (flight / "users" / BOB / "USER.md").read_text() == "Bob's"
