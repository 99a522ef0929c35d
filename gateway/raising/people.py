"""Turns a change of people, roles and ways in into whether it may be made: compared by the decisions before and after.

The rows stay and the people change here. What a role or a service may do is what the rows say of it, whatever it is
called; `identity/roles.py` has the part of the rule that goes by names.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from gateway.identity.outcome import Outcome, Reason
from gateway.identity.roles import (
    RAISED,
    SERVICE,
    holds,
    is_owner,
    may_not_assign,
    may_not_change,
    may_not_merge,
)
from gateway.model import ANY_AGENT, Profile, ProfileId, Requester
from gateway.policy.ahead import Gain, Holder, RowsBySubject, everywhere, first_gain
from gateway.policy.comparison import POSSIBLE
from gateway.policy.rights import FactSet
from gateway.policy.running import POWER, RUNNING
from gateway.ports import Clock, Identities, Sessions
from gateway.raising.identities import Held, HeldIdentities, let_in, subjects_of
from gateway.raising.rows_in_force import RowsInForce
from gateway.raising.words import gain_in_words, in_a_row

_CAN: Final = "An owner can do that."


class PeopleAreWeighed:
    """`identity.outcome.Weighing`. Every method raises Unavailable where the rules or the store are away."""

    def __init__(
        self, identities: Identities, sessions: Sessions, held: HeldIdentities, rows: RowsInForce, clock: Clock
    ) -> None:
        self._identities = identities
        self._sessions = sessions
        self._held = held
        self._rows = rows
        self._clock = clock

    async def change(self, actor: Requester, target: Profile) -> Outcome:
        """What touches somebody and gives nobody anything."""
        compared = await self._compared(actor)
        return await self._outcome(actor, target, compared.touching, target)

    async def switch_on(self, actor: Requester, target: Profile) -> Outcome:
        """A service that the actor has a way in as comes back with what it may do by now."""
        compared = await self._compared(actor)
        return await self._outcome(actor, target, compared.switching_on, target)

    async def assign(self, actor: Requester, before: Profile | None, after: Profile) -> Outcome:
        """Nobody is given by an admin what that admin may not give, by whatever name."""
        compared = await self._compared(actor)
        return await self._outcome(actor, after, compared.assigning, before, after)

    async def speak_as(self, actor: Requester, target: Profile, what: str) -> Outcome:
        """A person is let in by an owner alone; a service by whoever may themselves all that it may."""
        compared = await self._compared(actor)
        takes_part = await self._sessions.takes_part(target.tenant, target.id)
        return await self._outcome(actor, target, compared.speaking_as, target, what, takes_part)

    async def merge(self, actor: Requester, retired: ProfileId, survivor: ProfileId) -> Outcome:
        """An owner's alone, so that there is nothing to compare. The survivor reads what the retired one was told."""
        return Outcome(
            owner=is_owner(actor.profile),
            reasons=(may_not_merge(),),
            tells=(survivor,),
        )

    async def _outcome(
        self, actor: Requester, target: Profile, reasons: Callable[..., Iterator[Reason]], *about: object
    ) -> Outcome:
        found = await asyncio.to_thread(lambda: tuple(reasons(*about)))
        if not found:
            return Outcome(owner=is_owner(actor.profile))
        if target.id == actor.profile.id:  # an owner of themselves: the others who run the place are to know
            tells: Sequence[ProfileId] = sorted(await self._identities.holding(actor.tenant, RAISED))
        else:
            tells = (target.id,)
        return Outcome(owner=is_owner(actor.profile), reasons=found, touches=(target.id,), tells=tuple(tells))

    async def _compared(self, actor: Requester) -> _Compared:
        rows, agents = await self._rows.of(actor.tenant)
        return _Compared(actor, await self._held.of(actor), rows, agents, self._clock.now())


class _Compared:
    """What an actor who is no owner may not do, and why; by the rows in force. Asked on any thread."""

    def __init__(self, actor: Requester, held: Held, rows: RowsBySubject, agents: Iterable[str], now: datetime) -> None:
        self._actor = actor
        self._held = held
        self._rows = rows
        self._agents = set(agents)
        self._now = now

    def touching(self, target: Profile) -> Iterator[Reason]:
        """Somebody with more rights is not touched."""
        named = may_not_change(target)
        if named is not None:
            yield named
        elif self._gain([], target, POWER, {ANY_AGENT}):
            yield Reason(detail=f"This is somebody who runs the place, as an admin does. {_CAN}")
        elif self._gain([self._actor.profile], target, RUNNING):
            yield Reason(detail=f"This is somebody who may do more in running the place than you. {_CAN}")

    def switching_on(self, target: Profile) -> Iterator[Reason]:
        """As `touching`; and a service that the actor has a way in as gives them nothing by that."""
        yield from self.touching(target)
        gain = self._gain([self._held.by_hand], target) if self._has_a_way_in(target) else None
        if gain is not None:
            yield self._through(target, gain)

    def assigning(self, before: Profile | None, after: Profile) -> Iterator[Reason]:
        """Roles are given and taken by name, and by what they come to."""
        named = may_not_assign(self._actor, before, after.roles)
        if named is not None:
            yield named
        if before is not None:
            yield from self.touching(before)
        was = before or replace(after, roles=())
        power = self._gain([was], after, POWER, {ANY_AGENT})
        more = self._gain([was, self._held.by_hand], after, RUNNING)
        if power is not None:
            yield Reason(detail=f"This gives a part in running the place: {_said(power)}. {_CAN}")
        elif more is not None:
            yield Reason(detail=f"This gives {_said(more)}, which you may not yourself. {_CAN}")
        gain = self._gain([was, self._held.by_hand], after) if self._has_a_way_in(was) else None
        if gain is not None:
            yield self._through(after, gain)

    def speaking_as(self, target: Profile, what: str, takes_part: bool) -> Iterator[Reason]:
        """A way in is good for all that its profile may do, now and later."""
        yield from self.touching(target)
        if target.kind != SERVICE:
            yield Reason(detail=f"{what} is a way to sign in as its person, so an owner can do that.")
            return
        gain = self._gain([self._held.by_hand], target)
        if gain is not None:
            detail = f"{what} is a way in as a service that may do what you may not, so an owner can do that."
            gains = gain_in_words(gain)
            yield Reason(detail=f"{detail} You would gain {in_a_row(gains)}.", gains=gains)
        elif unknown := self._roles_without_rows(target):
            detail = f"{what} is a way in as a service with the role {in_a_row(unknown)}, which no row speaks of yet."
            yield Reason(detail=f"{detail} You don't hold it, so an owner can do that.")
        elif takes_part and not self._has_a_way_in(target):
            detail = f"{what} is a way in as a service that takes part in sessions, which you would read as it."
            yield Reason(detail=f"{detail} {_CAN}")

    def _roles_without_rows(self, target: Profile) -> list[str]:
        """Roles that could come to mean anything."""
        roles = (one for one in target.roles if f"role:{one.role}" not in self._rows.subjects)
        return sorted({one.role for one in roles if not holds(self._actor.profile, one)})

    def _has_a_way_in(self, target: Profile) -> bool:
        if target.kind != SERVICE:
            return False
        everybody = (self._held.by_hand, *self._held.services, *self._held.perhaps)
        places = everywhere(self._agents | {role.agent for one in everybody for role in one.roles}, self._rows)
        return any(one.id == target.id for one in let_in(self._held, self._rows, places, self._now))

    def _through(self, service: Profile, gain: Gain) -> Reason:
        gains = gain_in_words(gain)
        detail = f"You have a way in as the service {service.name}, and would gain {in_a_row(gains)}."
        return Reason(detail=f"{detail} {_CAN}", gains=gains)

    def _gain(
        self, was: Sequence[Profile], becomes: Profile, within: FactSet = POSSIBLE, agents: Iterable[str] | None = None
    ) -> Gain | None:
        *others, last = (Holder(self._rows, subjects_of(one)) for one in (*was, becomes))
        theirs = {role.agent for one in (*was, becomes) for role in one.roles}
        places = everywhere(self._agents | theirs, self._rows) if agents is None else agents
        return first_gain(others, last, places, self._now, within)


def _said(gain: Gain) -> str:
    return in_a_row(gain_in_words(gain))
