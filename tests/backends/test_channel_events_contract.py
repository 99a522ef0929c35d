"""What every store of a channel's events does: each is handled once, however often it is sent."""

from __future__ import annotations

from datetime import timedelta

from gateway.model import TenantId
from gateway.ports import EventState
from tests.backends.stores import ACME, GLOBEX, NOW, Stores

LEASE, KEEP = timedelta(seconds=60), timedelta(days=3)


async def _take(stores: Stores, account: str = "support", tenant: TenantId = ACME, *, after: float = 0) -> EventState:
    now = NOW + timedelta(seconds=after)
    return await stores.channel_events.take(tenant, "line", account, "e1", now=now, lease=LEASE, keep=KEEP)


async def test_an_event_is_one_callers_until_it_is_done_and_then_nobodys(stores: Stores) -> None:
    """A redelivery of what was handled does nothing; another account's or tenant's event is another one."""
    assert await _take(stores) == EventState.TAKEN
    assert await _take(stores) == EventState.BUSY
    assert await _take(stores, account="sales") == EventState.TAKEN
    assert await _take(stores, tenant=GLOBEX) == EventState.TAKEN

    await stores.channel_events.finish(ACME, "line", "support", "e1")
    assert await _take(stores) == EventState.DONE
    assert await _take(stores, account="sales") == EventState.BUSY


async def test_one_that_was_never_finished_is_handled_when_it_comes_again(stores: Stores) -> None:
    """At once where its handler gave up; after the lease where that died."""
    assert await _take(stores) == EventState.TAKEN
    await stores.channel_events.release(ACME, "line", "support", "e1")
    assert await _take(stores) == EventState.TAKEN
    assert await _take(stores, after=59) == EventState.BUSY
    assert await _take(stores, after=60) == EventState.TAKEN


async def test_what_was_handled_is_remembered_for_as_long_as_it_is_to_be_kept(stores: Stores) -> None:
    """And then forgotten, so that the table does not grow for ever."""
    await _take(stores)
    await stores.channel_events.finish(ACME, "line", "support", "e1")
    assert await _take(stores, after=KEEP.total_seconds()) == EventState.DONE
    assert await _take(stores, after=KEEP.total_seconds() + 1) == EventState.TAKEN
