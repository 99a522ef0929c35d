"""Turns a signed body into a delivery at an agent's runtime, or into the reason why it did not arrive."""

from __future__ import annotations

import httpx2

from gateway.identity.channel_accounts import Delivery
from gateway.identity.webhooks import sign

SIGNATURE = "Gateway-Signature"
_TIMEOUT_S = 10.0
_TOO_MANY = 429
_FAULT_THERE = 500


class HttpDeliveries:
    """`operations.deliveries.Sender` over HTTP."""

    def __init__(self, http: httpx2.AsyncClient) -> None:
        self._http = http

    async def send(self, delivery: Delivery, body: bytes) -> bool:
        """Whether it arrived: any answer but that the runtime can't take it now. Redirects are not followed."""
        headers = {"Content-Type": "application/json", SIGNATURE: sign(delivery.secret, body)}
        try:
            async with self._http.stream(
                "POST", delivery.url, content=body, headers=headers, timeout=_TIMEOUT_S
            ) as answer:
                return answer.status_code < _FAULT_THERE and answer.status_code != _TOO_MANY
        except httpx2.HTTPError:
            return False
