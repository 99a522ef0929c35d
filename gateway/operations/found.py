"""Turns the reference in a path into what is asked about, without showing anything of it."""

from __future__ import annotations

from gateway.model import ANY_AGENT, Resource, Whose
from gateway.policy.relations import origin_of, whose_of
from gateway.policy.targets import FunctionTarget, MissingTarget, SessionTarget
from gateway.sessions.conversations import Conversations
from gateway.turn import Turn


async def session(conversations: Conversations, turn: Turn, reference: str) -> SessionTarget | MissingTarget:
    """The session of that key or id.

    An incognito session's owner reaches it by its own key: such a request is made from inside it, since nowhere else is
    the session there (design section 7, "an incognito session to anybody but itself").
    """
    facts = await conversations.find(turn.tenant, reference)
    if facts is None:
        return MissingTarget(turn.tenant, Resource.SESSION_PRIVATE, reference)
    one, asked_from = facts.session, turn.origin
    if one.incognito and asked_from.session is None and whose_of(facts, turn.requester.profile.id) is Whose.OWN:
        turn.origin = origin_of(one, None, tainted=asked_from.tainted)
    return SessionTarget(facts)


def function(turn: Turn, resource: Resource, agent: str | None = None) -> FunctionTarget:
    """A function of the gateway, on one agent or on none in particular."""
    known = turn.agent(agent) if agent is not None else None
    return FunctionTarget(turn.tenant, resource, turn.operation, known.name if known else ANY_AGENT)
