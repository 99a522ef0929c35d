"""Why a decision was as it was: all of it to admins, and to the person nothing of anybody else's session."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from gateway.keys import new_id
from gateway.policy.shipped import shipped
from tests.clock import SettableClock
from tests.house import House

EXPLAIN = "/v1/admin/policy/explain"
DEFAULT = shipped("default.csv")


async def _explain(home: House, who: str, **body: object) -> Any:
    answer = await home.post(who, EXPLAIN, body)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def _denied(home: House, who: str, session: str) -> str:
    answer = await home.get(who, f"/v1/sessions/{session}/messages")
    assert answer.status_code == 404, answer.text
    return str(answer.headers["gateway-decision"])


async def test_an_admin_sees_the_rows_that_matched_and_those_that_nearly_did(home: House) -> None:
    """Issue 4: the rows that matched, the ones that nearly did, and what would have to change."""
    private = await home.open("alice")
    denied = await _denied(home, "bob", private)
    allowed = (await home.get("dana", f"/v1/sessions/{private}/messages")).headers["gateway-decision"]

    why = await _explain(home, "erin", decision=denied)
    how = await _explain(home, "erin", decision=allowed)

    assert (why["allowed"], why["code"], why["person"], why["target"]) == (
        False,
        "no_matching_row",
        home.id("bob"),
        private,
    )
    assert why["then"]["matched"] == []
    supervisors = next(one for one in why["then"]["near"] if "role:supervisor" in one["row"])
    assert (supervisors["field"], supervisors["says"]) == ("subject", "role:supervisor")
    assert "for role:supervisor, which they do not hold" in why["says"]
    assert (why["then"]["version"], why["then"]["known_by"], why["answers_otherwise_now"]) == (1, "record", False)
    assert why["record"]["decision"] == denied
    assert why["question"] == {
        "agent": "flight",
        "resource": "session/private",
        "relation": "same_agent",
        "whose": "other",
        "chat": "private",
        "action": "history",
    }
    assert (how["allowed"], how["then"]["matched"][0]["through"]) == (True, ["role:supervisor"])
    assert how["then"]["rule"] == f"line {how['then']['matched'][0]['line']}: {how['then']['matched'][0]['row']}"


async def test_a_decision_is_explained_by_the_document_that_it_was_made_by_and_by_todays(home: House) -> None:
    """Whoever asks later must not be told of rows that were not there, and wants to know whether it still holds."""
    private = await home.open("alice")
    denied = await _denied(home, "bob", private)
    await home.publish(f"{DEFAULT}\np, role:member, *, session/private, agent, any, private, history, allow\n")
    await home.gateway.stores.identities.set_roles(home.tenant, home.id("bob"), [])

    why = await _explain(home, "erin", decision=denied)

    assert (why["allowed"], why["then"]["version"], why["now"]["version"]) == (False, 1, 2)
    assert (why["now"]["allowed"], why["answers_otherwise_now"]) == (True, True)
    assert why["now"]["matched"][-1]["row"].startswith("p, role:member, *, session/private, agent, any")
    assert (why["subjects"], why["subjects_now"]) == (
        ["*", "role:member", f"user:{home.id('bob')}"],
        ["*", f"user:{home.id('bob')}"],
    )


async def test_a_row_that_has_ended_since_is_said_to_have_ended(home: House, clock: SettableClock) -> None:
    """The commonest "why not any more": the row is there, and its time is over."""
    end = clock.now() + timedelta(days=1)
    row = f"p, user:{home.id('bob')}, *, session/private, agent, any, private, history, allow, {end:%Y-%m-%dT%H:%M:%SZ}"
    await home.publish(f"{DEFAULT}\n{row}\n")
    private = await home.open("alice")
    allowed = (await home.get("bob", f"/v1/sessions/{private}/messages")).headers["gateway-decision"]
    clock.advance(timedelta(days=2).total_seconds())
    await home.gateway.epochs.poll()

    how = await _explain(home, "erin", decision=allowed)
    why = await _explain(home, "erin", person=home.id("bob"), action="history", session=private)

    assert (how["allowed"], how["now"]["allowed"], how["answers_otherwise_now"]) == (True, False, True)
    assert (how["now"]["near"][0]["field"], why["now"]["near"][0]["field"]) == ("until", "until")
    assert "but ended at" in why["says"]


async def test_what_no_row_can_lift_is_told_as_that(home: House) -> None:
    """An invariant's refusal names no rows: editing them would not help, and nobody should try."""
    group = await home.open("alice", "group", participants=[home.id("bob")])
    read = await home.tool("alice", group, "memory_get", path="MEMORY.md")
    missing = await _denied(home, "bob", "agent:flight:direct:prf_00000000000000000000000000")

    why = await _explain(home, "erin", decision=read.json()["decision"])
    nothing = await _explain(home, "erin", decision=missing)

    assert (why["code"], why["then"]["matched"], why["then"]["near"]) == ("longterm_in_shared_session", None, None)
    assert why["says"].endswith("No row can lift this.")
    assert (nothing["code"], nothing["answers_otherwise_now"]) == ("target_missing", False)


async def test_a_function_that_a_role_lacks_is_explained_by_who_has_it_then_and_now(home: House) -> None:
    """Refused before anything was looked at; the rows that could ever allow it are what there is to say."""
    refused = (await home.get("bob", "/v1/admin/people")).headers["gateway-decision"]
    before = await _explain(home, "erin", decision=refused)
    await home.publish(f"{DEFAULT}\np, role:member, *, admin/people, self, own, private, read, allow\n")
    after = await _explain(home, "erin", decision=refused)

    assert (before["code"], before["answers_otherwise_now"]) == ("function_lacking", False)
    assert "role:admin" in before["says"]
    assert (after["now"]["allowed"], after["answers_otherwise_now"]) == (True, True)


async def test_a_list_says_that_its_parts_were_decided_each_by_itself(home: House) -> None:
    """A record of a list sums up many answers: no row decided it, and none is made up."""
    listed = (await home.get("bob", "/v1/sessions")).headers["gateway-decision"]
    why = await _explain(home, "erin", decision=listed)

    assert (why["allowed"], why["then"]["matched"]) == (True, None)
    assert "each kind of session in it was decided by itself" in why["says"]


async def test_an_old_record_is_explained_by_the_version_of_its_time(home: House, clock: SettableClock) -> None:
    """Records of before have no version: the newest that was published by then, and it is said that this is a guess."""
    private = await home.open("alice")
    decision = await _denied(home, "bob", private)
    record = (await home.audit(decision=decision, kind="decision"))[0].record
    clock.advance(10)
    await home.gateway.epochs.poll()
    await home.publish(f"{DEFAULT}\np, *, *, session/*, all, any, *, history, allow\n")
    old = record._replace(decision="dec_old", policy_version=None)
    older = record._replace(decision="dec_older", policy_version=None, at=record.at - timedelta(days=9999))
    odd = record._replace(decision="dec_odd", policy_version=77, action="whistle")
    await home.gateway.stores.audit.append([old, older, odd])

    why = await _explain(home, "erin", decision="dec_old")
    unreadable = await _explain(home, "erin", decision="dec_odd")

    assert (why["then"]["version"], why["then"]["known_by"], why["allowed"]) == (1, "time", False)
    assert (unreadable["question"], unreadable["then"]["known_by"]) == (None, "time")
    assert (await home.post("erin", EXPLAIN, {"decision": "dec_older"})).status_code == 404


async def test_an_auditor_is_told_why_and_shown_no_rows_of_the_document(home: House) -> None:
    """The audit is theirs to read and the policy is not; who may read neither may explain neither."""
    private = await home.open("alice")
    denied = await _denied(home, "bob", private)

    told = await _explain(home, "audrey", decision=denied)

    assert (told["code"], told["then"]["matched"], told["then"]["near"]) == ("no_matching_row", None, None)
    assert told["says"] == "The rows are shown to who may read the policy."
    question = {"person": home.id("bob"), "action": "history", "session": private}
    assert (await home.post("audrey", EXPLAIN, question)).status_code == 403
    for body in ({"decision": denied}, question):
        assert (await home.post("bob", EXPLAIN, body)).status_code == 403
        assert (await home.post("alice", EXPLAIN, body)).status_code == 403


QUESTIONS = """
person=bob action=history session=PRIVATE -> no_matching_row
person=dana action=history session=PRIVATE -> allowed
person=dana action=history session=PRIVATE from=GROUP -> no_matching_row
person=bob action=history session=GROUP from=PRIVATE -> no_matching_row
person=bob action=history session=GROUP -> allowed
person=bob action=enter session=GROUP -> allowed
person=dana action=enter session=PRIVATE -> no_matching_row
person=bob action=post session=GROUP -> allowed
person=bob action=spawn session=GROUP -> allowed
person=bob action=spawn session=PRIVATE -> no_matching_row
person=bob action=history session=agent:flight:nothing -> target_missing
person=bob action=get memory=flight/MEMORY.md -> allowed
person=bob action=get memory=flight/MEMORY.md from=GROUP -> longterm_in_shared_session
person=alice action=get memory=flight/MEMORY.md from=PRIVATE kind=group -> longterm_in_shared_session
person=bob action=get memory=flight/users/ALICE/USER.md -> personal_of_another
person=bob action=get memory=hotel/MEMORY.md -> target_missing
person=bob action=get memory=flight/AGENTS.md -> target_missing
person=bob action=load memory=flight/AGENTS.md from=GROUP -> allowed
person=bob action=load memory=flight/MEMORY.md from=GROUP -> longterm_in_shared_session
person=bob action=load memory=flight/users/BOB/USER.md from=GROUP -> target_missing
person=alice action=load memory=flight/users/ALICE/USER.md from=PRIVATE -> allowed
person=alice action=load memory=flight/memory/2001-01-01.md from=PRIVATE -> target_missing
person=alice action=load memory=hotel/AGENTS.md from=PRIVATE -> target_missing
person=alice tool=memory_get -> allowed
person=audrey tool=memory_get -> function_lacking
person=audrey tool=sessions_history -> function_lacking
person=alice tool=no_such_tool -> target_missing
person=alice tool=memory_get from=GROUP -> allowed
person=alice tool=personal_instructions from=GROUP -> allowed
person=alice tool=sessions_spawn from=GROUP -> allowed
person=alice tool=sessions_list from=GROUP -> allowed
person=dana tool=sessions_list from=GROUP -> no_matching_row
person=bob agent=flight resource=memory/longterm relation=same_agent whose=shared chat=private action=get -> allowed
person=bob agent=a resource=gateway relation=self whose=own chat=group action=get -> no_matching_row
"""


@pytest.mark.parametrize("line", QUESTIONS.strip().splitlines())
async def test_a_question_is_answered_as_the_gateway_would_answer_the_person(home: House, line: str) -> None:
    """Table of questions: from outside and inside, about sessions, files, tools and the bare facts of a row."""
    asked, _, code = line.partition(" -> ")
    body = dict(word.split("=") for word in asked.split())
    private = await home.open("alice")
    group = await home.open("alice", "group", participants=[home.id("bob")])
    places = {"PRIVATE": private, "GROUP": group}
    people = {name.upper(): home.id(name) for name in home.people}
    words = {name: places.get(word, word) for name, word in body.items()}
    words["person"] = home.id(body["person"])
    if "memory" in words:
        for name, one in people.items():
            words["memory"] = words["memory"].replace(name, one)

    found = await _explain(home, "erin", **words)

    assert (found["allowed"], found["code"]) == (code == "allowed", code)
    assert found["then"] is None
    assert found["record"] is None
    if found["decision"] is not None:
        record = (await home.audit(decision=found["decision"], kind="decision"))[0].record
        assert (record.profile, record.details) == (home.id("erin"), {"about": words["person"]})
    if body.get("from") == "GROUP" and body["person"] == "dana":
        assert found["says"].startswith("They can't enter the session that they would ask from")


async def test_somebody_is_named_by_email_to_who_may_read_about_people(home: House) -> None:
    """And not to who may only read the policy: an email would tell them whose id it is. A merged id is its survivor."""
    await home.publish(f"{DEFAULT}\np, role:editor, *, admin/policy, self, own, private, read, allow\n")
    await home.add("eve", "editor")
    bob = {"person": "Bob@Example.com", "tool": "memory_get"}
    old = await home.add("bobby", "member")
    await home.gateway.stores.identities.merge(home.tenant, old.id, home.id("bob"), home.gateway.clock.now())

    assert (await _explain(home, "erin", **bob))["person"] == home.id("bob")
    assert (await _explain(home, "eve", person=old.id, tool="memory_get"))["person"] == home.id("bob")
    refused = await home.post("eve", EXPLAIN, bob)
    unknown = await home.post("eve", EXPLAIN, {"person": "nobody@example.com", "tool": "memory_get"})
    assert (refused.status_code, refused.json()["errors"]) == (422, unknown.json()["errors"])
    for nobody in ("prf_00000000000000000000000000", "gst_0", "bob"):
        assert (await home.post("erin", EXPLAIN, {"person": nobody, "tool": "x"})).status_code == 422


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"decision": "dec_1", "person": "prf_1"},
        {"person": "prf_1", "action": "history"},
        {"person": "prf_1", "session": "a"},
        {"person": "prf_1", "action": "peek", "session": "a"},
        {"person": "prf_1", "action": "get", "session": "a", "memory": "flight/MEMORY.md"},
        {"person": "prf_1", "action": "get", "memory": "MEMORY.md"},
        {"person": "prf_1", "action": "get", "agent": "flight"},
        {"person": "prf_1", "action": "get", "session": "a", "kind": "group"},
        {"action": "get", "session": "a"},
    ],
)
async def test_half_a_question_is_a_fault_and_not_an_answer(home: House, body: dict[str, str]) -> None:
    """Every one of them names what is wrong; nothing is decided."""
    answer = await home.post("erin", EXPLAIN, body)

    assert answer.status_code == 422
    assert [one for one in await home.audit(kind="decision") if one.record.profile == home.id("erin")] == []


# ── the person asked ─────────────────────────────────────────────────────────────────────────────────────────────────


async def _mine(home: House, who: str, decision: str) -> Any:
    answer = await home.post(who, "/v1/me/explain", {"decision": decision})
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_a_person_is_told_the_same_of_what_is_missing_and_of_what_is_anothers(home: House) -> None:
    """Issue 4: nothing that reveals another's session. Equal in every word but the decision's id and its time, for each
    thing that somebody else has and each that nobody has."""
    private = await home.open("alice")
    hidden = await home.open("alice", incognito=True)
    group = await home.open("alice", "group", participants=[home.id("carol")])
    mine = await home.open("bob")
    found = await home.get("alice", f"/v1/sessions/{private}")
    theirs = (private, hidden, group, found.json()["id"])
    nobodys = tuple(f"{one[:-6]}000000" for one in theirs)

    async def asked(reference: str) -> list[Any]:
        said = []
        for method, path, body in (
            ("GET", f"/v1/sessions/{reference}", None),
            ("GET", f"/v1/sessions/{reference}/messages", None),
            ("POST", f"/v1/sessions/{reference}/messages", {"role": "user", "content": "hi"}),
            ("POST", f"/v1/sessions/{reference}/context", {}),
            ("POST", f"/v1/sessions/{reference}/archive", {}),
            ("DELETE", f"/v1/sessions/{reference}", None),
            ("PUT", f"/v1/sessions/{reference}/owner", {"profile": home.id("bob")}),
            ("POST", f"/v1/sessions/{mine}/tools/sessions_history", {"sessionKey": reference}),
            ("POST", f"/v1/sessions/{reference}/tools/memory_get", {"path": "MEMORY.md"}),
        ):
            answer = await home.send("bob", method, path, body)
            assert answer.status_code == 404, (path, answer.text)
            told = await _mine(home, "bob", answer.headers["gateway-decision"])
            assert (told["allowed"], told["reason"]) == (False, "not_found")
            said.append({name: value for name, value in told.items() if name not in ("decision", "at")})
        return said

    answers = [await asked(reference) for reference in (*theirs, *nobodys)]
    assert all(one == answers[0] for one in answers)
    for path in (f"users/{home.id('alice')}/USER.md", f"users/{home.id('alice')}/memory/2026-12-01.md", "nothing.md"):
        read = await home.tool("bob", mine, "memory_get", path=path)
        told = await _mine(home, "bob", read.json()["decision"])
        assert (told["reason"], path in str(told)) == ("not_found", False)


async def test_a_person_is_told_which_function_they_lack_and_which_row_lets_them(home: House) -> None:
    """What the refusal itself told may be said again; of an allowed one the row in words, without its line."""
    lacking = (await home.get("bob", "/v1/admin/people")).headers["gateway-decision"]
    listed = (await home.get("bob", "/v1/sessions")).headers["gateway-decision"]
    mine = await home.open("bob")
    allowed = (await home.get("bob", f"/v1/sessions/{mine}/messages")).headers["gateway-decision"]

    assert await _mine(home, "bob", lacking) == {
        "decision": lacking,
        "at": (await _mine(home, "bob", lacking))["at"],
        "operation": "people.list",
        "action": "read",
        "allowed": False,
        "reason": "tool_not_allowed",
        "says": "Your roles don't include `read` here, whatever it is about. An admin can change that.",
    }
    assert (await _mine(home, "bob", listed))["says"].startswith("This was a list or a search")
    told = await _mine(home, "bob", allowed)
    assert told["says"].startswith("Your role member lets you do anything with session/* of every agent")
    assert "line" not in str(told)


async def test_a_person_is_told_of_scopes_taint_and_turn_tokens(home: House) -> None:
    """These depend on the credential and the turn alone; where one of them depends on a file it is not told."""
    mine = await home.open("bob")
    home.secrets["narrow"] = await home.token("bob", scopes=["memory"])
    scope = (await home.get("narrow", "/v1/sessions")).headers["gateway-decision"]
    made = await home.post("bob", f"/v1/sessions/{mine}/context", {"turn_token": True})
    home.secrets["turn"] = made.json()["turn_token"]
    elsewhere = (await home.get("turn", "/v1/sessions")).headers["gateway-decision"]
    taint = await home.post(
        "turn",
        f"/v1/sessions/{mine}/tools/memory_append",
        {"scope": "shared", "text": "x"},
        headers={"Gateway-Turn-Tainted": "true"},
    )
    await home.add_agent("hotel")
    file = await home.tool("turn", mine, "memory_get", path=f"users/{home.id('bob')}/MEMORY.md", agentId="hotel")

    assert (await _mine(home, "bob", scope))["reason"] == "scope_missing"
    assert (await _mine(home, "bob", elsewhere))["reason"] == "turn_token_elsewhere"
    assert (await _mine(home, "bob", taint.headers["gateway-decision"]))["reason"] == "tainted_turn"
    assert (await _mine(home, "bob", file.json()["decision"]))["reason"] == "not_found"


async def test_a_decision_about_somebody_else_is_explained_to_nobody_who_was_not_asked(home: House) -> None:
    """Another's decision, one that is not there and one that was asked about another: the same bytes."""
    private = await home.open("alice")
    hers = (await home.get("alice", f"/v1/sessions/{private}")).headers["gateway-decision"]
    about = (await _explain(home, "erin", person=home.id("bob"), action="history", session=private))["decision"]
    missing = new_id("dec", home.gateway.clock.now())

    answers = [
        await home.post("bob", "/v1/me/explain", {"decision": hers}),
        await home.post("bob", "/v1/me/explain", {"decision": about}),
        await home.post("bob", "/v1/me/explain", {"decision": missing}),
        await home.post("erin", "/v1/me/explain", {"decision": about}),
    ]
    bodies = [{**one.json(), "request_id": ""} for one in answers]
    assert {one.status_code for one in answers} == {404}
    assert all(body == bodies[0] for body in bodies)


async def test_a_survivor_is_told_of_what_was_decided_about_the_profile_that_was_merged_into_them(home: House) -> None:
    """They are one person: the decisions are theirs too."""
    old = await home.add("bobby", "member")
    decision = (await home.get("bobby", "/v1/sessions")).headers["gateway-decision"]
    await home.gateway.stores.identities.merge(home.tenant, old.id, home.id("bob"), home.gateway.clock.now())

    assert (await _mine(home, "bob", decision))["allowed"] is True
