"""What the stage that asks the policy does between the routes and the rows (design sections 3 and 7)."""

from __future__ import annotations

import pytest

from gateway.errors import NotFound
from gateway.model import OUTSIDE, Action, AgentName, Relation, Whose
from gateway.operations.context import ContextBody, OfSession
from gateway.policy.targets import SessionTarget
from gateway.stages import authorize
from gateway.stages.authorize import is_in_reach
from tests.cast import FLIGHT, HOTEL, child, root
from tests.house import House, turn_of


async def test_entering_is_asked_where_nobody_has_entered_yet(home: House) -> None:
    """Design section 3: there is no way around the question, whichever stages a surface runs."""
    session = await home.open("alice")
    stage, context = home.gateway.pipeline.authorize, home.gateway.catalogue.context

    permit = await stage(await turn_of(home, "alice"), context, OfSession(session, ContextBody()))

    assert isinstance(permit.target, SessionTarget)
    assert permit.target.facts.session.key == session
    for who, reference in (("bob", session), ("alice", "ses_x")):
        with pytest.raises(NotFound):
            await stage(await turn_of(home, who), context, OfSession(reference, ContextBody()))


async def test_what_somebody_else_would_be_answered_is_no_permit_and_its_record_says_of_whom_it_speaks(
    home: House,
) -> None:
    """Design section 10, a decision point: it is decided as for the person themselves, and nothing runs by it."""
    session = await home.open("alice")
    facts = await home.gateway.stores.sessions.find(home.tenant, session)
    assert facts is not None
    turn = await turn_of(home, "erin")
    stage = home.gateway.pipeline.authorize
    for who, allowed in (("alice", True), ("bob", False), ("dana", True), ("erin", False)):
        asked = (await turn_of(home, who)).requester
        decision = stage.answer(turn, asked, OUTSIDE, Action.HISTORY, SessionTarget(facts))

        assert decision.verdict.allowed == allowed
        assert f"user:{home.id(who)}" in decision.subjects
        assert turn.trail.decisions[-1] is decision  # type: ignore[attr-defined]  # the protocol only writes
        assert turn.trail.details[decision.id] == {"about": home.id(who)}  # type: ignore[attr-defined]  # as above


async def test_what_roles_include_is_remembered_within_bounds(home: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """Style guide, section 3: bounded memory; the answers are the same without it."""
    monkeypatch.setattr(authorize, "MOST_FUNCTIONS", 1)
    for _ in range(2):
        assert (await home.get("alice", "/v1/sessions")).status_code == 200
        assert (await home.get("erin", "/v1/sessions")).status_code == 403
        assert (await home.get("alice", "/v1/admin/people")).status_code == 403
    state = (await turn_of(home, "alice")).state
    assert len(state.functions) <= 1


def test_a_list_reaches_what_can_stand_so_to_where_it_is_asked_from() -> None:
    """Design section 7: relations from inside and from outside, and who answers for a child on another agent."""
    here = root("desk", "alice").session
    below = child("scout", root("desk", "alice"), agent=HOTEL).session
    boxed = root("box", "alice", sandboxed=True).session

    def reached(session: object, agent: AgentName, whose: Whose = Whose.OWN) -> set[Relation]:
        return {relation for relation in Relation if is_in_reach(session, agent, relation, whose)}  # type: ignore[arg-type]  # None or a session

    assert reached(None, FLIGHT) == {Relation.SELF}
    assert reached(None, FLIGHT, Whose.OTHER) == {Relation.SAME_AGENT}
    assert reached(here, FLIGHT) == {Relation.SELF, Relation.CHILD, Relation.SAME_AGENT, Relation.CHILD_CROSS}
    assert reached(here, HOTEL) == {Relation.OTHER_AGENT}
    assert reached(below, FLIGHT) == {Relation.CHILD_CROSS, Relation.OTHER_AGENT}
    assert reached(below, HOTEL) == {Relation.SELF, Relation.CHILD, Relation.SAME_AGENT}
    assert reached(boxed, FLIGHT) == {Relation.SELF, Relation.CHILD, Relation.CHILD_CROSS}
    assert reached(boxed, HOTEL) == set()
