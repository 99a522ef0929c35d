"""Turns a message that LINE brought into what the agent's runtime is told of it (docs: identity/channels)."""

from __future__ import annotations

from collections.abc import Callable

import orjson

from gateway.operations.channel_turns import Asking, ChannelTurns
from gateway.operations.connectors import Permitted
from gateway.operations.deliveries import Job
from gateway.operations.line import Webhook
from gateway.operations.line_events import LineEvent
from gateway.web.api import shapes


class LineDeliveries:
    """Hands each message on, where the account says to whom."""

    def __init__(self, turns: ChannelTurns, offer: Callable[[Job], None]) -> None:
        self._turns = turns
        self._offer = offer

    def __call__(self, webhook: Webhook, event: LineEvent, said: Permitted, asking: Asking) -> None:
        """Offers the delivery. LINE expects no answer to what is another module's to answer."""
        delivery = webhook.account.delivery
        if delivery is None or not event.active:
            return

        async def body() -> bytes:
            turn = shapes.channel_turn(await self._turns.answer(said, asking))
            told = {
                "id": event.id,
                "channel": webhook.account.channel,
                "account": webhook.account.account,
                "sender": event.sender,
                "chat": {"kind": event.chat, "id": event.chat_id},
                "text": event.text,
                "reply_token": event.reply_token,
                "at": shapes.time(event.at),
            }
            return orjson.dumps({**turn, "event": told})

        self._offer(Job(said.session, webhook.account.name, delivery, body))
