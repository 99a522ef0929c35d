"""Turns an agent into its workspace, and runs what blocks on it in threads, off the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import Any, TypeVar

from gateway.errors import Unavailable
from gateway.model import Agent, TenantId
from gateway.workspace.files import Workspace
from gateway.workspace.locks import FileLocks

ResultT = TypeVar("ResultT")

RECHECK_TIMEOUT_S = 5.0

Reading = tuple[Callable[[], Any], "asyncio.Future[Any]"]  # each future takes what its own work returns
Outcome = tuple["asyncio.Future[Any]", Any, BaseException | None]


class AgentFolders:
    """The workspaces below `root`, one folder a tenant and one in it for each agent."""

    def __init__(self, root: Path, locks: FileLocks, threads: Executor) -> None:
        self.root = root
        self.locks = locks
        self._threads = threads
        self._workspaces: dict[tuple[TenantId, str], Workspace] = {}
        self._waiting: list[Reading] = []
        self._reading = False

    def of(self, agent: Agent) -> Workspace:
        """The agent's workspace; one object each, since it holds nothing but where it is."""
        known = self._workspaces.get((agent.tenant, agent.workspace))
        if known is None:
            known = Workspace(self.root / agent.tenant, agent.workspace)
            self._workspaces[agent.tenant, agent.workspace] = known
        return known

    async def run(self, work: Callable[[], ResultT]) -> ResultT:
        """What `work` returns, from a thread of its own: for what may wait, for a lock or the disk."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    async def read(self, work: Callable[[], ResultT]) -> ResultT:
        """What `work` returns, from a thread: for short reads that wait for nothing but the disk.

        Reads that come while others run go to the thread together. A hop costs several times what a read does, so
        this is what lets many turns at once be served; one alone hops at once.
        """
        loop = asyncio.get_running_loop()
        found: asyncio.Future[ResultT] = loop.create_future()
        self._waiting.append((work, found))
        if not self._reading:
            self._send(loop)
        return await found

    def _send(self, loop: asyncio.AbstractEventLoop) -> None:
        readings, self._waiting = self._waiting, []
        self._reading = True
        self._threads.submit(self._in_thread, loop, readings)

    def _in_thread(self, loop: asyncio.AbstractEventLoop, readings: Sequence[Reading]) -> None:
        outcomes = [_outcome(work, found) for work, found in readings]
        loop.call_soon_threadsafe(self._deliver, loop, outcomes)

    def _deliver(self, loop: asyncio.AbstractEventLoop, outcomes: Sequence[Outcome]) -> None:
        self._reading = False
        if self._waiting:
            self._send(loop)
        for found, result, error in outcomes:
            if found.done():  # whoever asked has gone
                continue
            if error is None:
                found.set_result(result)
            else:
                found.set_exception(error)


def _outcome(work: Callable[[], Any], found: asyncio.Future[Any]) -> Outcome:
    """What became of one reading; its failure is its own and must not take the others with it."""
    try:
        return found, work(), None
    except BaseException as error:
        return found, None, error


def from_thread(check: Callable[[], Awaitable[None]]) -> Callable[[], None]:
    """`check` as something that a thread can call and wait for: it runs on the loop that this is called on.

    What it raises goes up in the thread. Raises Unavailable where it takes over 5 s.
    """
    loop = asyncio.get_running_loop()

    async def checked() -> None:
        async with asyncio.timeout(RECHECK_TIMEOUT_S):
            await check()

    def wait() -> None:
        try:
            asyncio.run_coroutine_threadsafe(checked(), loop).result()
        except TimeoutError:
            raise Unavailable("Your rights could not be looked up again in time. Nothing was saved.") from None

    return wait
