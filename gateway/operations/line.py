"""Turns a signed webhook of LINE into turns of its senders, each event once (design section 5; issue 3).

The signature is the credential, checked over the raw body before anything of it is read. Each event then takes the way
of every connector's: as the account's service, and after that as the sender.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

import orjson

from gateway.errors import GatewayError, Invalid, NotFound, ToolNotAllowed, Unauthenticated, Unavailable
from gateway.identity.assertions import Assertion
from gateway.identity.channel_accounts import ChannelAccount, ChannelAccounts
from gateway.identity.credentials import Credentials
from gateway.identity.webhooks import LINE, verify_line
from gateway.operations.channel_turns import Asking, ChannelTurns
from gateway.operations.connectors import Brought, ConnectorOperations, Members, Permitted
from gateway.operations.line_events import LineEvent, read_body
from gateway.pipeline import Call, Pipeline
from gateway.ports import ChannelEvents, Clock, EventState
from gateway.stages.record_audit import Trail
from gateway.tools.registry import AnyOperation

OPERATION = "connectors.webhook"  # what the audit calls a delivery
OLDEST = timedelta(hours=24)  # LINE sends again what was not answered, for a while
AHEAD = timedelta(minutes=5)  # between LINE's clock and ours
_KEPT = timedelta(days=3)  # longer than an event may be old
_LONGER = timedelta(minutes=1)  # than a request may take, until its event is anybody's again
_BUSY = "This event is being handled. Send it again in a moment."
_NOT_SET_UP = "The account's service may not bring this."
_NOT_NOW = "Nothing in this request is of now, so it is not handled."
_FOR_ANOTHER = "This request is for another bot."


@dataclass(frozen=True, slots=True)
class Webhook:
    """A delivery of LINE whose signature holds, and those of its events that are of now."""

    account: ChannelAccount
    connector: Assertion
    events: tuple[LineEvent, ...]


class LineWebhooks:
    """Handles the webhooks of LINE's accounts."""

    def __init__(
        self,
        accounts: ChannelAccounts,
        events: ChannelEvents,
        operations: ConnectorOperations,
        turns: ChannelTurns,
        pipeline: Pipeline,
        clock: Clock,
        *,
        longest: timedelta,
    ) -> None:
        """`accounts` hold the secrets that LINE signs with; `longest` is how long a request may take."""
        self._accounts = accounts
        self._events = events
        self._operations = operations
        self._turns = turns
        self._pipeline = pipeline
        self._clock = clock
        self._lease = longest + _LONGER

    async def receive(self, account: str, signatures: Sequence[str], body: bytes, asking: Asking) -> Webhook:
        """What was delivered, recorded in the audit.

        Raises Unauthenticated: not signed by the account's channel, for another bot, or nothing in it is of now;
        Invalid for a body that is not LINE's.
        """
        trail = Trail(asking.request, asking.surface, OPERATION)

        async def path() -> Webhook:
            found = self._accounts.find(LINE, account)
            connector = verify_line(found, signatures, body)
            assert found is not None  # noqa: S101 - else the signature would not hold
            trail.principal = connector.principal
            return Webhook(found, connector, self._of_now(found, body))

        webhook = await self._pipeline.record_audit(trail, path())
        assert isinstance(webhook, Webhook)  # noqa: S101 - what `path` returns
        return webhook

    async def handle(
        self, webhook: Webhook, event: LineEvent, asking: Asking, *, again: bool = False
    ) -> Permitted | None:
        """What somebody said, once it is durable; None where nobody said anything that may be said here.

        `again` says that an earlier event of this webhook failed, so that LINE sends all of it again. A leaving is then
        handled now and once more after that event, which may be what lets the same person in.

        Raises Unavailable where it could not be handled now: LINE is to send it again.
        """
        where = (webhook.account.tenant, LINE, webhook.account.account, event.id)
        state = await self._events.take(*where, now=self._clock.now(), lease=self._lease, keep=_KEPT)
        if state is EventState.BUSY:
            raise Unavailable(_BUSY)
        if state is EventState.DONE:
            await self._note_replayed(webhook, asking)
            return None
        try:
            said = await self._handle(webhook, event, asking)
        except GatewayError as error:
            if error.status >= 429:
                await self._events.release(*where)
                raise
            said = None  # refused, and recorded so; sent again it would be refused again
        except BaseException:
            await self._events.release(*where)
            raise
        if again and (event.left or event.ended):
            await self._events.release(*where)
        else:
            await self._events.finish(*where)
        return said

    async def _handle(self, webhook: Webhook, event: LineEvent, asking: Asking) -> Permitted | None:
        if event.chat is None:
            return None
        account = webhook.account.account
        if event.text is not None:
            brought = Brought(
                channel=LINE,
                account=account,
                sender=event.sender,
                chat=event.chat,
                chat_id=event.chat_id,
                text=event.text,
            )
            permitted = await self._run(webhook, self._operations.turn, brought, asking)
            assert isinstance(permitted, Permitted)  # noqa: S101 - what that operation returns
            await self._turns.speak(permitted, asking)
            return permitted
        if event.joined or event.left or event.ended:
            members = Members(
                channel=LINE,
                account=account,
                chat=event.chat,
                chat_id=event.chat_id,
                joined=event.joined,
                left=event.left,
                ended=event.ended,
            )
            await self._run(webhook, self._operations.members, members, asking)
        return None

    async def _run(
        self, webhook: Webhook, operation: AnyOperation, arguments: Brought | Members, asking: Asking
    ) -> object:
        call = Call.of(Credentials(asserted=webhook.connector), operation, arguments)
        try:
            return await self._pipeline.run(call, Trail(asking.request, asking.surface, operation.name))
        except (Unauthenticated, ToolNotAllowed, NotFound):
            # It is the account that is not set up, not the message that is refused: none may be lost by that.
            raise Unavailable(_NOT_SET_UP) from None

    def _of_now(self, account: ChannelAccount, body: bytes) -> tuple[LineEvent, ...]:
        try:
            data = orjson.loads(body)
        except orjson.JSONDecodeError:
            raise Invalid.of("body", "json", "Send a JSON object.") from None
        said = read_body(data)
        if account.destination not in (None, said.destination):
            raise Unauthenticated(_FOR_ANOTHER, reason="destination_wrong")
        now = self._clock.now()
        events = tuple(one for one in said.events if now - OLDEST <= one.at <= now + AHEAD)
        if said.events and not events:
            raise Unauthenticated(_NOT_NOW, reason="event_not_of_now")
        return events

    async def _note_replayed(self, webhook: Webhook, asking: Asking) -> None:
        """Writes down that an event came which was handled already: by LINE, or by somebody who has its request."""
        trail = Trail(asking.request, asking.surface, OPERATION, principal=webhook.connector.principal)

        async def path() -> object:
            raise Unauthenticated("This event was handled.", reason="event_replayed")

        try:
            await self._pipeline.record_audit(trail, path())
        except Unauthenticated:
            return
