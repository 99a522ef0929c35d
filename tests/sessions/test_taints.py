"""Which turns are tainted, as far as is remembered (design section 9)."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from gateway.errors import Unavailable
from gateway.model import TenantId
from gateway.sessions.taints import Taints
from tests.clock import SettableClock

ACME, GLOBEX = TenantId("acme"), TenantId("globex")


class Kept:
    """A store that counts what it is asked."""

    def __init__(self) -> None:
        self.turns: set[tuple[TenantId, str]] = set()
        self.written = self.read = 0
        self.away = False

    async def add(self, tenant: TenantId, turn: str, _until: datetime, _now: datetime) -> None:
        """Keeps it, unless it is away."""
        if self.away:
            raise Unavailable("The store is away.")
        self.written += 1
        self.turns.add((tenant, turn))

    async def holds(self, tenant: TenantId, turn: str) -> bool:
        """Whether it is kept."""
        self.read += 1
        return (tenant, turn) in self.turns


async def test_only_that_a_turn_is_tainted_is_remembered(clock: SettableClock) -> None:
    """Another process may report it at any time; once it is known, nobody is asked again."""
    store = Kept()
    taints, elsewhere = Taints(store, clock), Taints(store, clock)
    assert not await taints.holds(ACME, "trn_1")

    for _ in range(2):
        await elsewhere.report(ACME, "trn_1", clock.now() + timedelta(minutes=15))

    assert [await taints.holds(ACME, "trn_1") for _ in range(3)] == [True] * 3
    assert not await taints.holds(GLOBEX, "trn_1")
    assert (store.written, store.read) == (1, 3)


async def test_what_can_not_be_kept_is_not_said_to_be(clock: SettableClock) -> None:
    """The call that brought the report does not go on."""
    store = Kept()
    taints, until = Taints(store, clock), clock.now() + timedelta(minutes=15)
    store.away = True
    with pytest.raises(Unavailable):
        await taints.report(ACME, "trn_1", until)
    store.away = False

    await taints.report(ACME, "trn_1", until)

    assert store.written == 1


async def test_it_is_bounded_and_what_is_forgotten_is_read_again(clock: SettableClock) -> None:
    """A forgotten mark is still in the store."""
    store = Kept()
    taints, until = Taints(store, clock, capacity=2), clock.now() + timedelta(minutes=15)
    for number in range(3):
        await taints.report(ACME, f"trn_{number}", until)

    assert len(taints._known) == 2
    assert await taints.holds(ACME, "trn_0")
    assert store.read == 1
