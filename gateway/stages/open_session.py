"""Turns a session's key or id into the origin of a turn: the person enters it, if the policy lets them.

A request that names no session is made from outside any (design section 6).
"""

from __future__ import annotations

from dataclasses import dataclass

from gateway.errors import NotFound
from gateway.model import Action, Resource
from gateway.policy.relations import origin_of
from gateway.policy.targets import MissingTarget, SessionTarget
from gateway.sessions.directory import SessionDirectory
from gateway.tools.registry import SESSIONS
from gateway.turn import Turn


@dataclass(frozen=True, slots=True)
class Entry:
    """The session that a request is made from, and what the caller says of this turn."""

    reference: str
    kind: str | None = None  # of the current turn, which can only narrow; an unknown word counts as a group
    tainted: bool = False


class OpenSession:
    """Finds the session and asks for `enter` from inside it."""

    def __init__(self, sessions: SessionDirectory) -> None:
        self._sessions = sessions

    async def __call__(self, turn: Turn, entry: Entry | None) -> Turn:
        """The turn inside the session, or unchanged where none is entered. Raises NotFound: missing, or not theirs."""
        if entry is None:
            return turn
        turn.authorize.function(turn, Action.ENTER, SESSIONS)
        facts = await self._sessions.find(turn.tenant, entry.reference)
        if facts is None:
            turn.permit(Action.ENTER, MissingTarget(turn.tenant, Resource.SESSION_PRIVATE, entry.reference))
            raise NotFound
        # Whoever may enter the session may do so for a turn that sees less: only what follows is asked from there.
        turn.origin = origin_of(facts.session, None, tainted=entry.tainted)
        turn.entered = turn.require(Action.ENTER, SessionTarget(facts))
        # What was said of the turn when its token was made holds for all that it runs.
        bound = turn.requester.principal.turn
        kind = entry.kind if bound is None else bound.kind
        if kind is not None:
            turn.origin = origin_of(facts.session, kind, tainted=entry.tainted)
        return turn
