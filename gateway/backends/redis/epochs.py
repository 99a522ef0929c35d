"""Turns an epoch that one replica has raised into a question to the store on every other, within milliseconds.

The store's epoch is the truth (design section 11): a message only says when to look. So nothing that Redis holds, has
lost or makes up can bring an older state back, and a message that never came costs no more than the poll of the store.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from types import TracebackType
from typing import Self

from redis.asyncio.client import PubSub

from gateway.backends.redis.connection import RedisConnection, mapped_errors
from gateway.errors import Unavailable
from gateway.keys import redis_channel, redis_key
from gateway.model import TenantId
from gateway.ports import Clock

BEAT_S = 0.5
RETRY_S = 0.2
END_S = 0.5

# Never backwards: a replica that was held up must not tell of what is over.
_RAISE = """
local known = tonumber(redis.call('GET', KEYS[1]) or '0')
if tonumber(ARGV[1]) <= known then return 0 end
redis.call('SET', KEYS[1], ARGV[1])
redis.call('PUBLISH', ARGV[2], ARGV[3])
return 1
"""

Pause = Callable[[float], Awaitable[None]]


class RedisEpochs:
    """`ports.EpochSignals` on Redis.

    Whether Redis is heard is asked on the very connection that brings the messages, by an echo twice a second: a
    connection that was cut without a word, or a server that is frozen, is noticed within the timeout and replaced.
    """

    def __init__(self, connection: RedisConnection, prefix: str, clock: Clock, *, pause: Pause = asyncio.sleep) -> None:
        self._connection = connection
        self._prefix = prefix
        self._channel = redis_channel(prefix, "epochs")
        self._clock = clock
        self._pause = pause
        self._rising: dict[TenantId, int] = {}
        self._wake = asyncio.Event()
        self._announced: Callable[[TenantId, int], None] = lambda _tenant, _epoch: None
        self._heard: Callable[[float], None] = lambda _at: None
        self._tasks: list[asyncio.Task[None]] = []

    def follow(self, announced: Callable[[TenantId, int], None], heard: Callable[[float], None]) -> None:
        """Calls `announced` with what any replica announces, and `heard` with the time of each answered question."""
        self._announced, self._heard = announced, heard

    def announce(self, tenant: TenantId, epoch: int) -> None:
        """Tells the others soon, and goes on trying while Redis is away; of several epochs only the highest."""
        self._rising[tenant] = max(epoch, self._rising.get(tenant, 0))
        self._wake.set()

    async def __aenter__(self) -> Self:
        """Listens and tells, in tasks of their own. Redis may be away."""
        self._tasks = [asyncio.create_task(self._listen_for_ever()), asyncio.create_task(self._tell_for_ever())]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        running = set(self._tasks)
        while running:  # a client that is just closing a connection may swallow the first one
            for task in running:
                task.cancel()
            _, running = await asyncio.wait(running, timeout=END_S)
        self._tasks = []
        with suppress(Unavailable):  # a command that ends right after its change tells of it too
            await self._tell()

    async def _tell_for_ever(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            try:
                await self._tell()
            except Exception:  # the same
                self._wake.set()
                await self._pause(RETRY_S)

    async def _tell(self) -> None:
        for tenant, epoch in list(self._rising.items()):
            key = redis_key(self._prefix, tenant, "epoch")
            await self._connection.script(_RAISE, (key,), epoch, self._channel, f"{epoch}:{tenant}")
            if self._rising.get(tenant) == epoch:
                del self._rising[tenant]

    async def _listen_for_ever(self) -> None:
        while True:
            try:
                async with self._connection.listening(self._channel) as pubsub:
                    while True:
                        await self._beat(pubsub)
            # Whatever the client comes up with: a listener that ended would have everything refused until a restart.
            except Exception:
                await self._pause(RETRY_S)

    async def _beat(self, pubsub: PubSub) -> None:
        """Asks whether Redis is there, and takes what it tells until it is time to ask again."""
        asked_at = self._clock.monotonic()
        await self._connection.bounded(self._echoed(pubsub))
        self._heard(asked_at)  # not when it answered: the answer is as old as the question
        loop = asyncio.get_running_loop()
        until = loop.time() + BEAT_S
        while (left := until - loop.time()) > 0:
            with mapped_errors():  # it waits no longer than it is told, for what may never come
                await self._take(pubsub, left)

    async def _echoed(self, pubsub: PubSub) -> None:
        await pubsub.ping()
        while not await self._take(pubsub, None):
            pass

    async def _take(self, pubsub: PubSub, wait_s: float | None) -> bool:
        """Takes one message, if one comes in time; whether it was the echo."""
        message = await pubsub.get_message(timeout=wait_s)
        if message is None:
            return False
        if message["type"] == "message":
            self._understand(message["data"])
        return bool(message["type"] == "pong")

    def _understand(self, data: bytes) -> None:
        """What is no announcement is somebody else's, and passed over."""
        epoch, _, tenant = data.decode("utf-8", "replace").partition(":")
        if epoch.isascii() and epoch.isdecimal() and len(epoch) < 20 and tenant:
            self._announced(TenantId(tenant), int(epoch))
