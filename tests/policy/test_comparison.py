"""What somebody gains or loses by a change of the document, of their roles, or of both."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gateway.model import ANY_AGENT, Action, AgentName, Chat, Question, Relation, Resource, Whose
from gateway.policy.comparison import POSSIBLE, Change, SubjectsOn
from gateway.policy.documents import parse
from gateway.policy.rights import Fact, Rights, facts_in
from gateway.policy.shipped import shipped
from gateway.policy.snapshot import Snapshot
from tests.cast import BEGAN
from tests.policy.test_differential import AGENTS, MOMENTS, documents, random_subjects

SHIPPED = shipped("default.csv")
READ = Fact(Resource.SESSION_PRIVATE, Relation.SAME_AGENT, Whose.OTHER, Chat.PRIVATE, Action.HISTORY)


def rights(*rows: str, shipped_rows: str = SHIPPED) -> Rights:
    """The default and these rows."""
    return Rights(parse("\n".join([shipped_rows, *rows])), BEGAN)


def holding(*roles: str) -> SubjectsOn:
    """Somebody with these roles on every agent, or on one: `supervisor@flight`."""

    def subjects(agent: str) -> frozenset[str]:
        named = (role.partition("@") for role in roles)
        return frozenset({"*", *(f"role:{role}" for role, at, where in named if not at or where == agent)})

    return subjects


@pytest.mark.parametrize(
    ("row", "who", "gains"),
    [
        ("p, role:member, *, session/private, agent, any, private, history, allow", ("member",), True),
        ("p, role:member, *, session/private, agent, any, private, history, allow", ("supervisor",), False),
        ("p, role:member, *, session/private, agent, any, private, history, allow", ("admin",), False),
        ("p, role:member, payroll, session/private, agent, any, private, history, allow", ("member",), True),
        ("p, role:admin, *, session/private, agent, any, private, history, allow", ("member", "admin"), True),
        ("p, *, *, session/private, agent, any, private, history, allow", ("guest",), True),
        ("g, role:admin, role:supervisor", ("admin",), True),
        ("p, role:member, *, memory/personal/instructions, all, any, private, get, allow", ("member",), False),
        ("p, role:member, *, memory/longterm, all, any, group, get, allow", ("member",), False),
        ("p, role:member, *, memory/longterm, all, any, private, edit, allow", ("member",), False),
        ("p, role:member, *, memory/longterm, agent, own, private, vouch, allow", ("member",), False),
        ("p, role:member, *, admin/policy, agent, any, *, publish, deny", ("member",), False),
        ("p, role:member, *, session/private, agent, any, private, history, allow, 2020-01-01T00:00:00Z", ("member",), False),  # noqa: E501 - one row, one line
    ],
)  # fmt: skip
def test_a_row_is_a_gain_for_those_who_may_do_more_and_for_nobody_else(
    row: str, who: tuple[str, ...], gains: bool
) -> None:
    """Design section 5: compared by the decisions before and after; what an invariant refuses is nobody's gain."""
    change = Change(rights(), rights(row), ["flight"])

    assert bool(change.gains(holding(*who))) == gains
    assert Change(rights(row), rights(), ["flight"]).losses(holding(*who)) == change.gains(holding(*who))
    assert Change(rights(row), rights(row), ["flight"]).gains(holding(*who)) == {}


def test_taking_a_deny_away_is_a_gain() -> None:
    """Design section 5: a gain need not come from a row that allows."""
    before = rights("p, role:member, *, memory/longterm, all, any, *, *, deny")

    found = Change(before, rights(), ["flight"]).gains(holding("member"))

    assert set(found) == {"*", "flight"}
    assert {fact.resource for fact in facts_in(found["flight"])} == {Resource.MEMORY_LONGTERM}


def test_a_role_is_a_gain_where_it_is_held_and_nowhere_else() -> None:
    """Design section 5: roles are compared by what they come to, on the agents that they are for."""
    same = rights()
    change = Change(same, same, ["flight", "baggage"])

    found = change.gains(holding("member"), holding("member", "supervisor@flight"))

    assert set(found) == {"flight"}
    assert READ in set(facts_in(found["flight"]))
    assert change.gains(holding("supervisor"), holding("member", "supervisor@flight")) == {}
    assert set(change.losses(holding("supervisor"), holding("member", "supervisor@flight"))) == {"*", "baggage"}


@pytest.mark.parametrize("seed", range(40))
def test_a_comparison_finds_each_decision_that_comes_out_otherwise(seed: int) -> None:
    """Ours: for any two documents and any two sets of subjects, every possible fact, as snapshots decide it."""
    _, (dice, first), (_, second) = documents(f"compared/{seed}", 3)  # the first is empty
    now = dice.choice(MOMENTS)
    was, becomes = _always(random_subjects(dice)), _always(random_subjects(dice))
    before, after = Snapshot(first, 1, now), Snapshot(second, 2, now)
    change = Change(Rights(first, now), Rights(second, now), AGENTS)
    gains, losses = change.gains(was, becomes), change.losses(was, becomes)

    for agent in (*AGENTS, ANY_AGENT):
        for fact in dice.sample(list(facts_in(POSSIBLE)), 100):
            question = Question(AgentName(agent), *fact)
            could = before.decide(was(agent), question, now).allowed
            can = after.decide(becomes(agent), question, now).allowed
            assert (fact in set(facts_in(gains.get(agent, 0)))) == (can and not could)
            assert (fact in set(facts_in(losses.get(agent, 0)))) == (could and not can)


def _always(subjects: frozenset[str]) -> Callable[[str], frozenset[str]]:
    return lambda _agent: subjects
