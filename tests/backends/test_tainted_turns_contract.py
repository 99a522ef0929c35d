"""What every store of tainted turns must do (ports.py)."""

from __future__ import annotations

from datetime import timedelta

from tests.backends.stores import ACME, GLOBEX, NOW, Stores

LATER = NOW + timedelta(minutes=15)


async def test_a_turn_is_tainted_from_then_on_in_its_own_tenant(stores: Stores) -> None:
    """Design section 9: the rest of its turn; saying it twice changes nothing."""
    for _ in range(2):
        await stores.tainted_turns.add(ACME, "trn_1", LATER, NOW)

    assert await stores.tainted_turns.holds(ACME, "trn_1")
    assert not await stores.tainted_turns.holds(ACME, "trn_2")
    assert not await stores.tainted_turns.holds(GLOBEX, "trn_1")


async def test_what_has_ended_is_forgotten_and_nothing_before(stores: Stores) -> None:
    """The table does not grow with every turn that ever was."""
    await stores.tainted_turns.add(ACME, "trn_1", LATER, NOW)
    await stores.tainted_turns.add(ACME, "trn_2", LATER + timedelta(hours=1), LATER - timedelta(microseconds=1))
    assert await stores.tainted_turns.holds(ACME, "trn_1")

    await stores.tainted_turns.add(GLOBEX, "trn_3", LATER + timedelta(hours=1), LATER)

    assert not await stores.tainted_turns.holds(ACME, "trn_1")
    assert await stores.tainted_turns.holds(ACME, "trn_2")
