"""Random documents and requests: slices against one plain Casbin enforcer, and what must hold for every document."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Final

import pytest

from gateway.model import Action, AgentName, Chat, Question, Relation, Resource, Whose
from gateway.policy.documents import Document, parse
from gateway.policy.plain import PlainEnforcer
from gateway.policy.rows import ACTION_WORDS, ACTIONS, CHATS, MODES, RESOURCES, WHOSE, covers_resource, written
from gateway.policy.snapshot import Snapshot

LONG: Final = os.environ.get("GATEWAY_LONG") == "1"
PAIRS: Final = 1_000_000 if LONG else 3_000
QUESTIONS: Final = 20  # for each document

NOW: Final = datetime(2030, 1, 1, tzinfo=UTC)
MOMENTS: Final = tuple(NOW + timedelta(days=day) for day in (0, 1, 2, 3))
PEOPLE: Final = tuple(f"user:prf_{number:026d}" for number in range(3))
ROLES: Final = tuple(f"role:r{number}" for number in range(6))
STRANGERS: Final = ("user:prf_7ZZZZZZZZZZZZZZZZZZZZZZZZZ", "role:unheard_of")
AGENTS: Final = ("flight", "baggage", "unheard_of")


def random_text(dice: random.Random, most_rows: int = 14) -> str:
    """A document of a few rows over few names, so that most requests meet some of them."""
    links = {_link(dice) for _ in range(dice.randrange(6))}
    rows = {_row(dice) for _ in range(dice.randrange(most_rows))}
    lines = sorted(links | rows)
    dice.shuffle(lines)
    return "\n".join(lines)


def _link(dice: random.Random) -> str:
    low, high = sorted(dice.sample(range(len(ROLES)), 2))  # always upwards, so never a circle
    return f"g, {ROLES[low]}, {ROLES[high]}"


def _row(dice: random.Random) -> str:
    resource = dice.choice((dice.choice(RESOURCES), "*", "session/*", "memory/*"))
    fields = (
        dice.choice((*PEOPLE, *ROLES, *ROLES, "*")),
        dice.choice(("*", *AGENTS[:2])),
        resource,
        dice.choice(tuple(MODES)),
        dice.choice(tuple(WHOSE)),
        dice.choice(CHATS),
        dice.choice((dice.choice(ACTIONS), "*", "read", "write")),
        dice.choice(("allow", "allow", "allow", "deny")),
    )
    end = dice.choice((None, None, None, *MOMENTS))
    return ", ".join(("p", *fields, *(() if end is None else (written(end),))))


def random_subjects(dice: random.Random) -> frozenset[str]:
    """A person with up to three roles, some of them unknown to any document; nearly always with `*`."""
    roles = dice.sample((*ROLES, *STRANGERS), dice.randrange(4))
    everybody = () if dice.random() < 0.05 else ("*",)
    return frozenset({dice.choice((*PEOPLE, STRANGERS[0])), *roles, *everybody})


def random_question(dice: random.Random) -> Question:
    """Any question, the likely resources more often."""
    return Question(
        AgentName(dice.choice(AGENTS)),
        dice.choice((*Resource, Resource.SESSION_PRIVATE, Resource.SESSION_SHARED, Resource.MEMORY_DAILY)),
        dice.choice(tuple(Relation)),
        dice.choice(tuple(Whose)),
        dice.choice(tuple(Chat)),
        dice.choice(tuple(Action)),
    )


def random_pair(dice: random.Random, document: Document) -> tuple[frozenset[str], Question]:
    """A request: any at all, or one that fits a row but for at most one of its facts."""
    subjects, question = random_subjects(dice), random_question(dice)
    if not document.rows or dice.random() < 0.3:
        return subjects, question
    row = dice.choice(document.rows)
    strange = dice.choice((*Question._fields, None, None, None))
    kept = {strange: getattr(question, strange)} if strange else {}
    fitting = Question(
        AgentName(row.agent if row.agent != "*" else question.agent),
        dice.choice([resource for resource in Resource if covers_resource(row.resource, resource)]),
        dice.choice(sorted(MODES[row.visibility])),
        dice.choice(sorted(WHOSE[row.whose])),
        Chat(row.chat) if row.chat != "*" else question.chat,
        dice.choice([action for action, words in ACTION_WORDS.items() if row.action in words]),
    )
    return subjects | {row.subject}, fitting._replace(**kept)


def documents(seed: str, count: int) -> Iterator[tuple[random.Random, Document]]:
    """`count` random documents with the dice for their questions; an empty one among them."""
    for number in range(count):
        dice = random.Random(f"{seed}/{number}")
        yield dice, parse(random_text(dice) if number else "")


@pytest.mark.long
@pytest.mark.timeout(3_600)
def test_slices_answer_what_one_plain_casbin_enforcer_answers() -> None:
    """Design section 7: the whole document in one plain enforcer is the oracle; 1,000,000 pairs with GATEWAY_LONG=1."""
    seen: Counter[str] = Counter()
    for dice, document in documents("differential", PAIRS // QUESTIONS):
        snapshot = Snapshot(document, 1, NOW)
        oracles = {moment: PlainEnforcer(document, moment) for moment in dice.sample(MOMENTS, 2)}
        for _ in range(QUESTIONS):
            now = dice.choice(tuple(oracles))
            subjects, question = random_pair(dice, document)

            verdict = snapshot.decide(subjects, question, now)
            expected = oracles[now].decide(subjects, question)

            where = (document.text, subjects, question, now)
            assert (verdict.allowed, verdict.code) == (expected.allowed, expected.code), where
            assert (verdict.rule is None) == (expected.rule is None), where
            assert expected.rule is None or f": p, {expected.rule}" in str(verdict.rule), where
            assert snapshot.decide(subjects, question, now) == verdict, where  # from memory
            seen[verdict.code] += 1

    assert seen.total() == PAIRS
    assert min(seen["allowed"], seen["denied_by_row"]) > PAIRS // 50  # else this compares nothing but denials
    assert seen["empty_policy"] >= QUESTIONS


def test_the_order_of_rows_never_changes_an_answer() -> None:
    """Design section 7: some allow and no deny; nothing in it speaks of order."""
    allowed = 0
    for dice, document in documents("order", 150):
        lines = document.text.split("\n")
        shuffled = Snapshot(parse("\n".join(dice.sample(lines, len(lines)))), 1, NOW)
        original = Snapshot(document, 1, NOW)
        for _ in range(QUESTIONS):
            subjects, question = random_pair(dice, document)
            first, second = original.decide(subjects, question, NOW), shuffled.decide(subjects, question, NOW)
            assert (first.allowed, first.code) == (second.allowed, second.code)
            allowed += first.allowed
    assert allowed > 50


def test_adding_a_deny_never_adds_an_allow() -> None:
    """Ours: whoever closes something can't open something else by it."""
    closed = 0
    for dice, document in documents("deny", 150):
        deny = _row(dice).replace(", allow", ", deny")
        if deny in document.text.split("\n"):
            continue
        before = Snapshot(document, 1, NOW)
        after = Snapshot(parse(f"{document.text}\n{deny}"), 2, NOW)
        for subjects, question in (random_pair(dice, document) for _ in range(2 * QUESTIONS)):
            was, now = before.decide(subjects, question, NOW).allowed, after.decide(subjects, question, NOW).allowed
            assert was or not now
            closed += was and not now
    assert closed > 10


def test_closing_a_set_by_hand_changes_nothing() -> None:
    """Ours: `g` only says what a set holds; holding it anyway is the same."""
    for dice, document in documents("closure", 100):
        snapshot = Snapshot(document, 1, NOW)
        for _ in range(QUESTIONS):
            subjects, question = random_pair(dice, document)
            held = set(subjects)
            for _ in document.links:
                held |= {link.parent for link in document.links if link.child in held}
            closed = frozenset(held)
            assert snapshot.decide(subjects, question, NOW) == snapshot.decide(closed, question, NOW)
