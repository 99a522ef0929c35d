"""Runs something over and over beside the requests, and once more at the end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

from gateway.errors import Unavailable


@asynccontextmanager
async def periodically(work: Callable[[], Awaitable[None]], every_s: float) -> AsyncIterator[None]:
    """Runs `work` every `every_s` seconds. A store that is away now is tried again the next time."""

    async def rounds() -> None:
        while True:
            await asyncio.sleep(every_s)
            with suppress(Unavailable):
                await work()

    task = asyncio.create_task(rounds())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        with suppress(Unavailable):
            await work()
