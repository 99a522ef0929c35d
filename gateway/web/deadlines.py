"""Turns one timer of the event loop into a deadline for each of many requests.

`asyncio.timeout` makes and cancels a timer for each use, which costs 5 µs; here a request costs one entry in a dict.
"""

from __future__ import annotations

import asyncio
from typing import cast

# Event loops wake up to a millisecond early.
_EARLY_S = 0.001


class Deadline:
    """When the request of one task must have begun its answer. Whoever has one is one: a request makes no other."""

    __slots__ = ("cancelling", "due", "missed", "task")

    task: asyncio.Task[object]
    due: float
    cancelling: int
    missed: bool


class Deadlines:
    """The deadlines of one event loop, all equally long, so that the one that was begun first is due first."""

    def __init__(self, loop: asyncio.AbstractEventLoop, seconds: float) -> None:
        self.loop = loop
        self._seconds = seconds
        self._waiting: dict[Deadline, None] = {}
        self._armed = False

    def begin(self, deadline: Deadline) -> None:
        """Has the running task cancelled if `met` or `end` does not come in time."""
        task = cast("asyncio.Task[object]", asyncio.current_task(self.loop))  # a server runs each request in one
        deadline.task = task
        deadline.cancelling = task.cancelling()
        deadline.missed = False
        deadline.due = self.loop.time() + self._seconds
        self._waiting[deadline] = None
        if not self._armed:
            self._arm(deadline)

    def met(self, deadline: Deadline) -> None:
        """The answer has begun: nothing is stopped any more."""
        self._waiting.pop(deadline, None)

    def end(self, deadline: Deadline) -> bool:
        """The request is over. Whether this deadline, and nobody else, had cancelled it; that is taken back."""
        self._waiting.pop(deadline, None)
        if not deadline.missed:
            return False
        deadline.missed = False
        return deadline.task.uncancel() <= deadline.cancelling

    def _arm(self, deadline: Deadline) -> None:
        self._armed = True
        self.loop.call_at(deadline.due, self._ring)

    def _ring(self) -> None:
        self._armed = False
        now = self.loop.time() + _EARLY_S
        while self._waiting:
            first = next(iter(self._waiting))
            if first.due > now:
                self._arm(first)
                return
            del self._waiting[first]
            first.missed = True
            first.task.cancel()
