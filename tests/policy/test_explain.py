"""Which rows decided, which nearly did, and the words for it."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gateway.model import Action, AgentName, Chat, Question, Relation, Resource, Whose
from gateway.policy import invariants
from gateway.policy.documents import Document, parse
from gateway.policy.explain import MOST_MATCHED, MOST_NEAR, Explanation, Near, explain, explain_function
from gateway.policy.in_words import (
    INVARIANTS,
    change_in_words,
    function_in_words,
    near_in_words,
    question_in_words,
    row_for_its_person,
)
from gateway.policy.rows import ACTION_WORDS, ANY, CHATS, MODES, WHOSE, Row
from gateway.policy.snapshot import Snapshot
from tests.cast import BEGAN
from tests.policy.test_differential import MOMENTS, NOW, PAIRS, QUESTIONS, documents, random_pair

MEMBER = frozenset({"*", "role:member", "user:prf_01JCAR00000000000000000000"})
FLIGHT = AgentName("flight")
HISTORY = Question(FLIGHT, Resource.SESSION_PRIVATE, Relation.SAME_AGENT, Whose.OTHER, Chat.PRIVATE, Action.HISTORY)


def _explained(text: str, question: Question = HISTORY, subjects: frozenset[str] = MEMBER) -> Explanation:
    return explain(parse(text), subjects, question, BEGAN)


@pytest.mark.long
@pytest.mark.timeout(3_600)
def test_the_rows_that_matched_are_those_that_the_policy_decided_by() -> None:
    """Differential: on random documents the answer is the snapshot's, and so is the row, which is among those named."""
    seen: Counter[str] = Counter()
    for dice, document in documents("explain", PAIRS // QUESTIONS):
        snapshot = Snapshot(document, 1, NOW)
        for _ in range(QUESTIONS):
            now = dice.choice(MOMENTS)
            subjects, question = random_pair(dice, document)

            found = explain(document, subjects, question, now)
            verdict = snapshot.decide(subjects, question, now)

            assert (found.verdict.allowed, found.verdict.code) == (verdict.allowed, verdict.code), document.text
            assert verdict.rule is None or verdict.rule in {one.row.rule for one in found.matched}
            seen[verdict.code] += 1
    assert set(seen) == {"allowed", "denied_by_row", "no_matching_row", "empty_policy"}


def test_a_row_that_nearly_matched_would_match_with_that_one_field_changed() -> None:
    """Property: put into a near row the question's own word, and it matches; so one field is all that differs."""
    fields: Counter[str] = Counter()
    for dice, document in documents("near", 300):
        for _ in range(QUESTIONS):
            subjects, question = random_pair(dice, document)
            for near in explain(document, subjects, question, NOW).near:
                fitting = replace(near.row, **_with(near.field, question, subjects))
                alone = Document(text="", rows=(fitting,), links=document.links)
                assert len(explain(alone, subjects, question, NOW).matched) == 1, (near, question)
                fields[near.field] += 1
    assert set(fields) == {"until", "subject", "chat", "whose", "visibility", "action", "agent", "resource"}


def _with(field: str, question: Question, subjects: frozenset[str]) -> dict[str, Any]:
    """The field as it would have to be for the row to match."""
    words = {
        "until": None,
        "subject": min(subjects),
        "chat": ANY,
        "whose": "any",
        "visibility": "all",
        "action": min(ACTION_WORDS[question.action]),
        "agent": ANY,
        "resource": str(question.resource),
    }
    return {field: words[field]}


def test_a_role_that_is_held_through_others_is_named_with_the_whole_way() -> None:
    """Who asks why a supervisor may do what members may has to see the g rows."""
    text = """
g, role:supervisor, role:lead
g, role:lead, role:member
g, role:supervisor, role:member
p, role:lead, *, session/private, agent, any, private, read, allow
p, role:member, *, session/private, agent, any, private, history, allow
"""
    found = _explained(text, subjects=frozenset({"*", "role:supervisor"}))

    assert [one.through for one in found.matched] == [
        ("role:supervisor", "role:lead"),
        ("role:supervisor", "role:member"),
    ]


def test_the_most_useful_of_the_rows_that_nearly_matched_come_first_and_are_few() -> None:
    """What would have turned the answer, then what ended, roles, places; rows of one person last; never too many."""
    ended = "p, role:member, *, session/private, agent, any, private, history, allow, 2020-01-01T00:00:00Z"
    text = "\n".join(
        [
            "p, user:prf_01JCAR00000000000000000009, *, session/private, agent, any, private, history, allow",
            "p, role:member, *, session/private, agent, any, private, send, deny",
            "p, role:member, hotel, session/private, agent, any, private, history, allow",
            "p, role:member, *, session/private, agent, any, group, history, allow",
            "p, role:supervisor, *, session/private, agent, any, private, read, allow",
            ended,
            *(f"p, role:r{number}, *, session/private, agent, any, private, read, deny" for number in range(30)),
        ]
    )
    found = _explained(text)

    assert [(one.row.line, one.field) for one in found.near][:6] == [
        (6, "until"),
        (5, "subject"),
        (4, "chat"),
        (3, "agent"),
        (1, "subject"),
        (7, "subject"),
    ]
    assert (len(found.near), found.more) == (MOST_NEAR, 36 - MOST_NEAR)
    many = "\n".join(
        f"p, role:member, *, session/private, agent, any, private, history, allow, 2090-01-01T00:00:00.{number:03d}Z"
        for number in range(MOST_MATCHED + 5)
    )
    assert len(_explained(many).matched) == MOST_MATCHED
    assert _explained(many).more == 5
    assert _explained(many).near == ()


@pytest.mark.parametrize(
    ("text", "question", "words"),
    [
        (
            ("p, role:supervisor, *, session/private, agent, any, private, read, allow\n"
            "p, role:member, *, session/private, agent, any, group, read, allow\n"
            "p, role:member, *, session/*, agent, shared, private, *, allow\n"
            "p, user:prf_01JCAR00000000000000000009, *, session/private, agent, any, private, read, allow"),
            HISTORY,
            ("No row allows `history` on another person's private session of flight, asked from a private session or "
            "from outside any. Line 1 would allow it for role:supervisor, which they do not hold. Line 2 would allow "
            "it from a group; this was asked from a private session or from outside any. Line 3 would allow it if "
            "whose were shared for it; this is other."),
        ),
        (
            ("p, user:prf_01JCAR00000000000000000009, *, session/private, agent, any, private, read, allow\n"
            "p, role:member, *, session/private, agent, any, private, read, allow, 2020-01-01T00:00:00Z"),
            HISTORY,
            ("No row allows `history` on another person's private session of flight, asked from a private session or "
            "from outside any. Line 2 would allow it, but ended at 2020-01-01T00:00:00Z. Line 1 would allow it for "
            "user:prf_01JCAR00000000000000000009, who is somebody else."),
        ),
        (
            "p, role:member, *, session/private, agent, any, private, read, deny",
            HISTORY,
            "Line 1 denies it, and no allow lifts a deny. Without that, no row would allow it either.",
        ),
        (
            ("p, role:member, *, session/private, agent, any, private, read, deny\n"
            "p, *, *, session/private, agent, any, private, read, deny\n"
            "p, *, *, session/private, agent, any, private, history, allow"),
            HISTORY,
            "Lines 1 and 2 deny it, and no allow lifts a deny. Without that, line 3 would allow it.",
        ),
        (
            "p, role:member, *, session/private, agent, any, private, read, allow",
            HISTORY,
            "Line 1 alone allows it; without it, or beside a deny, it would be denied.",
        ),
        (
            "\n".join(
                f"p, role:member, *, session/private, agent, any, private, read, allow, 2090-01-{day:02d}T00:00:00Z"
                for day in range(1, 13)
            ),
            HISTORY,
            ("Lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 … each allow it: it ends when all of them do, or where a deny stands "
            "beside them."),
        ),
        (
            "",
            Question(
                FLIGHT, Resource.PERSONAL_DAILY, Relation.OTHER_AGENT, Whose.OTHER, Chat.GROUP, Action.GET
            ),
            ("No row allows `get` on personal notes of another person of flight (not the agent they ask from), asked "
            "from a group."),
        ),
    ],
)  # fmt: skip
def test_what_would_have_to_be_otherwise_is_said_in_a_sentence(text: str, question: Question, words: str) -> None:
    """Issue 4, "what would have to change": by lines, and without advice."""
    assert change_in_words(question, _explained(text, question)) == words


def test_a_function_that_nobody_gave_is_explained_by_the_roles_that_have_it() -> None:
    """A function is refused whatever it is about, so only who has it helps."""
    text = """
p, role:admin, *, admin/policy, self, own, private, *, allow
p, role:admin, *, admin/policy, self, own, private, publish, deny
p, role:member, *, admin/policy, self, own, private, publish, allow, 2020-01-01T00:00:00Z
"""
    lacking = explain_function(parse(text), MEMBER, Resource.ADMIN_POLICY, Action.PUBLISH, BEGAN)
    held = explain_function(parse(text), frozenset({"role:admin"}), Resource.ADMIN_POLICY, Action.PUBLISH, BEGAN)

    assert [(one.row.line, one.field) for one in lacking.near] == [(4, "until"), (2, "subject")]
    assert function_in_words(Action.PUBLISH, Resource.ADMIN_POLICY, lacking) == (
        "No row could ever allow them `publish` on the policy, whatever it is about. Line 4 would allow it, but ended "
        "at 2020-01-01T00:00:00Z. Line 2 would allow it for role:admin, which they do not hold."
    )
    assert [one.row.line for one in held.matched] == [2]
    assert function_in_words(Action.PUBLISH, Resource.ADMIN_POLICY, held) == (
        "Line 2 could allow `publish` on the policy."
    )


def test_every_invariant_has_a_sentence_that_says_why_no_row_lifts_it() -> None:
    """A code without words would be an explanation that explains nothing."""
    source = Path(invariants.__file__).read_text(encoding="utf-8")
    codes = set(re.findall(r'"([a-z]+(?:_[a-z]+)+)"', source))

    assert codes <= set(INVARIANTS), codes - set(INVARIANTS)
    assert set(INVARIANTS) <= codes, set(INVARIANTS) - codes


@pytest.mark.parametrize("chat", CHATS)
@pytest.mark.parametrize("whose", sorted(WHOSE))
@pytest.mark.parametrize("visibility", sorted(MODES))
def test_a_row_is_told_to_its_person_without_its_line_and_without_anybody_else(
    chat: str, whose: str, visibility: str
) -> None:
    """Design section 7: the person asked sees nothing of others; their own id in a row is no news to them."""
    for subject, who in (
        ("role:member", "Your role member"),
        ("*", "A rule for everybody"),
        ("user:prf_01JCAR00000000000000000000", "A rule for you"),
    ):
        row = Row(
            line=77, subject=subject, agent=ANY, resource=ANY, visibility=visibility, whose=whose, chat=chat,
            action=ANY, effect="allow",
        )  # fmt: skip
        said = row_for_its_person(row)
        assert said.startswith(f"{who} lets you do anything with everything of every agent: ")
        assert "77" not in said
        assert "prf_" not in said
    narrow = replace(row, agent="flight", resource="session/*", action="history")
    assert "`history` with session/* of the agent flight" in row_for_its_person(narrow)


def test_every_question_can_be_said() -> None:
    """Words for all that can be asked: a resource without one would fail where somebody asks why."""
    for resource in Resource:
        for whose in Whose:
            for relation in Relation:
                question = Question(AgentName("*"), resource, relation, whose, Chat.PRIVATE, Action.GET)
                assert question_in_words(question).startswith("`get` on ")
    near = Near(parse("p, role:a, hotel, memory/*, agent, any, private, read, deny").rows[0], "agent", "flight")
    assert near_in_words(near) == "Line 1 would deny it if agent were hotel for it; this is flight."
