"""A delivery over HTTP arrives, or it says that it did not."""

from __future__ import annotations

import httpx2
import pytest

from gateway.backends.upstream.deliveries import HttpDeliveries
from gateway.identity.channel_accounts import Delivery
from tests.runtime import LocalRuntime


@pytest.mark.parametrize(
    ("status", "arrived"),
    [(200, True), (204, True), (302, True), (400, True), (429, False), (500, False), (503, False)],
)
async def test_whatever_the_runtime_took_has_arrived(status: int, arrived: bool) -> None:
    """What it refuses it would refuse again; what it can't take now is sent again. A redirect is not followed."""
    async with LocalRuntime(status) as runtime, httpx2.AsyncClient() as http:
        delivery = Delivery(url=runtime.url, secret=b"shared")
        assert await HttpDeliveries(http).send(delivery, b"{}") is arrived
        assert [body for _, body in runtime.received] == [b"{}"]


async def test_a_runtime_that_is_away_is_sent_it_again() -> None:
    """Nobody listens there."""
    async with LocalRuntime() as runtime:
        gone = Delivery(url=runtime.url, secret=b"shared")
    async with httpx2.AsyncClient() as http:
        assert not await HttpDeliveries(http).send(gone, b"{}")
