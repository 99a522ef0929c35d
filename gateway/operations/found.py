"""Turns the reference in a path into what is asked about, without showing anything of it."""

from __future__ import annotations

from collections.abc import Iterable

from gateway.identity.roles import role_name
from gateway.model import Origin, ProfileId, Resource, RoleAssignment, SessionFacts, Whose
from gateway.policy.relations import origin_of, whose_of
from gateway.policy.targets import FunctionTarget, MissingTarget, SessionTarget
from gateway.sessions.conversations import Conversations
from gateway.turn import Turn

LONGEST_NAME = 200  # a reference in a path is whatever somebody sent
MOST_DETAILS = 100


async def session(conversations: Conversations, turn: Turn, reference: str) -> SessionTarget | MissingTarget:
    """The session of that key or id; the turn is asked from where a request about it is made from."""
    facts = await conversations.find(turn.tenant, reference)
    if facts is None:
        return MissingTarget(turn.tenant, Resource.SESSION_PRIVATE, reference)
    turn.origin = asked_from(facts, turn.origin, turn.requester.profile.id)
    return SessionTarget(facts)


def asked_from(facts: SessionFacts, origin: Origin, requester: ProfileId) -> Origin:
    """Where a request about this session is made from.

    An incognito session's owner reaches it by its own key; such a request is made from inside it, since nowhere else is
    the session there (design section 7, "an incognito session to anybody but itself").
    """
    if facts.session.incognito and origin.session is None and whose_of(facts, requester) is Whose.OWN:
        return origin_of(facts.session, None, tainted=origin.tainted)
    return origin


def function(turn: Turn, resource: Resource, name: str | None = None) -> FunctionTarget:
    """A function of the gateway. `name` is what the audit calls its target: who or what is changed."""
    return FunctionTarget(turn.tenant, resource, turn.operation if name is None else name[:LONGEST_NAME])


def few(values: Iterable[str]) -> list[str]:
    """`values` for the audit, which keeps every record: so many, and how many more there were."""
    everything = list(values)
    more = len(everything) - MOST_DETAILS
    return everything if more <= 0 else [*everything[:MOST_DETAILS], f"and {more} more"]


def role_names(held: Iterable[RoleAssignment]) -> list[str]:
    """Roles as they are written on the command line."""
    return few(map(role_name, held))
