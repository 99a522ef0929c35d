"""Turns the machine's clocks into the time as an argument."""

from __future__ import annotations

import time
from datetime import UTC, datetime


class SystemClock:
    """`ports.Clock` on the machine's clocks."""

    def now(self) -> datetime:
        """The time now, in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Seconds that only rise; for ages and deadlines."""
        return time.monotonic()
