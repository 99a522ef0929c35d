"""Turns the settings for Redis into a client with bounded waits, whose every error is Unavailable."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from concurrent.futures import CancelledError, Future
from contextlib import asynccontextmanager, contextmanager
from typing import Any, TypeVar, cast
from urllib.parse import unquote, urlsplit

from redis.asyncio import BlockingConnectionPool, Connection, Redis, SSLConnection
from redis.asyncio.client import PubSub
from redis.asyncio.cluster import ClusterNode, RedisCluster
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import Sentinel, SentinelConnectionPool
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from gateway.errors import ConfigurationFaults, Fault, Unavailable
from gateway.settings.redis import Redis as RedisSettings

Client = Redis | RedisCluster
ResultT = TypeVar("ResultT")

DEFAULT_PORT = 6379
_TCP_PORT_OF = {"standalone": DEFAULT_PORT, "sentinel": 26379, "cluster": DEFAULT_PORT}


class RedisConnection:
    """One client for all that a replica asks of Redis. It connects when it is first asked, and again after an outage:
    a replica that starts while Redis is away refuses until it is back, and needs no restart."""

    def __init__(self, client: Callable[[], Client], timeout_s: float) -> None:
        """`client` makes the client, on the loop that it is used on."""
        self._make = client
        self._client: Client | None = None
        self._timeout_s = timeout_s
        self._loop: asyncio.AbstractEventLoop | None = None

    def open(self) -> None:
        """Threads may ask from now on, through the running loop."""
        self._loop = asyncio.get_running_loop()

    async def ask(self, question: Callable[[Client], Awaitable[ResultT]]) -> ResultT:
        """The answer. Raises Unavailable where there is none in time; the question may have been carried out then."""
        return await self.bounded(question(self._connected()))

    async def script(self, text: str, keys: tuple[str, ...], *arguments: str | int) -> Any:
        """What a Lua script answers; its keys are of one tenant. Raises as `ask`.

        The text goes along each time: a server that has just started knows no script by its hash.
        """
        return await self.ask(lambda client: client.eval(text, len(keys), *keys, *map(str, arguments)))

    async def bounded(self, asked: Awaitable[ResultT]) -> ResultT:
        """What was asked. Raises as `ask`."""
        with mapped_errors():
            async with asyncio.timeout(self._timeout_s):
                return await asked

    def from_thread(self, work: Callable[[], Coroutine[Any, Any, ResultT]]) -> ResultT:
        """What `work` returns, for a thread that may wait. Raises as `ask`, also before `open` and after `aclose`."""
        begun = self.begin_from_thread(work)
        try:
            return begun.result(2 * self._timeout_s)  # a loop that stands still answers nobody
        except (TimeoutError, CancelledError):
            begun.cancel()
            raise Unavailable("Redis does not answer.") from None

    def begin_from_thread(self, work: Callable[[], Coroutine[Any, Any, ResultT]]) -> Future[ResultT]:
        """`work` on the loop, which a thread goes on beside. Raises Unavailable before `open` and after `aclose`."""
        if self._loop is None or self._loop.is_closed():
            raise Unavailable("Redis is not asked yet.")
        return asyncio.run_coroutine_threadsafe(work(), self._loop)

    @asynccontextmanager
    async def listening(self, channel: str) -> AsyncIterator[PubSub]:
        """A connection of its own that hears `channel`. Raises Unavailable where Redis does not answer."""
        client = self._connected()
        if isinstance(client, RedisCluster):
            await self.bounded(client.initialize())
        pubsub: PubSub = client.pubsub()
        try:
            await self.bounded(pubsub.subscribe(channel))
            yield pubsub
        except Unavailable:
            if isinstance(client, RedisCluster):
                await self.aclose()  # the node may be gone for good: the next one asks anew who is there
            raise
        finally:
            # What is to be closed may be cut off: nobody waits for a farewell that can't arrive.
            if pubsub.connection is not None:
                await pubsub.connection.disconnect(nowait=True)
            await self._quietly(pubsub.aclose())  # type: ignore[no-untyped-call] # redis declares no return type

    async def aclose(self) -> None:
        """Closes every connection; closing again changes nothing."""
        client, self._client = self._client, None
        if client is None:
            return
        await self._quietly(client.aclose())
        pool = getattr(client, "connection_pool", None)
        if isinstance(pool, SentinelConnectionPool):  # the client does not close those that told it of the server
            for sentinel in pool.sentinel_manager.sentinels:
                await self._quietly(sentinel.aclose())

    async def _quietly(self, closing: Awaitable[object]) -> None:
        try:
            await self.bounded(closing)
        except Unavailable:
            return

    def _connected(self) -> Client:
        if self._client is None:
            self._client = self._make()
        return self._client


@contextmanager
def mapped_errors() -> Iterator[None]:
    """Turns every error of the client into Unavailable, without its text: that may name the server and the user."""
    try:
        yield
    except (RedisError, OSError, TimeoutError, LookupError):  # a cluster without its slots raises a KeyError
        raise Unavailable("Redis does not answer.") from None


def connection(settings: RedisSettings, password: str | None) -> RedisConnection:
    """The connection that the settings describe; nothing is opened yet.

    Raises ConfigurationFaults where the file of authorities can't be read.
    """
    url = urlsplit(settings.url or "")
    options: dict[str, Any] = {
        "username": unquote(url.username) if url.username else None,
        "password": password,
        "socket_timeout": settings.timeout_s,
        "socket_connect_timeout": settings.timeout_s,
        "retry": Retry(NoBackoff(), 0),  # who asks says whether it may be asked twice
    }
    if url.scheme == "rediss":
        options |= {"ssl_ca_certs": _readable(settings)}
    first = (url.hostname or "", url.port or _TCP_PORT_OF[settings.mode])
    addresses = [first, *[_split(one) for one in settings.more]]
    database = int(url.path.removeprefix("/") or 0)
    tls = url.scheme == "rediss"
    makers = {
        "standalone": lambda: _standalone(first, tls, database, settings, options),
        "sentinel": lambda: _sentinel(addresses, tls, database, settings, options),
        "cluster": lambda: _cluster(addresses, tls, settings, options),
    }
    return RedisConnection(makers[settings.mode], settings.timeout_s)


def _standalone(
    address: tuple[str, int], tls: bool, database: int, settings: RedisSettings, options: dict[str, Any]
) -> Client:
    pool = BlockingConnectionPool(
        connection_class=SSLConnection if tls else Connection,
        host=address[0],
        port=address[1],
        db=database,
        max_connections=settings.connections,
        timeout=settings.timeout_s,
        **options,
    )
    return Redis.from_pool(pool)


def _sentinel(
    addresses: list[tuple[str, int]], tls: bool, database: int, settings: RedisSettings, options: dict[str, Any]
) -> Client:
    bounds = {key: options[key] for key in ("socket_timeout", "socket_connect_timeout", "retry")}
    sentinels = Sentinel(addresses, sentinel_kwargs=bounds)  # type: ignore[no-untyped-call] # redis leaves it untyped
    options = {**options, "db": database, "max_connections": settings.connections, "ssl": tls}
    return cast("Client", sentinels.master_for(settings.sentinel_master, **options))


def _cluster(addresses: list[tuple[str, int]], tls: bool, settings: RedisSettings, options: dict[str, Any]) -> Client:
    nodes = [ClusterNode(host, port) for host, port in addresses]
    # Each node has a pool of its own.
    return RedisCluster(startup_nodes=nodes, ssl=tls, max_connections=settings.connections, **options)


def _split(address: str) -> tuple[str, int]:
    parts = urlsplit(f"//{address}")
    return parts.hostname or "", parts.port or DEFAULT_PORT


def _readable(settings: RedisSettings) -> str | None:
    """The file of authorities. Raises ConfigurationFaults for one that holds none."""
    if settings.ca_file is None:
        return None
    try:
        ssl.create_default_context(cafile=str(settings.ca_file))
    except (OSError, ssl.SSLError):
        fault = Fault(field="redis.ca_file", rule="certificates", message="can't be read as certificates (PEM)")
        raise ConfigurationFaults([fault]) from None
    return str(settings.ca_file)
