"""Many processes save one file at the same time, and some are killed: nothing acknowledged is lost, nothing is torn.

The short form runs always; `GATEWAY_LONG=1` runs 20 processes × 200 saves (issue 2, "Hash check and rename").
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from gateway.workspace.files import Workspace
from gateway.workspace.locks import FileLocks, file_key
from gateway.workspace.paths import instructions_path
from gateway.workspace.personal import read_instructions
from tests.workspace.saving import ALICE, TENANT, counts, save_once

LONG = os.environ.get("GATEWAY_LONG") == "1"
PROCESSES, SAVES = (20, 200) if LONG else (6, 40)
REPOSITORY = Path(__file__).parents[2]


class Saver:
    """One process, and the saves that it said were acknowledged."""

    def __init__(self, process: subprocess.Popen[str], name: str) -> None:
        self.process = process
        self.name = name
        self.acknowledged: list[tuple[str, str]] = []
        self.conflicts = 0

    def expect(self, line: str) -> None:
        assert self._line() == line

    def go(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("go\n")
        self.process.stdin.flush()

    def follow(self, count: int) -> None:
        """Waits for `count` more acknowledged saves."""
        for _ in range(count):
            self._note(self._line())

    def finish(self) -> None:
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        for line in self.process.stdout.read().split("\n")[:-1]:  # a killed process may leave half a line
            self._note(line)
        errors = self.process.stderr.read()
        self.process.wait(100)
        if self.process.returncode == 0:
            self.conflicts = int(errors.split()[-1])
        else:
            assert self.process.returncode == -9, errors

    def _note(self, line: str) -> None:
        before, after = line.split()
        self.acknowledged.append((before, after))

    def _line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().removesuffix("\n")


@contextmanager
def saving(root: Path, locks: Path, count: int, saves: int, *options: str) -> Iterator[list[Saver]]:
    """`count` processes that are ready to save `saves` times each, and gone afterwards."""
    with ExitStack() as stack:
        savers = []
        for number in range(count):
            name = chr(ord("a") + number)
            process = subprocess.Popen(
                [sys.executable, "-m", "tests.workspace.saving", str(root), str(locks), name, str(saves), *options],
                cwd=REPOSITORY,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            stack.enter_context(process)
            stack.callback(process.kill)
            savers.append(Saver(process, name))
        for saver in savers:
            saver.expect("ready")
        yield savers


def assert_settled(workspace: Workspace, flight: Path, folder: Path) -> None:
    """The lock is free, another save goes through, and no temporary file is left by anybody."""
    locks = FileLocks(folder, wait_s=0)
    with locks.hold(file_key(TENANT, "flight", instructions_path(ALICE))):
        pass
    before, after = save_once(workspace, locks, "z", pause=False)
    assert read_instructions(workspace, ALICE) == after != before
    assert [path.name for path in (flight / "users" / ALICE).iterdir()] == ["USER.md"]


@pytest.mark.timeout(600)
def test_every_acknowledged_save_follows_the_one_before(
    root: Path, flight: Path, workspace: Workspace, tmp_path: Path
) -> None:
    """design section 12: nothing acknowledged is lost. Each save names the hash that it replaced and the one that it
    made, so all of them together must be one chain from no file to the file that is there, without a fork."""
    started = time.monotonic()
    with saving(root, tmp_path / "locks", PROCESSES, SAVES) as savers:
        for saver in savers:
            saver.go()
        for saver in savers:
            saver.finish()
    seconds = time.monotonic() - started

    steps = dict(edge for saver in savers for edge in saver.acknowledged)
    final = read_instructions(workspace, ALICE)
    assert counts(final.content) == {saver.name: SAVES for saver in savers}
    assert len(steps) == PROCESSES * SAVES
    here = "None"
    for _ in range(PROCESSES * SAVES):
        here = steps.pop(here)
    assert here == final.sha256
    conflicts = sum(saver.conflicts for saver in savers)
    assert conflicts > 0, "the processes never met"
    print(f"{PROCESSES} processes x {SAVES} saves: {PROCESSES * SAVES} acknowledged, {conflicts} conflicts,", end=" ")
    print(f"0 lost, 0 torn, {seconds:.1f} s")
    assert_settled(workspace, flight, tmp_path / "locks")


@pytest.mark.timeout(600)
def test_a_killed_process_loses_nothing_that_was_acknowledged(
    root: Path, flight: Path, workspace: Workspace, tmp_path: Path
) -> None:
    """issue 2: also when processes are killed with SIGKILL in between. All but two are killed, each after a number of
    saves and a moment that a seed chose; a save that was under way may have happened or not, but wholly."""
    chance = random.Random(20260303)
    with saving(root, tmp_path / "locks", PROCESSES, SAVES) as savers:
        for saver in savers:
            saver.go()
        killed, left = savers[:-2], savers[-2:]
        for saver in killed:
            saver.follow(chance.randint(1, 5))
            moment = time.perf_counter() + chance.uniform(0, 0.004)
            while time.perf_counter() < moment:
                pass
            saver.process.kill()
        for saver in savers:
            saver.finish()

    final = counts(read_instructions(workspace, ALICE).content)
    unsaid = {saver.name: final.get(saver.name, 0) - len(saver.acknowledged) for saver in savers}
    # On a busy machine one may have said its last save, and ended, before its signal came.
    ends = [saver.process.returncode for saver in killed]
    assert set(ends) <= {-9, 0}
    assert ends.count(-9) >= len(killed) / 2, ends
    assert [saver.process.returncode for saver in left] == [0, 0]
    assert all(unsaid[saver.name] in (0, 1) for saver in killed)
    assert [unsaid[saver.name] for saver in left] == [0, 0]
    print(
        f"{ends.count(-9)} of {PROCESSES} processes killed, {sum(len(one.acknowledged) for one in savers)} saves",
        end=" ",
    )
    print(f"acknowledged, 0 lost, 0 torn; {sum(unsaid.values())} saved and not yet said")
    assert_settled(workspace, flight, tmp_path / "locks")


def test_a_process_killed_between_check_and_rename_changes_nothing(
    root: Path, flight: Path, workspace: Workspace, tmp_path: Path
) -> None:
    """The worst moment: the lock is held, the new text is on the disk, the name is still the old one's."""
    locks = FileLocks(tmp_path / "locks", wait_s=0)
    _, old = save_once(workspace, locks, "z", pause=False)

    with saving(root, tmp_path / "locks", 1, 1, "pause") as [saver]:
        saver.go()
        saver.expect("in the middle")
        assert read_instructions(workspace, ALICE) == old
        assert len(list((flight / "users" / ALICE).iterdir())) == 2
        saver.process.kill()
        saver.finish()

    assert saver.acknowledged == []
    assert read_instructions(workspace, ALICE) == old
    assert_settled(workspace, flight, tmp_path / "locks")
