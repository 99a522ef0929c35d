"""Turns a bare ASGI app into one with an edge: limits, safe headers, and a problem document for every failure.

Pure ASGI only: context variables, streams and WebSocket scopes pass through as they are.
"""

from __future__ import annotations

import asyncio
from typing import cast

from starlette.middleware import Middleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.errors import GatewayError, TooLarge, Unavailable
from gateway.logs import Loggers
from gateway.ports import Clock
from gateway.settings import Server
from gateway.web.deadlines import Deadlines
from gateway.web.problems import internal, problem
from gateway.web.request_ids import RequestIds, request_id_of

NOSNIFF = (b"x-content-type-options", b"nosniff")
NO_STORE = (b"cache-control", b"no-store")


def edge(server: Server, clock: Clock, loggers: Loggers) -> list[Middleware]:
    """For `Starlette(middleware=…)`: every middleware of the edge, outermost first, in the one order that works.

    Ids are outermost, so that every answer has one; failures are outside of the limits, so that those are answered too.
    """
    return [
        Middleware(RequestIds, clock),
        Middleware(SafeHeaders),
        Middleware(Failures, loggers),
        Middleware(TimeLimit, server.request_timeout_s),
        Middleware(BodyLimit, server.body_limit_bytes),
    ]


class SafeHeaders:
    """Adds `nosniff`, and `no-store` where the answer does not say itself how it may be kept (interface)."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes other scopes through as they are."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *_missing(message)]
            await send(message)

        await self._app(scope, receive, send_safely)


def _missing(message: Message) -> tuple[tuple[bytes, bytes], ...]:
    for name, _ in message.get("headers", ()):
        if name == b"cache-control":
            return (NOSNIFF,)
    return (NOSNIFF, NO_STORE)


class AnswerBroken(Exception):
    """An answer failed after it had begun; the server closes the connection, so that nobody takes it for whole."""


class Failures:
    """Answers what the app raised: our errors as they say, anything else as a 500 that tells nothing."""

    def __init__(self, app: ASGIApp, loggers: Loggers) -> None:
        self._app = app
        self._log = loggers("web")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes other scopes through as they are."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun = False

        async def send_noting(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self._app(scope, receive, send_noting)
            return
        except GatewayError as error:
            told = error
        except Exception:
            self._log.exception("request_failed")
            told = internal()
        if begun:
            self._log.error("answer_broken", code=told.code)
            raise AnswerBroken from None  # the cause is logged; its message must not reach the server's own log
        await problem(told, request_id_of(scope))(scope, receive, send)


class TimeLimit:
    """Stops a request whose answer has not begun in time; an answer that has begun may stream as long as it likes."""

    def __init__(self, app: ASGIApp, seconds: float) -> None:
        self._app = app
        self._seconds = seconds
        self._deadlines: Deadlines | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Raises Unavailable; passes other scopes through as they are."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        deadlines, task = self._here()
        deadline = deadlines.begin(task)

        async def send_in_time(message: Message) -> None:
            deadlines.met(deadline)
            await send(message)

        try:
            await self._app(scope, receive, send_in_time)
        except asyncio.CancelledError:
            if deadlines.end(deadline):
                raise self._refusal() from None
            raise
        finally:
            deadlines.end(deadline)

    def _here(self) -> tuple[Deadlines, asyncio.Task[object]]:
        """The deadlines of the running loop; a server has one, a test client makes a new one for each request."""
        task = cast("asyncio.Task[object]", asyncio.current_task())  # a server runs each request in one
        loop = task.get_loop()
        if self._deadlines is None or self._deadlines.loop is not loop:
            self._deadlines = Deadlines(loop, self._seconds)
        return self._deadlines, task

    def _refusal(self) -> Unavailable:
        return Unavailable(f"This took over {self._seconds:g} s and was stopped; look before you repeat a write.")


class BodyLimit:
    """Refuses a body over the limit: before it is read where its length is declared, else as soon as it is too long."""

    def __init__(self, app: ASGIApp, limit_bytes: int) -> None:
        self._app = app
        self._limit = limit_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Raises TooLarge, also out of the app's `receive`; passes other scopes through as they are."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        for name, value in scope["headers"]:
            if name == b"content-length" and not self._fits(value):
                raise self._refusal()
        received = 0

        async def receive_within() -> Message:
            nonlocal received
            message = await receive()
            if message["type"] == "http.request":
                received += len(message.get("body", b""))
                if received > self._limit:
                    raise self._refusal()
            return message

        await self._app(scope, receive_within, send)

    def _fits(self, declared: bytes) -> bool:
        """Whether a declared length is one, and within the limit; the server has refused most that are none."""
        return declared.isdigit() and len(declared) <= 19 and int(declared) <= self._limit

    def _refusal(self) -> TooLarge:
        # The rest of the body is never read, so the connection can't be used for another request.
        return TooLarge(f"A request body may have {self._limit} bytes.", headers={"Connection": "close"})
