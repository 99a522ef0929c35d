"""Turns a message of a channel into a call of the agent's runtime, with its context, after the channel was answered.

A failure here never blocks an answer and never loses the message, which is durable before: it is logged and counted
(design section 12).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Literal, Protocol, Self

from gateway.errors import GatewayError
from gateway.identity.channel_accounts import Delivery
from gateway.logs import Logger

Outcome = Literal["sent", "failed", "dropped"]


class Sender(Protocol):
    """What carries a delivery."""

    async def send(self, delivery: Delivery, body: bytes) -> bool:
        """Whether it arrived."""


class Makes(Protocol):
    """What makes the body of a delivery, when its turn comes."""

    async def __call__(self) -> bytes:
        """The body. Raises a GatewayError where the sender may no longer be told anything."""


@dataclass(frozen=True, slots=True)
class Job:
    """A delivery that waits; those of one session are made in order."""

    session: str
    where: str  # the account, for the log
    delivery: Delivery
    body: Makes


class Deliveries:
    """A few queues, and one worker for each. What waits is bounded, and what does not fit is dropped and counted."""

    def __init__(
        self,
        sender: Sender,
        log: Logger,
        count: Callable[[Outcome], None],
        *,
        waits: Sequence[float] = (1.0, 5.0),
        workers: int = 4,
        capacity: int = 1_000,
    ) -> None:
        """`waits` are the seconds before each further attempt."""
        self._sender = sender
        self._log = log
        self._count = count
        self._waits = waits
        self._queues: list[asyncio.Queue[Job]] = [asyncio.Queue(capacity) for _ in range(workers)]
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        """Starts the workers."""
        group = await self._stack.enter_async_context(asyncio.TaskGroup())
        for queue in self._queues:
            self._stack.callback(group.create_task(self._work(queue)).cancel)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Ends the workers. What still waits is counted as dropped: the messages themselves are in their sessions."""
        await self._stack.aclose()
        for queue in self._queues:
            with suppress(asyncio.QueueEmpty):
                while True:
                    self._drop(queue.get_nowait())

    def offer(self, job: Job) -> None:
        """Takes a delivery, to be made soon."""
        try:
            self._queues[hash(job.session) % len(self._queues)].put_nowait(job)
        except asyncio.QueueFull:
            self._drop(job)

    async def done(self) -> None:
        """Waits until nothing waits any more."""
        for queue in self._queues:
            await queue.join()

    async def _work(self, queue: asyncio.Queue[Job]) -> None:
        while True:
            job = await queue.get()
            try:
                outcome: Outcome = "sent" if await self._deliver(job) else "failed"
                self._count(outcome)
            except Exception:
                self._log.exception("delivery_failed")
                self._count("failed")
            finally:
                queue.task_done()

    async def _deliver(self, job: Job) -> bool:
        try:
            body = await job.body()
        except GatewayError as error:
            self._log.warning("delivery_refused", where=job.where, code=error.code)
            return False
        for wait in (0.0, *self._waits):
            await asyncio.sleep(wait)
            if await self._sender.send(job.delivery, body):
                return True
        self._log.warning("delivery_failed", where=job.where)
        return False

    def _drop(self, job: Job) -> None:
        self._log.warning("delivery_dropped", where=job.where)
        self._count("dropped")
