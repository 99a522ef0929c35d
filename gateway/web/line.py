"""LINE's webhook over HTTP: the raw body, its signature, and an answer once every message is on the disk."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from gateway.errors import GatewayError, Unavailable
from gateway.identity.webhooks import LINE_SIGNATURE
from gateway.logs import Logger
from gateway.operations.channel_turns import Asking
from gateway.operations.connectors import Permitted
from gateway.operations.line import OPERATION, LineWebhooks, Webhook
from gateway.operations.line_events import LineEvent
from gateway.web.api.endpoint import Incoming, json
from gateway.web.metrics import Metrics
from gateway.web.problems import problem
from gateway.web.request_ids import request_id_of

PATH = "/v1/connectors/line/{account}/webhook"
SURFACE = "webhook"
_AGAIN = "Some of these events could not be handled. Send them again."

Said = Callable[[Webhook, LineEvent, Permitted, Asking], None]


class LineApp:
    """The route. It is public, since LINE's signature is the credential."""

    def __init__(self, webhooks: LineWebhooks, said: Said, metrics: Metrics, log: Logger) -> None:
        """`said` is told of each message that is durable, and only hands it on."""
        self._webhooks = webhooks
        self._said = said
        self._metrics = metrics
        self._log = log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers 200 where every message is durable, and else so that LINE sends it again."""
        begun = perf_counter()
        incoming = Incoming(scope, receive)
        asking = Asking(request_id_of(scope), SURFACE)
        try:
            body = await incoming.raw_body()
            webhook = await self._webhooks.receive(
                incoming.path["account"], incoming.headers(LINE_SIGNATURE), body, asking
            )
            if not await self._handle_all(webhook, asking):
                raise Unavailable(_AGAIN)
            response = json({})
        except GatewayError as error:
            response = problem(error, asking.request)
        await response(scope, receive, send)
        self._metrics.request(OPERATION, response.status_code, perf_counter() - begun)

    async def _handle_all(self, webhook: Webhook, asking: Asking) -> bool:
        """Whether every event is done with. They are handled in order, and one that fails does not stop the next."""
        done = True
        for event in webhook.events:
            try:
                said = await self._webhooks.handle(webhook, event, asking, again=not done)
            except GatewayError:
                done = False
            except Exception:
                self._log.exception("event_failed", tenant=webhook.account.tenant)
                done = False
            else:
                if said is not None:
                    self._said(webhook, event, said, asking)
        return done


def line_route(webhooks: LineWebhooks, said: Said, metrics: Metrics, log: Logger) -> Route:
    """The route."""
    return Route(PATH, LineApp(webhooks, said, metrics, log), methods=["POST"])
