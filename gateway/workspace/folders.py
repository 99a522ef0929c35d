"""Turns an agent into its workspace, and runs what blocks on it in threads, off the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor
from pathlib import Path
from typing import TypeVar

from gateway.errors import Unavailable
from gateway.model import Agent
from gateway.workspace.files import Workspace
from gateway.workspace.locks import FileLocks

ResultT = TypeVar("ResultT")

RECHECK_TIMEOUT_S = 5.0


class AgentFolders:
    """The workspaces below `root`, one folder a tenant and one in it for each agent."""

    def __init__(self, root: Path, locks: FileLocks, threads: Executor) -> None:
        self.root = root
        self.locks = locks
        self._threads = threads

    def of(self, agent: Agent) -> Workspace:
        """The agent's workspace."""
        return Workspace(self.root / agent.tenant, agent.workspace)

    async def run(self, work: Callable[[], ResultT]) -> ResultT:
        """What `work` returns, from a thread. Its exceptions come through."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)


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
