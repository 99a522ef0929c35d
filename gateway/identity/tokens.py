"""Turns a person's wish for an access token into one that carries no more than they have (design section 5.4)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from gateway.errors import Conflict, Fault, Invalid, NotFound, ToolNotAllowed
from gateway.identity.access_tokens import mint
from gateway.identity.outcome import Outcome, Reason, Weighing
from gateway.identity.reserved import OPERATOR_ISSUER
from gateway.identity.roles import SERVICE, is_owner
from gateway.identity.scopes import AREAS, reaches
from gateway.identity.turn_tokens import MAKES_NOTHING
from gateway.keys import new_id
from gateway.model import AccessToken, Profile, ProfileId, Requester
from gateway.ports import Clock, Identities

_LONGEST_NAME = 100
_MOST_DAYS = 365
_MOST_TOKENS = 100  # of one profile; those that have ended by themselves count too, until they are revoked


class AccessTokens:
    """The access tokens of a tenant's people. Every method raises Unavailable when the store is away."""

    def __init__(self, identities: Identities, weighing: Weighing, clock: Clock) -> None:
        self._identities = identities
        self._weighing = weighing
        self._clock = clock
        # Two that are asked for at once must not both be the last one.
        self._one_at_a_time = asyncio.Lock()

    async def create(
        self,
        actor: Requester,
        profile: ProfileId,
        *,
        name: str,
        expires_in_days: int,
        scopes: frozenset[str] | None = None,
    ) -> tuple[str, AccessToken]:
        """The secret, which nobody can read again, and the token as stored. `scopes` None: those of the credential.

        It ends when the credential does that it is made with, where that is earlier than asked for: or a token of an
        hour would be worth one of a year. The local operator's never ends.

        Raises Invalid with every fault, scopes that the actor's own credential lacks among them; NotFound;
        ToolNotAllowed for a token that speaks for another person, and for whoever asks with a turn token; Conflict for
        a profile that is not active, or has as many tokens as one may have.
        """
        if actor.principal.turn is not None:
            raise ToolNotAllowed(MAKES_NOTHING)
        wanted = actor.principal.scopes if scopes is None else scopes
        faults = [*_name_faults(name), *_expiry_faults(expires_in_days), *_scope_faults(actor, wanted)]
        if faults:
            raise Invalid(faults)
        target = await self._target(actor, profile)
        if target.merged_into is not None or target.disabled:
            raise Conflict("This profile is not active, so it can have no new token.")
        outcome = await self.weigh_token(actor, target)
        outcome.check()
        secret, digest = mint()
        now = self._clock.now()
        token = _new_token(actor, target, now, name, wanted, _end(actor, now, expires_in_days))
        async with self._one_at_a_time:
            if len(await self._identities.tokens(target.tenant, target.id)) >= _MOST_TOKENS:
                raise Conflict(f"This profile has {_MOST_TOKENS} access tokens. Revoke one that is not used any more.")
            told = outcome.notices(actor, now, "token", token.name)
            await self._identities.add_token(token, digest, told=told)
        return secret, token

    async def list(self, actor: Requester, profile: ProfileId) -> Sequence[AccessToken]:
        """The profile's tokens, newest first. Raises NotFound; ToolNotAllowed for somebody with more rights."""
        target = await self._target(actor, profile)
        (await self.weigh_revoking(actor, target)).check()
        return await self._identities.tokens(actor.tenant, target.id)

    async def revoke(self, actor: Requester, profile: ProfileId, token: str) -> None:
        """Ends a token at once. Raises NotFound, also for one already revoked; ToolNotAllowed as `list`."""
        target = await self._target(actor, profile)
        outcome = await self.weigh_revoking(actor, target)
        outcome.check()
        now = self._clock.now()
        told = outcome.notices(actor, now, "token_ended", token[:_LONGEST_NAME])
        if not await self._identities.revoke_token(actor.tenant, target.id, token, now, told=told):
            raise NotFound

    async def weigh_token(self, actor: Requester, target: Profile) -> Outcome:
        """Whether the actor may make a token for somebody. It speaks for its profile, so making one for another person
        would be reading as them: the operator of the machine alone does that, and no owner."""
        if target.id == actor.profile.id:
            return Outcome(owner=is_owner(actor.profile))
        if target.kind != SERVICE and actor.principal.issuer != OPERATOR_ISSUER:
            nobody = Reason(detail="A token speaks for its person, so everybody makes their own.")
            return Outcome(owner=False, reasons=(nobody,))
        return await self._weighing.speak_as(actor, target, "A token")

    async def weigh_revoking(self, actor: Requester, target: Profile) -> Outcome:
        """Whether the actor may see and end somebody's tokens; their own they may."""
        if target.id == actor.profile.id:
            return Outcome(owner=is_owner(actor.profile))
        return await self._weighing.change(actor, target)

    async def _target(self, actor: Requester, profile: ProfileId) -> Profile:
        target = await self._identities.profile(actor.tenant, profile)
        if target is None:
            raise NotFound
        return target


def _end(actor: Requester, now: datetime, days: int) -> datetime:
    asked, own = now + timedelta(days=days), actor.principal.expires_at
    return asked if own is None or actor.principal.issuer == OPERATOR_ISSUER else min(asked, own)


def _new_token(
    actor: Requester, target: Profile, now: datetime, name: str, scopes: frozenset[str], end: datetime
) -> AccessToken:
    return AccessToken(
        id=new_id("tok", now),
        tenant=target.tenant,
        profile=target.id,
        name=name.strip(),
        scopes=scopes,
        created_at=now,
        expires_at=end,
        made_by=actor.profile.id,
    )


def _name_faults(name: str) -> Iterator[Fault]:
    if not (1 <= len(name.strip()) <= _LONGEST_NAME and name.strip().isprintable()):
        yield Fault(field="name", rule="text", message=f"must have 1 to {_LONGEST_NAME} characters, on one line")


def _expiry_faults(days: int) -> Iterator[Fault]:
    if not 1 <= days <= _MOST_DAYS:
        message = f"must be from 1 to {_MOST_DAYS}; a token ends no later than the credential that it is made with"
        yield Fault(field="expires_in_days", rule="range", message=message)


def _scope_faults(actor: Requester, wanted: frozenset[str]) -> Iterator[Fault]:
    if not wanted:
        yield Fault(field="scopes", rule="required", message=f"name at least one of {', '.join(sorted(AREAS))}")
    for unknown in sorted(wanted - AREAS):
        yield Fault(field="scopes", rule="known", message=f"{unknown} is not one of {', '.join(sorted(AREAS))}")
    if not reaches(actor.principal.scopes, wanted & AREAS):
        message = "a token can't carry more than the credential that it is made with"
        yield Fault(field="scopes", rule="subset", message=message)
