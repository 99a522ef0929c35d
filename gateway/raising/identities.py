"""Turns an actor into everything that they can call as: a gain of any of it is theirs (design section 5).

The person as each of their credentials has them: with the roles given by hand alone, with those of this credential's
claims, with those of each browser that they are signed in with. And the services that they have a way in as: by a token
that they made, or a sign-in that they linked. A service can make a token for itself and for another one, so this goes
on from service to service; and where nobody knows who made a token, it may have been anybody who could have.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime

from gateway.identity.roles import by_hand, with_claimed
from gateway.model import AgentName, Profile, ProfileId, Requester
from gateway.policy.ahead import Holder, RowsBySubject, first_gain
from gateway.policy.comparison import SubjectsOn
from gateway.ports import Clock, Identities, SignIns


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """The actor as they stay when every credential ends, and whatever else they are or may be."""

    by_hand: Profile
    faces: tuple[Profile, ...]  # the person, `by_hand` among them
    services: tuple[Profile, ...]  # they have a way in as these
    perhaps: tuple[Profile, ...]  # and as these, where they could have made it


def let_in(held: Held, rows: RowsBySubject, agents: Iterable[str], now: datetime) -> Iterator[Profile]:
    """The services that the actor has a way in as. Where nobody knows who made one: theirs, if they could have, which
    is where the service may do nothing that they may not."""
    yield from held.services
    actor = Holder(rows, subjects_of(held.by_hand))
    places = frozenset(agents)
    for service in held.perhaps:
        if first_gain([actor], Holder(rows, subjects_of(service)), places, now) is None:
            yield service


class HeldIdentities:
    """Finds what an actor can call as. Raises Unavailable when the store is away."""

    def __init__(self, identities: Identities, sign_ins: SignIns, clock: Clock) -> None:
        self._identities = identities
        self._sign_ins = sign_ins
        self._clock = clock

    async def of(self, actor: Requester) -> Held:
        """Everything that `actor` can call as now, and could once a disabled service is switched on again."""
        plain = as_given(actor.profile)
        now = self._clock.now()
        browsers = await self._sign_ins.of_profile(actor.tenant, actor.profile.id)
        signed_in = [with_claimed(plain, one.roles) for one in browsers if one.expires_at > now]
        known, unknown = await self._services(actor)
        faces = _different([plain, actor.profile, *signed_in])
        return Held(by_hand=plain, faces=faces, services=known, perhaps=unknown)

    async def _services(self, actor: Requester) -> tuple[tuple[Profile, ...], tuple[Profile, ...]]:
        credentials = await self._identities.service_credentials(actor.tenant, self._clock.now())
        mine: set[ProfileId] = {actor.profile.id, *actor.profile.aliases}
        fresh = set(mine)
        while fresh:
            fresh = {one.service for one in credentials if one.made_by in mine} - mine
            mine |= fresh
        # Who asks a service for a token of its own is not written down.
        unknown = {one.service for one in credentials if one.made_by in (None, one.service)}
        mine -= {actor.profile.id}
        return await self._profiles(actor, mine), await self._profiles(actor, unknown - mine - {actor.profile.id})

    async def _profiles(self, actor: Requester, ids: set[ProfileId]) -> tuple[Profile, ...]:
        found = [await self._identities.profile(actor.tenant, one) for one in sorted(ids)]
        return tuple(one for one in found if one is not None and one.merged_into is None)


def as_given(profile: Profile) -> Profile:
    """The profile with the roles that were given by hand, and no claimed one."""
    return replace(profile, roles=by_hand(profile), claimed=()) if profile.claimed else profile


def subjects_of(profile: Profile) -> SubjectsOn:
    """By agent the subjects that the profile is."""
    return lambda agent: profile.subjects_on(AgentName(agent))


def _different(faces: list[Profile]) -> tuple[Profile, ...]:
    by_roles = {frozenset(face.roles): face for face in reversed(faces)}
    return tuple(reversed(by_roles.values()))
