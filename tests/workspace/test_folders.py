"""How blocking work reaches its thread, and what becomes of it (design section 12: one event loop is never blocked)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gateway.errors import NotFound, Unavailable
from gateway.model import Agent
from gateway.workspace import folders as module
from gateway.workspace.folders import AgentFolders, from_thread
from gateway.workspace.locks import FileLocks
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


async def test_work_runs_off_the_loop_and_its_failure_is_its_own(folders: AgentFolders) -> None:
    """Reads that come while others run go together; one that fails takes no other with it."""
    loop_thread = threading.get_ident()
    begun, go_on = threading.Event(), threading.Event()

    def first() -> int:
        begun.set()
        assert go_on.wait(PATIENCE_S)
        return threading.get_ident()

    def fails() -> None:
        raise NotFound

    async with asyncio.timeout(PATIENCE_S):
        waiting = asyncio.create_task(folders.read(first))
        assert await asyncio.to_thread(begun.wait, PATIENCE_S)
        behind = [asyncio.create_task(folders.read(work)) for work in (lambda: 1, fails, lambda: 2)]
        gone = asyncio.create_task(folders.read(lambda: 3))
        failing_and_gone = asyncio.create_task(folders.read(fails))
        await asyncio.sleep(0)
        for task in (gone, failing_and_gone):
            task.cancel()
        await asyncio.wait([gone, failing_and_gone])
        go_on.set()
        assert await waiting != loop_thread
        results = await asyncio.gather(*behind, return_exceptions=True)
        again = await folders.run(threading.get_ident)

    assert (results[0], results[2]) == (1, 2)
    assert isinstance(results[1], NotFound)
    assert gone.cancelled()
    assert again != loop_thread


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
