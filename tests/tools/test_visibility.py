"""When a list says that it is limited by policy: from its scope alone (design section 7)."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

from gateway.model import OUTSIDE, AgentName, Chat, Origin, Relation, Resource, Scope, Whose
from gateway.stages.authorize import is_in_reach
from gateway.tools.sessions import is_limited
from tests.cast import FLIGHT, HOTEL, child, profile_id, root

AGENTS = (FLIGHT, HOTEL, AgentName("train"))
RESOURCES = (Resource.SESSION_PRIVATE, Resource.SESSION_SHARED)


def everything(origin: Origin) -> Scope:
    """All that can stand to this origin in any way."""
    reached = frozenset(
        (agent, resource, relation, whose)
        for agent, resource, relation, whose in product(AGENTS, RESOURCES, Relation, Whose)
        if is_in_reach(origin.session, agent, relation, whose)
    )
    return Scope(profile_id("alice"), origin, reached)


def test_a_list_is_limited_unless_everything_is_in_its_scope() -> None:
    """Never from hidden hits; a sandbox limits too, and no scope at all is the narrowest."""
    desk = root("desk", "alice")
    for session in (None, desk.session, child("scout", desk, agent=HOTEL).session):
        origin = OUTSIDE if session is None else Origin(session=session, chat=Chat.PRIVATE, kind=session.kind)
        whole = everything(origin)
        assert not is_limited(whole, len(AGENTS))
        for cell in whole.cells:
            assert is_limited(replace(whole, cells=whole.cells - {cell}), len(AGENTS))
    boxed = root("box", "alice", sandboxed=True).session
    assert is_limited(everything(Origin(session=boxed, chat=Chat.PRIVATE, kind=boxed.kind)), len(AGENTS))
    assert is_limited(None, len(AGENTS))
