"""Turns a session's key or id into the origin of a turn: the person enters it, if the policy lets them.

A request that names no session is made from outside any (design section 6).
"""

from __future__ import annotations

from dataclasses import dataclass

from gateway.errors import NotFound
from gateway.model import Action, Principal, Resource, TurnBinding
from gateway.policy.relations import origin_of
from gateway.policy.targets import MissingTarget, SessionTarget
from gateway.sessions.directory import SessionDirectory
from gateway.sessions.taints import Taints
from gateway.tools.registry import SESSIONS
from gateway.turn import Turn


@dataclass(frozen=True, slots=True)
class Entry:
    """The session that a request is made from, and what the caller says of this turn."""

    reference: str
    kind: str | None = None  # of the current turn, which can only narrow; an unknown word counts as a group
    tainted: bool = False  # it says that it has read untrusted text; nothing it says later takes that back


class OpenSession:
    """Finds the session and asks for `enter` from inside it."""

    def __init__(self, sessions: SessionDirectory, taints: Taints) -> None:
        self._sessions = sessions
        self._taints = taints

    async def __call__(self, turn: Turn, entry: Entry | None) -> Turn:
        """The turn inside the session, or unchanged where none is entered. Raises NotFound: missing, or not theirs."""
        if entry is None:
            return turn
        bound = turn.requester.principal.turn
        tainted = entry.tainted if bound is None else await self._is_tainted(turn.requester.principal, bound, entry)
        turn.authorize.function(turn, Action.ENTER, SESSIONS)
        facts = await self._sessions.find(turn.tenant, entry.reference)
        if facts is None:
            turn.permit(Action.ENTER, MissingTarget(turn.tenant, Resource.SESSION_PRIVATE, entry.reference))
            raise NotFound
        # Whoever may enter the session may do so for a turn that sees less: only what follows is asked from there.
        turn.origin = origin_of(facts.session, None, tainted=tainted)
        turn.entered = turn.require(Action.ENTER, SessionTarget(facts))
        if tainted:
            turn.trail.noted(turn.entered.decision.id, {"tainted": True})
        # What was said of the turn when its token was made holds for all that it runs.
        kind = entry.kind if bound is None else bound.kind
        if kind is not None:
            turn.origin = origin_of(facts.session, kind, tainted=tainted)
        return turn

    async def _is_tainted(self, principal: Principal, bound: TurnBinding, entry: Entry) -> bool:
        """Whether the turn has read untrusted text, as it says itself or has said before. Raises Unavailable where that
        can't be kept or found out."""
        until = principal.expires_at
        if until is None:
            return entry.tainted
        if entry.tainted:  # kept before anything else: also where the call itself will be refused
            await self._taints.report(principal.tenant, bound.turn, until)
        return entry.tainted or await self._taints.holds(principal.tenant, bound.turn)
