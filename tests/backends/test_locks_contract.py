"""One holder at a time, whichever kind of lock; and whoever lost a lock writes nothing (design sections 11 and 12)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from uuid import uuid4

import pytest
from redis import Redis as BlockingRedis

from gateway.backends.local.clock import SystemClock
from gateway.backends.redis.locks import Lease, RedisLocks
from gateway.backends.redis.replicas import Replicas
from gateway.errors import Unavailable
from gateway.keys import redis_lock, storage_key
from gateway.model import ProfileId
from gateway.settings.redis import Redis
from gateway.workspace.files import Workspace
from gateway.workspace.locks import FileLocks, Locks, file_key
from gateway.workspace.notes import append_note
from gateway.workspace.paths import instructions_path
from gateway.workspace.personal import read_instructions, save_instructions
from tests.backends.stores import ACME
from tests.redis_servers import any_redis, own_redis

BOUND_S = 20.0
KEY = storage_key(ACME, "file", "flight", "memory/2026-12-01.md")
ALICE = ProfileId("prf_01JD0000000000000000000001")

Maker = Callable[[float], Locks]  # by how long it waits; each is another replica with a folder of its own


async def _redis_maker(stack: AsyncExitStack, folder: Path, url: str, prefix: str, lease_s: float = 10.0) -> Maker:
    replicas = Replicas.of(Redis(url=url, prefix=prefix, timeout_s=0.5), {}, SystemClock())
    assert replicas is not None
    await stack.enter_async_context(replicas)
    shared = replicas.connection

    def make(wait_s: float) -> Locks:
        local = FileLocks(folder / uuid4().hex, wait_s=wait_s)
        return RedisLocks(shared, prefix, local, wait_s=wait_s, lease_s=lease_s)

    return make


@pytest.fixture(params=["in-process", "redis"])
async def make(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Maker]:
    """Makes locks that lock each other out."""
    if request.param == "in-process":
        yield lambda wait_s: FileLocks(tmp_path / "locks", wait_s=wait_s)
        return
    async with AsyncExitStack() as stack:
        url = stack.enter_context(any_redis(tmp_path))
        yield await _redis_maker(stack, tmp_path, url, f"test-{uuid4().hex}")


async def _in_thread(work: Callable[[], None]) -> None:
    async with asyncio.timeout(BOUND_S):
        await asyncio.to_thread(work)


async def test_one_holder_at_a_time_and_a_wait_that_ends(make: Maker) -> None:
    """The contract: another key is free, the same one is not, and an error frees it."""

    def work() -> None:
        one, other = make(0), make(0)
        with pytest.raises(KeyError), one.hold(KEY) as held:  # noqa: PT012 - what is held is looked at from within
            held.check()
            with other.hold(KEY + "x"):
                pass
            with pytest.raises(Unavailable), other.hold(KEY):
                pytest.fail("two hold the same lock")
            raise KeyError
        with other.hold(KEY) as held:
            held.check()

    await _in_thread(work)


async def test_threads_of_several_replicas_take_turns(make: Maker, tmp_path: Path) -> None:
    """Read, add one and write back; without the lock some would be lost."""
    counter = tmp_path / "counter"
    counter.write_text("0")

    def add(locks: Locks, start: threading.Barrier) -> None:
        start.wait(5)
        for _ in range(5):
            with locks.hold(KEY) as held:
                number = int(counter.read_text()) + 1
                held.check()
                counter.write_text(str(number))

    start = threading.Barrier(3)
    async with asyncio.timeout(BOUND_S):
        await asyncio.gather(*(asyncio.to_thread(add, make(60), start) for _ in range(3)))
    assert counter.read_text() == "15"


async def test_a_lease_is_renewed_while_it_is_held_and_its_token_only_rises(tmp_path: Path) -> None:
    """Held for four leases; then the next holder's token is higher, also in a server that lost its memory."""
    with own_redis(tmp_path) as server:
        async with AsyncExitStack() as stack:
            make = await _redis_maker(stack, tmp_path, server.url, "test", lease_s=0.3)
            tokens: list[int] = []

            def hold(for_s: float) -> None:
                with make(5).hold(KEY) as held:
                    with pytest.raises(Unavailable), make(for_s).hold(KEY):
                        pytest.fail("two hold the same lock")
                    held.check()
                    assert isinstance(held, Lease)
                    tokens.append(held.fence)

            await _in_thread(lambda: hold(1.2))
            await _in_thread(lambda: hold(0))
            await asyncio.to_thread(server.stop)  # off the loop, which is to see that its connections ended
            await asyncio.to_thread(server.start)
            await _in_thread(lambda: hold(0))
            assert tokens == sorted(set(tokens))
            assert len(tokens) == 3


@pytest.mark.parametrize("lost", ["taken", "forgotten", "away"])
async def test_whoever_lost_the_lock_before_the_rename_writes_nothing(tmp_path: Path, lost: str) -> None:
    """The fence is checked at the rename: the lock is somebody else's by now, or Redis lost it, or nobody can say."""
    (tmp_path / "workspaces" / "flight").mkdir(parents=True)
    workspace = Workspace(tmp_path / "workspaces", "flight")
    note = "memory/2026-12-01.md"
    with own_redis(tmp_path) as server:
        async with AsyncExitStack() as stack:
            make = await _redis_maker(stack, tmp_path, server.url, "test")

            def lose(path: str) -> None:
                if lost == "away":
                    server.stop()
                    return
                key = redis_lock("test", file_key(ACME, "flight", path))
                with BlockingRedis.from_url(server.url) as redis:
                    assert redis.delete(key) == 1
                if lost == "taken":
                    other = make(0)
                    assert isinstance(other, RedisLocks)
                    other._acquire(key)  # and holds it still

            def save() -> None:
                mine = instructions_path(ALICE)
                with pytest.raises(Unavailable):
                    save_instructions(workspace, make(0), ACME, ALICE, "Be brief.", None, lambda: lose(mine))
                assert read_instructions(workspace, ALICE).sha256 is None

            def append() -> None:
                with pytest.raises(Unavailable):
                    append_note(workspace, make(0), ACME, note, "Gate closed.", recheck=lambda: lose(note))

            await _in_thread(save)
            if lost != "away":
                await _in_thread(append)
            assert [path for path in (tmp_path / "workspaces").rglob("*") if path.is_file()] == []


async def test_without_redis_nothing_is_written_and_a_dead_holder_blocks_nobody_for_long(tmp_path: Path) -> None:
    """Design section 12: an outage refuses; a lease of somebody who was killed ends by itself."""
    with own_redis(tmp_path) as server:
        async with AsyncExitStack() as stack:
            make = await _redis_maker(stack, tmp_path, server.url, "test", lease_s=0.3)
            dead = await _redis_maker(stack, tmp_path, server.url, "test", lease_s=0.3)

            def die_holding() -> None:
                locks = dead(0)
                assert isinstance(locks, RedisLocks)
                locks._acquire(redis_lock("test", KEY))  # and nobody renews or frees it

            def wait_for_it() -> None:
                with pytest.raises(Unavailable), make(0).hold(KEY):
                    pytest.fail("two hold the same lock")
                with make(5).hold(KEY) as held:
                    held.check()

            await _in_thread(die_holding)
            await _in_thread(wait_for_it)
            server.stop()

            def refused() -> None:
                with pytest.raises(Unavailable), make(0).hold(KEY):
                    pytest.fail("held what nobody gave")

            await _in_thread(refused)
