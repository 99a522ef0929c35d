"""New agents, agents taken over, and the example."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gateway.model import AgentName
from gateway.workspace.bootstrap import FILE_UNITS
from gateway.workspace.files import Workspace
from gateway.workspace.problems import FileUnsafe
from gateway.workspace.scaffold import TEMPLATES, copy_example, scaffold
from gateway.workspace.units import units

EXAMPLE = Path(__file__).parents[2] / "workspaces" / "demo"


def snapshot(folder: Path) -> list[tuple[str, int, int, bytes]]:
    """Every name below with its mode, time and bytes."""
    return [
        (str(path.relative_to(folder)), path.lstat().st_mode, path.lstat().st_mtime_ns, _bytes(path))
        for path in sorted(folder.rglob("*"))
    ]


def _bytes(path: Path) -> bytes:
    return path.read_bytes() if path.is_file() and not path.is_symlink() else b""


def test_a_new_agent_gets_its_files(tmp_path: Path) -> None:
    """issue 2, Agents and workspaces: AGENTS.md with a memory policy, SOUL.md, IDENTITY.md, shared USER.md, memory/."""
    made = scaffold(tmp_path / "acme", "desk", AgentName("desk"), "Front\n# Desk")

    workspace = Workspace(tmp_path / "acme", "desk")
    assert made
    assert workspace.paths_under("", limit=9) == tuple(sorted(TEMPLATES))
    assert (tmp_path / "acme" / "desk" / "memory").is_dir()
    for name in TEMPLATES:
        text = workspace.read(name).text
        assert "$" not in text
        assert units(text) < FILE_UNITS
    rules = workspace.read("AGENTS.md").text
    assert "You are Front # Desk (`desk`)." in rules
    assert all(word in rules for word in ("personal_instructions", "memory_append", "write nothing", "MEMORY.md"))
    assert [path.name for path in (tmp_path / "acme").iterdir()] == ["desk"]


def test_an_existing_folder_is_taken_as_it_is(root: Path, flight: Path) -> None:
    """issue 2: an existing OpenClaw workspace folder is taken as it is."""
    (flight / "AGENTS.md").write_text("ours")
    (flight / "memory.md").write_bytes(b"\xff")
    (flight / "link").symlink_to("AGENTS.md")
    (root / "empty").mkdir()
    before = snapshot(root)

    assert not scaffold(root, "flight", AgentName("flight"), "Flight")
    assert not scaffold(root, "empty", AgentName("empty"), "Empty")

    assert snapshot(root) == before


def test_a_folder_that_is_none_is_refused(root: Path, flight: Path) -> None:
    """design section 6, confinement: an agent's folder is no link to somewhere else."""
    (root / "linked").symlink_to(flight)
    (root / "file").write_text("text")
    before = snapshot(root)

    for name in ("linked", "file", "..", "a/b", ""):
        with pytest.raises(FileUnsafe):
            scaffold(root, name, AgentName("x"), "X")
    assert snapshot(root) == before


def test_the_example_is_copied_once_and_never_written(tmp_path: Path) -> None:
    """issue 2, Start: a copy of the example workspace in the state folder; `workspaces/` is never written."""
    before, target = snapshot(EXAMPLE), tmp_path / ".gateway" / "workspaces" / "demo"

    assert copy_example(EXAMPLE, target)
    copied = snapshot(target)
    (target / "flight" / "USER.md").write_text("changed")
    assert not copy_example(EXAMPLE, target)

    names = {name: data for name, _, _, data in before}
    assert {name: data for name, _, _, data in copied} == names
    assert {f"flight/{name}" for name in (*TEMPLATES, "MEMORY.md", "memory")} <= set(names)
    assert (target / "flight" / "USER.md").read_text() == "changed"
    assert snapshot(EXAMPLE) == before


def test_the_example_may_be_hard_linked_by_an_installer_but_links_are_not_followed(tmp_path: Path) -> None:
    """Some installers link files of a package from their cache; a link out of the example is left out."""
    source, secret = tmp_path / "source", tmp_path / "secret"
    (source / "flight").mkdir(parents=True)
    secret.mkdir()
    (secret / "secret.md").write_text("secret")
    os.link(secret / "secret.md", source / "flight" / "AGENTS.md")
    (source / "flight" / "USER.md").symlink_to(secret / "secret.md")
    (source / "flight" / "memory").symlink_to(secret)

    assert copy_example(source, tmp_path / "target")

    assert [name for name, *_ in snapshot(tmp_path / "target")] == ["flight", "flight/AGENTS.md"]
    assert Workspace(tmp_path / "target", "flight").read("AGENTS.md").text == "secret"
