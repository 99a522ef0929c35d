"""Turns Python's collector away from what is large and holds no cycles: a long document, many decisions (`gc`).

Reading 100,000 rows makes hundreds of thousands of objects. The collector would walk all of them again and again, each
time for a tenth of a second in which no thread runs. They are taken out of its sight instead: nothing in them can form
a cycle, so they go when the last reference to them does.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

LONG: Final = 512 * 1024  # letters of a document; a shorter one is not worth it
_NEVER: Final = 2**31 - 1
_AT_ONCE: Final = 1_000


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


class _OldAges:
    """Counts those who want what is old left alone. What is young is looked at as always, so that cycles of others that
    come and go meanwhile are found."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting = 0
        self._usual = gc.get_threshold()

    def begin(self) -> None:
        """Leaves it alone from here on."""
        with self._lock:
            if self._waiting == 0:
                self._usual = gc.get_threshold()
                gc.set_threshold(*self._usual[:2], _NEVER)
            self._waiting += 1

    def end(self) -> None:
        """The last one lets it be looked at again."""
        with self._lock:
            self._waiting -= 1
            if self._waiting == 0:
                gc.set_threshold(*self._usual)


_OLD_AGES: Final = _OldAges()


@contextmanager
def without_full_walks() -> Iterator[None]:
    """Runs the block, and whatever else runs meanwhile, without a walk over everything there is: for what makes
    hundreds of thousands of objects and drops them before it is over."""
    _OLD_AGES.begin()
    try:
        yield
    finally:
        _OLD_AGES.end()


def let_go(some: list[Any] | dict[Any, Any]) -> None:
    """Frees what is in it, a little at a time: all at once would hold up every thread for as long as it takes. For a
    thread of its own."""
    if isinstance(some, dict):
        while some:
            some.popitem()
    while some:
        del some[-_AT_ONCE:]
