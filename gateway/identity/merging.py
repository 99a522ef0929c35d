"""Turns two profiles of one human into one: who may ask, which two can be one, and that an owner stays (design 5).

A merge moves sign-ins and sessions. Whoever signed in as the retired profile is the survivor from then on, with the
survivor's rights; whoever is the survivor reads what was the retired one's. So both sides can gain by it, and only an
owner, or the operator of the machine, merges (`roles.may_not_merge`), as only they link a person's sign-in.
"""

from __future__ import annotations

from typing import TypeVar

from gateway.errors import Conflict, Invalid, NotFound
from gateway.identity.outcome import Outcome, Weighing
from gateway.identity.owners import Owners
from gateway.identity.reserved import OPERATOR_ISSUER
from gateway.identity.roles import is_owner
from gateway.model import Profile, ProfileId, Requester
from gateway.ports import Clock, Identities, MergeReport

FoundT = TypeVar("FoundT")


class Merging:
    """Merges in the actor's tenant. Every method raises Unavailable when the store is away."""

    def __init__(self, identities: Identities, owners: Owners, weighing: Weighing, clock: Clock) -> None:
        self._identities = identities
        self._owners = owners
        self._weighing = weighing
        self._clock = clock

    async def merge(self, actor: Requester, retired: ProfileId, into: ProfileId) -> MergeReport:
        """What moved. The same merge again is a no-op with the same answer.

        Raises ToolNotAllowed unless an owner asks; NotFound; Invalid for an `into` that is nobody here, or the same
        profile; Conflict for two that can't be one, and where the tenant would lose its last owner.
        """
        async with self._owners.one_at_a_time:
            outcome = await self._check(actor, retired, into)
            now = self._clock.now()
            told = outcome.notices(actor, now, "merged", retired)
            return _there(await self._identities.merge(actor.tenant, retired, into, now, told=told))

    async def preview(self, actor: Requester, retired: ProfileId, into: ProfileId) -> MergeReport:
        """What `merge` would move; nothing is changed. Raises what `merge` raises."""
        await self._check(actor, retired, into)
        return _there(await self._identities.preview_merge(actor.tenant, retired, into))

    async def _check(self, actor: Requester, retired: ProfileId, into: ProfileId) -> Outcome:
        outcome = await self.weigh(actor, retired, into)
        outcome.check()
        if retired == into:
            raise Invalid.of("into", "itself", "A profile can't be merged into itself. Name the one that is to stay.")
        going = _there(await self._identities.profile(actor.tenant, retired))
        staying = await self._identities.profile(actor.tenant, into)
        if staying is None:
            raise Invalid.of("into", "unknown_person", "This names somebody who is not of your organisation.")
        if going.merged_into is not None:
            return outcome  # the store knows whether it is the same merge again
        for one in (going, staying):
            await self._check_is_no_operator(one)
        if not is_owner(staying):
            await self._owners.check_one_stays(going)
        return outcome

    async def weigh(self, actor: Requester, retired: ProfileId, into: ProfileId) -> Outcome:
        """Whether the actor may merge these."""
        return await self._weighing.merge(actor, retired, into)

    async def _check_is_no_operator(self, profile: Profile) -> None:
        known = await self._identities.identities(profile.tenant, profile.id)
        if any(one.issuer == OPERATOR_ISSUER for one in known):
            raise Conflict("The local operator is the machine's own, and is merged with nobody.")


def check_can_be_one(retired: Profile, survivor: Profile) -> None:
    """Raises Conflict for two profiles that no merge makes one. Asked in the transaction that merges."""
    if retired.merged_into is not None:
        facts: dict[str, object] = {"merged_into": retired.merged_into}
        raise Conflict("This profile was merged into another already.", facts=facts)
    if survivor.merged_into is not None:
        facts = {"merged_into": survivor.merged_into}
        raise Conflict("The profile that is to stay was merged into another itself. Name that one.", facts=facts)
    if survivor.disabled:
        raise Conflict("The profile that is to stay is disabled. Switch it on first.")
    if retired.disabled:
        # Its sign-ins would work again, as the survivor's.
        raise Conflict("This profile is disabled, and a merge would let it sign in again. Switch it on first.")
    if retired.kind != survivor.kind:
        raise Conflict("A person and a service can't be one profile.")


def _there(found: FoundT | None) -> FoundT:
    if found is None:
        raise NotFound
    return found
