"""The people of a tenant over REST and the command line: who they are, what they hold, how they sign in."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from gateway.errors import NotFound
from gateway.identity.merging import Merging
from gateway.identity.people import People
from gateway.identity.tokens import AccessTokens
from gateway.model import (
    AccessToken,
    Action,
    Profile,
    ProfileId,
    Resource,
)
from gateway.operations.found import function
from gateway.operations.people_arguments import (
    IdentityBody,
    Listing,
    MergeBody,
    NewToken,
    OfPerson,
    Person,
    PersonBody,
    PersonPatch,
    RolesBody,
    TokenBody,
    assignments,
)
from gateway.operations.people_details import PeopleDetails
from gateway.policy.permit import Permit
from gateway.policy.targets import FunctionTarget
from gateway.ports import Identities, MergeReport, Page
from gateway.tools.registry import AnyOperation, Operation
from gateway.turn import Turn

FAMILY = (Resource.ADMIN_PEOPLE,)


class PeopleOperations:
    """Builds the operations on people."""

    def __init__(self, people: People, merging: Merging, tokens: AccessTokens, identities: Identities) -> None:
        details = PeopleDetails(people, merging, tokens, identities)
        self._people = people
        self._merging = merging
        self._tokens = tokens
        self._identities = identities
        self.list = _operation("people.list", "Lists the people.", Action.READ, self._run_list)
        self.show = _operation("people.show", "Shows one person.", Action.READ, self._run_show)
        self.add = _operation("people.add", "Adds a person.", Action.EDIT, self._run_add, details.add)
        self.change = _operation(
            "people.change",
            "Changes name, emails or whether they may sign in.",
            Action.EDIT,
            self._run_change,
            details.change,
        )
        self.disable = _operation(
            "people.disable",
            "Ends a person's access; nothing of theirs is removed.",
            Action.EDIT,
            self._run_disable,
            details.disable,
        )
        self.set_roles = _operation(
            "people.roles", "Replaces the roles given by hand.", Action.EDIT, self._run_set_roles, details.role
        )
        self.link = _operation("people.link", "Links a sign-in.", Action.EDIT, self._run_link, details.link)
        self.unlink = _operation("people.unlink", "Unlinks a sign-in.", Action.EDIT, self._run_unlink, details.unlink)
        self.merge = _operation(
            "people.merge",
            "Makes one person of two profiles.",
            Action.MERGE,
            self._run_merge,
            details.merge,
        )
        self.preview_merge = _operation(
            "people.merge.preview", "Says what a merge would move.", Action.MERGE, self._run_preview_merge
        )
        self.create_token = _operation(
            "people.tokens.create",
            "Makes an access token for a service.",
            Action.EDIT,
            self._run_create_token,
            details.create_token,
        )
        self.tokens = _operation("people.tokens.list", "Lists a profile's tokens.", Action.READ, self._run_tokens)
        self.revoke_token = _operation(
            "people.tokens.revoke",
            "Ends a token at once.",
            Action.EDIT,
            self._run_revoke_token,
            details.revoke_token,
            find=_find_token,
        )

    async def _run_list(self, permit: Permit[FunctionTarget], _turn: Turn, arguments: Listing) -> Page[Profile]:
        return await self._identities.people(permit.requester.tenant, limit=arguments.limit, cursor=arguments.cursor)

    async def _run_show(self, permit: Permit[FunctionTarget], _turn: Turn, arguments: OfPerson[None]) -> Person:
        return await self._person(permit, ProfileId(arguments.profile))

    async def _run_add(self, permit: Permit[FunctionTarget], _turn: Turn, body: PersonBody) -> Person:
        profile = await self._people.add(
            permit.requester, name=body.name, emails=body.emails, roles=assignments(body.roles), kind=body.kind
        )
        return Person(profile, ())

    async def _run_change(
        self, permit: Permit[FunctionTarget], _turn: Turn, arguments: OfPerson[PersonPatch]
    ) -> Person:
        body = arguments.body
        profile = ProfileId(arguments.profile)
        await self._people.change(permit.requester, profile, name=body.name, emails=body.emails, disabled=body.disabled)
        return await self._person(permit, profile)

    async def _run_disable(self, permit: Permit[FunctionTarget], _turn: Turn, arguments: OfPerson[None]) -> None:
        await self._people.change(permit.requester, ProfileId(arguments.profile), disabled=True)

    async def _run_set_roles(
        self, permit: Permit[FunctionTarget], _turn: Turn, arguments: OfPerson[RolesBody]
    ) -> Person:
        profile = ProfileId(arguments.profile)
        await self._people.set_roles(permit.requester, profile, assignments(arguments.body.roles))
        return await self._person(permit, profile)

    async def _run_link(self, permit: Permit[FunctionTarget], _turn: Turn, arguments: OfPerson[IdentityBody]) -> Person:
        body, profile = arguments.body, ProfileId(arguments.profile)
        issuer, subject = body.key
        if body.channel is None:
            await self._people.link(permit.requester, profile, issuer=issuer, subject=subject)
        else:
            await self._people.link_sender(
                permit.requester, profile, channel=body.channel, account=body.account or "", sender=subject
            )
        return await self._person(permit, profile)

    async def _run_unlink(self, permit: Permit[FunctionTarget], _turn: Turn, arguments: OfPerson[IdentityBody]) -> None:
        body, profile = arguments.body, ProfileId(arguments.profile)
        issuer, subject = body.key
        await self._people.unlink(permit.requester, profile, issuer=issuer, subject=subject)

    def merging(self, arguments: OfPerson[MergeBody]) -> AnyOperation:
        """What a request to merge asks for: to merge, or to be told what that would do."""
        return self.preview_merge if arguments.body.preview else self.merge

    async def _run_merge(
        self, permit: Permit[FunctionTarget], _turn: Turn, arguments: OfPerson[MergeBody]
    ) -> MergeReport:
        retired, into = ProfileId(arguments.profile), ProfileId(arguments.body.into)
        return await self._merging.merge(permit.requester, retired, into)

    async def _run_preview_merge(
        self, permit: Permit[FunctionTarget], _turn: Turn, arguments: OfPerson[MergeBody]
    ) -> MergeReport:
        retired, into = ProfileId(arguments.profile), ProfileId(arguments.body.into)
        return await self._merging.preview(permit.requester, retired, into)

    async def _run_create_token(
        self, permit: Permit[FunctionTarget], _turn: Turn, arguments: OfPerson[TokenBody]
    ) -> NewToken:
        return await make_token(self._tokens, permit, ProfileId(arguments.profile), arguments.body)

    async def _run_tokens(
        self, permit: Permit[FunctionTarget], _turn: Turn, arguments: OfPerson[None]
    ) -> Page[AccessToken]:
        found = await self._tokens.list(permit.requester, ProfileId(arguments.profile))
        return Page(tuple(found), None)

    async def _run_revoke_token(self, permit: Permit[FunctionTarget], _turn: Turn, arguments: OfPerson[str]) -> None:
        await self._tokens.revoke(permit.requester, ProfileId(arguments.profile), arguments.body)

    async def _person(self, permit: Permit[FunctionTarget], profile: ProfileId) -> Person:
        tenant = permit.requester.tenant
        found = await self._identities.profile(tenant, profile)
        if found is None:
            raise NotFound
        return Person(found, tuple(await self._identities.identities(tenant, profile)))


async def make_token(
    tokens: AccessTokens, permit: Permit[FunctionTarget], profile: ProfileId, body: TokenBody
) -> NewToken:
    """A token for `profile`. Raises Invalid with every fault, ToolNotAllowed for one that speaks for somebody else."""
    secret, token = await tokens.create(
        permit.requester,
        profile,
        name=body.name,
        expires_in_days=body.expires_in_days,
        scopes=None if body.scopes is None else frozenset(body.scopes),
    )
    return NewToken(secret, token)


def _operation(
    name: str,
    summary: str,
    action: Action,
    run: Callable[..., Awaitable[object]],
    details: Callable[..., Awaitable[dict[str, object]]] | None = None,
    *,
    find: Callable[..., Awaitable[FunctionTarget]] | None = None,
) -> AnyOperation:
    """An operation on people; one that changes something has `details` for the audit."""
    changes = details is not None
    return Operation(
        name=name,
        summary=summary,
        action=action,
        family=FAMILY,
        find=find or _find,
        run=run,
        details=details,
        effect=changes,
        raises_epoch=changes,
    )


async def _find(turn: Turn, arguments: OfPerson[Any] | PersonBody | Listing) -> FunctionTarget:
    match arguments:
        case OfPerson():
            return function(turn, Resource.ADMIN_PEOPLE, arguments.profile)
        case PersonBody():
            return function(turn, Resource.ADMIN_PEOPLE, f"new {arguments.kind}")
        case _:
            return function(turn, Resource.ADMIN_PEOPLE)


async def _find_token(turn: Turn, arguments: OfPerson[str]) -> FunctionTarget:
    return function(turn, Resource.ADMIN_PEOPLE, arguments.body)
