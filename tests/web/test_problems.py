"""Turns every error of the tree into a problem document and reads it back over HTTP (RFC 9457; interface)."""

from __future__ import annotations

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, WebSocketRoute
from starlette.types import Message
from starlette.websockets import WebSocket

from gateway import errors
from gateway.errors import Fault, GatewayError
from gateway.settings import Settings
from gateway.web.middleware import with_edge
from tests.clock import SettableClock
from tests.conftest import LogCapture

FAULTS = [
    Fault(field="text", rule="mode", message="unknown mode", line=3, column=7),
    Fault(field="name", rule="missing", message="is required"),
]
EVERY = {
    errors.Unauthenticated("Show a token.", reason="none"): (401, "unauthenticated"),
    errors.ToolNotAllowed("Your roles lack it."): (403, "tool_not_allowed"),
    errors.NotFound(): (404, "not_found"),
    errors.Conflict("The base is old.", facts={"version": 4}): (409, "conflict"),
    errors.PreconditionFailed("It changed.", current="ab12"): (412, "precondition_failed"),
    errors.TooLarge("Too long."): (413, "too_large"),
    errors.Invalid(FAULTS): (422, "invalid"),
    errors.PreconditionRequired("Say which."): (428, "precondition_required"),
    errors.RateLimited("Slow down.", headers={"Retry-After": "9"}): (429, "rate_limited"),
    errors.Unavailable("The store is away.", retry_after_s=2): (503, "unavailable"),
}


@pytest.fixture
def client(settings: Settings, clock: SettableClock, logs: LogCapture) -> httpx2.AsyncClient:
    """An app whose only route raises what the test puts into `app.state.raises`."""

    async def raising(request: Request) -> Response:
        raise request.app.state.raises

    app = with_edge(Starlette(routes=[Route("/raise", raising)]), settings.server, clock, logs.loggers)
    client = httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://gateway")
    client.raising = app.state  # type: ignore[attr-defined] # the test's way to say what is raised
    return client


async def raised(client: httpx2.AsyncClient, error: Exception) -> httpx2.Response:
    client.raising.raises = error  # type: ignore[attr-defined] # see the fixture
    return await client.get("/raise")


def test_every_error_of_the_tree_is_in_these_tests() -> None:
    """Style 8: a new error can't be without its document."""
    assert {type(error) for error in EVERY} == set(GatewayError.__subclasses__()) - {
        one for one in GatewayError.__subclasses__() if one.__module__ != errors.__name__
    }


@pytest.mark.parametrize("error", EVERY, ids=lambda error: type(error).__name__)
async def test_an_error_is_told_as_the_interface_says(client: httpx2.AsyncClient, error: GatewayError) -> None:
    """Interface, "Conventions": status, code, fields, X-Request-ID, no-store, and the error's own headers."""
    status, code = EVERY[error]

    answer = await raised(client, error)

    body = answer.json()
    assert answer.status_code == body["status"] == status
    assert body["code"] == code
    assert body["type"] == f"urn:gateway:problem:{code}"
    assert (body["title"], body["detail"]) == (error.title, error.detail)
    assert body["request_id"] == answer.headers["X-Request-ID"]
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert answer.headers["Cache-Control"] == "no-store"
    assert set(body) >= {"type", "title", "status", "detail", "code", "request_id", "errors"}
    for name, value in error.headers.items():
        assert answer.headers[name] == value


async def test_a_credential_that_was_sent_and_is_not_good_is_named_in_the_challenge(client: httpx2.AsyncClient) -> None:
    """RFC 6750 section 3.1: no error code where none was sent, `invalid_token` where one was."""
    none = await raised(client, errors.Unauthenticated("Show a token.", reason="none"))
    bad = await raised(client, errors.Unauthenticated("Not good.", reason="expired", error="invalid_token"))

    assert none.headers["WWW-Authenticate"] == 'Bearer realm="gateway"'
    assert bad.headers["WWW-Authenticate"] == 'Bearer realm="gateway", error="invalid_token"'
    assert "expired" not in bad.text


async def test_what_an_error_knows_besides_is_in_its_document(client: httpx2.AsyncClient) -> None:
    """Interface: each fault with its place, the current hash of a stale write, the facts of a conflict."""
    faults = (await raised(client, errors.Invalid(FAULTS))).json()["errors"]
    stale = (await raised(client, errors.PreconditionFailed("It changed.", current="ab12"))).json()
    gone = (await raised(client, errors.PreconditionFailed("It is gone.", current=None))).json()
    conflict = (await raised(client, errors.Conflict("The base is old.", facts={"version": 4}))).json()
    plain = (await raised(client, errors.Conflict("It is archived."))).json()

    assert faults == [
        {"field": "text", "rule": "mode", "message": "unknown mode", "line": 3, "column": 7},
        {"field": "name", "rule": "missing", "message": "is required"},
    ]
    assert (stale["current"], gone["current"]) == ("ab12", None)
    assert conflict["facts"] == {"version": 4}
    assert "facts" not in plain
    assert "current" not in plain


async def test_missing_and_not_yours_and_no_route_are_the_same_bytes(client: httpx2.AsyncClient) -> None:
    """Design section 7: denied looks like missing, in status, headers and body, but for the request's id."""
    answers = [
        await raised(client, errors.NotFound()),
        await raised(client, errors.NotFound()),
        await raised(client, HTTPException(404, "session of alice")),
        await client.get("/nowhere"),
    ]

    seen = set()
    for answer in answers:
        request_id = answer.headers["X-Request-ID"]
        headers = [(name, value) for name, value in answer.headers.raw if name != b"x-request-id"]
        seen.add((answer.status_code, tuple(headers), answer.content.replace(request_id.encode(), b"-")))
    assert len(seen) == 1
    assert len({answer.headers["X-Request-ID"] for answer in answers}) == 4


async def test_a_wrong_method_says_which_are_right(client: httpx2.AsyncClient) -> None:
    """RFC 9110 section 15.5.6: a 405 carries Allow."""
    answer = await client.delete("/raise")

    assert answer.status_code == answer.json()["status"] == 405
    assert answer.json()["code"] == "method_not_allowed"
    assert set(answer.headers["Allow"].split(", ")) == {"GET", "HEAD"}


@pytest.mark.parametrize(
    ("status", "told", "code"),
    [
        (400, 422, "invalid"),
        (413, 413, "too_large"),
        (418, 422, "invalid"),
        (503, 503, "unavailable"),
        (502, 500, "internal"),
    ],
)
async def test_what_starlette_raises_becomes_one_of_our_codes(
    client: httpx2.AsyncClient, status: int, told: int, code: str
) -> None:
    """Ours: one list of codes for callers; a library's text may quote the request and is not repeated."""
    answer = await raised(client, HTTPException(status, "alice"))

    assert (answer.status_code, answer.json()["code"]) == (told, code)
    assert "alice" not in answer.text


async def test_a_failure_that_nobody_foresaw_tells_nothing_and_is_logged(
    client: httpx2.AsyncClient, logs: LogCapture
) -> None:
    """Design section 12: a 500 without details; the operator finds it by the request's id."""
    answer = await raised(client, ValueError("alice@example.test at /srv/state"))

    body = answer.json()
    assert (answer.status_code, body["code"], body["errors"]) == (500, "internal", [])
    assert "alice" not in answer.text
    assert answer.headers["Cache-Control"] == "no-store"
    [line] = logs.lines
    assert (line["event"], line["failure"]) == ("request_failed", ["builtins.ValueError"])
    assert line["request"] == body["request_id"]
    assert "alice" not in logs.text


async def test_outside_of_http_an_error_stays_an_error(
    settings: Settings, clock: SettableClock, logs: LogCapture
) -> None:
    """Ours: a problem document is an HTTP answer; on a WebSocket the server closes instead."""

    async def raising(websocket: WebSocket) -> None:
        raise errors.NotFound

    app = with_edge(Starlette(routes=[WebSocketRoute("/socket", raising)]), settings.server, clock, logs.loggers)
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "websocket.connect"}

    async def send(message: Message) -> None:
        sent.append(message)

    with pytest.raises(errors.NotFound):
        await app({"type": "websocket", "path": "/socket", "headers": []}, receive, send)
    assert sent == []
