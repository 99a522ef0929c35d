"""Turns a session's key or id into the origin of a turn: the person enters it, if the policy lets them.

A request that names no session is made from outside any (design section 6).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from gateway.errors import NotFound
from gateway.model import Action, Resource, TenantId
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
        bound, until = turn.requester.principal.turn, turn.requester.principal.expires_at
        tainted = entry.tainted
        if bound is not None and until is not None:
            tainted = await self._is_tainted(turn.tenant, bound.turn, until, said=tainted)
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

    async def _is_tainted(self, tenant: TenantId, turn: str, until: datetime, *, said: bool) -> bool:
        """Whether the turn has read untrusted text, as it says itself or has said before. Raises Unavailable where that
        can't be kept or found out."""
        if said:  # kept before anything else: also where the call itself will be refused
            await self._taints.report(tenant, turn, until)
        return said or await self._taints.holds(tenant, turn)
