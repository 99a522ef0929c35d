"""A runtime with a turn token, end to end: the tools of its session as the person, and nothing else (design 5.5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest_asyncio

from gateway.errors import NotFound
from tests.clock import SettableClock
from tests.house import House

ELSEWHERE = "turn_token_elsewhere"


@dataclass
class Runtime:
    """An agent's runtime: it asks for a person's context, and then works with the turn token that came with it."""

    home: House
    token: str
    turn: str

    @property
    def headers(self) -> dict[str, str]:
        """What it presents."""
        return {"Authorization": f"Bearer {self.token}"}

    async def send(self, method: str, path: str, body: object = None, **headers: str) -> httpx2.Response:
        """A request of its own."""
        return await self.home.send(None, method, path, body, headers=self.headers | headers)

    async def tool(self, session: str, name: str, arguments: Mapping[str, Any], **headers: str) -> httpx2.Response:
        """A tool call from inside a session."""
        return await self.send("POST", f"/v1/sessions/{session}/tools/{name}", arguments, **headers)

    async def say(self, session: str, role: str, content: str = "Hello", **headers: str) -> httpx2.Response:
        """A message."""
        return await self.send(
            "POST", f"/v1/sessions/{session}/messages", {"role": role, "content": content}, **headers
        )


async def begin(home: House, who: str, session: str, **body: Any) -> Runtime:
    """A turn of somebody's in a session."""
    answer = await home.post(who, f"/v1/sessions/{session}/context", {"turn_token": True, **body})
    assert answer.status_code == 200, answer.text
    token = answer.json()["turn_token"]
    assert token.startswith("gwt_")
    assert answer.headers["cache-control"] == "no-store"
    noted = [one.record.details["turn"] for one in await home.audit(action="enter") if "turn" in one.record.details]
    return Runtime(home, token, str(noted[-1]))


@pytest_asyncio.fixture
async def mine(home: House) -> str:
    """Alice's private session."""
    return await home.open("alice")


async def refused(home: House, answer: httpx2.Response, status: int) -> None:
    """Refused, with its reason in the audit and nothing in the answer that another refusal does not say."""
    assert answer.status_code == status, answer.text
    codes = [one.record.code for one in await home.audit(decision=answer.headers["gateway-decision"])]
    assert ELSEWHERE in codes
    if status == 404:
        assert answer.json()["detail"] == NotFound.DETAIL


async def test_a_runtime_calls_tools_with_the_persons_rights(home: House, mine: str, clock: SettableClock) -> None:
    """Design section 5.5, and the audit says which turn it was."""
    plain = await home.post("alice", f"/v1/sessions/{mine}/context", {})
    assert "turn_token" not in plain.json()
    answer = await home.post("alice", f"/v1/sessions/{mine}/context", {"turn_token": True})
    assert answer.json()["turn_token_expires_at"] == "2026-12-01T09:15:00Z"

    runtime = await begin(home, "alice", mine)
    called = await runtime.tool(mine, "session_status", {})

    assert called.json()["result"]["key"] == mine
    last = (await home.audit(kind="access"))[-1].record
    assert (last.profile, last.principal) == (home.id("alice"), f"turn_token:{runtime.turn}")
    clock.advance(15 * 60)
    await home.gateway.epochs.poll()
    assert (await runtime.tool(mine, "session_status", {})).status_code == 401


async def test_another_session_looks_missing(home: House, mine: str) -> None:
    """Also the person's own other ones, and one that is not there: the same bytes."""
    other = await home.open("alice", "group", participants=[home.id("bob")])
    theirs = await home.open("bob")
    runtime = await begin(home, "alice", mine)

    answers = [await runtime.tool(one, "session_status", {}) for one in (other, theirs, "agent:flight:direct:nobody")]

    for answer in answers:
        await refused(home, answer, 404)
        assert answer.json() | {"request_id": ""} == answers[0].json() | {"request_id": ""}
    assert (await home.tool("alice", other, "session_status")).status_code == 200
    assert (await runtime.tool(mine, "session_status", {})).status_code == 200


async def test_a_reset_ends_the_token(home: House, mine: str) -> None:
    """The incarnation is part of what it is bound to."""
    runtime = await begin(home, "alice", mine)
    assert (await runtime.say(mine, "assistant")).status_code == 201

    assert (await home.post("alice", f"/v1/sessions/{mine}/reset")).status_code == 200

    await refused(home, await runtime.tool(mine, "session_status", {}), 404)
    await refused(home, await runtime.say(mine, "assistant"), 404)
    assert (await home.get("alice", f"/v1/sessions/{mine}/messages")).json()["items"] == []
    assert (await (await begin(home, "alice", mine)).tool(mine, "session_status", {})).status_code == 200
