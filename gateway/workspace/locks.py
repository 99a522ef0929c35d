"""Turns a storage key into an exclusive lock that holds across threads and processes, and dies with its holder."""

from __future__ import annotations

import fcntl
import hashlib
import os
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Protocol

from gateway.errors import Unavailable
from gateway.keys import storage_key
from gateway.model import TenantId

_SHORTEST_PAUSE_S = 0.000_5
_LONGEST_PAUSE_S = 0.005


def file_key(tenant: TenantId, folder: str, path: str) -> str:
    """The key under which every writer of one workspace file waits for the others."""
    return storage_key(tenant, "file", folder, path)


class Held(Protocol):
    """A lock, from within."""

    def check(self) -> None:
        """For the last moment before something that can't be taken back: raises Unavailable where the lock was lost."""


class Locks(Protocol):
    """Exclusive locks, each for the length of a `with`; they block, so they are taken off the event loop."""

    def hold(self, key: str) -> AbstractContextManager[Held]:
        """Raises Unavailable where the lock was not free in time, or nobody can say."""


class _Kept:
    """A lock of the kernel's, which nobody loses while they live."""

    def check(self) -> None:
        """Nothing to ask."""


class FileLocks:
    """Locks as `flock` on one small file for each key, in the state folder.

    The files stay: to remove one while somebody waits for it would let two hold the same lock. The kernel frees a lock
    when its holder ends, however it ends, so that a killed process blocks nobody (design section 12).
    """

    def __init__(
        self,
        folder: Path,
        *,
        wait_s: float = 5.0,
        monotonic: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder = folder
        self._wait_s = wait_s
        self._monotonic = monotonic
        self._pause = pause

    @contextmanager
    def hold(self, key: str) -> Iterator[Held]:
        """Holds the lock of `key` for the length of a `with`. It blocks, so call it off the event loop.

        Not reentrant: who holds a key and asks for it again waits for themselves.

        Raises:
            Unavailable: the lock was not free within the wait, or the state folder is away.

        """
        file = self._open(key)
        try:
            self._acquire(file)
            yield _Kept()
        finally:
            # Closing is not enough: a child forked meanwhile shares the open file and would go on holding the lock.
            fcntl.flock(file, fcntl.LOCK_UN)
            os.close(file)

    def _open(self, key: str) -> int:
        name = hashlib.sha256(key.encode()).hexdigest()
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            return os.open(self._folder / f"{name}.lock", flags, 0o600)
        except OSError as error:
            raise Unavailable(f"The folder for locks can't be used ({error.strerror}).") from error

    def _acquire(self, file: int) -> None:
        deadline = self._monotonic() + self._wait_s
        pause = _SHORTEST_PAUSE_S
        while not _try(file):
            if self._monotonic() >= deadline:
                raise Unavailable("Somebody else is writing the same file. Try again in a moment.")
            self._pause(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_S)


def _try(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
