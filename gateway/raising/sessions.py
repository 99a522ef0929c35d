"""Turns who a shared session is given to, or who takes part in it, into whether somebody gains by saying so themselves.

A session is somebody's own, one that they take part in, or another's, and the rows say of each what they may do.
Whoever may hand one over, by a row that speaks of other people's, must not get by that what the row does not give.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import datetime
from typing import Final

from gateway.identity.outcome import Outcome, Reason
from gateway.identity.roles import is_owner
from gateway.model import AgentName, Chat, Profile, ProfileId, Relation, Requester, Resource, SessionFacts, Whose
from gateway.policy.ahead import Gain, Holder, RowsBySubject, everywhere, first_gain
from gateway.policy.comparison import POSSIBLE
from gateway.policy.relations import whose_of
from gateway.policy.rights import FactSet, facts_in, place_of, set_of
from gateway.ports import Clock, Sessions
from gateway.raising.identities import Held, HeldIdentities, let_in, subjects_of
from gateway.raising.rows_in_force import RowsInForce
from gateway.raising.words import gain_in_words, in_a_row

_NEARER: Final = (Whose.OTHER, Whose.SHARED, Whose.OWN)
_SHARED: Final = tuple(fact for fact in facts_in(POSSIBLE) if fact.resource is Resource.SESSION_SHARED)


class SessionsAreWeighed:
    """Compares how people stand to a session before and after. Raises Unavailable where rules or store are away."""

    def __init__(self, sessions: Sessions, held: HeldIdentities, rows: RowsInForce, clock: Clock) -> None:
        self._sessions = sessions
        self._held = held
        self._rows = rows
        self._clock = clock

    async def owner(self, actor: Requester, facts: SessionFacts, owner: ProfileId) -> Outcome:
        """A new owner; one who did not take part does from then on."""
        return await self._weigh(actor, facts, {owner: Whose.OWN})

    async def people(self, actor: Requester, facts: SessionFacts, people: Collection[ProfileId]) -> Outcome:
        """Who takes part from now on."""
        return await self._weigh(actor, facts, dict.fromkeys(people, Whose.SHARED))

    async def _weigh(self, actor: Requester, facts: SessionFacts, becomes: Mapping[ProfileId, Whose]) -> Outcome:
        if facts.session.private or facts.session.parent is not None:
            return Outcome(owner=is_owner(actor.profile))  # it is given to nobody (`sessions/participants.py`)
        nearer = {
            one: whose for one, whose in becomes.items() if _NEARER.index(whose) > _NEARER.index(whose_of(facts, one))
        }
        held = await self._held.of(actor) if nearer else None
        if held is None or nearer.keys().isdisjoint(one.id for one in (held.by_hand, *held.services, *held.perhaps)):
            return Outcome(owner=is_owner(actor.profile))
        rows, all_agents = await self._rows.of(actor.tenant)
        agents = await self._sessions.agents_of_tree(actor.tenant, facts.session.root)
        compared = _Compared(held, facts, rows, agents, all_agents, self._clock.now())
        reasons = await asyncio.to_thread(lambda: tuple(compared.reasons(nearer)))
        told = {facts.session.owner, *(one.profile for one in facts.participants)}
        return Outcome(owner=is_owner(actor.profile), reasons=reasons, tells=tuple(sorted(told)))


class _Compared:
    """What an actor's own people and services would gain in one session. Asked on any thread."""

    def __init__(
        self,
        held: Held,
        facts: SessionFacts,
        rows: RowsBySubject,
        agents: Collection[AgentName],
        all_agents: Collection[AgentName],
        now: datetime,
    ) -> None:
        """`agents` are those of the session's tree."""
        self._held = held
        self._all_agents = all_agents
        self._facts = facts
        self._rows = rows
        self._agents = agents
        self._now = now

    def reasons(self, nearer: Mapping[ProfileId, Whose]) -> Iterator[Reason]:
        """One, where somebody of theirs gains by standing nearer to the session."""
        for face in self._held.faces:
            gain = self._gain(face, nearer[face.id], []) if face.id in nearer else None
            if gain is not None:
                yield _reason("You would gain {gains} in this session.", gain)
                return
        for service in let_in(self._held, self._rows, everywhere(self._all_agents, self._rows), self._now):
            gain = self._gain(service, nearer[service.id], [self._held.by_hand]) if service.id in nearer else None
            if gain is not None:
                yield _reason(f"You have a way in as the service {service.name}, which would gain {{gains}}.", gain)
                return

    def _gain(self, profile: Profile, becomes: Whose, beside: list[Profile]) -> Gain | None:
        for outside in (False, True):
            was = [self._holder(one, whose_of(self._facts, one.id), outside) for one in (profile, *beside)]
            gain = first_gain(was, self._holder(profile, becomes, outside), self._agents, self._now)
            if gain is not None:
                return gain
        return None

    def _holder(self, profile: Profile, whose: Whose, outside: bool) -> Holder:
        return Holder(self._rows, subjects_of(profile), _seen_as(whose, outside))


def _reason(said: str, gain: Gain) -> Reason:
    gains = gain_in_words(gain)
    return Reason(detail=f"{said.format(gains=in_a_row(gains))} An owner of the organisation can do that.", gains=gains)


def _seen_as(whose: Whose, outside: bool) -> Callable[[FactSet], FactSet]:
    """The facts of a shared session that is this to somebody, each in the place that it has where it is one's own.

    From inside a session the relation stays what it is. From outside it is `self` for what is one's own or shared with
    one, and `same_agent` for the others.
    """
    relations = [Relation.SAME_AGENT if whose is Whose.OTHER else Relation.SELF] if outside else list(Relation)
    chats = [Chat.PRIVATE] if outside else list(Chat)
    mine = [one for one in _SHARED if one.whose is whose and one.relation in relations and one.chat in chats]
    own = mine[0]._replace(whose=Whose.OWN, relation=Relation.SELF if outside else mine[0].relation)
    mask, distance = set_of(mine), place_of(mine[0]) - place_of(own)
    return lambda facts: (facts & mask) >> distance
