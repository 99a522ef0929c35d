"""Somebody swaps folders and files for links, as fast as they can, while the gateway reads and writes."""

from __future__ import annotations

import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gateway.workspace.files import Workspace
from gateway.workspace.problems import FileProblem, FileUnsafe

ENOUGH = 25  # of each outcome, so that the two were surely at it at the same time
LONGEST_S = 20.0

# Exchanges the real thing and a link to the outside, in one step each time, until it is killed.
SWAPPER = """
import ctypes, os, sys
name, outside = sys.argv[1:]
os.symlink(outside, name + ".link")
libc = ctypes.CDLL(None, use_errno=True)
here, exchange = -100, 2
print("ready", flush=True)
while True:
    if libc.renameat2(here, name.encode(), here, (name + ".link").encode(), exchange):
        raise OSError(ctypes.get_errno())
"""


@contextmanager
def swapping(name: Path, outside: Path) -> Iterator[None]:
    """Swaps `name` for a link to `outside` and back in another process."""
    with subprocess.Popen([sys.executable, "-c", SWAPPER, str(name), str(outside)], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            yield
        finally:
            process.kill()


def outcome(workspace: Workspace) -> str:
    """What one read gives: the text, or the kind of problem."""
    try:
        return workspace.read("memory/x.md").text
    except FileProblem as problem:
        return type(problem).__name__


@pytest.mark.parametrize("swapped", ["memory", "memory/x.md"])
def test_no_read_ever_leaves_the_folder(workspace: Workspace, flight: Path, tmp_path: Path, swapped: str) -> None:
    """issue 2, Paths: a swap of a folder for a link between check and open."""
    (flight / "memory").mkdir()
    (flight / "memory" / "x.md").write_text("inside")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "x.md").write_text("outside")
    outside = tmp_path / "outside" / ("x.md" if swapped.endswith(".md") else "")

    seen: Counter[str] = Counter()
    end = time.monotonic() + LONGEST_S
    with swapping(flight / swapped, outside):
        while min(seen["inside"], seen[FileUnsafe.__name__]) < ENOUGH and time.monotonic() < end:
            seen[outcome(workspace)] += 1

    assert set(seen) == {"inside", FileUnsafe.__name__}
    assert min(seen["inside"], seen[FileUnsafe.__name__]) >= ENOUGH


def test_no_write_ever_leaves_the_folder(workspace: Workspace, flight: Path, tmp_path: Path) -> None:
    """The same for writing: a text lands in the folder that was opened, or nowhere."""
    (flight / "memory").mkdir()
    (tmp_path / "outside").mkdir()

    seen: Counter[str] = Counter()
    end = time.monotonic() + LONGEST_S
    with swapping(flight / "memory", tmp_path / "outside"):
        while min(seen["saved"], seen[FileUnsafe.__name__]) < ENOUGH and time.monotonic() < end:
            try:
                workspace.replace("memory/x.md", "mine")
                seen["saved"] += 1
            except FileProblem as problem:
                seen[type(problem).__name__] += 1

    assert list((tmp_path / "outside").iterdir()) == []
    assert set(seen) == {"saved", FileUnsafe.__name__}
    assert min(seen["saved"], seen[FileUnsafe.__name__]) >= ENOUGH
