"""Confinement: what can be read and written, and what is refused without a trace."""

from __future__ import annotations

import hashlib
import os
import socket
import stat
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from gateway.errors import Conflict, GatewayError, NotFound, TooLarge, Unavailable
from gateway.workspace.files import FileText, Workspace, new_workspace
from gateway.workspace.problems import (
    FileMissing,
    FileNotText,
    FileProblem,
    FileTooLarge,
    FileUnavailable,
    FileUnsafe,
)

SECRET = "the neighbour's memory"
Unprivileged = Callable[[], AbstractContextManager[None]]


def everything_in(folder: Path) -> dict[str, str]:
    """Each name below a folder with what it is, to show that nothing changed."""
    return {
        path.relative_to(folder).as_posix(): path.read_text() if path.is_file() else "folder"
        for path in sorted(folder.rglob("*"))
    }


def names_in(folder: Path) -> list[str]:
    """The names directly in a folder."""
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder that the agent must never reach."""
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "secret.md").write_text(SECRET)
    (folder / "2026-03-03.md").write_text(SECRET)
    return folder


def test_a_file_is_read_as_it_is(workspace: Workspace, flight: Path) -> None:
    """design section 6: strict UTF-8, a hash of the bytes, and the identity that no other name can hide."""
    (flight / "memory").mkdir()
    (flight / "memory" / "退票.md").write_bytes("\ufeff# Note\r\n退票\n".encode())

    found = workspace.read("memory/退票.md")

    data = (flight / "memory" / "退票.md").read_bytes()
    status = (flight / "memory" / "退票.md").stat()
    assert found.text == data.decode()
    assert (found.sha256, found.size) == (hashlib.sha256(data).hexdigest(), len(data))
    assert found.identity == (status.st_dev, status.st_ino)


def test_the_limit_counts_bytes(workspace: Workspace, flight: Path) -> None:
    """design section 6: size limits."""
    (flight / "USER.md").write_text("é" * 50)

    assert workspace.read("USER.md", limit=100).text == "é" * 50
    with pytest.raises(FileTooLarge) as refusal:
        workspace.read("USER.md", limit=99)
    assert isinstance(refusal.value, TooLarge)
    assert refusal.value.limit == 99


def test_a_file_that_grows_while_it_is_read_is_read_to_its_end_or_its_limit() -> None:
    """The kernel's own files say that they are empty, and are not."""
    kernel = Workspace(Path("/proc"), str(os.getpid()))

    assert "VmPeak" in kernel.read("status").text
    with pytest.raises(FileTooLarge):
        kernel.read("status", limit=10)


def test_bytes_that_are_no_text_are_an_error_and_not_replaced(workspace: Workspace, flight: Path) -> None:
    """design section 6: strict UTF-8."""
    for data in (b"\xff\xfe", b"a\xc3", b"\xed\xa0\x80", b"\xc0\xae"):
        (flight / "USER.md").write_bytes(data)
        with pytest.raises(FileNotText) as refusal:
            workspace.read("USER.md")
        assert isinstance(refusal.value, Conflict)
    with pytest.raises(FileNotText):
        workspace.replace("USER.md", "half a \ud83d")
    assert (flight / "USER.md").read_bytes() == b"\xc0\xae"


def plant_link(flight: Path, outside: Path) -> str:
    (flight / "x.md").symlink_to(outside / "secret.md")
    return "x.md"


def plant_inner_link(flight: Path, outside: Path) -> str:
    (flight / "MEMORY.md").write_text(SECRET)
    (flight / "x.md").symlink_to("MEMORY.md")
    return "x.md"


def plant_dangling_link(flight: Path, outside: Path) -> str:
    (flight / "x.md").symlink_to(outside / "new.md")
    return "x.md"


def plant_linked_parent(flight: Path, outside: Path) -> str:
    (flight / "memory").symlink_to(outside)
    return "memory/2026-03-03.md"


def plant_linked_grandparent(flight: Path, outside: Path) -> str:
    (outside / "deep").mkdir()
    (outside / "deep" / "x.md").write_text(SECRET)
    (flight / "memory").symlink_to(outside)
    return "memory/deep/x.md"


def plant_hard_link(flight: Path, outside: Path) -> str:
    os.link(outside / "secret.md", flight / "x.md")
    return "x.md"


def plant_fifo(flight: Path, outside: Path) -> str:
    os.mkfifo(flight / "x.md")
    return "x.md"


def plant_folder(flight: Path, outside: Path) -> str:
    (flight / "x.md").mkdir()
    return "x.md"


def plant_file_as_folder(flight: Path, outside: Path) -> str:
    (flight / "memory").write_text("not a folder")
    return "memory/x.md"


PLANTS = [
    plant_link,
    plant_inner_link,
    plant_dangling_link,
    plant_linked_parent,
    plant_linked_grandparent,
    plant_hard_link,
    plant_fifo,
    plant_folder,
    plant_file_as_folder,
]


@pytest.mark.parametrize("plant", PLANTS)
def test_links_and_odd_files_are_neither_read_nor_written(
    plant: Callable[[Path, Path], str], workspace: Workspace, flight: Path, outside: Path
) -> None:
    """design section 6: no symlink, hard link or device, in the file or above it; a FIFO must not hang."""
    path = plant(flight, outside)
    (flight / "fine.md").write_text("fine")
    before = everything_in(flight.parent.parent)
    reached: list[str] = []

    with pytest.raises(FileUnsafe) as refusal:
        workspace.read(path)
    with pytest.raises(FileUnsafe):
        workspace.replace(path, "mine", before_rename=lambda: reached.append(path))

    assert isinstance(refusal.value, Conflict)
    assert SECRET not in refusal.value.detail
    assert not reached
    assert everything_in(flight.parent.parent) == before
    assert workspace.read("fine.md").text == "fine"


def test_a_socket_and_a_device_are_refused(open_root: Path) -> None:
    """The same, for what the kernel won't open, and for what it will."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(open_root / "flight" / "x.md"))
        with pytest.raises(FileUnsafe):
            Workspace(open_root, "flight").read("x.md")
    with pytest.raises(FileUnsafe):
        Workspace(Path("/"), "dev").read("null")


def test_a_missing_file_and_a_missing_folder_read_the_same(workspace: Workspace, flight: Path) -> None:
    """design section 7: missing has one text, whatever is missing."""
    (flight / "users").mkdir()

    for path in ("USER.md", "users/prf_x/USER.md", "memory/x.md"):
        with pytest.raises(FileMissing) as refusal:
            workspace.read(path)
        assert isinstance(refusal.value, NotFound)
        assert refusal.value.detail == NotFound.DETAIL
        assert refusal.value.path == path


def test_an_absent_agent_folder_is_an_outage_and_never_an_empty_memory(root: Path, tmp_path: Path) -> None:
    """design section 12: an outage refuses; a volume that is not mounted must not look like an agent without memory."""
    for absent in (Workspace(root, "other"), Workspace(tmp_path / "gone", "flight")):
        with pytest.raises(FileUnavailable) as refusal:
            absent.read("USER.md")
        assert isinstance(refusal.value, Unavailable)
        with pytest.raises(FileUnavailable):
            absent.read_many(["USER.md"])
        with pytest.raises(FileUnavailable):
            absent.replace("USER.md", "text")
        assert not absent.exists()
    assert not (tmp_path / "gone").exists()


def test_an_agent_folder_or_root_that_is_a_link_is_refused(root: Path, tmp_path: Path, outside: Path) -> None:
    """design section 6: a tenant's folders lie under the tenant's root."""
    (root / "linked").symlink_to(outside)
    (tmp_path / "rooted").symlink_to(root)
    (root / "flight" / "secret.md").write_text(SECRET)

    for workspace in (Workspace(root, "linked"), Workspace(tmp_path / "rooted", "flight")):
        with pytest.raises(FileUnsafe):
            workspace.read("secret.md")
        with pytest.raises(FileUnsafe):
            workspace.paths_under("", limit=10)
    with pytest.raises(FileUnsafe):
        Workspace(root, "linked").exists()
    for name in ("", "..", ".", "a/b", "/etc", "a\\b", "a\0"):
        with pytest.raises(FileUnsafe):
            Workspace(root, name)


def test_what_the_disk_refuses_is_unavailable_and_not_missing(open_root: Path, unprivileged: Unprivileged) -> None:
    """design section 12; reference/openclaw-memory 1.7: EACCES is not an absent file."""
    flight = open_root / "flight"
    (flight / "closed").mkdir(mode=0o000)
    (flight / "USER.md").write_text("text")
    (flight / "USER.md").chmod(0o000)
    flight.chmod(0o555)
    workspace = Workspace(open_root, "flight")

    with unprivileged():
        for path in ("USER.md", "closed/x.md"):
            with pytest.raises(FileUnavailable):
                workspace.read(path)
            with pytest.raises(FileUnavailable):
                workspace.replace(path, "mine")
        for refused in (lambda: workspace.paths_under("closed", limit=9), lambda: workspace.make_folder("new")):
            with pytest.raises(FileUnavailable):
                refused()
        with pytest.raises(FileUnavailable), new_workspace(flight, "inner"):
            pass
        with pytest.raises(FileUnavailable):
            Workspace(flight / "closed", "x").exists()
    flight.chmod(0o755)
    (flight / "closed").chmod(0o755)
    (flight / "USER.md").chmod(0o600)
    assert everything_in(flight) == {"USER.md": "text", "closed": "folder"}


def test_a_read_error_of_the_device_is_unavailable() -> None:
    """EIO, from the one file of the kernel that always gives it: one's own memory, at address zero."""
    with pytest.raises(FileUnavailable):
        Workspace(Path("/proc"), str(os.getpid())).read("mem")


def test_many_files_come_with_a_text_or_a_problem_each(workspace: Workspace, flight: Path) -> None:
    """A whole context is one hop to a thread; one bad file does not spoil the others."""
    (flight / "AGENTS.md").write_text("rules")
    (flight / "SOUL.md").symlink_to("AGENTS.md")

    found = workspace.read_many(["AGENTS.md", "SOUL.md", "IDENTITY.md", "../x"], limit=5)

    assert list(found) == ["AGENTS.md", "SOUL.md", "IDENTITY.md", "../x"]
    assert isinstance(found["AGENTS.md"], FileText)
    assert [type(found[path]) for path in ("SOUL.md", "IDENTITY.md", "../x")] == [FileUnsafe, FileMissing, FileUnsafe]


def test_a_save_makes_the_folders_that_it_needs(workspace: Workspace, flight: Path) -> None:
    """design section 6; what a person wrote is for the gateway's user alone."""
    saved = workspace.replace("users/prf_x/USER.md", "Be brief.\n")

    assert workspace.read("users/prf_x/USER.md") == saved
    assert everything_in(flight) == {"users": "folder", "users/prf_x": "folder", "users/prf_x/USER.md": "Be brief.\n"}
    assert stat.S_IMODE((flight / "users" / "prf_x").stat().st_mode) == 0o700
    assert stat.S_IMODE((flight / "users" / "prf_x" / "USER.md").stat().st_mode) == 0o600


def test_a_save_keeps_mode_and_owner_of_what_it_replaces(open_root: Path, unprivileged: Unprivileged) -> None:
    """An OpenClaw folder that was taken over is read by other programs too; who can't give files away still saves."""
    file = open_root / "flight" / "USER.md"
    file.write_text("old")
    file.chmod(0o664)
    if os.geteuid() == 0:
        os.chown(file, 4711, 4712)
    owner = (file.stat().st_uid, file.stat().st_gid)
    workspace = Workspace(open_root, "flight")

    workspace.replace("USER.md", "new")

    assert (file.stat().st_uid, file.stat().st_gid) == owner
    assert stat.S_IMODE(file.stat().st_mode) == 0o664
    (open_root / "flight").chmod(0o777)
    with unprivileged():
        workspace.replace("USER.md", "newer")
    assert file.read_text() == "newer"


def test_the_last_check_comes_before_anything_is_seen_and_can_stop_it(workspace: Workspace, flight: Path) -> None:
    """design section 6: rights are checked again just before the atomic rename; a refusal leaves nothing behind."""
    (flight / "USER.md").write_text("old")

    def refuse() -> None:
        seen.append(everything_in(flight))
        raise Conflict("no")

    for path in ("USER.md", "users/prf_x/USER.md", "users/prf_x/memory/2026-03-03.md"):
        seen: list[dict[str, str]] = []
        with pytest.raises(Conflict):
            workspace.replace(path, "new", before_rename=refuse)

        names = set(seen[0]) - {"USER.md"}
        assert len(names) == 1
        assert all(name.startswith(".gateway-") and seen[0][name] == "new" for name in names)
        assert everything_in(flight) == {"USER.md": "old"}


def test_a_folder_swapped_for_a_link_at_the_last_moment_gets_nothing(
    workspace: Workspace, flight: Path, outside: Path
) -> None:
    """design section 6: the way was opened before the check, so the text goes where the check looked."""
    (flight / "memory").mkdir()
    before = everything_in(outside)

    def swap() -> None:
        (flight / "memory").rename(flight / "moved")
        (flight / "memory").symlink_to(outside)

    workspace.replace("memory/2026-03-03.md", "mine", before_rename=swap)

    assert everything_in(outside) == before
    assert (flight / "moved" / "2026-03-03.md").read_text() == "mine"


def test_a_missing_folder_made_as_a_link_at_the_last_moment_is_refused(
    workspace: Workspace, flight: Path, outside: Path
) -> None:
    """The same, where the folder was not there when we looked."""
    before = everything_in(outside)

    with pytest.raises(FileUnsafe):
        workspace.replace("memory/x.md", "mine", before_rename=lambda: (flight / "memory").symlink_to(outside))

    assert everything_in(outside) == before
    assert names_in(flight) == ["memory"]


def test_a_reader_who_came_before_a_save_reads_the_old_text(
    workspace: Workspace, flight: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A save takes the name away from a file that is open; that is no second name and no fault."""
    (flight / "USER.md").write_text("old")
    fstat = os.fstat

    def save_then_fstat(file: int) -> os.stat_result:
        monkeypatch.setattr(os, "fstat", fstat)
        workspace.replace("USER.md", "new")
        return fstat(file)

    monkeypatch.setattr(os, "fstat", save_then_fstat)

    assert workspace.read("USER.md").text == "old"
    assert workspace.read("USER.md").text == "new"


def test_two_writers_without_a_lock_never_share_a_temporary_file(workspace: Workspace, flight: Path) -> None:
    """A fault in our own locking must end in a refusal, and not in a torn file."""
    problems: list[GatewayError] = []

    def write_too() -> None:
        try:
            workspace.replace("USER.md", "second")
        except FileProblem as problem:
            problems.append(problem)

    workspace.replace("USER.md", "first", before_rename=write_too)

    assert [type(problem) for problem in problems] == [FileUnavailable]
    assert everything_in(flight) == {"USER.md": "first"}


def test_what_a_killed_writer_left_is_used_up_by_the_next(workspace: Workspace, flight: Path) -> None:
    """Nobody's words stay in a hidden file; and one that was planted there is not written through."""
    names: list[str] = []
    workspace.replace("USER.md", "old", before_rename=lambda: names.extend(names_in(flight)))
    [temporary] = names
    (flight / temporary).write_text("a much longer text of a writer who was killed")

    workspace.replace("USER.md", "new")
    assert everything_in(flight) == {"USER.md": "new"}

    (flight / "AGENTS.md").write_text("rules")
    os.link(flight / "AGENTS.md", flight / temporary)
    with pytest.raises(FileUnsafe):
        workspace.replace("USER.md", "newer")
    assert (flight / "AGENTS.md").read_text() == "rules"


def test_a_list_names_plain_files_only(workspace: Workspace, flight: Path, outside: Path) -> None:
    """design section 9: Markdown in the workspace is the truth; links out of it are not."""
    for name in ("memory/2026-03-03.md", "memory/deep/er/x.md", "memory/b.txt", "USER.md"):
        workspace.replace(name, "text")
    (flight / "memory" / "link.md").symlink_to(outside / "secret.md")
    (flight / "memory" / "linked").symlink_to(outside)
    (flight / "memory" / ".gateway-00.tmp").write_text("half")
    (flight / "memory" / "odd\nname.md").write_text("odd")
    os.mkfifo(flight / "memory" / "fifo.md")
    memory = ("memory/2026-03-03.md", "memory/b.txt", "memory/deep/er/x.md")

    assert workspace.paths_under("memory", limit=3) == memory
    assert workspace.paths_under("", limit=9) == ("USER.md", *memory)
    assert workspace.paths_under("users", limit=9) == ()
    with pytest.raises(FileTooLarge):
        workspace.paths_under("memory", limit=2)
    for prefix in ("..", "memory/linked", "USER.md"):
        with pytest.raises(FileUnsafe):
            workspace.paths_under(prefix, limit=9)


def test_a_new_folder_appears_whole_or_not_at_all(root: Path, flight: Path) -> None:
    """A start that was cut short must not leave half an agent that the next start takes as it is."""
    with new_workspace(root, "desk") as desk:
        desk.replace("AGENTS.md", "rules")
        desk.make_folder("memory/deep")
        assert not (root / "desk").exists()
    with pytest.raises(Conflict), new_workspace(root, "other") as other:
        other.replace("AGENTS.md", "rules", before_rename=_refuse)
    with pytest.raises(FileUnavailable), new_workspace(root, "desk") as again:
        again.replace("AGENTS.md", "other rules")

    assert names_in(root) == ["desk", "flight"]
    assert everything_in(root / "desk") == {"AGENTS.md": "rules", "memory": "folder", "memory/deep": "folder"}


def test_no_descriptor_stays_open(workspace: Workspace, flight: Path, outside: Path) -> None:
    """Ten thousand refusals must not use up what the process may open."""
    (flight / "link.md").symlink_to(outside / "secret.md")
    (flight / "linked").symlink_to(outside)
    (flight / "bad.md").write_bytes(b"\xff")
    paths = ["link.md", "linked/secret.md", "bad.md", "none.md", "no/folder.md", "../x", "a/b/c.md"]
    before = names_in(Path("/proc/self/fd"))

    for path in paths:
        with pytest.raises(FileProblem):
            workspace.read(path)
        with pytest.raises(GatewayError):
            workspace.replace(path, "text", before_rename=_refuse)
    workspace.replace("a/b.md", "text")
    workspace.paths_under("", limit=9)

    assert names_in(Path("/proc/self/fd")) == before


def _refuse() -> None:
    raise Conflict("no")
