"""All rights at once against the slices and the plain enforcer, which answer one question at a time."""

from __future__ import annotations

import os
import random
from collections import Counter
from itertools import product
from typing import Final

import pytest

from gateway.model import Action, AgentName, Chat, Question, Relation, Resource, Whose
from gateway.policy.documents import parse
from gateway.policy.plain import PlainEnforcer
from gateway.policy.rights import Fact, Rights, facts_in, holds, place_of, set_of
from gateway.policy.snapshot import Snapshot
from tests.policy.test_differential import AGENTS, MOMENTS, documents, random_pair, random_subjects

LONG: Final = os.environ.get("GATEWAY_LONG") == "1"
EVERY_FACT: Final = tuple(Fact(*words) for words in product(Resource, Relation, Whose, Chat, Action))


def test_every_fact_has_a_place_of_its_own() -> None:
    """Ours: a set of facts is a number, and reads back as what it was made of."""
    assert sorted(map(place_of, EVERY_FACT)) == list(range(len(EVERY_FACT)))
    dice = random.Random("places")
    for size in (0, 1, 30):
        some = sorted(dice.sample(EVERY_FACT, size), key=place_of)
        assert list(facts_in(set_of(some))) == some
        assert all(holds(set_of(some), fact) == (fact in some) for fact in dice.sample(EVERY_FACT, 300))


@pytest.mark.long
@pytest.mark.timeout(3_600)
def test_rights_hold_exactly_the_questions_that_a_snapshot_allows() -> None:
    """Design section 5: what is compared is what would be decided."""
    seen: Counter[bool] = Counter()
    for dice, document in documents("rights", 2_500 if LONG else 80):
        now = dice.choice(MOMENTS)
        rights, snapshot = Rights(document, now), Snapshot(document, 1, now)
        for _ in range(40):
            subjects, question = random_pair(dice, document)
            allowed = snapshot.decide(subjects, question, now).allowed
            assert rights.allow(subjects, question) == allowed, (document.text, subjects, question, now)
            seen[allowed] += 1
    assert min(seen.values()) > seen.total() // 20


def test_rights_hold_every_question_that_a_plain_enforcer_allows_and_no_other() -> None:
    """Ours: whole sets, fact by fact, for a few documents; the rest of the space is as right as the part above."""
    for dice, document in documents("whole", 6):
        now = dice.choice(MOMENTS)
        rights, oracle = Rights(document, now), PlainEnforcer(document, now)
        subjects, agent = random_subjects(dice), dice.choice(AGENTS)
        some = dice.sample(EVERY_FACT, 500)
        held = rights.of(subjects, agent)
        for fact in some:
            question = Question(AgentName(agent), *fact)
            assert holds(held, fact) == oracle.decide(subjects, question).allowed, (document.text, subjects, question)


def test_what_is_remembered_is_bounded() -> None:
    """Ours: whoever is not named takes no place, and however many are named take no more than there is."""
    rows = "\n".join(f"p, user:prf_{number:026d}, *, *, all, any, *, read, allow" for number in range(5_000))
    rights = Rights(parse(rows), MOMENTS[0])
    for number in range(5_000):
        assert rights.of(frozenset({f"user:prf_{number:026d}", "*"}), "flight")
        rights.of(frozenset({f"user:prf_9{number:025d}", "*"}), f"agent{number}")
    assert len(rights._known) <= 4_096
