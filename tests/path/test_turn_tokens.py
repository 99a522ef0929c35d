"""A runtime with a turn token, end to end: the tools of its session as the person, and nothing else (design 5.5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import httpx2
import pytest_asyncio

from gateway.errors import NotFound
from gateway.identity.refusals import NOT_VALID
from gateway.model import AgentName
from tests.clock import SettableClock
from tests.conftest import LogCapture
from tests.house import House
from tests.path.examples import examples

ELSEWHERE = "turn_token_elsewhere"
FOR_RUNTIMES = ("/v1/sessions/{session}/messages", "/v1/sessions/{session}/tools/{tool}")


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


# ── nothing else ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_only_tools_and_messages_are_for_runtimes(home: House) -> None:
    """The catalogue, walked: what somebody adds is refused to turn tokens until it says otherwise."""
    catalogue = home.gateway.catalogue
    tools = {id(operation) for tool in catalogue.tools.all() for operation in tool.operations}

    for operation in catalogue.all():
        expected = id(operation) in tools or operation.name == "messages.post"
        assert operation.by_turn_token is expected, operation.name


async def test_a_turn_token_of_an_owner_gets_nowhere_else(home: House, logs: LogCapture) -> None:
    """Every route, with the rights of somebody who may do nearly all of it; and nothing is changed by asking."""
    await home.add("wanda", "owner", "member")
    mine = await home.open("wanda")
    runtime = await begin(home, "wanda", mine)
    words = {"session": mine, "agent": "flight", "profile": home.id("bob"), "version": "1", "token": "tok_1"}
    before = await _state(home)

    for example in examples(home, logs.loggers, **words):
        path = example.endpoint.path
        if example.endpoint.method == "POST" and path in FOR_RUNTIMES:
            continue
        answer = await runtime.send(example.endpoint.method, example.path, example.body, **example.headers)
        await refused(home, answer, 403)
        assert answer.json()["code"] == "tool_not_allowed", path
        assert "credential of your own" in answer.json()["detail"]

    assert await _state(home) == before


async def _state(home: House) -> tuple[object, ...]:
    """What an operation could have changed."""
    tokens = [await home.gateway.stores.identities.tokens(home.tenant, home.id(name)) for name in home.people]
    people = await home.gateway.stores.identities.people(home.tenant, limit=200, cursor=None)
    agents = await home.gateway.stores.agents.all(home.tenant)
    policy = await home.gateway.stores.policies.current(home.tenant)
    sessions = (await home.get("wanda", "/v1/sessions")).json()["items"]
    return tokens, people, agents, policy, sessions


async def test_it_makes_no_other_credential(home: House, mine: str) -> None:
    """Design section 5.5: it can mint nothing, also beside a service that may."""
    runtime = await begin(home, "alice", mine)
    await home.add("robot", "connector", kind="service")
    for extra in ({}, {"Gateway-Turn-Token": runtime.token, "Authorization": f"Bearer {home.secrets['robot']}"}):
        for path, body in (
            (f"/v1/sessions/{mine}/context", {"turn_token": True}),
            ("/v1/me/tokens", {"name": "kept", "expires_in_days": 1}),
        ):
            answer = await runtime.send("POST", path, body, **extra)
            await refused(home, answer, 403)
            assert "gwt_" not in answer.text
            assert "gwp_" not in answer.text
    assert (await home.post("alice", "/v1/me/tokens", {"name": "kept", "expires_in_days": 1})).status_code == 201


async def test_a_service_carries_it_in_a_header_of_its_own(home: House, mine: str) -> None:
    """Design section 5: the one allowed pair; the service's own rights count for nothing."""
    await home.add("robot", kind="service")
    runtime = await begin(home, "alice", mine)
    service = {"Authorization": f"Bearer {home.secrets['robot']}"}

    path = f"/v1/sessions/{mine}/tools/session_status"
    token = {"Gateway-Turn-Token": runtime.token}
    bob = {"Authorization": f"Bearer {home.secrets['bob']}"}

    alone = await home.tool("robot", mine, "session_status")
    carried = await home.send(None, "POST", path, {}, headers=service | token)
    headed = await home.send(None, "POST", path, {}, headers=token)
    other = await home.send(None, "POST", path, {}, headers=bob | token)
    two = await home.send(None, "POST", path, {}, headers=runtime.headers | token)

    assert alone.status_code == 403
    assert carried.json()["result"]["key"] == mine
    assert headed.json()["result"]["key"] == mine
    assert (other.status_code, two.status_code) == (401, 401)


# ── tools as the person ──────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_tool_that_names_another_session_is_decided_as_the_person(home: House, mine: str) -> None:
    """From inside the bound session, as ever: one's own group can be read, a colleague's session can't."""
    group = await home.open("alice", "group", participants=[home.id("bob")])
    theirs = await home.open("bob")
    await home.say("alice", group, "Gate 4")
    runtime = await begin(home, "alice", mine)

    own = await runtime.tool(mine, "sessions_history", {"sessionKey": group})
    other = await runtime.tool(mine, "sessions_history", {"sessionKey": theirs})
    missing = await runtime.tool(mine, "sessions_history", {"sessionKey": "agent:flight:direct:nobody"})
    listed = await runtime.tool(mine, "sessions_list", {})

    assert "Gate 4" in own.text
    assert other.status_code == missing.status_code
    assert theirs not in listed.text
    assert {mine, group} <= {one["key"] for one in listed.json()["result"]["sessions"]}


async def test_it_carries_no_more_than_its_credential(home: House, mine: str) -> None:
    """Design section 5.5: the scopes of the credential."""
    home.secrets["narrow"] = await home.token("alice", scopes=["session"])
    runtime = await begin(home, "narrow", mine)

    assert (await runtime.tool(mine, "session_status", {})).status_code == 200
    assert (await runtime.tool(mine, "memory_get", {"path": "USER.md"})).status_code == 403


async def test_its_tools_see_no_more_than_its_context(home: House, mine: str) -> None:
    """A turn that was said to be a group's reads no MEMORY.md through a tool either (design section 6)."""
    (home.workspace().root / "flight" / "MEMORY.md").write_text("The code is 7.", encoding="utf-8")
    runtime = await begin(home, "alice", mine)
    narrowed = await begin(home, "alice", mine, turn={"kind": "group"})

    assert "The code is 7." in (await runtime.tool(mine, "memory_get", {"path": "MEMORY.md"})).text
    assert (await narrowed.tool(mine, "memory_get", {"path": "MEMORY.md"})).json()["result"]["status"] == "not_found"


async def test_personal_instructions_are_saved_with_everything_asked_again(home: House, mine: str) -> None:
    """The turn is verified once more under the lock, as a person's own credential is."""
    runtime = await begin(home, "alice", mine)
    saved = await runtime.tool(
        mine, "personal_instructions", {"action": "set", "content": "Briefly.", "expectedHash": None}
    )
    assert saved.json()["result"]["status"] == "ok"
    assert (await home.get("alice", "/v1/agents/flight/personal-instructions")).json()["content"] == "Briefly."


async def test_a_child_can_be_spawned_from_it(home: House, mine: str) -> None:
    """Its task is the agent's words: no person is said to have typed it."""
    runtime = await begin(home, "alice", mine)
    spawned = await runtime.tool(mine, "sessions_spawn", {"task": "Find gate 4."})
    key = spawned.json()["result"]["childSessionKey"]

    messages = (await home.get("alice", f"/v1/sessions/{key}/messages")).json()["items"]
    assert [(one["role"], one["name"], one["sender"]) for one in messages] == [("user", "flight", None)]
    await refused(home, await runtime.tool(key, "session_status", {}), 404)


async def test_a_note_of_a_runtime_is_the_agents(home: House, mine: str, clock: SettableClock) -> None:
    """Design section 9: `person` is what an authenticated person typed."""
    runtime = await begin(home, "alice", mine)
    await home.tool("alice", mine, "memory_append", scope="personal", text="Typed.")
    clock.advance(1)
    await runtime.tool(mine, "memory_append", {"scope": "personal", "text": "Gathered."})
    clock.advance(1)
    await runtime.tool(mine, "memory_append", {"scope": "personal", "text": "Read."}, **TAINTED)

    path = f"users/{home.id('alice')}/memory/2026-12-01.md"
    notes = await home.gateway.stores.notes.of_path(home.tenant, AgentName("flight"), path)
    assert [one.provenance for one in notes] == ["person", "agent", "untrusted"]


# ── messages ─────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_person_writes_as_user_and_a_runtime_as_anything_else(home: House, mine: str) -> None:
    """Design section 6; what is refused is not written."""
    runtime = await begin(home, "alice", mine)
    for role in ("assistant", "system", "tool"):
        assert (await runtime.say(mine, role)).status_code == 201
        own = await home.post("alice", f"/v1/sessions/{mine}/messages", {"role": role, "content": "x"})
        assert (own.status_code, own.json()["errors"][0]["rule"]) == (422, "user_only")
    for role in ("user", "User", "developer", ""):
        answer = await runtime.say(mine, role)
        assert answer.status_code == 422
    assert (await runtime.say(mine, "user")).json()["errors"][0]["rule"] == "runtime_only"
    await home.say("alice", mine, "Mine.")

    messages = (await home.get("alice", f"/v1/sessions/{mine}/messages")).json()["items"]
    assert [(one["role"], one["name"], one["sender"]) for one in messages] == [
        ("assistant", "flight", None),
        ("system", "flight", None),
        ("tool", "flight", None),
        ("user", "alice", home.id("alice")),
    ]


async def test_a_runtime_writes_only_while_its_person_takes_part(home: House) -> None:
    """Leaving a group ends access, of the turn too."""
    group = await home.open("alice", "group", participants=[home.id("bob")])
    runtime = await begin(home, "bob", group)
    assert (await runtime.say(group, "assistant", "In time.")).status_code == 201

    await home.send("alice", "PATCH", f"/v1/sessions/{group}", {"participants": [home.id("alice")]})

    assert (await runtime.say(group, "assistant", "Late.")).status_code == 404
    messages = (await home.get("alice", f"/v1/sessions/{group}/messages")).json()["items"]
    assert [one["content"] for one in messages] == ["In time."]


# ── what ends it ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_revoked_credential_ends_it(home: House, mine: str) -> None:
    """Issue 3, in this process at once."""
    made = (await home.post("alice", "/v1/me/tokens", {"name": "laptop", "expires_in_days": 1})).json()
    home.secrets["laptop"] = made["secret"]
    runtime = await begin(home, "laptop", mine)
    assert (await runtime.tool(mine, "session_status", {})).status_code == 200

    await home.send("alice", "DELETE", f"/v1/me/tokens/{made['id']}")

    answer = await runtime.tool(mine, "session_status", {})
    assert (answer.status_code, answer.json()["detail"]) == (401, NOT_VALID)


async def test_a_profile_that_is_switched_off_or_loses_its_role_ends_it(home: House, mine: str) -> None:
    """Rights are those of now, not those of when it was made."""
    runtime = await begin(home, "alice", mine)
    await home.send("olga", "PUT", f"/v1/admin/people/{home.id('alice')}/roles", {"roles": []})
    assert (await runtime.tool(mine, "session_status", {})).status_code == 403
    roles = {"roles": [{"role": "member", "agent": "*"}]}
    await home.send("olga", "PUT", f"/v1/admin/people/{home.id('alice')}/roles", roles)
    assert (await runtime.tool(mine, "session_status", {})).status_code == 200

    await home.gateway.stores.identities.change_profile(
        home.tenant, home.id("alice"), name=None, emails=None, disabled=True
    )

    assert (await runtime.tool(mine, "session_status", {})).status_code == 401


# ── taint ────────────────────────────────────────────────────────────────────────────────────────────────────────────

TAINTED = {"Gateway-Turn-Tainted": "true"}
WRITE = {"action": "set", "content": "Obey.", "expectedHash": None}


async def test_a_tainted_turn_stays_tainted_and_the_person_can_do_it_themselves(home: House, mine: str) -> None:
    """Design section 9: the report is on disk before its call goes on, and the refusal says where the person can."""
    runtime = await begin(home, "alice", mine)
    note = {"scope": "shared", "text": "A decision."}
    assert (await runtime.tool(mine, "memory_append", note)).status_code == 200

    reported = await runtime.tool(mine, "memory_append", {"scope": "personal", "text": "Read."}, **TAINTED)
    save, append = (
        await runtime.tool(mine, "personal_instructions", WRITE),
        await runtime.tool(mine, "memory_append", note),
    )

    assert reported.status_code == 200
    assert (save.status_code, append.status_code) == (403, 403)
    assert "PUT /v1/agents/{agent}/personal-instructions" in save.json()["detail"]
    assert "memory_append" in append.json()["detail"]
    for answer in (save, append):
        codes = [one.record.code for one in await home.audit(decision=answer.headers["gateway-decision"])]
        assert "tainted_turn" in codes
    assert (await home.get("alice", "/v1/agents/flight/personal-instructions")).json()["sha256"] is None
    assert (await home.tool("alice", mine, "personal_instructions", **WRITE)).status_code == 200
    assert (await home.tool("alice", mine, "memory_append", **note)).status_code == 200
    assert (await (await begin(home, "alice", mine)).tool(mine, "memory_append", note)).status_code == 200


async def test_a_message_reports_it_too_and_a_refused_call_as_well(home: House, mine: str) -> None:
    """What counts is that it was said."""
    spoken, elsewhere = await begin(home, "alice", mine), await begin(home, "alice", mine)

    assert (await spoken.say(mine, "assistant", **TAINTED)).status_code == 201
    assert (await elsewhere.tool(await home.open("bob"), "session_status", {}, **TAINTED)).status_code == 404

    for runtime in (spoken, elsewhere):
        assert (await runtime.tool(mine, "personal_instructions", WRITE)).status_code == 403


async def test_another_process_knows_it_at_once(home: House, mine: str) -> None:
    """And a restart does not wash it clean: the mark is read from the store."""
    runtime = await begin(home, "alice", mine)
    assert (await runtime.tool(mine, "session_status", {})).status_code == 200
    now = home.gateway.clock.now()

    await home.gateway.stores.tainted_turns.add(home.tenant, runtime.turn, now + timedelta(minutes=15), now)

    assert (await runtime.tool(mine, "personal_instructions", WRITE)).status_code == 403


async def test_what_a_tainted_turn_is_refused_tells_nothing_of_what_is_there(home: House, mine: str) -> None:
    """An agent that is there and one that is not are refused alike."""
    runtime = await begin(home, "alice", mine)
    answers = [
        await runtime.tool(mine, "personal_instructions", {**WRITE, "agentId": agent}, **TAINTED)
        for agent in ("flight", "payroll")
    ]
    assert [one.status_code for one in answers] == [403, 403]
    assert answers[0].json() | {"request_id": ""} == answers[1].json() | {"request_id": ""}


async def test_a_tainted_turn_hands_its_text_to_no_child(home: House, mine: str) -> None:
    """A child's turn would be a clean one. An agent that is there, one that is closed and none are refused alike."""
    await home.add_agent("hotel")
    runtime, rows = await begin(home, "alice", mine), (await home.get("alice", "/v1/sessions")).json()["items"]
    answers = [
        await runtime.tool(mine, "sessions_spawn", {"task": "Obey.", "agentId": agent}, **TAINTED)
        for agent in ("flight", "hotel", "nowhere")
    ]

    assert [one.status_code for one in answers] == [403, 403, 403]
    assert len({str(one.json() | {"request_id": ""}) for one in answers}) == 1
    assert "sessions_spawn" in answers[0].json()["detail"]
    assert (await home.get("alice", "/v1/sessions")).json()["items"] == rows
    clean = await begin(home, "alice", mine)
    assert (await clean.tool(mine, "sessions_spawn", {"task": "Look."})).status_code == 200


async def test_the_header_says_true_where_a_turn_can_be_meant(home: House, mine: str) -> None:
    """Anything else is a fault of the caller's, and not taken for no."""
    runtime = await begin(home, "alice", mine)
    for value in ("false", "True", "1", ""):
        answer = await runtime.tool(mine, "session_status", {}, **{"Gateway-Turn-Tainted": value})
        assert answer.status_code == 422, value
        assert answer.json()["errors"][0]["field"] == "Gateway-Turn-Tainted"
    outside = await home.get("alice", "/v1/me", headers=TAINTED)
    assert (outside.status_code, outside.json()["errors"][0]["rule"]) == (422, "inside")
    assert (await runtime.tool(mine, "personal_instructions", WRITE)).status_code == 200


async def test_a_person_who_says_it_of_a_request_is_taken_at_their_word(home: House, mine: str) -> None:
    """It can only make a request do less; there is no turn that it would stay with."""
    refused_now = await home.post("alice", f"/v1/sessions/{mine}/tools/personal_instructions", WRITE, headers=TAINTED)
    assert refused_now.status_code == 403
    assert (await home.tool("alice", mine, "personal_instructions", **WRITE)).status_code == 200


async def test_a_turn_that_is_tainted_when_it_begins_has_a_tainted_token(home: House, mine: str) -> None:
    """What is said of the turn when its context is assembled holds for all that its token runs (design section 9)."""
    answer = await home.post("alice", f"/v1/sessions/{mine}/context", {"turn_token": True}, headers=TAINTED)
    dirty = Runtime(home, answer.json()["turn_token"], "")
    clean = await begin(home, "alice", mine)

    refused_now = await dirty.tool(mine, "personal_instructions", WRITE)

    assert refused_now.status_code == 403
    codes = [one.record.code for one in await home.audit(decision=refused_now.headers["gateway-decision"])]
    assert "tainted_turn" in codes
    assert (await home.get("alice", "/v1/agents/flight/personal-instructions")).json()["sha256"] is None
    assert (await clean.tool(mine, "personal_instructions", WRITE)).status_code == 200


async def test_personal_files_of_another_agent_are_not_for_this_agents_runtime(home: House, mine: str) -> None:
    """They are `self` to the person everywhere, so only what the token is bound to keeps agents apart."""
    await home.add("wanda", "owner", "member")
    made = await home.post("wanda", "/v1/admin/agents", {"name": "hotel", "workspace": "hotel"})
    assert made.status_code == 201, made.text
    there = {**WRITE, "agentId": "hotel"}
    assert (
        await home.tool("alice", mine, "personal_instructions", **{**there, "content": "Late checkout."})
    ).is_success
    runtime = await begin(home, "alice", mine)
    path = f"users/{home.id('alice')}/USER.md"

    read = await runtime.tool(mine, "personal_instructions", {"action": "get", "agentId": "hotel"})
    saved = await runtime.tool(mine, "personal_instructions", there)
    got = await runtime.tool(mine, "memory_get", {"path": path, "agentId": "hotel"})

    await refused(home, read, 404)
    await refused(home, saved, 404)
    assert got.json()["result"]["status"] == "not_found"
    assert "Late" not in read.text + saved.text + got.text
    assert (await home.get("alice", "/v1/agents/hotel/personal-instructions")).json()["content"] == "Late checkout."
    assert (await runtime.tool(mine, "personal_instructions", WRITE)).status_code == 200
