"""Turns a storage key into a lock that holds over several replicas, ends by itself, and knows when it was lost.

A lease is renewed while its holder lives. Who holds it gets a fencing token that only rises, and asks with it just
before a rename: a holder that was held up past its lease is told, and writes nothing.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from secrets import token_hex

from gateway.backends.redis.connection import RedisConnection
from gateway.errors import Unavailable
from gateway.keys import redis_lock
from gateway.workspace.locks import FileLocks, Held

LEASE_S = 10.0
KEEP_S = 24 * 3600  # the token goes on rising from where it was; after that, and in a new server, from the time
_SHORTEST_PAUSE_S = 0.005
_LONGEST_PAUSE_S = 0.1

# The server's clock alone counts. The token begins with the time in microseconds, so that it rises also where the
# server has lost its memory. One key for all of it: a cluster needs to know only one slot.
_NOW = """
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local owner, ends, fence = unpack(redis.call('HMGET', KEYS[1], 'owner', 'ends', 'fence'))
local held = owner and tonumber(ends) > now
"""
_TAKE = (
    _NOW
    + """
if held then return 0 end
local token = math.max(tonumber(fence or '0') + 1, time[1] * 1000000 + time[2])
local text = string.format('%.0f', token)
redis.call('HSET', KEYS[1], 'owner', ARGV[1], 'ends', string.format('%.0f', now + ARGV[2]), 'fence', text)
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return text
"""
)
_RENEW = (
    _NOW
    + """
if not held or owner ~= ARGV[1] or fence ~= ARGV[4] then return 0 end
redis.call('HSET', KEYS[1], 'ends', string.format('%.0f', now + ARGV[2]))
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1
"""
)
_FREE = _NOW + "if owner == ARGV[1] and fence == ARGV[4] then redis.call('HDEL', KEYS[1], 'owner', 'ends') end return 1"


class Lease:
    """A lock that is held now; `fence` is above that of everybody who held it before."""

    def __init__(self, connection: RedisConnection, key: str, owner: str, fence: str, lease_s: float) -> None:
        self.fence = int(fence)
        self._connection = connection
        self._key = key
        self._arguments = (owner, round(lease_s * 1000), KEEP_S * 1000, fence)
        self._lease_s = lease_s
        self._lost = False

    def check(self) -> None:
        """Asks whether it is held still, and renews it. Raises Unavailable where it is not, or nobody can say."""
        self._connection.from_thread(self._renew)
        if self._lost:
            raise Unavailable("Somebody else may be writing the same file by now. Nothing was saved; try again.")

    async def keep(self) -> None:
        """Renews it until it is cancelled or lost."""
        while not self._lost:
            await asyncio.sleep(self._lease_s / 3)
            with suppress(Unavailable):  # the next one may arrive in time; `check` has the last word
                await self._renew()

    async def _renew(self) -> None:
        if await self._connection.script(_RENEW, (self._key,), *self._arguments) != 1:
            self._lost = True

    async def free(self) -> None:
        """Lets it go, if it is still ours. Raises Unavailable where nobody can be told."""
        await self._connection.script(_FREE, (self._key,), *self._arguments)


class RedisLocks:
    """`workspace.locks.Locks` over replicas. The lock of this machine is taken first: those who wait here wait for
    each other and not for Redis, and whoever works in the same folder without Redis is locked out too."""

    def __init__(
        self,
        connection: RedisConnection,
        prefix: str,
        local: FileLocks,
        *,
        wait_s: float = 5.0,
        lease_s: float = LEASE_S,
        monotonic: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._connection = connection
        self._prefix = prefix
        self._local = local
        self._wait_s = wait_s
        self._lease_s = lease_s
        self._monotonic = monotonic
        self._pause = pause

    @contextmanager
    def hold(self, key: str) -> Iterator[Held]:
        """Holds the lock of `key` for the length of a `with`. It blocks, so call it off the event loop.

        Raises Unavailable where it was not free within the wait, or Redis is away.
        """
        with self._local.hold(key):
            lease = self._acquire(redis_lock(self._prefix, key))
            keeping = self._connection.begin_from_thread(lease.keep)
            try:
                yield lease
            finally:
                keeping.cancel()
                with suppress(Unavailable):  # what was done under it is done; the lease ends by itself
                    self._connection.from_thread(lease.free)

    def _acquire(self, key: str) -> Lease:
        owner, deadline, pause = token_hex(16), self._monotonic() + self._wait_s, _SHORTEST_PAUSE_S
        arguments = (owner, round(self._lease_s * 1000), KEEP_S * 1000)
        while True:
            fence = self._connection.from_thread(lambda: self._connection.script(_TAKE, (key,), *arguments))
            if fence != 0:
                return Lease(self._connection, key, owner, fence.decode(), self._lease_s)
            if self._monotonic() >= deadline:
                raise Unavailable("Somebody else is writing the same file. Try again in a moment.")
            self._pause(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_S)
