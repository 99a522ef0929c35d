"""Turns a bare ASGI app into one with an edge: limits, safe headers, and a problem document for every failure.

Pure ASGI only: context variables, streams and WebSocket scopes pass through as they are. One class and not one for
each concern: every layer costs each message a call, and five of them cost as much as a whole decision.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.errors import GatewayError, TooLarge, Unavailable
from gateway.keys import new_id
from gateway.logs import REQUEST, Loggers
from gateway.ports import Clock
from gateway.settings import Server
from gateway.web.api.endpoint import NO_STORE
from gateway.web.deadlines import Deadline, Deadlines
from gateway.web.dispatch import Dispatch
from gateway.web.problems import internal, of_starlette, problem
from gateway.web.request_ids import KEY, RequestTag, id_headers

NOSNIFF = (b"x-content-type-options", b"nosniff")


Headers = Sequence[tuple[bytes, bytes]]
Guard = Callable[[Headers, str | None], Headers]


def with_edge(app: Starlette, server: Server, clock: Clock, loggers: Loggers, guard: Guard | None = None) -> Starlette:
    """The app behind the edge, which stands in for Starlette's own handling of exceptions."""
    app.middleware_stack = Edge(Dispatch(app.router), server, clock, loggers, guard)
    return app


class AnswerBroken(Exception):
    """An answer failed after it had begun; the server closes the connection, so that nobody takes it for whole."""


class Edge:
    """Gives each request an id of ours, bounds its body and its time, and answers whatever the app raises."""

    def __init__(
        self, app: ASGIApp, server: Server, clock: Clock, loggers: Loggers, guard: Guard | None = None
    ) -> None:
        """`guard` takes away, by the peer's address, what only a proxy may send; None where no proxy is believed."""
        self.app = app
        self._guard = guard
        self.limit_bytes = server.body_limit_bytes
        self.seconds = server.request_timeout_s
        self.log = loggers("web")
        self._clock = clock
        self._deadlines: Deadlines | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes other scopes through as they are. Raises AnswerBroken for an answer that failed half-way."""
        if self._guard is not None and scope["type"] in ("http", "websocket"):
            client = scope.get("client")
            scope["headers"] = self._guard(scope["headers"], client[0] if client else None)
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        # Always a fresh one: an id from outside could be made equal to another request's, and an audit record is
        # found by it (ASVS V4.1.3). What the caller sends is only told in the log, beside ours.
        request_id = scope[KEY] = new_id("req", self._clock.now())
        token = REQUEST.set(RequestTag(request_id, scope["headers"]))
        exchange = _Exchange(self, request_id, id_headers(scope, request_id), receive, send)
        try:
            await exchange.run(scope)
        except Exception as error:  # every kind of failure ends here, and each is told as what it is
            await self._tell(error, scope, exchange)
        finally:
            REQUEST.reset(token)

    def deadlines(self) -> Deadlines:
        """Those of the running loop; a server has one, a test client a new one for each request."""
        loop = asyncio.get_running_loop()
        if self._deadlines is None or self._deadlines.loop is not loop:
            self._deadlines = Deadlines(loop, self.seconds)
        return self._deadlines

    async def _tell(self, error: Exception, scope: Scope, exchange: _Exchange) -> None:
        if isinstance(error, GatewayError):
            told = error
        elif isinstance(error, HTTPException):
            told = of_starlette(error, scope)
        else:
            self.log.error("request_failed", exc_info=error)
            told = internal()
        if exchange.begun:
            self.log.error("answer_broken", code=told.code)
            raise AnswerBroken from None  # the cause is logged; its message must not reach the server's own log
        await problem(told, exchange.request_id)(scope, exchange.receive, exchange.send)

    def check_declared_length(self, scope: Scope) -> None:
        """Raises TooLarge for a body that says so itself."""
        for name, value in scope["headers"]:
            if name == b"content-length" and not self._fits(value):
                raise self.too_large()

    def _fits(self, declared: bytes) -> bool:
        """Whether a declared length is one, and within the limit; the server has refused most that are none."""
        return declared.isdigit() and len(declared) <= 19 and int(declared) <= self.limit_bytes

    def too_large(self) -> TooLarge:
        """The rest of the body is never read, so the connection can't be used for another request."""
        return TooLarge(f"A request body may have {self.limit_bytes} bytes.", headers={"Connection": "close"})

    def too_slow(self) -> Unavailable:
        """The request was stopped; whether a write of it was done, nobody can say from here."""
        return Unavailable(f"This took over {self.seconds:g} s and was stopped; look before you repeat a write.")


class _Exchange(Deadline):
    """One request and its answer: what the app receives and sends passes through here."""

    __slots__ = ("_deadlines", "_edge", "_receive", "_received", "_send", "begun", "id_headers", "request_id")

    def __init__(self, edge: Edge, request_id: str, id_headers: Headers, receive: Receive, send: Send) -> None:
        self._edge = edge
        self._receive = receive
        self._send = send
        self._received = 0
        self._deadlines: Deadlines | None = None
        self.request_id = request_id
        self.id_headers = id_headers
        self.begun = False

    async def run(self, scope: Scope) -> None:
        """Runs the app. Raises TooLarge where a larger body is announced, Unavailable where the answer has not begun in
        time: a stream may take longer."""
        self._edge.check_declared_length(scope)
        deadlines = self._deadlines = self._edge.deadlines()
        deadlines.begin(self)
        try:
            await self._edge.app(scope, self.receive, self.send)
        except asyncio.CancelledError:
            if deadlines.end(self):
                raise self._edge.too_slow() from None
            raise
        finally:
            deadlines.end(self)

    async def receive(self) -> Message:
        """The next message. Raises TooLarge as soon as the body is over the limit, whatever length was declared."""
        message = await self._receive()
        if message["type"] == "http.request":
            self._received += len(message.get("body", b""))
            if self._received > self._edge.limit_bytes:
                raise self._edge.too_large()
        return message

    def send(self, message: Message) -> Awaitable[None]:
        """Adds the id, `nosniff`, and `no-store` where the answer does not say itself how it may be kept."""
        if message["type"] == "http.response.start":
            if not self.begun and self._deadlines is not None:
                self._deadlines.met(self)
            self.begun = True
            headers = list(message.get("headers", ()))
            if b"cache-control" not in dict(headers):
                headers.append(NO_STORE)
            headers += (NOSNIFF, *self.id_headers)
            message["headers"] = headers
        return self._send(message)
