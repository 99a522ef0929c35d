"""Turns an agent into its workspace, and runs what blocks on it in threads, off the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import TypeVar

from gateway.errors import Unavailable
from gateway.model import Agent, TenantId
from gateway.workspace.files import FILE_LIMIT, FileText, Workspace
from gateway.workspace.locks import Locks
from gateway.workspace.problems import FileProblem

ResultT = TypeVar("ResultT")

RECHECK_TIMEOUT_S = 5.0

Found = Mapping[str, FileText | FileProblem]  # by path
Reading = tuple[Workspace, Collection[str], "asyncio.Future[Found]"]


class AgentFolders:
    """The workspaces below `root`, one folder a tenant and one in it for each agent."""

    def __init__(self, root: Path, locks: Locks, threads: Executor) -> None:
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

    async def read(self, workspace: Workspace, paths: Collection[str]) -> Found:
        """Each path with its text or its problem, as it is on the disk after this was called.

        Reads that come in one step of the event loop, or while others run, go to the thread together, and a file that
        several of them want is opened once: everybody's turn wants the same rules, and a hop costs several times what a
        read does. One alone hops as soon as the step is over.

        Raises:
            FileUnavailable, FileUnsafe: the agent's folder itself can't be opened.

        """
        loop = asyncio.get_running_loop()
        found: asyncio.Future[Found] = loop.create_future()
        self._waiting.append((workspace, paths, found))
        if not self._reading:
            self._send_soon(loop)
        return await found

    def _send_soon(self, loop: asyncio.AbstractEventLoop) -> None:
        """Sends what waits once this step of the loop is over. A thread that reads wants the interpreter again after
        each system call: while requests still run beside it, it and they spend more on handing that over than on all
        else that a read takes."""
        self._reading = True
        loop.call_soon(self._send, loop)

    def _send(self, loop: asyncio.AbstractEventLoop) -> None:
        readings, self._waiting = self._waiting, []
        try:
            self._threads.submit(self._in_thread, loop, readings)
        except RuntimeError as error:  # the threads have ended, and nobody is to wait for them for ever
            self._deliver(loop, readings, {workspace: error for workspace, _, _ in readings})

    def _in_thread(self, loop: asyncio.AbstractEventLoop, readings: Sequence[Reading]) -> None:
        # Nothing was opened before this line: whatever was saved before one of the reads was asked for is found.
        wanted: dict[Workspace, dict[str, None]] = {}
        for workspace, paths, _ in readings:
            wanted.setdefault(workspace, {}).update(dict.fromkeys(paths))
        outcomes = {workspace: _outcome(workspace, paths) for workspace, paths in wanted.items()}
        loop.call_soon_threadsafe(self._deliver, loop, readings, outcomes)

    def _deliver(
        self,
        loop: asyncio.AbstractEventLoop,
        readings: Sequence[Reading],
        outcomes: Mapping[Workspace, Found | BaseException],
    ) -> None:
        self._reading = False
        if self._waiting:
            self._send_soon(loop)
        for workspace, paths, found in readings:
            if found.done():  # whoever asked has gone
                continue
            outcome = outcomes[workspace]
            if isinstance(outcome, BaseException):
                found.set_exception(outcome)
            else:
                found.set_result({path: outcome[path] for path in paths})


def _outcome(workspace: Workspace, paths: Iterable[str]) -> Found | BaseException:
    """What became of one folder's files; its failure is its own and must not take the other folders with it."""
    try:
        return workspace.read_many(paths, limit=FILE_LIMIT)
    except BaseException as error:
        return error


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
