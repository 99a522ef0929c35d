"""What this process knows of the epochs: fresh, or refused (design section 7, freshness)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from math import inf
from pathlib import Path

import pytest
from sqlalchemy import Connection

from gateway.backends.local.clock import SystemClock
from gateway.backends.local.epochs import POLL_S, STALE_S, Epochs
from gateway.backends.sql.agents import SqlAgents
from gateway.backends.sql.database import Database
from gateway.backends.sql.tenants import SqlTenants
from gateway.errors import Unavailable
from gateway.model import Agent, AgentName, Tenant, TenantId
from tests.backends.stores import ACME, GLOBEX, NOW
from tests.clock import SettableClock

BOUND_S = 5


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    """A store with one tenant, as this process has it open."""
    async with Database(tmp_path / "gateway.db", readers=1) as opened:
        await SqlTenants(opened).add(ACME, demo=False, now=NOW)
        yield opened


@pytest.fixture
async def elsewhere(database: Database, tmp_path: Path) -> AsyncIterator[Database]:
    """The same store, as another process has it open."""
    async with Database(tmp_path / "gateway.db", readers=1) as opened:
        yield opened


async def _change(database: Database, name: str) -> None:
    agent = Agent(tenant=ACME, name=AgentName(name), workspace=name, title=name, timezone="UTC")
    await SqlAgents(database).add(agent, NOW)


async def test_an_epoch_is_known_at_once_from_here_and_by_the_next_poll_from_elsewhere(
    database: Database, elsewhere: Database, clock: SettableClock
) -> None:
    """Design section 7: a change is in force on every replica within 1 s."""
    epochs, risen = Epochs(SqlTenants(database), clock), []
    epochs.when_risen(lambda tenant, epoch: risen.append((tenant, epoch)))
    database.when_epoch_rises(epochs.raised)
    await epochs.poll()
    await _change(database, "flight")
    assert epochs.current(ACME) == 2
    await _change(elsewhere, "hotel")
    assert epochs.current(ACME) == 2
    await epochs.poll()
    assert epochs.current(ACME) == 3
    epochs.raised(ACME, 1)
    assert (epochs.current(ACME), risen) == (3, [(ACME, 1), (ACME, 2), (ACME, 3)])
    assert POLL_S < 1


async def test_one_tenants_epoch_is_heard_when_it_is_asked_for(
    database: Database, elsewhere: Database, clock: SettableClock
) -> None:
    """Ours: before a file is written, what another process changed a moment ago counts; a missing tenant has none."""
    epochs = Epochs(SqlTenants(database), clock)
    await epochs.poll()
    await _change(elsewhere, "hotel")
    assert epochs.current(ACME) == 1
    await epochs.hear(ACME)
    await epochs.hear(GLOBEX)
    assert (epochs.current(ACME), epochs.knows(GLOBEX)) == (2, False)


async def test_a_process_that_has_not_heard_for_five_seconds_refuses_and_recovers(
    database: Database, clock: SettableClock
) -> None:
    """Design section 7: refuses (503) rather than use an old answer. The answer is as old as the question."""
    epochs = Epochs(SqlTenants(database), clock)
    with pytest.raises(Unavailable):
        epochs.current(ACME)
    assert epochs.age_s == inf
    await epochs.poll()
    assert epochs.age_s == 0
    clock.advance(STALE_S - 0.001)
    assert epochs.age_s == pytest.approx(STALE_S - 0.001)
    assert (epochs.current(ACME), epochs.healthy) == (1, True)
    clock.advance(0.001)
    epochs.raised(ACME, 9)
    for tenant in (ACME, GLOBEX):
        with pytest.raises(Unavailable):
            epochs.current(tenant)
    assert not epochs.healthy
    await epochs.poll()
    assert epochs.current(ACME) == 9
    with pytest.raises(Unavailable):
        epochs.current(GLOBEX)


async def test_who_asks_for_an_epoch_waits_for_it_or_fails(
    database: Database, elsewhere: Database, clock: SettableClock
) -> None:
    """Design section 7: `min_epoch` on a request waits for it or fails."""
    epochs = Epochs(SqlTenants(database), clock)
    await epochs.poll()
    await epochs.at_least(ACME, 1)
    waiting = asyncio.ensure_future(epochs.at_least(ACME, 3, BOUND_S))
    await _change(elsewhere, "flight")
    await epochs.poll()
    await asyncio.sleep(0)
    assert not waiting.done()
    await _change(elsewhere, "hotel")
    await epochs.poll()
    await waiting
    with pytest.raises(Unavailable):
        await epochs.at_least(ACME, 4, 0.01)


class AwayThenBack:
    """The real tenants, away when asked for the second time."""

    def __init__(self, tenants: SqlTenants) -> None:
        self._tenants = tenants
        self.asked = 0

    async def all(self) -> Sequence[Tenant]:
        """Every tenant, or Unavailable."""
        self.asked += 1
        if self.asked == 2:
            raise Unavailable("away")
        return await self._tenants.all()

    async def find(self, tenant: TenantId) -> Tenant | None:
        """As the store does."""
        return await self._tenants.find(tenant)

    async def add(self, tenant: TenantId, *, demo: bool, now: datetime) -> Tenant:
        """As the store does."""
        return await self._tenants.add(tenant, demo=demo, now=now)


async def test_polling_goes_on_through_an_outage_and_tells_of_what_was_written_elsewhere(
    database: Database, elsewhere: Database, clock: SettableClock
) -> None:
    """Ours: an outage is waited out; what another process wrote without raising an epoch is told too."""
    rounds: asyncio.Queue[asyncio.Future[None]] = asyncio.Queue()

    async def pause(seconds: float) -> None:
        over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        rounds.put_nowait(over)
        await over

    told: list[str] = []
    tenants = AwayThenBack(SqlTenants(database))
    epochs = Epochs(tenants, clock, elsewhere=database.changes_elsewhere, pause=pause)
    epochs.when_changed_elsewhere(lambda: told.append("changed"))
    async with epochs, asyncio.timeout(BOUND_S):
        await SqlTenants(database).add(GLOBEX, demo=False, now=NOW)
        over = await rounds.get()
        over.set_result(None)
        over = await rounds.get()
        assert (tenants.asked, told) == (2, [])
        over.set_result(None)
        over = await rounds.get()
        assert (tenants.asked, told, epochs.current(GLOBEX)) == (3, [], 1)
        await _change(elsewhere, "flight")
        over.set_result(None)
        await rounds.get()
        assert (epochs.current(ACME), told) == (2, ["changed"])


async def test_a_long_write_of_ours_refuses_nobody_and_nothing_is_remembered_meanwhile(
    database: Database, clock: SettableClock
) -> None:
    """Ours: the store is heard apart from its writer; while the writer can't say what others wrote, they may have."""
    told: list[str] = []
    epochs = Epochs(SqlTenants(database), clock, elsewhere=database.changes_elsewhere)
    epochs.when_changed_elsewhere(lambda: told.append("changed"))
    async with asyncio.timeout(BOUND_S):
        await epochs.poll()
        begun, over = threading.Event(), threading.Event()

        def long_write(_: Connection) -> None:
            begun.set()
            over.wait(BOUND_S)

        writing = asyncio.ensure_future(database.write(long_write))
        assert await asyncio.to_thread(begun.wait, BOUND_S)
        clock.advance(STALE_S + 1)
        assert not epochs.healthy

        await epochs.poll()
        assert (epochs.current(ACME), told) == (1, ["changed"])
        await epochs.poll()
        assert told == ["changed"] * 2

        over.set()
        await writing
        await epochs.poll()
        assert (epochs.healthy, told) == (True, ["changed"] * 2)


async def test_a_writer_that_cannot_say_what_others_wrote_counts_as_a_change(
    database: Database, clock: SettableClock
) -> None:
    """The same, fail closed."""

    async def away() -> int:
        raise Unavailable("away")

    told: list[str] = []
    epochs = Epochs(SqlTenants(database), clock, elsewhere=away)
    epochs.when_changed_elsewhere(lambda: told.append("changed"))
    await epochs.poll()
    assert (epochs.current(ACME), told) == (1, ["changed"])


async def test_a_store_that_cannot_be_heard_at_the_start_is_said_at_once(tmp_path: Path, clock: SettableClock) -> None:
    """Design section 12: an outage is no empty answer."""
    with pytest.raises(Unavailable):
        async with Epochs(SqlTenants(Database(tmp_path / "closed.db")), clock):
            pytest.fail("opened")


def test_the_clock_of_the_machine_is_in_utc_and_only_rises() -> None:
    """ports.Clock."""
    clock = SystemClock()
    assert clock.now().tzinfo is UTC
    first = clock.monotonic()
    assert clock.monotonic() >= first
