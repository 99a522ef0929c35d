"""What the audit notes of a change of people, before it is made: what is asked for, and what that comes to.

What a change comes to is worked out twice: here, before its intent is on disk, so that the audit has it either way; and
by what makes the change, under its lock.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from gateway.identity.merging import Merging
from gateway.identity.outcome import Outcome
from gateway.identity.people import People
from gateway.identity.tokens import AccessTokens
from gateway.model import Profile, ProfileId, Requester
from gateway.operations.found import LONGEST_NAME, few, role_names
from gateway.operations.people_arguments import (
    IdentityBody,
    MergeBody,
    OfPerson,
    PersonBody,
    PersonPatch,
    RolesBody,
    TokenBody,
    assignments,
)
from gateway.policy.permit import Permit
from gateway.policy.targets import FunctionTarget
from gateway.ports import Identities
from gateway.turn import Turn


class PeopleDetails:
    """`Operation.details` of the operations on people."""

    def __init__(self, people: People, merging: Merging, tokens: AccessTokens, identities: Identities) -> None:
        self._people = people
        self._merging = merging
        self._tokens = tokens
        self._identities = identities

    async def add(self, permit: Permit[FunctionTarget], _turn: Turn, body: PersonBody) -> dict[str, object]:
        """Somebody new."""
        roles = assignments(body.roles)
        outcome = await self._people.weigh_newcomer(permit.requester, body.kind, roles)
        shown = {"name": body.name, "kind": body.kind, "emails": few(body.emails), "roles": role_names(roles)}
        return shown | outcome.marks()

    async def change(
        self, permit: Permit[FunctionTarget], _turn: Turn, arguments: OfPerson[PersonPatch]
    ) -> dict[str, object]:
        """Name, emails, whether they may sign in; and what was before."""
        body, before = arguments.body, await self._target(permit, arguments)
        asked = body.model_dump(exclude_none=True)
        if before is None:
            return {**_brief(asked), "before": {}}
        weigh = self._people.weigh_change(permit.requester, before, emails=body.emails, disabled=body.disabled)
        was = {field: getattr(before, field) for field in asked}
        return {**_brief(asked), "before": _brief(was), **(await weigh).marks()}

    async def disable(self, permit: Permit[FunctionTarget], _turn: Turn, of: OfPerson[None]) -> dict[str, object]:
        """That they may not sign in any more."""
        before = await self._target(permit, of)
        if before is None:
            return {"disabled": True}
        weigh = self._people.weigh_change(permit.requester, before, emails=None, disabled=True)
        return {"disabled": True, **(await weigh).marks()}

    async def role(
        self, permit: Permit[FunctionTarget], _turn: Turn, arguments: OfPerson[RolesBody]
    ) -> dict[str, object]:
        """The roles, and those before."""
        roles, before = assignments(arguments.body.roles), await self._target(permit, arguments)
        if before is None:
            return {"roles": role_names(roles), "before": []}
        outcome = await self._people.weigh_roles(permit.requester, before, roles)
        return {"roles": role_names(roles), "before": role_names(before.roles), **outcome.marks()}

    async def link(self, permit: Permit[FunctionTarget], _turn: Turn, of: OfPerson[IdentityBody]) -> dict[str, object]:
        """The sign-in."""
        return {"identity": "#".join(of.body.key)} | await self._marks(permit, of, self._people.weigh_link)

    async def unlink(
        self, permit: Permit[FunctionTarget], _turn: Turn, of: OfPerson[IdentityBody]
    ) -> dict[str, object]:
        """The sign-in."""
        return {"identity": "#".join(of.body.key)} | await self._marks(permit, of, self._people.weigh_unlink)

    async def merge(self, permit: Permit[FunctionTarget], _turn: Turn, of: OfPerson[MergeBody]) -> dict[str, object]:
        """Both profiles."""
        retired, into = of.profile[:LONGEST_NAME], of.body.into[:LONGEST_NAME]
        outcome = await self._merging.weigh(permit.requester, ProfileId(retired), ProfileId(into))
        return {"retired": retired, "survivor": into, **outcome.marks()}

    async def create_token(
        self, permit: Permit[FunctionTarget], turn: Turn, of: OfPerson[TokenBody]
    ) -> dict[str, object]:
        """What the token will be able to do and for how long."""
        shown = await token_details(permit, turn, of.body)
        return shown | await self._marks(permit, of, self._tokens.weigh_token)

    async def revoke_token(self, permit: Permit[FunctionTarget], _turn: Turn, of: OfPerson[str]) -> dict[str, object]:
        """Whose it is."""
        return {"profile": of.profile[:LONGEST_NAME]} | await self._marks(permit, of, self._tokens.weigh_revoking)

    async def _marks(
        self,
        permit: Permit[FunctionTarget],
        of: OfPerson[Any],
        weigh: Callable[[Requester, Profile], Awaitable[Outcome]],
    ) -> dict[str, object]:
        target = await self._target(permit, of)
        return {} if target is None else (await weigh(permit.requester, target)).marks()

    async def _target(self, permit: Permit[FunctionTarget], of: OfPerson[Any]) -> Profile | None:
        return await self._identities.profile(permit.requester.tenant, ProfileId(of.profile))


async def token_details(_permit: Permit[FunctionTarget], _turn: Turn, body: TokenBody) -> dict[str, object]:
    """What a new token will be able to do and for how long, for the audit."""
    scopes = "those of the credential" if body.scopes is None else few(sorted(body.scopes))
    return {"name": body.name, "scopes": scopes, "expires_in_days": body.expires_in_days}


def _brief(fields: Mapping[str, Any]) -> dict[str, object]:
    return {name: few(value) if isinstance(value, list | tuple) else value for name, value in fields.items()}
