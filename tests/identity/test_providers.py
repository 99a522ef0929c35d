"""Tests that one issuer which does not answer holds up nobody who does not need it."""

from __future__ import annotations

import httpx2
import orjson
import pytest

from gateway.errors import Unavailable
from gateway.identity.issuers import IssuerSettings
from gateway.identity.providers import Providers
from gateway.model import TenantId
from tests.clock import SettableClock

ISSUER = "https://login.example"
DOCUMENT = {
    "issuer": ISSUER,
    "authorization_endpoint": f"{ISSUER}/authorize",
    "token_endpoint": f"{ISSUER}/token",
}


class Slow(httpx2.AsyncBaseTransport):
    """Answers, or takes as long as anybody waits and then fails."""

    def __init__(self, clock: SettableClock) -> None:
        self.clock = clock
        self.hangs = False
        self.asked = 0

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """The discovery document."""
        self.asked += 1
        if self.hangs:
            self.clock.advance(6)
            raise httpx2.ConnectTimeout("no answer", request=request)
        return httpx2.Response(200, stream=httpx2.ByteStream(orjson.dumps(DOCUMENT)), request=request)


async def test_while_an_issuer_hangs_one_waits_for_it_and_the_others_do_not_wait_in_a_row(clock: SettableClock) -> None:
    """Design section 12: the gap between two tries counts from the end of the last one, or each of those who wait
    would wait for all before."""
    issuer = Slow(clock)
    settings = IssuerSettings(
        issuer=ISSUER, audience="gateway", algorithms=frozenset({"ES256"}), tenant=TenantId("acme")
    )
    async with httpx2.AsyncClient(transport=issuer) as http:
        providers = Providers(settings, http, clock)
        issuer.hangs = True
        for _ in range(3):
            with pytest.raises(Unavailable):
                await providers.current()
        assert issuer.asked == 1

        issuer.hangs = False
        clock.advance(settings.keys.retry_s)
        assert (await providers.current()).token_endpoint == f"{ISSUER}/token"

        issuer.hangs = True
        clock.advance(settings.keys.refresh_s)
        for _ in range(3):
            assert (await providers.current()).token_endpoint == f"{ISSUER}/token"
        assert issuer.asked == 3
