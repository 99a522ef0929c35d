"""Holds the oracle to the sentences of the design, so that whoever checks the implementation is checked first."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
import yaml

from tests.oracle.decide import decide
from tests.oracle.generate import make_request, shares
from tests.oracle.rows import ACTIONS, Bare, ask
from tests.oracle.sentences import CASES, Case
from tests.oracle.team import NOW, under
from tests.oracle.worlds import make_world

SHEET = yaml.safe_load(Path(__file__).with_name("policy.yaml").read_text())


@pytest.mark.parametrize("case", SHEET["cases"], ids=lambda case: " ".join(case))
def test_the_worked_questions_get_their_answers(case: list[str]) -> None:
    """policy.yaml: "the answers are what people must get"."""
    who, agent, resource, relation, whose, chat, action, answer = case
    question = Bare(
        subjects=frozenset({f"user:{who}", "*", *SHEET["subjects"][who]}),
        agent=agent,
        resource=resource,
        relation=relation,
        whose=whose,
        chat=chat,
        action=action,
    )
    assert ask(SHEET["rows"], question, NOW)[0] == (answer == "allow")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.sentence)
def test_a_sentence_of_the_design_holds(case: Case) -> None:
    """Design sections 5 to 7, the sentence that names the case."""
    world = under(case.policy)
    for request, allowed in case.asked:
        answer = decide(world, request)
        assert answer.allowed == allowed, f"{request}\n{answer.why}"


def test_enough_sentences_are_asked_about() -> None:
    """A table that shrinks unnoticed would prove less than it says."""
    assert len(CASES) >= 40
    answers = [allowed for case in CASES for _, allowed in case.asked]
    assert min(answers.count(True), answers.count(False)) >= 60


# ── the generator ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_same_seed_makes_the_same_world() -> None:
    """A failure is only worth its seed if the seed brings it back."""
    one, two, other = (make_world(Random(seed)) for seed in (7, 7, 8))
    assert one == two
    assert one != other
    assert make_request(Random(1), one) == make_request(Random(1), two)


def test_random_questions_are_allowed_often_enough_to_mean_something() -> None:
    """A property test whose every answer is "no" proves nothing; one that never meets a rule does not prove it."""
    counts = shares(seed=1, worlds=400, each=8)
    assert {name for name in counts if not name.startswith("because ")} == ACTIONS
    for action in ACTIONS - {"impersonate", "erase", "export", "merge", "publish", "decide", "connect", "read"}:
        asked, allowed = counts[action]
        assert 0.1 < allowed / asked < 0.9, action
    met = {name.removeprefix("because ") for name in counts}
    assert met >= {
        "a row allows",
        "a row denies",
        "no row matches",
        "other tenant",
        "neither profile nor guest",
        "retired profile",
        "root MEMORY.md from a shared session",
        "another person's personal files",
        "an incognito session to anybody but itself",
        "a write to a MEMORY.md that is not Deep's",
        "a tainted turn",
        "sandboxed",
    }
