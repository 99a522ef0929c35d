"""What is odd about a request: methods, paths, bodies; each is answered by a problem document (interface)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import httpx2
import pytest
from starlette.types import Message

from tests.house import House


def is_problem(answer: httpx2.Response, status: int, code: str) -> bool:
    """Whether it is a whole problem document."""
    body = answer.json()
    return (
        answer.status_code == status == body["status"]
        and answer.headers["content-type"] == "application/problem+json"
        and body["code"] == code
        and body["request_id"] == answer.headers["x-request-id"]
        and answer.headers["cache-control"] == "no-store"
        and answer.headers["x-content-type-options"] == "nosniff"
        and bool(body["type"] and body["title"] and body["detail"])
    )


async def test_a_path_or_method_that_is_not_there_is_a_problem_document(home: House) -> None:
    """RFC 9110 sections 15.5.5 and 15.5.6; the same with and without a token."""
    for who in ("alice", None):
        assert is_problem(await home.get(who, "/v1/nothing"), 404, "not_found")
        assert is_problem(await home.get(who, "/v1/sessions/x/y/z"), 404, "not_found")
        wrong = await home.send(who, "PUT", "/v1/me")
        assert is_problem(wrong, 405, "method_not_allowed")
        assert "GET" in wrong.headers["allow"]
        assert (await home.send(who, "TRACE", "/v1/me")).status_code == 405
        assert is_problem(await home.get(who, "/v1/me/"), 404, "not_found")  # one spelling, and no redirect to it
    several = await home.send("alice", "PUT", "/v1/sessions/x")
    assert several.status_code == 405
    assert {"GET", "PATCH", "DELETE"} <= set(several.headers["allow"].replace(",", " ").split())


async def test_a_body_over_the_limit_is_refused(home: House) -> None:
    """Issue, "REST": body limit."""
    session = await home.open("alice")
    big = b'{"role": "user", "content": "' + b"x" * (1024 * 1024) + b'"}'
    answer = await home.send("alice", "POST", f"/v1/sessions/{session}/messages", content=big)
    assert is_problem(answer, 413, "too_large")
    assert (await home.get("alice", f"/v1/sessions/{session}/messages")).json()["items"] == []


async def test_a_body_is_json_whatever_it_says_of_itself(home: House) -> None:
    """Interface: JSON; a form is no JSON object, and a cross-site form post can't pass for one with a token."""
    session = await home.open("alice")
    for kind, content in (("application/x-www-form-urlencoded", b"role=user&content=x"), ("text/plain", b"hello")):
        answer = await home.send(
            "alice", "POST", f"/v1/sessions/{session}/messages", content=content, headers={"Content-Type": kind}
        )
        assert is_problem(answer, 422, "invalid")


async def test_head_is_get_without_its_body(home: House) -> None:
    """RFC 9110 section 9.3.2; asked and recorded like the GET."""
    session = await home.open("alice")
    head, get = [await home.send("alice", method, f"/v1/sessions/{session}") for method in ("HEAD", "GET")]
    refused = await home.send("bob", "HEAD", f"/v1/sessions/{session}")
    assert head.status_code == get.status_code == 200
    assert refused.status_code == 404


@pytest.mark.parametrize(
    "reference", ["%00", "..%2f", "%2e%2e", "%ff", "a" * 2000, "agent:flight:direct:", "ses_", "*"]
)
async def test_an_odd_reference_is_a_session_that_is_not_there(home: House, reference: str) -> None:
    """Interface: a session in a path is its key, percent-encoded, or its id."""
    mine = await home.open("alice")
    encoded = mine.replace(":", "%3A")
    assert (await home.get("alice", f"/v1/sessions/{encoded}")).json()["key"] == mine
    assert is_problem(await home.get("alice", f"/v1/sessions/{reference}"), 404, "not_found")
    assert (await home.get("alice", f"/v1/sessions/{mine.upper()}")).status_code == 404
    posted = await home.post("alice", f"/v1/sessions/{reference}/messages", {"role": "user", "content": "x"})
    assert posted.status_code == 404


async def test_the_public_routes_say_nothing_of_anybody(home: House) -> None:
    """Design section 10, operations."""
    await home.open("alice")
    for path in ("/livez", "/readyz", "/openapi.json"):
        answer = await home.get(None, path)
        assert answer.status_code == 200
        assert "prf_" not in answer.text.replace("prf_…", "")
    metrics = await home.get(None, "/metrics")
    assert metrics.status_code in (200, 404)
    assert home.id("alice") not in metrics.text


async def test_a_token_that_is_revoked_while_its_body_is_awaited_does_nothing(home: House) -> None:
    """Design section 7, freshness: whoever begins early gains nothing by sending slowly."""
    session = await home.open("alice")
    path = f"/v1/sessions/{session}/messages"
    (listed,) = (await home.get("alice", "/v1/me/tokens")).json()["items"]
    first, second = home.secrets["alice"], await home.token("alice")

    async def slow(secret: str, between: Callable[[], Awaitable[object]]) -> list[Message]:
        parts: list[Message] = [
            {"type": "http.request", "body": b'{"role": "user", "content": "slow"}', "more_body": False}
        ]
        sent: list[Message] = []

        async def receive() -> Message:
            await between()
            return parts.pop(0)

        async def send(message: Message) -> None:
            sent.append(message)

        headers = [(b"authorization", f"Bearer {secret}".encode())]
        scope = {"type": "http", "method": "POST", "path": path, "query_string": b"", "headers": headers}
        await home.app(scope, receive, send)
        return sent

    async def revoke() -> None:
        answer = await home.send("alice", "DELETE", f"/v1/me/tokens/{listed['id']}")
        assert answer.status_code == 204

    home.secrets["alice"] = second
    refused = await slow(first, revoke)
    taken = await slow(second, lambda: home.get("bob", "/v1/me"))

    assert (refused[0]["status"], taken[0]["status"]) == (401, 201)
    assert not any(name == b"gateway-epoch" for name, _ in refused[0]["headers"])
    assert len((await home.get("alice", path)).json()["items"]) == 1


async def test_a_caller_who_goes_away_in_the_middle_changes_nothing(home: House) -> None:
    """Design section 12: half a body is no body."""
    session = await home.open("alice")
    parts: list[Message] = [
        {"type": "http.request", "body": b'{"role": "user", "content": "half', "more_body": True},
        {"type": "http.disconnect"},
    ]
    sent: list[Message] = []
    scope = {
        "type": "http",
        "method": "POST",
        "path": f"/v1/sessions/{session}/messages",
        "query_string": b"",
        "headers": [(b"authorization", f"Bearer {home.secrets['alice']}".encode())],
    }

    async def receive() -> Message:
        return parts.pop(0)

    async def send(message: Message) -> None:
        sent.append(message)

    await home.app(scope, receive, send)

    assert sent[0]["status"] == 422
    assert (await home.get("alice", f"/v1/sessions/{session}/messages")).json()["items"] == []
