"""Spares everybody the collector's walk over a long document (Python's `gc`; policy documents hold no cycles).

Reading 100,000 rows makes hundreds of thousands of objects. The collector would walk all of them again and again, each
time for a tenth of a second in which no thread runs. They are taken out of its sight instead: nothing in them can form
a cycle, so they go when the last reference to them does.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

LONG: Final = 512 * 1024  # letters of a document; a shorter one is not worth it


class _Pause:
    """Counts those who want the collector to wait: it is the process's only one, and threads share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting = 0

    def begin(self) -> None:
        """Stops it, if it is not stopped already."""
        with self._lock:
            self._waiting += 1
            gc.disable()

    def end(self) -> None:
        """What was made meanwhile is not looked at any more; the last one lets it go on."""
        with self._lock:
            gc.freeze()
            self._waiting -= 1
            if self._waiting == 0:
                gc.enable()


_PAUSE: Final = _Pause()


@contextmanager
def spared(letters: int) -> Iterator[None]:
    """Runs the block without the collector, where a document of so many letters is read in it."""
    if letters < LONG:
        yield
        return
    _PAUSE.begin()
    try:
        yield
    finally:
        _PAUSE.end()
