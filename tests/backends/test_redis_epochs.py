"""Several replicas hear of a change within the bound, with Redis there, lost, frozen and cut off (design section 7)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from itertools import count
from pathlib import Path
from uuid import uuid4

import pytest
from redis import Redis as BlockingRedis

from gateway.backends.local.clock import SystemClock
from gateway.backends.local.epochs import Epochs
from gateway.backends.redis.replicas import Replicas
from gateway.backends.sql.agents import SqlAgents
from gateway.backends.sql.database import Database
from gateway.backends.sql.tenants import SqlTenants
from gateway.errors import Unavailable
from gateway.keys import redis_channel, redis_key
from gateway.model import Agent, AgentName
from gateway.settings.redis import Redis
from tests.backends.stores import ACME, NOW
from tests.redis_servers import Cable, OwnRedis, any_redis, own_redis

BOUND_S = 10.0
IN_FORCE_S = 1.0  # the design's: a change is in force on every replica within a second
BACK_S = 2.0  # the step's: back without a restart within two seconds
STALE_S = 1.2  # what these tests refuse after, so that they need not wait for five seconds


class Replica:
    """One gateway's view of the store and of the others."""

    def __init__(self, database: Database, epochs: Epochs) -> None:
        self.database = database
        self.epochs = epochs

    async def change(self, name: str) -> int:
        """Raises the epoch here; the new one."""
        agent = Agent(tenant=ACME, name=AgentName(name), workspace=name, title=name, timezone="UTC")
        await SqlAgents(self.database).add(agent, NOW)
        return self.epochs.current(ACME)

    def refuses(self) -> bool:
        """Whether a decision would be a 503 now."""
        try:
            self.epochs.current(ACME)
        except Unavailable:
            return True
        return False


async def until(condition: Callable[[], bool], bound_s: float = BOUND_S) -> float:
    """Seconds until the condition holds. Fails where that takes longer than the bound."""
    began = time.monotonic()
    async with asyncio.timeout(bound_s):
        while not condition():  # noqa: ASYNC110 - it is true of the outside, which sets no event
            await asyncio.sleep(0.005)
    return time.monotonic() - began


async def _never(_seconds: float) -> None:
    await asyncio.Event().wait()


@asynccontextmanager
async def a_replica(path: Path, url: str | None, prefix: str, *, polls: bool = True) -> AsyncIterator[Replica]:
    """A replica over the store at `path`; one that does not poll hears of others by signals alone."""
    clock = SystemClock()
    async with AsyncExitStack() as stack:
        database = await stack.enter_async_context(Database(path, readers=1))
        replicas = Replicas.of(Redis(url=url, prefix=prefix, timeout_s=0.5), {}, clock)
        signals = None if replicas is None else replicas.epochs
        pause = asyncio.sleep if polls else _never
        epochs = Epochs(
            SqlTenants(database), clock, signals=signals, refuse_after_s=STALE_S if polls else 60, pause=pause
        )
        database.when_epoch_rises(epochs.raised)
        if replicas is not None:
            database.when_epoch_rises(replicas.epochs.announce)
            await stack.enter_async_context(replicas)
        await stack.enter_async_context(epochs)
        yield Replica(database, epochs)


@pytest.fixture
async def store(tmp_path: Path) -> Path:
    """A store with one tenant."""
    path = tmp_path / "gateway.db"
    async with Database(path, readers=1) as database:
        await SqlTenants(database).add(ACME, demo=False, now=NOW)
    return path


@pytest.fixture
def prefix() -> str:
    """Keys that no other test has."""
    return f"test-{uuid4().hex}"


@pytest.fixture
def shared(tmp_path: Path) -> Iterator[str]:
    """A server that others may use too."""
    with any_redis(tmp_path) as url:
        yield url


@pytest.fixture
def own(tmp_path: Path) -> Iterator[OwnRedis]:
    """A server to restart and to freeze."""
    with own_redis(tmp_path) as server:
        yield server


@pytest.fixture(params=["in-process", "redis"])
def url(request: pytest.FixtureRequest) -> str | None:
    """Each way in which replicas hear of each other: the store alone, or Redis too."""
    return None if request.param == "in-process" else str(request.getfixturevalue("shared"))


async def test_what_one_replica_changes_is_in_force_on_the_other_within_a_second(
    store: Path, url: str | None, prefix: str
) -> None:
    """The contract, over both."""
    async with a_replica(store, url, prefix) as one, a_replica(store, url, prefix) as other:
        for name, (here, there) in {"flight": (one, other), "hotel": (other, one)}.items():
            epoch = await here.change(name)
            assert here.epochs.current(ACME) == epoch
            assert await until(lambda: there.epochs.current(ACME) == epoch) < IN_FORCE_S  # noqa: B023 - awaited here
        await other.epochs.at_least(ACME, 3)
        assert one.epochs.healthy
        assert other.epochs.healthy


async def test_a_signal_alone_is_enough(store: Path, shared: str, prefix: str) -> None:
    """Ours: the replica that hears does not poll here at all."""
    async with a_replica(store, shared, prefix) as one, a_replica(store, shared, prefix, polls=False) as other:
        epoch = await one.change("flight")
        assert await until(lambda: other.epochs.current(ACME) == epoch) < IN_FORCE_S


async def test_redis_keeps_the_highest_epoch_and_is_told_nothing_that_is_over(
    store: Path, shared: str, prefix: str
) -> None:
    """Never backwards: a replica that was held up announces late, and wakes nobody."""
    key = redis_key(prefix, ACME, "epoch")
    clock = SystemClock()
    with BlockingRedis.from_url(shared) as redis, redis.pubsub() as listening:
        listening.subscribe(redis_channel(prefix, "epochs"))
        assert listening.get_message(timeout=BOUND_S) is not None
        replicas = Replicas.of(Redis(url=shared, prefix=prefix), {}, clock)
        assert replicas is not None
        for epoch in (7, 3, 8):
            async with replicas:  # it tells what is left when it closes
                replicas.epochs.announce(ACME, epoch)
        told = [listening.get_message(timeout=BOUND_S), listening.get_message(timeout=BOUND_S)]
        assert [message and message["data"] for message in told] == [b"7:acme", b"8:acme"]
        assert redis.get(key) == b"8"
        redis.delete(key)


@pytest.mark.parametrize("said", [b"99:acme", b"1:acme", b"99:nobody", b"acme", b"\xff\xfe", b"9" * 30 + b":acme", b""])
async def test_what_redis_makes_up_changes_no_epoch(store: Path, shared: str, prefix: str, said: bytes) -> None:
    """The store's epoch is the truth: a signal says when to look, and no more."""
    async with a_replica(store, shared, prefix) as one, a_replica(store, shared, prefix, polls=False) as other:
        with BlockingRedis.from_url(shared) as redis:
            assert redis.publish(redis_channel(prefix, "epochs"), said) == 2
        epoch = await one.change("flight")  # comes after it on the same connection
        await until(lambda: other.epochs.current(ACME) == epoch)
        assert (one.epochs.current(ACME), epoch) == (2, 2)


async def test_redis_away_refuses_after_the_bound_and_is_back_without_a_restart(
    store: Path, own: OwnRedis, prefix: str
) -> None:
    """Design section 12, and the step: decisions go on for the freshness bound, then 503. A server that comes back
    without its memory brings nothing back."""
    async with a_replica(store, own.url, prefix) as one, a_replica(store, own.url, prefix) as other:
        await one.change("flight")
        await until(lambda: other.epochs.current(ACME) == 2)
        own.stop()
        assert not one.refuses()
        assert await until(lambda: one.refuses() and other.refuses()) > STALE_S / 2
        assert one.epochs.what_is_not_heard.startswith("Redis")
        own.start()
        assert await until(lambda: not (one.refuses() or other.refuses())) < BACK_S
        assert (one.epochs.current(ACME), other.epochs.current(ACME)) == (2, 2)
        await one.change("hotel")
        assert await until(lambda: other.epochs.current(ACME) == 3) < IN_FORCE_S


async def test_a_frozen_redis_refuses_and_is_back_when_it_goes_on(store: Path, own: OwnRedis, prefix: str) -> None:
    """A server that is stopped keeps every connection open and answers none."""
    async with a_replica(store, own.url, prefix) as one:
        own.freeze()
        await until(one.refuses)
        own.thaw()
        assert await until(lambda: not one.refuses()) < BACK_S


async def test_a_connection_that_is_cut_without_a_word_is_noticed_and_replaced(
    store: Path, own: OwnRedis, prefix: str
) -> None:
    """A subscriber that waits on a dead connection would never hear again (reference, watchers)."""
    async with (
        Cable(own.port) as cable,
        a_replica(store, own.url, prefix) as one,
        a_replica(store, cable.url, prefix, polls=False) as other,
    ):
        cable.cut()
        before = cable.connections
        missed = await one.change("flight")
        await until(lambda: cable.connections > before)
        cable.mend()
        await _hears_again(one, other)
        assert other.epochs.current(ACME) > missed


async def test_a_lost_message_costs_at_most_the_poll(store: Path, own: OwnRedis, prefix: str) -> None:
    """The step: they also poll."""
    async with (
        Cable(own.port) as cable,
        a_replica(store, own.url, prefix) as one,
        a_replica(store, cable.url, prefix) as other,
    ):
        cable.cut()
        epoch = await one.change("flight")
        assert await until(lambda: other.epochs.current(ACME) == epoch) < IN_FORCE_S


async def test_every_connection_dropped_at_once_loses_nothing(store: Path, own: OwnRedis, prefix: str) -> None:
    """A server that closes its connections, as a proxy or a fail-over does. A message that falls into the gap costs the
    poll and no more; and whoever does not poll hears messages again."""
    async with (
        a_replica(store, own.url, prefix) as one,
        a_replica(store, own.url, prefix) as other,
        a_replica(store, own.url, prefix, polls=False) as silent,
    ):
        for name in ("flight", "hotel", "rail"):
            with BlockingRedis.from_url(own.url) as redis:
                redis.client_kill_filter(_type="pubsub", skipme=True)
                redis.client_kill_filter(_type="normal", skipme=True)
            epoch = await one.change(name)
            assert await until(lambda: other.epochs.current(ACME) == epoch) < IN_FORCE_S  # noqa: B023 - awaited here
        await _hears_again(one, silent)


async def _hears_again(one: Replica, other: Replica) -> None:
    """By messages alone: one of several changes, since a connection that was just made may be replaced once more."""
    async with asyncio.timeout(BOUND_S):
        for number in count():
            epoch = await one.change(f"again{number}")
            with suppress(TimeoutError):
                await until(lambda: other.epochs.current(ACME) == epoch, IN_FORCE_S)  # noqa: B023 - awaited here
                return


async def test_a_replica_that_starts_while_redis_is_away_refuses_until_it_is_back(
    store: Path, own: OwnRedis, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: an outage must not keep a replica from starting; it only keeps it from answering."""
    monkeypatch.setattr("gateway.backends.local.epochs.FIRST_WORD_S", 0.1)
    own.stop()
    async with a_replica(store, own.url, prefix) as one:
        assert one.refuses()
        own.start()
        assert await until(lambda: not one.refuses()) < BACK_S


async def test_a_replica_that_closes_during_an_outage_closes_soon(store: Path, own: OwnRedis, prefix: str) -> None:
    """Ours: nobody waits for a farewell that can't arrive."""
    async with AsyncExitStack() as stack:
        one = await stack.enter_async_context(a_replica(store, own.url, prefix))
        own.freeze()
        await one.change("flight")
        async with asyncio.timeout(BOUND_S):
            await stack.aclose()
    own.thaw()


async def test_a_replica_that_closes_while_it_reconnects_ends(own: OwnRedis, prefix: str) -> None:
    """A fault that was: the client swallowed the cancellation, and closing waited for ever."""
    for _ in range(8):
        replicas = Replicas.of(Redis(url=own.url, prefix=prefix, timeout_s=0.5), {}, SystemClock())
        assert replicas is not None
        heard = asyncio.Event()
        replicas.epochs.follow(lambda _tenant, _epoch: None, lambda _at: heard.set())  # noqa: B023 - closed before the next
        async with asyncio.timeout(BOUND_S):
            async with replicas:
                await heard.wait()
                own.stop()
                own.start()
                await asyncio.sleep(0)
