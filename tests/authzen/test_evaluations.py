"""AuthZEN 1.0, several questions: a test for each rule of its certification scenario (numbers are its sections)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.authzen.conftest import EVALUATIONS, Desk


def _sessions(*ids: str) -> list[dict[str, Any]]:
    return [{"resource": {"type": "session", "id": one}} for one in ids]


async def _decisions(desk: Desk, body: dict[str, Any]) -> list[bool]:
    answered = await desk.answer(EVALUATIONS, body)
    assert set(answered) == {"evaluations"}  # 3.3.4: no decision beside them
    return [one["decision"] for one in answered["evaluations"]]


def _bob(desk: Desk) -> dict[str, Any]:
    return {"subject": {"type": "user", "id": desk.home.id("bob")}, "action": {"name": "history"}}


async def test_3_2_1_defaults_stand_for_what_an_evaluation_leaves_out(desk: Desk) -> None:
    """Subject and action above, resources below."""
    assert await _decisions(desk, {**_bob(desk), "evaluations": _sessions(desk.group, desk.private)}) == [True, False]


async def test_3_2_2_answers_come_in_the_order_of_the_questions(desk: Desk) -> None:
    """Sections 3.2.2, 3.3.1 and 3.3.2: as many, in order."""
    mixed = [desk.private, desk.group] * 20

    assert await _decisions(desk, {**_bob(desk), "evaluations": _sessions(*mixed)}) == [False, True] * 20


async def test_3_2_5_evaluations_can_say_everything_themselves(desk: Desk) -> None:
    """Without defaults; and one that says something itself is not answered by the default."""
    several = [desk.question(), desk.question("bob"), desk.question("bob", session=desk.group)]

    assert await _decisions(desk, {"evaluations": several}) == [True, False, True]
    assert await _decisions(desk, {**desk.question("bob"), "evaluations": several}) == [True, False, True]


async def test_3_2_6_a_context_above_holds_unless_an_evaluation_has_its_own(desk: Desk) -> None:
    """From the group nobody's private session is reached, from outside one's own is."""
    asked = {
        **desk.question(),
        "context": {"session": desk.group},
        "evaluations": [{}, {"context": {"time": "later"}}, {"context": {}}],
    }

    assert await _decisions(desk, asked) == [False, True, True]


async def test_3_2_7_an_entity_replaces_the_default_but_for_its_type_and_id(desk: Desk) -> None:
    """A property above is not one of the entity below; a type above is its type where it names none."""
    asked = {
        **_bob(desk),
        "resource": {"type": "session", "properties": {"status": "archived"}},
        "evaluations": [
            {"resource": {"id": desk.group}},
            {"resource": {"type": "session", "id": desk.group, "properties": {"status": "active"}}},
            {"resource": {"type": "memory", "id": "flight/USER.md"}, "action": {"name": "get"}},
        ],
    }

    assert await _decisions(desk, asked) == [True, False, True]


async def test_3_4_1_an_evaluation_that_can_t_be_read_is_denied_and_the_others_answered(desk: Desk) -> None:
    """200, false and why; nothing else of the request suffers."""
    bad: list[Any] = [{}, {"resource": "x"}, "text", 7, None, {"resource": {"type": "session"}}, []]
    asked = {**_bob(desk), "evaluations": [*_sessions(desk.group), *bad, *_sessions(desk.group)]}

    answered = (await desk.answer(EVALUATIONS, asked))["evaluations"]

    assert [one["decision"] for one in answered] == [True, *(False for _ in bad), True]
    for one in answered[1:-1]:
        assert one["context"]["reason"] == "invalid"
        assert one["context"]["error"]["status"] == 400
        assert one["context"]["error"]["message"]


@pytest.mark.parametrize("evaluations", [{}, {"evaluations": []}])
async def test_3_4_2_without_evaluations_it_is_one_question(desk: Desk, evaluations: dict[str, Any]) -> None:
    """Sections 3.4.2 and 3.4.3: missing or empty, as the endpoint for one would answer."""
    allowed = await desk.answer(EVALUATIONS, {**desk.question(), **evaluations})
    denied = await desk.answer(EVALUATIONS, {**desk.question("bob"), **evaluations})

    assert (allowed["decision"], denied["decision"]) == (True, False)
    assert "evaluations" not in allowed
    assert (await desk.ask(EVALUATIONS, evaluations)).status_code == 400


@pytest.mark.parametrize(
    ("semantic", "order", "expected"),
    [
        ("execute_all", "adad", [True, False, True, False]),
        ("deny_on_first_deny", "aada", [True, True, False]),
        ("deny_on_first_deny", "aaa", [True, True, True]),
        ("deny_on_first_deny", "da", [False]),
        ("permit_on_first_permit", "ddad", [False, False, True]),
        ("permit_on_first_permit", "ddd", [False, False, False]),
        ("permit_on_first_permit", "ad", [True]),
    ],
)
async def test_7_1_2_the_three_semantics(desk: Desk, semantic: str, order: str, expected: list[bool]) -> None:
    """All of them; up to the first denial; up to the first permit. What is not asked leaves no record."""
    evaluations = _sessions(*(desk.group if one == "a" else desk.private for one in order))
    before = len(await desk.home.audit(kind="decision", action="history"))

    body = {**_bob(desk), "evaluations": evaluations, "options": {"evaluations_semantic": semantic, "future": 1}}

    assert await _decisions(desk, body) == expected
    assert len(await desk.home.audit(kind="decision", action="history")) == before + len(expected)


async def test_7_1_2_a_failure_counts_as_a_denial(desk: Desk) -> None:
    """Section 7.1.2: "any denial (error, or decision: false)"."""
    options = {"options": {"evaluations_semantic": "deny_on_first_deny"}}
    body = {**_bob(desk), "evaluations": [*_sessions(desk.group), {}, *_sessions(desk.group)], **options}

    assert await _decisions(desk, body) == [True, False]


@pytest.mark.parametrize(
    "wrong",
    [
        {"options": {"evaluations_semantic": "majority"}},
        {"options": {"evaluations_semantic": 1}},
        {"options": "all"},
        {"evaluations": {}},
        {"evaluations": "all"},
        {"subject": "alice"},
        {"evaluations": [{}] * 101},
    ],
)
async def test_what_is_wrong_with_the_whole_request_is_400(desk: Desk, wrong: dict[str, Any]) -> None:
    """Section 7.2.1: not of one evaluation but of all; nothing is decided then. 100 of them are answered."""
    body = {**_bob(desk), "evaluations": _sessions(desk.group)} | wrong
    before = len(await desk.home.audit(kind="decision", action="history"))

    assert (await desk.ask(EVALUATIONS, body)).status_code == 400
    assert len(await desk.home.audit(kind="decision", action="history")) == before
    hundred = {**_bob(desk), "evaluations": _sessions(desk.group) * 100}
    assert await _decisions(desk, hundred) == [True] * 100
