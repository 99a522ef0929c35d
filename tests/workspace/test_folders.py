"""How blocking work reaches its thread, and what becomes of it (design section 12: one event loop is never blocked)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import ClassVar

import pytest

from gateway.errors import NotFound, Unavailable
from gateway.model import Agent
from gateway.workspace import folders as module
from gateway.workspace.files import FILE_LIMIT, FileText, Workspace
from gateway.workspace.folders import AgentFolders, from_thread
from gateway.workspace.locks import FileLocks
from gateway.workspace.problems import FileMissing, FileProblem, FileUnavailable
from tests.cast import ACME, FLIGHT

PATIENCE_S = 5


@pytest.fixture
def folders(tmp_path: Path) -> Iterator[AgentFolders]:
    """Folders with one thread, so that what waits for it can be told."""
    with ThreadPoolExecutor(1) as threads:
        yield AgentFolders(tmp_path / "workspaces", FileLocks(tmp_path / "locks"), threads)


def test_an_agent_has_one_workspace_under_its_tenant(folders: AgentFolders) -> None:
    """Design section 6, confinement."""
    agent = Agent(tenant=ACME, name=FLIGHT, workspace="desk", title="Desk", timezone="UTC")
    assert folders.of(agent) is folders.of(agent)
    assert (folders.of(agent).root, folders.of(agent).folder) == (folders.root / "acme", "desk")


class Opened(Workspace):
    """A folder that says when it is read, by which thread, and waits to be let go on."""

    reads: ClassVar[list[tuple[int, list[str]]]] = []
    begun: ClassVar[threading.Event]
    go_on: ClassVar[threading.Event]

    def read_many(self, paths: Iterable[str], *, limit: int = FILE_LIMIT) -> dict[str, FileText | FileProblem]:
        """As it is, once it may."""
        Opened.reads.append((threading.get_ident(), list(paths)))
        Opened.begun.set()
        assert Opened.go_on.wait(PATIENCE_S)
        return Workspace.read_many(self, Opened.reads[-1][1], limit=limit)


@pytest.fixture
def opened(tmp_path: Path) -> Opened:
    """One agent's folder with two files."""
    Opened.reads, Opened.begun, Opened.go_on = [], threading.Event(), threading.Event()
    (tmp_path / "acme" / "desk").mkdir(parents=True)
    workspace = Opened(tmp_path / "acme", "desk")
    for name in ("A.md", "B.md"):
        workspace.replace(name, f"first {name}")
    return workspace


async def test_reads_run_off_the_loop_and_those_that_come_meanwhile_go_together(
    folders: AgentFolders, opened: Opened, tmp_path: Path
) -> None:
    """Each file is opened once for all who wait for it, after they asked: what was saved before is found. A folder that
    can't be opened takes no other with it, nor does somebody who has gone."""
    gone_folder = Workspace(tmp_path / "acme", "elsewhere")
    async with asyncio.timeout(PATIENCE_S):
        first = asyncio.create_task(folders.read(opened, ["A.md"]))
        assert await asyncio.to_thread(Opened.begun.wait, PATIENCE_S)
        wanted = (["A.md"], ["B.md", "A.md"], ["none.md", "B.md"])
        behind = [asyncio.create_task(folders.read(opened, paths)) for paths in wanted]
        failing = [asyncio.create_task(folders.read(gone_folder, ["A.md"])) for _ in range(2)]
        gone = [asyncio.create_task(folders.read(one, ["A.md"])) for one in (opened, gone_folder)]
        await asyncio.sleep(0)
        for task in gone:
            task.cancel()
        await asyncio.wait(gone)
        opened.replace("A.md", "second A.md")
        Opened.go_on.set()
        await first
        found = await asyncio.gather(*behind)
        failures = await asyncio.gather(*failing, return_exceptions=True)
        elsewhere = await folders.run(threading.get_ident)

    assert [list(one) for one in found] == [list(paths) for paths in wanted]
    assert [_text(found[0]["A.md"]), _text(found[1]["A.md"])] == ["second A.md"] * 2
    assert _text(found[1]["B.md"]) == "first B.md"
    assert isinstance(found[2]["none.md"], FileMissing)
    assert [paths for _, paths in Opened.reads] == [["A.md"], ["A.md", "B.md", "none.md"]]
    assert threading.get_ident() not in {*(thread for thread, _ in Opened.reads), elsewhere}
    assert [type(one) for one in failures] == [FileUnavailable] * 2
    assert all(task.cancelled() for task in gone)


async def test_reads_of_one_step_of_the_loop_go_together(folders: AgentFolders, opened: Opened) -> None:
    """Requests that are answered side by side share a hop, the first of them too."""
    Opened.go_on.set()

    found = await asyncio.gather(*(folders.read(opened, paths) for paths in (["A.md"], ["B.md"], ["A.md"])))

    assert [list(one) for one in found] == [["A.md"], ["B.md"], ["A.md"]]
    assert [paths for _, paths in Opened.reads] == [["A.md", "B.md"]]


async def test_nobody_waits_for_threads_that_have_ended(tmp_path: Path, opened: Opened) -> None:
    """A read that comes while the gateway closes fails, and so does the next."""
    with ThreadPoolExecutor(1) as threads:
        folders = AgentFolders(tmp_path / "workspaces", FileLocks(tmp_path / "locks"), threads)

    for _ in range(2):
        async with asyncio.timeout(PATIENCE_S):
            with pytest.raises(RuntimeError, match="after shutdown"):
                await folders.read(opened, ["A.md"])
    assert Opened.reads == []


def _text(found: FileText | FileProblem) -> str:
    assert isinstance(found, FileText)
    return found.text


async def test_a_thread_can_have_something_looked_up_on_the_loop(
    folders: AgentFolders, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Design section 6: rights are checked again under the lock; one that takes too long refuses."""
    where: list[int] = []

    async def fine() -> None:
        where.append(threading.get_ident())

    async def refused() -> None:
        raise NotFound

    async def hangs() -> None:
        await asyncio.Event().wait()

    await folders.run(from_thread(fine))
    with pytest.raises(NotFound):
        await folders.run(from_thread(refused))
    monkeypatch.setattr(module, "RECHECK_TIMEOUT_S", 0.01)
    with pytest.raises(Unavailable):
        await folders.run(from_thread(hangs))
    assert where == [threading.get_ident()]
