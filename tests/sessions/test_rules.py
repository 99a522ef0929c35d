"""The rules of creating a session and of who takes part, one by one (design section 6)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gateway.errors import Conflict, GatewayError, Invalid
from gateway.model import Kind
from gateway.sessions.lineage import MAX_DEPTH, Creation, build, check, check_title
from gateway.sessions.participants import check_owner, check_participants
from tests.cast import ACME, BEGAN, FLIGHT, HOTEL, child, profile_id, root

ALICE, BOB = profile_id("alice"), profile_id("bob")
DESK, TEAM = root("desk", "alice"), root("team", "alice", "bob", kind=Kind.GROUP)


def creation(kind: Kind, **more: object) -> Creation:
    """Alice's, on flight."""
    return replace(Creation(tenant=ACME, agent=FLIGHT, kind=kind, creator=ALICE), **more)  # type: ignore[arg-type]  # fields by name


def test_a_session_is_private_with_one_person_and_private_ancestors_alone() -> None:
    """Design section 6: everything else is shared."""
    assert creation(Kind.DIRECT).private
    assert creation(Kind.DIRECT, participants=frozenset({ALICE})).private
    assert creation(Kind.SUBAGENT, parent=DESK).private
    assert not creation(Kind.SUBAGENT, parent=TEAM).private
    for kind in (Kind.GROUP, Kind.CHANNEL, Kind.CRON):
        assert not creation(kind).private
    assert creation(Kind.DIRECT).opens_the_private_session
    for other in (
        creation(Kind.DIRECT, name="x"),
        creation(Kind.DIRECT, incognito=True),
        creation(Kind.SUBAGENT, parent=DESK),
        creation(Kind.GROUP),
    ):
        assert not other.opens_the_private_session


def test_a_child_has_its_place_its_owner_and_its_parents_limits() -> None:
    """Design section 6, lineage; what a parent must not show its child must not show either."""
    made = build(creation(Kind.SUBAGENT, parent=TEAM, agent=HOTEL, creator=BOB), BEGAN)
    above = TEAM.session
    assert (made.owner, made.creator, made.private) == (ALICE, BOB, False)
    assert (made.parent, made.parent_key, made.root, made.root_agent) == (above.id, above.key, above.id, FLIGHT)
    assert made.path == f"{above.path}{made.id}/"
    assert made.descends_from(above)
    for flag in ("incognito", "sandboxed"):
        marked = replace(DESK, session=replace(DESK.session, **{flag: True}))  # type: ignore[arg-type]  # a flag by name
        assert getattr(build(creation(Kind.SUBAGENT, parent=marked), BEGAN), flag) is True
        assert getattr(build(creation(Kind.SUBAGENT, parent=DESK), BEGAN), flag) is False
        assert getattr(build(creation(Kind.SUBAGENT, parent=DESK, **{flag: True}), BEGAN), flag) is True


def test_a_tree_is_as_deep_as_it_may_be_and_no_deeper() -> None:
    """Ours."""
    lowest = DESK
    for depth in range(MAX_DEPTH - 1):
        check(creation(Kind.SUBAGENT, parent=lowest))
        lowest = child(f"child {depth}", lowest)
    with pytest.raises(Conflict):
        check(creation(Kind.SUBAGENT, parent=lowest))


@pytest.mark.parametrize(
    ("wrong", "rules"),
    [
        (creation(Kind.SUBAGENT), ["subagent_has_parent"]),
        (creation(Kind.GROUP, parent=DESK), ["subagent_has_parent"]),
        (creation(Kind.GROUP, incognito=True), ["private_only"]),
        (creation(Kind.SUBAGENT, parent=TEAM, incognito=True), ["private_only"]),
        (creation(Kind.DIRECT, participants=frozenset({BOB})), ["one_person"]),
        (creation(Kind.SUBAGENT, parent=TEAM, participants=frozenset({BOB})), ["one_person"]),
        (creation(Kind.GROUP, name="A B", title="x" * 201), ["name"]),
        (
            creation(Kind.SUBAGENT, participants=frozenset({BOB}), title="x" * 201),
            ["subagent_has_parent", "one_person", "too_long"],
        ),
    ],
)
def test_each_broken_rule_is_named(wrong: Creation, rules: list[str]) -> None:
    """Design section 12: every fault at once."""
    with pytest.raises(Invalid) as refused:
        check(wrong)
    assert [fault.rule for fault in refused.value.faults] == rules


def test_a_title_has_one_limit_whenever_it_is_given() -> None:
    """Interface: when the session is made, and when it is renamed."""
    check_title("x" * 200)
    check_title(None)
    with pytest.raises(Invalid):
        check_title("x" * 201)


@pytest.mark.parametrize(
    ("facts", "people", "error"),
    [
        (DESK, [ALICE], Conflict),
        (child("scout", TEAM), [ALICE, BOB], Conflict),
        (TEAM, [BOB], Conflict),
        (TEAM, [ALICE, *(profile_id(f"p{n}") for n in range(200))], Invalid),
    ],
)
def test_who_takes_part_keeps_the_rules(facts: object, people: list[object], error: type[GatewayError]) -> None:
    """Design section 6: nobody is added to a private session, and a child has the people of its root."""
    with pytest.raises(error):
        check_participants(facts, people)  # type: ignore[arg-type]  # from the table above
    check_participants(TEAM, [ALICE])


def test_a_root_that_is_shared_can_be_given_away_and_nothing_else() -> None:
    """Design section 6: a private session's owner can't be reassigned."""
    check_owner(TEAM)
    for facts in (DESK, child("scout", TEAM), child("scout", DESK)):
        with pytest.raises(Conflict):
            check_owner(facts)
