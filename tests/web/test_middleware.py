"""Turns requests at their limits into problems, and leaves streams, context and other scopes alone."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from contextvars import ContextVar

import pytest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.errors import Unavailable
from gateway.logs import REQUEST
from gateway.settings import Server
from gateway.web.middleware import AnswerBroken, Edge
from gateway.web.request_ids import request_id_of
from tests.clock import SettableClock
from tests.conftest import LogCapture

SERVER = Server(body_limit_bytes=1024, request_timeout_s=0.02)
Wrap = Callable[[ASGIApp], ASGIApp]


@pytest.fixture
def behind_edge(clock: SettableClock, logs: LogCapture) -> Wrap:
    """Puts an app behind the edge."""

    def wrapped(app: ASGIApp) -> ASGIApp:
        return Edge(app, SERVER, clock, logs.loggers)

    return wrapped


class Answer:
    """What an app sent, message by message."""

    def __init__(self) -> None:
        self.messages: list[Message] = []

    async def send(self, message: Message) -> None:
        self.messages.append(message)

    @property
    def status(self) -> int:
        return int(self.messages[0]["status"])

    @property
    def headers(self) -> list[tuple[bytes, bytes]]:
        return list(self.messages[0]["headers"])

    def values(self, name: bytes) -> list[bytes]:
        return [value for key, value in self.headers if key == name]

    @property
    def body(self) -> bytes:
        return b"".join(message.get("body", b"") for message in self.messages[1:])


def http(*headers: tuple[bytes, bytes], path: str = "/") -> Scope:
    return {"type": "http", "method": "POST", "path": path, "headers": list(headers)}


def chunks(*parts: bytes) -> Receive:
    waiting = [{"type": "http.request", "body": part, "more_body": True} for part in parts]
    waiting.append({"type": "http.request", "body": b"", "more_body": False})

    async def receive() -> Message:
        return waiting.pop(0) if waiting else {"type": "http.disconnect"}

    return receive


async def called(app: ASGIApp, scope: Scope | None = None, receive: Receive | None = None) -> Answer:
    answer = Answer()
    async with asyncio.timeout(5):
        await app(scope or http(), receive or chunks(), answer.send)
    return answer


async def running(app: ASGIApp, answer: Answer) -> None:
    await app(http(), chunks(), answer.send)


async def begin(send: Send, *headers: tuple[bytes, bytes]) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": headers})


async def end(send: Send, body: bytes = b"") -> None:
    await send({"type": "http.response.body", "body": body})


async def reading(scope: Scope, receive: Receive, send: Send) -> None:
    size, more = 0, True
    while more:
        message = await receive()
        size += len(message["body"])
        more = message["more_body"]
    await begin(send)
    await end(send, str(size).encode())


async def test_every_request_has_an_id_of_ours_whatever_the_caller_sent(behind_edge: Wrap, logs: LogCapture) -> None:
    """ASVS 5.0 V4.1.3: an id from outside could be made equal to another request's; it is told in the log alone."""
    seen: list[str] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(request_id_of(scope))
        logs.loggers("app").info("asked")
        await reading(scope, receive, send)

    theirs = [b"req_01JDZZZZZZZZZZZZZZZZZZZZZZ", b"a b", b"gwp_" + b"x" * 40]
    answers = [await called(behind_edge(app), http((b"x-request-id", one))) for one in theirs]
    answers.append(await called(behind_edge(app), http((b"x-request-id", b"one"), (b"x-request-id", b"two"))))

    ids = [answer.values(b"x-request-id") for answer in answers]
    assert ids == [[one.encode()] for one in seen]
    assert len(set(seen)) == 4
    assert all(re.fullmatch(r"req_[0-9A-HJKMNP-TV-Z]{26}", one) for one in seen)
    assert [line["request"] for line in logs.lines] == seen
    assert [line.get("caller_request") for line in logs.lines] == [theirs[0].decode(), None, "(secret)", None]
    assert REQUEST.get() is None


async def test_answers_are_not_kept_and_not_guessed_at_unless_the_app_says_so(behind_edge: Wrap) -> None:
    """Interface: content carries `no-store`; a static file may say otherwise."""

    async def cached(scope: Scope, receive: Receive, send: Send) -> None:
        await begin(send, (b"cache-control", b"max-age=60"))
        await end(send)

    plain, static = await called(behind_edge(reading)), await called(behind_edge(cached))

    assert (plain.values(b"cache-control"), plain.values(b"x-content-type-options")) == ([b"no-store"], [b"nosniff"])
    assert (static.values(b"cache-control"), static.values(b"x-content-type-options")) == (
        [b"max-age=60"],
        [b"nosniff"],
    )


async def test_a_body_up_to_the_limit_is_read_and_one_byte_more_is_refused(behind_edge: Wrap) -> None:
    """Issue 2: body limit. Declared, streamed in pieces without a length, and declared smaller than it is."""
    app = behind_edge(reading)

    whole = await called(app, http((b"content-length", b"1024")), chunks(b"x" * 1024))
    pieces = await called(app, http(), chunks(b"x" * 512, b"x" * 512))
    declared = await called(app, http((b"content-length", b"1025")), unread())
    streamed = await called(app, http((b"transfer-encoding", b"chunked")), chunks(*[b"x" * 205] * 5))
    lied = await called(app, http((b"content-length", b"10")), chunks(b"x" * 1025))

    assert [whole.body, pieces.body] == [b"1024", b"1024"]
    for refused in (declared, streamed, lied):
        assert refused.status == 413
        assert b'"code":"too_large"' in refused.body
        assert refused.values(b"connection") == [b"close"]
        assert refused.values(b"content-type") == [b"application/problem+json"]


@pytest.mark.parametrize("length", [b"-1", b"1e3", b"", b"+5", b"\xb2", b"9" * 5000])
async def test_a_length_that_is_none_is_refused_before_anything_is_read(behind_edge: Wrap, length: bytes) -> None:
    """RFC 9110 section 8.6: digits only; a server that lets another through must not switch the limit off."""
    refused = await called(behind_edge(reading), http((b"content-length", length)), unread())

    assert refused.status == 413


def unread() -> Receive:
    async def receive() -> Message:
        raise AssertionError("the body was read")

    return receive


async def test_a_caller_who_leaves_is_told_to_the_app(behind_edge: Wrap) -> None:
    """ASGI: only request messages carry a body; a disconnect passes the limit as it is."""
    seen: list[str] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.extend([(await receive())["type"], (await receive())["type"]])
        await begin(send)
        await end(send)

    await called(behind_edge(app))

    assert seen == ["http.request", "http.disconnect"]


async def test_a_request_without_an_answer_in_time_is_stopped(behind_edge: Wrap, logs: LogCapture) -> None:
    """Issue 2: timeouts. The app is cancelled, and the caller is told to try again."""
    ended: list[str] = []

    async def stuck(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cancelled")

    answer = await called(behind_edge(stuck))

    assert answer.status == 503
    assert b'"code":"unavailable"' in answer.body
    assert answer.values(b"retry-after") == [b"1"]
    assert ended == ["cancelled"]
    assert asyncio.current_task().cancelling() == 0  # type: ignore[union-attr] # a test runs in a task
    assert logs.lines == []


async def test_an_answer_that_has_begun_may_stream_past_the_limit(behind_edge: Wrap) -> None:
    """Interface: chat answers stream; the limit is on the first byte."""
    late = asyncio.Event()

    async def streaming(scope: Scope, receive: Receive, send: Send) -> None:
        await begin(send)
        asyncio.get_running_loop().call_later(3 * SERVER.request_timeout_s, late.set)
        await late.wait()
        await end(send, b"late")

    answer = await called(behind_edge(streaming))

    assert (answer.status, answer.body) == (200, b"late")


async def test_many_requests_each_have_their_own_deadline(behind_edge: Wrap) -> None:
    """Ours: one timer serves all; the slow ones are stopped and the quick ones are not touched."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] == "/slow":
            await asyncio.Event().wait()
        await reading(scope, receive, send)

    whole = behind_edge(app)
    paths = ["/slow", "/quick"] * 20

    answers = await asyncio.gather(*(called(whole, http(path=path)) for path in paths))
    again = await called(whole, http(path="/slow"))

    assert [answer.status for answer in answers] == [503, 200] * 20
    assert again.status == 503


async def test_a_cancellation_from_outside_is_passed_on_and_not_answered(behind_edge: Wrap) -> None:
    """Ours: a server that shuts down cancels requests; only our own deadline becomes a 503."""
    started = asyncio.Event()
    answer = Answer()

    async def stuck(scope: Scope, receive: Receive, send: Send) -> None:
        started.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(running(behind_edge(stuck), answer))
    await started.wait()
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert answer.messages == []


async def test_a_deadline_and_a_shutdown_at_once_are_a_shutdown(behind_edge: Wrap) -> None:
    """asyncio.timeout's own rule: a cancellation from outside is never swallowed by ours."""
    answer = Answer()

    async def stuck(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            task.cancel()

    task = asyncio.create_task(running(behind_edge(stuck), answer))

    with pytest.raises(asyncio.CancelledError):
        await task
    assert answer.messages == []


async def test_an_app_that_answers_although_it_was_stopped_is_heard(behind_edge: Wrap) -> None:
    """Ours: what was answered stands, and no cancellation is left behind in the task."""

    async def stubborn(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await begin(send)
            await end(send, b"done")

    answer = await called(behind_edge(stubborn))

    assert answer.body == b"done"
    assert asyncio.current_task().cancelling() == 0  # type: ignore[union-attr] # a test runs in a task


def test_one_app_serves_one_loop_after_another(behind_edge: Wrap) -> None:
    """Ours: a test client, and a server that restarts its loop, find their own deadlines."""

    async def stuck(scope: Scope, receive: Receive, send: Send) -> None:
        await asyncio.Event().wait()

    app = behind_edge(stuck)

    for _ in range(2):
        assert asyncio.run(called(app)).status == 503


async def test_the_apps_own_timeout_is_a_failure_and_not_ours(behind_edge: Wrap, logs: LogCapture) -> None:
    """Ours: a TimeoutError from below that nobody mapped is a fault to be seen."""

    async def failing(scope: Scope, receive: Receive, send: Send) -> None:
        raise TimeoutError

    answer = await called(behind_edge(failing))

    assert answer.status == 500
    assert [line["event"] for line in logs.lines] == ["request_failed"]


@pytest.mark.parametrize("error", [ValueError("alice"), Unavailable("The store went away.")])
async def test_an_answer_that_fails_half_way_is_broken_off(
    behind_edge: Wrap, logs: LogCapture, error: Exception
) -> None:
    """Design section 12: a failure never looks like a whole result; and its text does not reach the server's log."""

    async def failing(scope: Scope, receive: Receive, send: Send) -> None:
        await begin(send)
        raise error

    answer = Answer()
    with pytest.raises(AnswerBroken) as caught:
        await behind_edge(failing)(http(), chunks(), answer.send)

    assert [message["type"] for message in answer.messages] == ["http.response.start"]
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__
    assert logs.lines[-1]["event"] == "answer_broken"
    assert "alice" not in logs.text


async def test_what_the_app_sets_in_its_context_is_seen_by_whoever_called(behind_edge: Wrap) -> None:
    """Starlette's docs: BaseHTTPMiddleware loses context variables; pure ASGI keeps them."""
    word: ContextVar[str] = ContextVar("word", default="before")

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        word.set("after")
        await reading(scope, receive, send)

    await called(behind_edge(app))

    assert word.get() == "after"


async def test_a_stream_arrives_piece_by_piece(behind_edge: Wrap) -> None:
    """Ours: nothing collects an answer; each piece is sent before the next one is made."""
    answer = Answer()
    counts: list[int] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await begin(send)
        for piece in (b"a", b"b", b"c"):
            await send({"type": "http.response.body", "body": piece, "more_body": True})
            counts.append(len(answer.messages))
        await end(send)

    await behind_edge(app)(http(), chunks(), answer.send)

    assert counts == [2, 3, 4]


@pytest.mark.parametrize("kind", ["http", "websocket"])
async def test_what_a_guard_takes_away_no_app_and_no_log_line_sees(
    clock: SettableClock, logs: LogCapture, kind: str
) -> None:
    """Design section 5.3: a proxy's header is stripped before anything else looks, by the peer of the connection."""
    sent = [(b"x-user", b"alice"), (b"x-request-id", b"theirs")]
    asked: list[str | None] = []
    seen: list[list[tuple[bytes, bytes]]] = []

    def guard(headers: Sequence[tuple[bytes, bytes]], peer: str | None) -> Sequence[tuple[bytes, bytes]]:
        asked.append(peer)
        return headers if peer == "192.0.2.10" else []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(scope["headers"])
        logs.loggers("test").info("looked")
        await begin(send)
        await end(send)

    for client in (("192.0.2.10", 1), ("192.0.2.11", 1), None, ...):
        scope: Scope = {"type": kind, "path": "/", "headers": sent}
        if client is not ...:
            scope["client"] = client
        await called(Edge(app, SERVER, clock, logs.loggers, guard), scope)

    assert asked == ["192.0.2.10", "192.0.2.11", None, None]
    assert seen == [sent, [], [], []]
    told = [line.get("caller_request") for line in logs.lines if line["event"] == "looked"]
    assert told == ([None] * 4 if kind == "websocket" else ["theirs", None, None, None])


async def test_a_guard_is_not_asked_where_there_are_no_headers(clock: SettableClock, logs: LogCapture) -> None:
    """ASGI: a lifespan scope has none."""

    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        await begin(send)

    def guard(*_: object) -> Sequence[tuple[bytes, bytes]]:
        raise AssertionError("nobody called")

    assert (await called(Edge(app, SERVER, clock, logs.loggers, guard), {"type": "lifespan"})).status == 200


@pytest.mark.parametrize("kind", ["websocket", "lifespan"])
async def test_other_scopes_pass_as_they_are(behind_edge: Wrap, kind: str) -> None:
    """Issue 2 asks for pure ASGI: the very scope, receive and send arrive, and what is raised is passed on."""
    scope: Scope = {"type": kind}
    receive, answer = chunks(), Answer()
    seen: list[tuple[object, object, object]] = []
    app_send: Callable[[Message], Awaitable[None]] = answer.send

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append((scope, receive, send))
        if len(seen) == 2:
            raise ValueError

    await behind_edge(app)(scope, receive, app_send)
    with pytest.raises(ValueError):
        await behind_edge(app)(scope, receive, app_send)

    for got_scope, got_receive, got_send in seen:
        assert got_scope is scope
        assert got_receive is receive
        assert got_send is app_send
    assert scope == {"type": kind}
