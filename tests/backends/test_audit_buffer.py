"""Records wait at most 50 ms, none is lost, and nothing is served that can't be recorded (design section 12)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from gateway.backends.local.audit_buffer import HOLD_S, AuditBuffer
from gateway.backends.local.refusals import Refusals
from gateway.errors import Unavailable
from gateway.model import AuditRecord
from gateway.ports import Audit, AuditFilter, Page, StoredRecord
from tests.backends.stores import ACME, Factory, a_record
from tests.clock import SettableClock

BOUND_S = 5


class Pauses:
    """Time that passes only when the test lets it: each pause waits for its turn and then moves the clock."""

    def __init__(self, clock: SettableClock) -> None:
        self._clock = clock
        self.asked: asyncio.Queue[tuple[float, asyncio.Future[None]]] = asyncio.Queue()

    async def __call__(self, seconds: float) -> None:
        """The buffer's `pause`."""
        over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.asked.put_nowait((seconds, over))
        await over

    async def let_pass(self) -> float:
        """Lets the next pause end; how long it was."""
        async with asyncio.timeout(BOUND_S):
            while True:
                seconds, over = await self.asked.get()
                if not over.done():
                    self._clock.advance(seconds)
                    over.set_result(None)
                    return seconds


class Gate:
    """The real audit behind a gate: it can be shut, so that appends wait, or broken, so that they fail."""

    def __init__(self, audit: Audit) -> None:
        self._audit = audit
        self.broken = False
        self.open = asyncio.Event()
        self.open.set()
        self.entered = asyncio.Event()
        self.batches: list[int] = []

    async def append(self, records: Sequence[AuditRecord]) -> None:
        """As the audit does, once the gate is open."""
        self.entered.set()
        await self.open.wait()
        if self.broken:
            raise Unavailable("broken")
        await self._audit.append(records)
        self.batches.append(len(records))

    async def read(
        self, tenant: object, narrow: AuditFilter, *, limit: int, cursor: str | None, ascending: bool = False
    ) -> Page[StoredRecord]:
        """Not through the gate."""
        return await self._audit.read(ACME, narrow, limit=limit, cursor=cursor, ascending=ascending)

    async def verify(self, tenant: object) -> object:
        """Not through the gate."""
        return await self._audit.verify(ACME)

    async def stored(self) -> list[str]:
        """The requests that are on disk, in order."""
        page = await self.read(ACME, AuditFilter(), limit=200, cursor=None, ascending=True)
        return [one.record.request for one in page.items]


class Counted:
    """An observer that keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    def flushed(self, records: int, seconds: float) -> None:
        self.told.append((records, seconds))

    def failed(self) -> None:
        self.told.append("failed")


@pytest.fixture
def pauses(clock: SettableClock) -> Pauses:
    """Time in the test's hands."""
    return Pauses(clock)


@pytest.fixture
async def gate(factory: Factory, tmp_path: Path) -> AsyncIterator[Gate]:
    """The real audit of an empty store, behind a gate."""
    async with factory(tmp_path) as stores:
        yield Gate(stores.audit)


Opened = Callable[..., AbstractAsyncContextManager[AuditBuffer]]


@pytest.fixture
def opened(gate: Gate, clock: SettableClock, pauses: Pauses) -> Opened:
    """Opens a buffer in front of the gate."""

    def make(**changed: object) -> AuditBuffer:
        return AuditBuffer(gate, clock, pause=pauses, **changed)  # type: ignore[arg-type]  # the gate is an Audit

    return make


async def _soon(awaitable: Awaitable[None]) -> None:
    async with asyncio.timeout(BOUND_S):
        await awaitable


async def _until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(BOUND_S):
        while not condition():  # noqa: ASYNC110 - what it waits for is a value that many steps change
            await asyncio.sleep(0)


async def test_a_read_record_waits_for_company_and_less_than_fifty_milliseconds(
    opened: Opened, gate: Gate, pauses: Pauses
) -> None:
    """Design section 12: read records are buffered for at most 50 ms. The clock is the test's."""
    async with opened() as buffer:
        await buffer.record(a_record(1), a_record(2))
        await buffer.record(a_record(3))
        assert (gate.batches, buffer.healthy) == ([], True)
        assert await pauses.let_pass() < HOLD_S
        await _until(lambda: gate.batches == [3])
        assert await gate.stored() == ["req_1", "req_2", "req_3"]


async def test_a_write_record_is_on_disk_when_it_returns_and_all_before_it_too(opened: Opened, gate: Gate) -> None:
    """Design section 12: the intent first. No time passes at all: it waits for the disk, not for company."""
    async with opened() as buffer:
        await buffer.record(a_record(1))
        await _soon(buffer.record_durably(a_record(2), a_record(3)))
        assert await gate.stored() == ["req_1", "req_2", "req_3"]
        await buffer.record_durably()
        await buffer.record()


async def test_writes_that_come_while_one_is_written_share_the_next_batch(opened: Opened, gate: Gate) -> None:
    """Ours: group commit. The overlap is proven by the gate."""
    async with opened() as buffer:
        gate.open.clear()
        first = asyncio.ensure_future(buffer.record_durably(a_record(1)))
        await _soon(_wait(gate.entered))
        others = [asyncio.ensure_future(buffer.record_durably(a_record(number))) for number in range(2, 8)]
        await asyncio.sleep(0)
        assert not any(one.done() for one in (first, *others))
        gate.open.set()
        await _soon(_all(first, *others))
        assert gate.batches == [1, 6]


async def test_durable_reads_wait_for_the_disk(opened: Opened, gate: Gate) -> None:
    """Design section 12: `audit.reads = "durable"` waits for the group commit instead."""
    async with opened(reads="durable") as buffer:
        await _soon(buffer.record(a_record(1)))
        assert await gate.stored() == ["req_1"]


async def test_a_store_that_fails_refuses_writes_at_once_and_reads_after_fifty_milliseconds_and_recovers(
    opened: Opened, gate: Gate, pauses: Pauses
) -> None:
    """Design section 12: outages refuse, nothing acknowledged is lost, and all is well again by itself."""
    async with opened() as buffer:
        gate.broken = True
        with pytest.raises(Unavailable):
            await _soon(buffer.record_durably(a_record(1)))
        await buffer.record(a_record(2))
        assert buffer.healthy
        assert await pauses.let_pass() > HOLD_S
        assert not buffer.healthy
        for refused in (buffer.record, buffer.record_durably):
            with pytest.raises(Unavailable):
                await refused(a_record(3))
        gate.broken = False
        await _until(lambda: buffer.healthy)
        await _soon(buffer.record_durably(a_record(4)))
        # The refused write is in the audit although it never happened: the reverse can't be.
        assert await gate.stored() == ["req_1", "req_2", "req_4"]


async def test_the_operator_may_have_records_wait_less(opened: Opened, gate: Gate, pauses: Pauses) -> None:
    """Settings, `audit.flush_ms`."""
    async with opened(hold_s=0.004) as buffer:
        await buffer.record(a_record(1))
        assert await pauses.let_pass() < 0.004
        await _until(lambda: gate.batches == [1])


async def test_every_batch_is_told_of_and_what_waits_can_be_asked(
    opened: Opened, gate: Gate, pauses: Pauses, clock: SettableClock
) -> None:
    """Issue 2, `/metrics`: depth, time, records and failures of the buffer. The store takes 3 s by the test's clock."""
    counted = Counted()
    async with opened(observer=counted) as buffer:
        gate.open.clear()
        await buffer.record(a_record(1), a_record(2))
        assert buffer.waiting == 2
        await pauses.let_pass()
        await _soon(_wait(gate.entered))
        clock.advance(3)
        gate.open.set()
        await _until(lambda: buffer.waiting == 0)
        assert counted.told == [(2, 3)]
        gate.broken = True
        with pytest.raises(Unavailable):
            await _soon(buffer.record_durably(a_record(3)))
        assert (buffer.waiting, counted.told) == (1, [(2, 3), "failed"])
        gate.broken = False
        await pauses.let_pass()
        await _until(lambda: buffer.waiting == 0)
    assert counted.told[2][0] == 1


async def test_reads_slow_down_while_more_come_than_the_disk_takes(opened: Opened, gate: Gate) -> None:
    """Design section 12: nothing is refused that the disk can still take, and little is at risk at any moment."""
    async with opened(crowd=2) as buffer:
        gate.open.clear()
        await buffer.record(a_record(1), a_record(2))
        crowded = asyncio.create_task(buffer.record(a_record(3)))
        await _until(lambda: buffer.waiting == 3)
        assert not crowded.done()
        gate.open.set()
        await _soon(crowded)
        assert await gate.stored() == ["req_1", "req_2", "req_3"]


async def test_a_full_buffer_refuses_and_keeps_what_it_has(opened: Opened, gate: Gate) -> None:
    """Design section 12: bounded; the request is refused, and no record is dropped for another."""
    async with opened(capacity=3) as buffer:
        gate.open.clear()
        await buffer.record(a_record(1), a_record(2))
        with pytest.raises(Unavailable):
            await buffer.record(a_record(3), a_record(4))
        await buffer.record(a_record(5))
        assert not buffer.healthy
        with pytest.raises(Unavailable):
            await buffer.record(a_record(6))
        gate.open.set()
    assert await gate.stored() == ["req_1", "req_2", "req_5"]
    assert not buffer.healthy
    with pytest.raises(Unavailable):
        await buffer.record(a_record(7))


async def test_closing_says_how_many_records_a_store_that_stays_away_did_not_take(
    opened: Opened, gate: Gate, pauses: Pauses
) -> None:
    """Ours: never silently."""

    async def close() -> None:
        async with opened() as buffer:
            await buffer.record(a_record(1), a_record(2))
            gate.broken = True

    closing = asyncio.ensure_future(close())
    while not closing.done():
        passing = asyncio.ensure_future(pauses.let_pass())
        await asyncio.wait([closing, passing], return_when=asyncio.FIRST_COMPLETED)
        passing.cancel()
    with pytest.raises(Unavailable, match="2 audit records"):
        await closing


async def test_a_fault_in_the_store_leaves_nobody_waiting_and_shows(opened: Opened, gate: Gate) -> None:
    """Ours: what is no outage ends the buffer, visibly; whoever waits is refused."""

    async def fail(records: Sequence[AuditRecord]) -> None:
        raise ZeroDivisionError

    gate.append = fail  # type: ignore[method-assign]  # a fault that no store of ours has

    async def serve() -> None:
        async with opened() as buffer:
            with pytest.raises(Unavailable):
                await _soon(buffer.record_durably(a_record(1)))
            await _until(lambda: not buffer.healthy)

    with pytest.raises(ZeroDivisionError):
        await serve()


async def test_a_caller_that_goes_away_takes_nothing_with_it(opened: Opened, gate: Gate) -> None:
    """Ours: a cancelled request's record is written all the same."""
    async with opened() as buffer:
        gate.open.clear()
        waiting = asyncio.ensure_future(buffer.record_durably(a_record(1)))
        await _soon(_wait(gate.entered))
        waiting.cancel()
        gate.open.set()
        await _soon(buffer.record_durably(a_record(2)))
    assert await gate.stored() == ["req_1", "req_2"]


async def _wait(event: asyncio.Event) -> None:
    await event.wait()


async def _all(*tasks: asyncio.Future[None]) -> None:
    await asyncio.gather(*tasks)


def test_refusals_without_a_tenant_are_counted_and_logged_once_a_second(clock: SettableClock) -> None:
    """Design section 12: counts and aggregates, so that a flood can't fill anything."""
    logged: list[dict[tuple[str, str], int]] = []
    refusals = Refusals(lambda counts: logged.append(dict(counts)), clock)
    refusals.count("unauthenticated", "rest")
    for _ in range(1000):
        refusals.count("unauthenticated", "rest")
    assert logged == [{("unauthenticated", "rest"): 1}]
    clock.advance(1)
    refusals.count("unauthenticated", "cli")
    assert logged[1:] == [{("unauthenticated", "rest"): 1000, ("unauthenticated", "cli"): 1}]
    for number in range(500):
        refusals.count(f"made up {number}", "rest")
    refusals.flush()
    refusals.flush()
    assert len(logged) == 3
    assert (len(logged[2]), sum(logged[2].values()), logged[2]["other", "other"]) == (101, 500, 400)
