"""What the audit keeps of each request, and when (design section 12)."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.backends.local.audit_buffer import AuditBuffer
from gateway.errors import Unavailable
from gateway.model import AuditRecord
from gateway.settings import Settings
from tests.clock import SettableClock
from tests.conftest import LogCapture
from tests.house import House, house
from tests.path.examples import NO_SESSION, examples

SECRET = "the runway code is Xq-4711"  # with letters that no hash and no id has


async def test_each_request_is_one_access_record_and_each_answer_of_the_policy_one_decision(
    home: House, logs: LogCapture
) -> None:
    """obot-platform/obot#6223; style guide, section 4 rule 11f: audit count = request count."""
    session = await home.open("alice", "group", participants=[home.id("bob")])
    words = {"session": session, "agent": "flight", "profile": home.id("carol"), "token": "tok_x", "version": "1"}
    order = sorted(examples(home, logs.loggers, **words), key=lambda one: one.endpoint.method == "DELETE")

    for one in order:
        for who in ("carol", "bob"):
            before = len(await home.audit())
            answer = await one.send(home, who)
            made = [found.record for found in (await home.audit())[before:]]
            access = [record for record in made if record.kind == "access"]
            decisions = [record for record in made if record.kind == "decision"]
            assert len(access) == 1, (who, one.path, answer.text)
            assert access[0].request == answer.headers["x-request-id"]
            assert access[0].profile == home.id(who)
            assert {record.request for record in decisions} == {answer.headers["x-request-id"]}
            assert access[0].decision == answer.headers["gateway-decision"] == decisions[-1].decision
            assert len({record.decision for record in decisions}) == len(decisions)
            absent = '"status":"not_found"' in answer.text
            effect = "deny" if answer.status_code in (403, 404) or absent else "error"
            assert access[0].effect == (effect if answer.status_code >= 400 or absent else "allow"), one.path
            assert all(record.epoch == decisions[0].epoch for record in decisions)


async def test_a_decision_keeps_everything_it_was_made_of(home: House) -> None:
    """Interface, `GET /v1/admin/audit`; with it a policy can be replayed."""
    session = await home.open("alice")
    await home.say("alice", session, SECRET)
    refused = await home.get("bob", f"/v1/sessions/{session}/messages")

    def query(**narrow: str) -> str:
        return "/v1/admin/audit?" + "&".join(f"{name}={value}" for name, value in narrow.items())

    found = (await home.get("audrey", query(decision=refused.headers["gateway-decision"], kind="decision"))).json()
    one = found["items"][0]
    assert one | {"id": "", "at": "", "hash": "", "request": ""} == {
        "id": "",
        "at": "",
        "hash": "",
        "request": "",
        "kind": "decision",
        "tenant": "acme",
        "operation": "messages.list",
        "profile": home.id("bob"),
        "principal": one["principal"],
        "agent": "flight",
        "session": session,
        "action": "history",
        "resource": "session/private",
        "relation": "same_agent",
        "whose": "other",
        "chat": "private",
        "subjects": sorted(["*", "role:member", f"user:{home.id('bob')}"]),
        "target": session,
        "effect": "deny",
        "code": "no_matching_row",
        "rule": None,
        "epoch": int(refused.headers["gateway-epoch"]),
        "policy_version": 1,
        "decision": refused.headers["gateway-decision"],
        "details": {},
        "surface": "rest",
    }
    assert one["principal"].startswith("access_token:tok_")
    for narrow in (
        {"person": home.id("bob"), "effect": "deny"},
        {"session": session, "code": "no_matching_row"},
        {"agent": "flight", "action": "history"},
        {"from": "2026-12-01T08:59:59Z", "to": "2026-12-01T09:00:01Z", "kind": "decision", "person": home.id("bob")},
    ):
        items = (await home.get("audrey", query(**narrow))).json()["items"]
        assert one["id"] in {item["id"] for item in items}, narrow
    assert (await home.get("audrey", query(to="2026-12-01T08:00:00Z"))).json()["items"] == []
    for bad in ("kind=x", "effect=maybe", "from=yesterday", "from=2026-12-01T09:00:00", "tenant=globex", "cursor=x"):
        assert (await home.get("audrey", f"/v1/admin/audit?{bad}")).status_code == 422, bad
    first = (await home.get("audrey", query(limit="2"))).json()
    second = (await home.get("audrey", query(limit="2", cursor=first["next_cursor"]))).json()
    numbers = [int(item["id"]) for item in first["items"] + second["items"]]
    assert numbers == sorted(numbers, reverse=True)
    assert len(set(numbers)) == 4
    for who in ("alice", "dana"):
        assert (await home.get(who, "/v1/admin/audit")).status_code == 403


async def test_who_asked_for_a_session_is_found_by_its_key_wherever_they_asked_from(home: House) -> None:
    """docs/audit.md, "who read my session?"; the access record stays with the session that the request is about."""
    session = await home.open("alice")
    answers = {}
    for who, status in (("bob", 404), ("dana", 200)):
        here = await home.open(who)
        answers[who] = await home.tool(who, here, "sessions_history", sessionKey=session)
        assert answers[who].status_code == status

    found = (await home.get("audrey", f"/v1/admin/audit?session={session}&action=history")).json()["items"]

    assert {(one["profile"], one["effect"], one["target"]) for one in found} == {
        (home.id("bob"), "deny", session),
        (home.id("dana"), "allow", session),
    }
    for who, answer in answers.items():
        request = answer.headers["x-request-id"]
        access = [one for one in await home.audit(kind="access") if one.record.request == request]
        entered = [one for one in await home.audit(action="enter") if one.record.request == request]
        assert [one.record.session for one in (*access, *entered)] == [home.private(who)] * 2


async def test_no_text_of_anybody_and_no_token_is_in_the_audit_or_in_the_logs(home: House, logs: LogCapture) -> None:
    """Style guide, section 3 rule 14; design section 7, the auditor reads without content."""
    session = await home.open("alice", name="desk", title=f"Title {SECRET}")
    await home.say("alice", session, SECRET)
    home.workspace().replace("MEMORY.md", SECRET)
    await home.tool("alice", session, "sessions_search", query=SECRET)
    await home.tool("alice", session, "memory_append", scope="personal", text=SECRET)
    await home.tool("alice", session, "memory_get", path="MEMORY.md")
    await home.tool("alice", session, "sessions_spawn", task=SECRET, label=SECRET)
    await home.tool("alice", session, "personal_instructions", action="set", content=SECRET, expectedHash=None)
    await home.post("alice", f"/v1/sessions/{session}/context")
    token = (await home.post("alice", "/v1/me/tokens", {"name": "laptop"})).json()["secret"]
    await home.get(None, "/v1/me", headers={"Authorization": f"Bearer {token}x"})
    await home.post("alice", f"/v1/sessions/{session}/messages", {"role": "user", "content": 7, "extra": SECRET})
    await home.post("bob", f"/v1/sessions/{session}/messages", {"role": "user", "content": SECRET})

    pages = (await home.get("audrey", "/v1/admin/audit?limit=200")).text
    stored = str(await home.audit())

    for text in (pages, stored, logs.text):
        assert "Xq-4711" not in text
        assert "gwp_" not in text
    assert len(await home.audit()) > 20


async def test_an_effect_is_on_record_before_it_happens(home: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """Design section 12: an effectful tool writes its audit intent first; if that fails the tool does not run."""
    session = await home.open("alice", "group", participants=[home.id("bob")])
    await home.say("alice", session, "Before.")
    before = await _state(home, session)
    seen: list[str] = []
    durably = AuditBuffer.record_durably

    async def fails(_self: AuditBuffer, *records: AuditRecord) -> None:
        seen.extend(record.operation for record in records)
        raise Unavailable("The audit can't be written.")

    async def works(self: AuditBuffer, *records: AuditRecord) -> None:
        await durably(self, *records)

    effects: list[tuple[str, str, Any]] = [
        ("POST", f"/v1/sessions/{session}/messages", {"role": "user", "content": "Lost."}),
        ("POST", "/v1/agents/flight/sessions", {"kind": "group"}),
        ("POST", f"/v1/sessions/{session}/archive", None),
        ("POST", f"/v1/sessions/{session}/reset", None),
        ("PATCH", f"/v1/sessions/{session}", {"title": "Lost"}),
        ("PUT", f"/v1/sessions/{session}/owner", {"profile": home.id("bob")}),
        ("DELETE", f"/v1/sessions/{session}", None),
        ("POST", f"/v1/sessions/{session}/tools/memory_append", {"scope": "shared", "text": "Lost."}),
        ("POST", f"/v1/sessions/{session}/tools/sessions_spawn", {"task": "Lost."}),
        (
            "POST",
            f"/v1/sessions/{session}/tools/personal_instructions",
            {"action": "set", "content": "Lost.", "expectedHash": None},
        ),
        ("POST", "/v1/me/tokens", {"name": "lost"}),
    ]
    monkeypatch.setattr(AuditBuffer, "record_durably", fails)
    for method, path, body in effects:
        seen.clear()
        answer = await home.send("alice", method, path, body)
        assert answer.status_code == 503, (path, answer.text)
        assert answer.headers["retry-after"]
        assert seen, path
    monkeypatch.setattr(AuditBuffer, "record_durably", works)
    assert await _state(home, session) == before


async def _state(home: House, session: str) -> tuple[Any, ...]:
    """Everything that these effects could have changed."""
    stores = home.gateway.stores
    facts = await stores.sessions.find(home.tenant, session)
    messages = await home.get("alice", f"/v1/sessions/{session}/messages")
    sessions = await home.get("alice", "/v1/sessions")
    folder = home.workspace().root / "flight"
    return (
        facts,
        messages.json(),
        sessions.json(),
        sorted(path.name for path in folder.rglob("*")),
        await stores.identities.tokens(home.tenant, home.id("alice")),
    )


async def test_the_intent_is_on_disk_when_the_effect_begins(home: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """Design section 12; also on another agent, whose decision is one more."""
    await home.add_agent("hotel")
    session = await home.open("alice")
    create = home.gateway.stores.sessions.create
    found: list[tuple[str | None, str | None]] = []

    async def looking(*arguments: Any) -> Any:
        last = [one.record for one in await home.audit(kind="decision", person=home.id("alice"))]
        found.extend((one.action, one.effect) for one in last[-2:])
        return await create(*arguments)

    monkeypatch.setattr(home.gateway.stores.sessions, "create", looking)

    answer = await home.tool("alice", session, "sessions_spawn", task="x", agentId="hotel")

    assert answer.status_code == 200
    assert found == [("create", "allow"), ("spawn", "allow")]


async def test_a_read_that_can_not_be_recorded_is_refused(home: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """opa#8123: no decision is lost without a counter; design section 12: outages refuse."""
    session = await home.open("alice")
    await home.say("alice", session, SECRET)

    async def fails(_self: AuditBuffer, *_records: AuditRecord) -> None:
        raise Unavailable("The audit can't be written.")

    monkeypatch.setattr(AuditBuffer, "record_durably", fails)
    answer = await home.get("alice", f"/v1/sessions/{session}/messages")

    assert answer.status_code == 503
    assert SECRET not in answer.text


async def test_refusals_without_a_tenant_are_counted_and_fill_no_chain(
    home: House, logs: LogCapture, clock: SettableClock
) -> None:
    """Design section 12: a flood can't fill the buffer."""
    before = len(await home.audit())
    for _ in range(50):
        assert (await home.get(None, f"/v1/sessions/{NO_SESSION}")).status_code == 401
        await home.get(None, "/v1/me", headers={"Authorization": "Bearer gwp_x"})
    clock.advance(2)
    await home.get(None, "/v1/me")

    assert len(await home.audit()) == before
    refused = [line for line in logs.lines if line["event"] == "refused"]
    assert sum(line["count"] for line in refused) == 101
    assert {line["code"] for line in refused} == {"credential_missing", "token_malformed"}
    assert len(refused) <= 10
    assert (await home.get("alice", "/v1/me")).status_code == 200


async def test_the_end_of_a_flood_is_counted_too(settings: Settings, clock: SettableClock, logs: LogCapture) -> None:
    """Design section 12: what came within a second of the last line is told without another refusal."""
    async with house(settings, clock, logs.loggers) as home:
        for _ in range(7):
            await home.get(None, "/v1/me")
    assert sum(line["count"] for line in logs.lines if line["event"] == "refused") == 7


@pytest.mark.parametrize(
    "tampering",
    [
        "UPDATE audit SET body = replace(body, 'allow', 'deny ') WHERE sequence = 3",
        "UPDATE audit SET effect = 'allow' WHERE sequence = (SELECT max(sequence) FROM audit WHERE effect = 'deny')",
        "DELETE FROM audit WHERE sequence = 3",
        "DELETE FROM audit WHERE sequence > 4",
        "DELETE FROM audit",
    ],
)
async def test_a_changed_or_removed_record_is_found(home: House, tampering: str) -> None:
    """Issue, "audit": a changed or removed row is found by `verify`, a cut tail too."""
    session = await home.open("alice")
    await home.get("bob", f"/v1/sessions/{session}")
    sound = (await home.get("audrey", "/v1/admin/audit/verify")).json()
    assert (sound["sound"], sound["faults"]) == (True, [])
    assert sound["records"] >= 4

    await home.gateway.stores.database.write(lambda connection: connection.exec_driver_sql(tampering))
    found = (await home.get("audrey", "/v1/admin/audit/verify")).json()

    assert found["sound"] is False
    assert found["faults"]
    again = (await home.get("audrey", "/v1/admin/audit/verify")).json()
    assert again["sound"] is False


async def test_a_fault_of_ours_is_recorded_too_and_tells_nothing(
    home: House, monkeypatch: pytest.MonkeyPatch, logs: LogCapture
) -> None:
    """Design section 3: the audit wraps the whole path."""
    session = await home.open("alice")

    async def breaks(*_: Any, **__: Any) -> Any:
        raise RuntimeError(f"broken by {SECRET}")

    monkeypatch.setattr(home.gateway.stores.transcripts, "history", breaks)
    answer = await home.get("alice", f"/v1/sessions/{session}/messages")

    assert answer.status_code == 500
    assert answer.headers["content-type"] == "application/problem+json"
    assert SECRET not in answer.text
    record = (await home.audit(kind="access"))[-1].record
    assert (record.effect, record.code, record.operation) == ("error", "internal", "messages.list")


async def test_what_cannot_be_read_is_recorded_under_the_name_of_its_route(home: House) -> None:
    """Ours: a call of no tool, or with arguments that no tool takes, is not on record as one of some other tool."""
    session = await home.open("alice")
    assert (await home.tool("alice", session, "no_such_tool")).status_code == 422
    assert (await home.tool("alice", session, "memory_get", lines="x")).status_code == 422
    assert (await home.send("alice", "PATCH", f"/v1/sessions/{session}", {"title": 5})).status_code == 422
    assert (await home.tool("alice", session, "memory_get", path="AGENTS.md")).status_code == 200

    named = [one.record.operation for one in await home.audit() if one.record.kind == "access"][-4:]
    assert named == ["tools.call", "tools.call", "sessions.patch", "memory_get"]


async def test_the_intent_of_a_change_names_whom_it_changes_and_to_what(home: House) -> None:
    """Design section 12: "who made bob a supervisor?" is answered by the audit alone, and before it was done."""
    group = await home.open("alice", "group", participants=[home.id("bob")])
    bob, people = home.id("bob"), "/v1/admin/people"
    identity = {"issuer": "https://id.example", "subject": "b-2"}
    more = [{"role": "member"}, {"role": "supervisor", "agent": "flight"}]
    robot = {"name": "robot", "kind": "service", "emails": ["r@example.com"], "roles": [{"role": "member"}]}
    added = (await home.post("olga", people, robot)).json()["id"]
    token = (await home.post("olga", f"{people}/{added}/tokens", {"name": "t", "scopes": ["session"]})).json()
    mine = (await home.post("bob", "/v1/me/tokens", {"name": "laptop"})).json()
    policy = (await home.get("olga", "/v1/admin/policy")).json()
    publish = {"text": policy["text"], "base_version": policy["version"], "comment": "the same"}
    steps: list[tuple[str, str, str, object, str, dict[str, object]]] = [
        ("olga", "PUT", f"{people}/{bob}/roles", {"roles": more}, bob, {"before": ["member"]}),
        ("olga", "POST", f"{people}/{bob}/identities", identity, bob, {"identity": "https://id.example#b-2"}),
        ("olga", "DELETE", f"{people}/{bob}/identities", identity, bob, {"identity": "https://id.example#b-2"}),
        ("erin", "PATCH", f"{people}/{bob}", {"name": "Bobby"}, bob, {"name": "Bobby", "before": {"name": "bob"}}),
        ("olga", "PATCH", f"{people}/{bob}", {"emails": []}, bob, {"before": {"emails": ["bob@example.com"]}}),
        ("erin", "PATCH", f"{people}/prf_none", {"disabled": True}, "prf_none", {"disabled": True, "before": {}}),
        ("erin", "PUT", f"{people}/prf_none/roles", {"roles": []}, "prf_none", {"roles": [], "before": []}),
        ("olga", "DELETE", f"{people}/{added}/tokens/{token['id']}", None, token["id"], {"profile": added}),
        ("bob", "DELETE", f"/v1/me/tokens/{mine['id']}", None, mine["id"], {}),
        ("erin", "POST", "/v1/admin/agents", {"name": "hotel"}, "hotel", {"workspace": "hotel", "timezone": "UTC"}),
        ("olga", "PUT", "/v1/admin/policy", publish, "version 2", {"base_version": 1}),
        ("olga", "POST", "/v1/admin/policy/versions/1/rollback", {}, "version 1", {"rolled_back_to": 1}),
        (
            "alice",
            "PATCH",
            f"/v1/sessions/{group}",
            {"participants": [home.id("alice"), home.id("carol")]},
            group,
            {"participants": sorted([home.id("alice"), home.id("carol")]), "before": sorted([home.id("alice"), bob])},
        ),
        (
            "alice",
            "PUT",
            f"/v1/sessions/{group}/owner",
            {"profile": home.id("carol")},
            group,
            {"owner": home.id("carol"), "before": home.id("alice")},
        ),
        ("erin", "DELETE", f"{people}/{bob}", None, bob, {"disabled": True}),
    ]
    for who, method, path, body, target, details in steps:
        answer = await home.send(who, method, path, body)
        assert answer.status_code < 300 or "prf_none" in path, (path, answer.text)
        found = [one.record for one in await home.audit(decision=answer.headers["gateway-decision"], kind="decision")]
        assert [one.target for one in found] == [target], path
        assert {**found[0].details, **details} == found[0].details, (path, found[0].details)

    written = [one.record for one in await home.audit(kind="decision")]
    roles = next(one for one in written if one.operation == "people.roles" and one.target == bob)
    assert roles.details["roles"] == ["member", "supervisor@flight"]
    made = {one.operation: one for one in written if one.operation in ("people.add", "people.tokens.create")}
    assert (made["people.add"].target, made["people.tokens.create"].target) == ("new service", added)
    assert made["people.add"].details["roles"] == ["member"]
    details = dict(made["people.tokens.create"].details)
    # A member's rights are more than an owner's own, who takes part in nothing.
    assert (details.pop("raises"), details.pop("touches"), len(str(details.pop("gains"))) > 20) == (True, [added], True)
    assert details == {"name": "t", "scopes": ["session"], "expires_in_days": 90}
    everything = repr(written)
    assert not any(secret in everything for secret in (token["secret"], mine["secret"], policy["text"]))
    shown = (await home.get("audrey", f"/v1/admin/audit?decision={roles.decision}&kind=decision")).json()["items"]
    assert shown[0]["details"] == roles.details


async def test_what_is_changed_is_named_in_few_words_however_much_was_sent(home: House) -> None:
    """The audit is never emptied, so what one request can put into it is bounded."""
    long = "x" * 5000
    many = [f"prf_{number}" for number in range(150)]
    group = await home.open("alice", "group")
    refused = await home.send("erin", "PATCH", f"/v1/admin/people/{long}", {"name": "X"})
    crowded = await home.send("alice", "PATCH", f"/v1/sessions/{group}", {"participants": many})

    named, listed = [
        (await home.audit(decision=answer.headers["gateway-decision"], kind="decision"))[0].record
        for answer in (refused, crowded)
    ]
    assert named.target == "x" * 200
    participants = listed.details["participants"]
    assert isinstance(participants, list)
    assert (len(participants), participants[-1]) == (101, "and 50 more")


async def test_a_word_that_is_too_long_is_missing_and_stands_on_record_as_its_beginning(home: House) -> None:
    """Ours: an audit is not for filling with words of a caller's making; the answer is that of anything missing."""
    missing = await home.get("alice", "/v1/sessions/nothing")
    for who, path in (
        ("alice", "/v1/sessions/{}"),
        ("alice", "/v1/sessions/{}/messages"),
        ("erin", "/v1/admin/people/{}"),
        ("erin", "/v1/admin/agents/{}"),
    ):
        answer = await home.get(who, path.format("y" * 30_000))
        assert (answer.status_code, answer.json()["title"]) == (404, missing.json()["title"]), path

    assert (await home.tool("alice", await home.open("alice"), "memory_get", path="y" * 512)).status_code == 200
    targets = [one.record.target or "" for one in await home.audit() if one.record.kind == "decision"]
    assert max(map(len, targets)) == 512
