"""Turns a person into what they may do: by agent and kind of thing, and the sessions that they may do something to."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.model import OUTSIDE, Action, AgentName, Profile, Scope, Session, TenantId, Whose
from gateway.model import SessionFacts as Facts
from gateway.operations.somebody import as_requester
from gateway.policy.comparison import POSSIBLE
from gateway.policy.in_force import RightsInForce
from gateway.policy.population import Words, grouped
from gateway.policy.relations import readable_after, whose_of
from gateway.policy.targets import SessionTarget
from gateway.ports import Page, SessionFilter, Sessions
from gateway.turn import Turn


@dataclass(frozen=True, slots=True, kw_only=True)
class Reachable:
    """A session, whose it is to them, and the row that allows it."""

    session: Session
    whose: Whose
    rule: str | None
    reads_after: int


class WhatCan:
    """Answers for a stored profile."""

    def __init__(self, sessions: Sessions, rights: RightsInForce) -> None:
        self._sessions = sessions
        self._rights = rights

    async def abilities(self, turn: Turn, profile: Profile, agent: AgentName | None) -> list[Words]:
        """All that the rows allow them, invariants taken off. Empty for a profile that is not active."""
        if profile.disabled or profile.merged_into is not None:
            return []
        rights = await self._rights.of(turn.state, turn.at)
        found: list[Words] = []
        for place in sorted(turn.state.agents) if agent is None else [agent]:
            found.extend(grouped(place, rights.of(profile.subjects_on(place), place) & POSSIBLE))
        return found

    async def sessions(
        self, turn: Turn, profile: Profile, action: Action, agent: AgentName | None, *, limit: int, cursor: str | None
    ) -> Page[Reachable]:
        """The sessions on which they may do `action` from outside any, newest first. Raises Invalid for no cursor."""
        if profile.disabled or profile.merged_into is not None:
            return Page((), None)
        scope = turn.authorize.scope_of(turn, as_requester(turn, profile), action)
        page = await self.in_scope(turn.tenant, scope, agent, limit=limit, cursor=cursor)
        return Page(tuple(self._reachable(turn, profile, action, one) for one in page.items), page.next_cursor)

    async def in_scope(
        self, tenant: TenantId, scope: Scope, agent: AgentName | None, *, limit: int, cursor: str | None
    ) -> Page[Facts]:
        """The sessions of a scope with those who take part, newest first. Raises Invalid for no cursor."""
        page = await self._sessions.list(tenant, scope, SessionFilter(agent=agent), limit=limit, cursor=cursor)
        taking_part = await self._sessions.participants(tenant, {one.root for one in page.items})
        facts = (Facts(session=one, participants=tuple(taking_part.get(one.root, ()))) for one in page.items)
        return Page(tuple(facts), page.next_cursor)

    def _reachable(self, turn: Turn, profile: Profile, action: Action, facts: Facts) -> Reachable:
        verdict = turn.authorize.weigh(turn, as_requester(turn, profile), OUTSIDE, action, SessionTarget(facts))
        return Reachable(
            session=facts.session,
            whose=whose_of(facts, profile.id),
            rule=verdict.rule,
            reads_after=readable_after(facts, profile.id),
        )
