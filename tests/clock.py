"""Turns the passing of time into a call: a clock that stands still until a test moves it."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta


class SettableClock:
    """The `ports.Clock` of tests; both of its times move together."""

    def __init__(self, start: datetime = datetime(2026, 12, 1, 9, 0, tzinfo=UTC)) -> None:
        self._now = start
        self._monotonic = 1_000.0

    def now(self) -> datetime:
        """The time that the test has set, in UTC."""
        return self._now

    def monotonic(self) -> float:
        """Seconds that rise with `advance` alone; setting the wall clock does not move them."""
        return self._monotonic

    def advance(self, seconds: float) -> None:
        """Lets time pass."""
        self._now += timedelta(seconds=seconds)
        self._monotonic += seconds

    def set(self, now: datetime) -> None:
        """Sets the wall clock, backwards too, as a machine's clock may be set."""
        self._now = now


class RunningClock:
    """The time of this machine, which a test may put forward: for tests with a process that has a clock of its own."""

    def __init__(self) -> None:
        self._ahead = 0.0

    def now(self) -> datetime:
        """The time of this machine and what was added, in UTC."""
        return datetime.now(UTC) + timedelta(seconds=self._ahead)

    def monotonic(self) -> float:
        """Seconds that rise by themselves and with `advance`."""
        return time.monotonic() + self._ahead

    def advance(self, seconds: float) -> None:
        """Puts it forward."""
        self._ahead += seconds
