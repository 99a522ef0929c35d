"""Turns refusals that belong to no tenant into counted lines of a log, so that a flood fills nothing (design 12)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

from gateway.ports import Clock

EVERY_S = 1.0
_MOST_KINDS = 100
_OTHERS = ("other", "other")

Kind = tuple[str, str]  # the reason code, the surface


class Refusals:
    """Counts refusals by code and surface, and hands the counts to a log at most once a second."""

    def __init__(self, log: Callable[[Mapping[Kind, int]], None], clock: Clock) -> None:
        self._log = log
        self._clock = clock
        self._counts: Counter[Kind] = Counter()
        self._logged_at = clock.monotonic() - EVERY_S

    def count(self, code: str, surface: str) -> None:
        """Counts one. The first is logged at once; those within a second of it come together with the next."""
        kind = (code, surface)
        known = kind in self._counts or len(self._counts) < _MOST_KINDS
        self._counts[kind if known else _OTHERS] += 1
        if self._clock.monotonic() - self._logged_at >= EVERY_S:
            self.flush()

    def flush(self) -> None:
        """Logs what is counted; called at the end, and by whoever ticks anyway."""
        if self._counts:
            counts, self._counts = self._counts, Counter()
            self._logged_at = self._clock.monotonic()
            self._log(counts)
