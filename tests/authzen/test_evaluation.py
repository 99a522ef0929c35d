"""AuthZEN 1.0, one question: a test for each rule of its certification scenario (numbers are its sections)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.authzen.conftest import EVALUATION, EVALUATIONS, SEARCH, Desk

PATHS = (EVALUATION, EVALUATIONS, f"{SEARCH}/subject", f"{SEARCH}/resource", f"{SEARCH}/action")


async def test_2_2_1_a_permit_is_200_with_decision_true(desk: Desk) -> None:
    """And the context names the reason, the epoch and the record."""
    answer = await desk.ask(EVALUATION, desk.question())

    assert answer.status_code == 200
    body = answer.json()
    assert body == {
        "decision": True,
        "context": {
            "reason": "allowed",
            "decision": body["context"]["decision"],
            "epoch": int(answer.headers["gateway-epoch"]),
        },
    }


async def test_2_2_2_a_deny_is_200_with_decision_false(desk: Desk) -> None:
    """A refusal is an answer and no error."""
    body = await desk.answer(EVALUATION, desk.question("bob"))

    assert (body["decision"], body["context"]["reason"]) == (False, "no_matching_row")


async def test_2_2_3_an_optional_context_changes_nothing(desk: Desk) -> None:
    """Section 5.4: what of it is not ours is nothing to us."""
    with_context = {**desk.question(), "context": {"time": "2025-06-27T18:03-07:00", "ip": "192.168.1.1"}}

    assert await desk.decides(with_context) is True
    assert await desk.decides({**desk.question("bob"), "context": {"time": "now"}}) is False


@pytest.mark.parametrize("entity", ["subject", "action", "resource"])
async def test_2_2_8_a_property_that_is_not_known_denies(desk: Desk, entity: str) -> None:
    """Ours, from issue 4: accepted, and denied, since it could be meant to narrow; an empty object is nothing."""
    question = desk.question()
    narrowed = {**question, entity: {**question[entity], "properties": {"department": "Sales"}}}
    empty = {**question, entity: {**question[entity], "properties": {}}}

    body = await desk.answer(EVALUATION, narrowed)

    assert body["decision"] is False
    assert body["context"]["reason"] == "unknown_property"
    assert "decision" not in body["context"]
    assert await desk.decides(empty) is True


async def test_2_2_9_unknown_fields_are_ignored(desk: Desk) -> None:
    """Forward compatibility: in the request and in an entity."""
    question = desk.question()
    question["subject"]["nickname"] = "al"

    assert await desk.decides({**question, "foo": "bar", "futureField": {"nested": True}}) is True


async def test_2_3_the_answer_is_json_with_a_boolean_and_a_context_object(desk: Desk) -> None:
    """Sections 2.3.1 and 2.3.2."""
    answer = await desk.ask(EVALUATION, desk.question())

    assert answer.headers["content-type"] == "application/json"
    assert answer.json()["decision"] is True
    assert isinstance(answer.json()["context"], dict)
    assert answer.headers["cache-control"] == "no-store"


@pytest.mark.parametrize("missing", ["subject", "action", "resource"])
async def test_2_4_1_a_missing_field_is_400(desk: Desk, missing: str) -> None:
    """Each, and it is named; beside it the whole question is answered."""
    question = desk.question()
    without = {name: value for name, value in question.items() if name != missing}

    answer = await desk.ask(EVALUATION, without)

    assert (answer.status_code, answer.headers["content-type"]) == (400, "application/problem+json")
    assert [one["field"] for one in answer.json()["errors"]] == [missing]
    assert await desk.decides(question) is True


@pytest.mark.parametrize(
    ("entity", "field"),
    [("subject", "type"), ("subject", "id"), ("action", "name"), ("resource", "type"), ("resource", "id")],
)
async def test_2_4_2_a_missing_sub_field_is_400(desk: Desk, entity: str, field: str) -> None:
    """Each of them."""
    question = desk.question()
    del question[entity][field]

    answer = await desk.ask(EVALUATION, question)

    assert answer.status_code == 400
    assert [one["field"] for one in answer.json()["errors"]] == [f"{entity}.{field}"]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", None])
async def test_2_4_3_another_content_type_is_400(desk: Desk, path: str, kind: str | None) -> None:
    """On every endpoint; a charset is no other type."""
    headers = {} if kind is None else {"Content-Type": kind}
    answer = await desk.home.send("gate", "POST", path, content=b"{}", headers=headers)
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (400, "Content-Type")

    good = await desk.ask(EVALUATION, desk.question(), headers={"Content-Type": "application/json; charset=utf-8"})
    assert good.status_code == 200


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("content", [b"{", b"", b"[]", b'"x"', b"null", b"\xff"])
async def test_2_4_4_what_is_no_json_object_is_400(desk: Desk, path: str, content: bytes) -> None:
    """Sections 2.4.4 and 2.4.5: malformed and empty bodies."""
    answer = await desk.home.send("gate", "POST", path, content=content, headers={"Content-Type": "application/json"})
    assert answer.status_code == 400


@pytest.mark.parametrize(
    "wrong",
    [
        {"subject": "alice"},
        {"subject": None},
        {"subject": {"type": "user", "id": 7}},
        {"subject": {"type": "user", "id": ""}},
        {"subject": {"type": "user", "id": "x", "properties": "none"}},
        {"action": {"name": 123}},
        {"action": []},
        {"resource": {"type": 1, "id": "x"}},
        {"resource": {"type": "session", "id": "x" * 513}},
        {"context": "here"},
        {"context": {"session": 7}},
        {"context": {"session": None, "kind": 7}},
        {"context": {"kind": "group"}},
    ],
)
async def test_2_4_6_a_field_of_another_type_is_400(desk: Desk, wrong: dict[str, Any]) -> None:
    """A session to ask from that can't be read must not count as none: outside any one sees more."""
    assert (await desk.ask(EVALUATION, {**desk.question(), **wrong})).status_code == 400


async def test_2_5_1_the_request_id_comes_back(desk: Desk) -> None:
    """With every answer, a refusal too; ours, which the audit knows, stands beside it."""
    theirs = {"X-Request-ID": "bfe9eb29-ab87-4ca3-be83-a1d5d8305716"}
    good = await desk.ask(EVALUATION, desk.question(), headers=theirs)
    bad = await desk.ask(EVALUATION, {}, headers=theirs)
    unknown = await desk.home.post(None, EVALUATION, {}, headers=theirs)
    nowhere = await desk.home.post("gate", "/access/v1/nothing", {}, headers=theirs)

    for answer, status in ((good, 200), (bad, 400), (unknown, 401), (nowhere, 404)):
        assert answer.status_code == status
        assert answer.headers.get_list("x-request-id") == list(theirs.values())
        assert answer.headers["gateway-request-id"].startswith("req_")
    record = (await desk.home.audit(kind="access"))[-2].record
    assert record.request in {good.headers["gateway-request-id"], bad.headers["gateway-request-id"]}


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"X-Request-ID": ""},
        {"X-Request-ID": "a b"},
        {"X-Request-ID": "<script>"},
        {"X-Request-ID": "x" * 129},
        [("X-Request-ID", "one"), ("X-Request-ID", "two")],
    ],
)
async def test_2_5_2_without_one_or_with_a_strange_one_the_answer_has_ours(desk: Desk, headers: Any) -> None:
    """A header is said again only where that can do no harm; and outside of the decision point it never is."""
    answer = await desk.ask(EVALUATION, desk.question(), headers=headers)

    assert answer.status_code == 200
    assert [one[:4] for one in answer.headers.get_list("x-request-id")] == ["req_"]
    elsewhere = await desk.home.get("alice", "/v1/me", headers={"X-Request-ID": "mine"})
    assert elsewhere.headers["x-request-id"].startswith("req_")


async def test_2_6_the_same_question_gets_the_same_answer(desk: Desk) -> None:
    """Idempotent: asking changes nothing."""
    assert [await desk.decides(desk.question()) for _ in range(3)] == [True, True, True]
    assert [await desk.decides(desk.question("bob")) for _ in range(3)] == [False, False, False]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"subject": {"type": "spaceship", "id": "x"}}, "unknown_type"),
        ({"subject": {"type": "User", "id": "x"}}, "unknown_type"),
        ({"resource": {"type": "record", "id": "record-1"}}, "unknown_type"),
        ({"action": {"name": "can_read"}}, "unknown_action"),
        ({"action": {"name": "create"}}, "unknown_action"),
        ({"action": {"name": "get"}}, "unknown_action"),
        ({"resource": {"type": "memory", "id": "flight/MEMORY.md"}}, "unknown_action"),
        ({"resource": {"type": "tool", "id": "memory_get"}}, "unknown_action"),
    ],
)
async def test_what_is_not_known_is_denied_and_says_so(desk: Desk, change: dict[str, Any], reason: str) -> None:
    """Issue 4: "unknown types and properties deny"; and an action that does not fit what it is about."""
    body = await desk.answer(EVALUATION, {**desk.question(), **change})

    assert (body["decision"], body["context"]["reason"]) == (False, reason)


async def test_the_record_says_of_whom_it_speaks_and_that_the_service_asked(desk: Desk) -> None:
    """Issue 4, proof 4: each evaluation is a decision in the audit, and nobody's own access."""
    body = await desk.answer(EVALUATION, desk.question("bob"))
    record = (await desk.home.audit(decision=body["context"]["decision"], kind="decision"))[0].record

    assert (record.profile, record.details) == (desk.home.id("gate"), {"about": desk.home.id("bob")})
    assert (record.effect, record.action, record.target) == ("deny", "history", desk.private)
    assert await desk.home.audit(person=desk.home.id("bob"), kind="decision", action="history") == []
