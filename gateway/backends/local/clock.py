"""Turns the machine's clocks into the time as an argument."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from functools import partial


class SystemClock:
    """`ports.Clock` on the machine's clocks. Every request asks a dozen times, so nothing of ours is in between."""

    now = staticmethod(partial(datetime.now, UTC))
    monotonic = staticmethod(time.monotonic)
