"""The people of a tenant over REST and the command line: who they are, what they hold, how they sign in."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Generic, Self, TypeVar

from pydantic import Field, model_validator

from gateway.errors import NotFound
from gateway.identity.merging import Merging
from gateway.identity.people import People
from gateway.identity.tokens import AccessTokens
from gateway.keys import channel_issuer
from gateway.model import AccessToken, Action, AgentName, Identity, Profile, ProfileId, Resource, RoleAssignment
from gateway.operations.found import LONGEST_NAME, few, function, role_names
from gateway.policy.permit import Permit
from gateway.policy.targets import FunctionTarget
from gateway.ports import Identities, MergeReport, Page
from gateway.tools.arguments import Arguments
from gateway.tools.registry import AnyOperation, Operation
from gateway.turn import Turn

FAMILY = (Resource.ADMIN_PEOPLE,)
Text = Annotated[str, Field(min_length=1, max_length=512)]
BodyT = TypeVar("BodyT")


class RoleBody(Arguments):
    """A role on one agent, or on all ("*")."""

    role: Text
    agent: Text = "*"


class PersonBody(Arguments):
    """`POST /v1/admin/people`."""

    name: Text
    emails: list[Text] = Field(default_factory=list)
    roles: list[RoleBody] = Field(default_factory=list)
    kind: Text = "person"


class PersonPatch(Arguments):
    """`PATCH /v1/admin/people/{id}`; a field that is not sent stays."""

    name: Text | None = None
    emails: list[Text] | None = None
    disabled: bool | None = None


class RolesBody(Arguments):
    """`PUT /v1/admin/people/{id}/roles`."""

    roles: list[RoleBody]


class IdentityBody(Arguments):
    """`POST` and `DELETE /v1/admin/people/{id}/identities`: a sign-in, or a sender of a channel."""

    issuer: Text | None = None
    subject: Text | None = None
    channel: Text | None = None
    account: Text | None = None
    sender: Text | None = None

    @model_validator(mode="after")
    def _one_of_two(self) -> Self:
        if (
            self.model_fields_set not in (_SIGN_IN, _SENDER)
            or None in self.model_dump(include=self.model_fields_set).values()
        ):
            raise ValueError("say 'issuer' and 'subject', or 'channel', 'account' and 'sender'")
        return self

    @property
    def key(self) -> tuple[str, str]:
        """The identity key: issuer and subject."""
        if self.channel is None:
            return self.issuer or "", self.subject or ""
        return channel_issuer(self.channel, self.account or ""), self.sender or ""


_SIGN_IN = {"issuer", "subject"}
_SENDER = {"channel", "account", "sender"}


class MergeBody(Arguments):
    """`POST /v1/admin/people/{id}/merge`: the profile of the path is retired, and `into` stays."""

    into: Text
    preview: bool = False


class TokenBody(Arguments):
    """A new access token. Without scopes it reaches what the credential reaches that makes it."""

    name: Text
    expires_in_days: int = 90
    scopes: list[Text] | None = None


@dataclass(frozen=True, slots=True)
class OfPerson(Generic[BodyT]):
    """Arguments about one profile."""

    profile: str
    body: BodyT


@dataclass(frozen=True, slots=True)
class Listing:
    """Arguments of a list of people."""

    limit: int
    cursor: str | None


@dataclass(frozen=True, slots=True)
class Person:
    """A profile with the principals that are linked to it."""

    profile: Profile
    identities: tuple[Identity, ...]


@dataclass(frozen=True, slots=True)
class NewToken:
    """A token with its secret, which is shown this once."""

    secret: str
    token: AccessToken


class PeopleOperations:
    """Builds the operations on people."""

    def __init__(self, people: People, merging: Merging, tokens: AccessTokens, identities: Identities) -> None:
        self._people = people
        self._merging = merging
        self._tokens = tokens
        self._identities = identities
        self.list = _operation("people.list", "Lists the people.", Action.READ, self._run_list)
        self.show = _operation("people.show", "Shows one person.", Action.READ, self._run_show)
        self.add = _operation("people.add", "Adds a person.", Action.EDIT, self._run_add, _add_details)
        self.change = _operation(
            "people.change",
            "Changes name, emails or whether they may sign in.",
            Action.EDIT,
            self._run_change,
            self._change_details,
        )
        self.disable = _operation(
            "people.disable",
            "Ends a person's access; nothing of theirs is removed.",
            Action.EDIT,
            self._run_disable,
            _disable_details,
        )
        self.set_roles = _operation(
            "people.roles", "Replaces the roles given by hand.", Action.EDIT, self._run_set_roles, self._role_details
        )
        self.link = _operation("people.link", "Links a sign-in.", Action.EDIT, self._run_link, _link_details)
        self.unlink = _operation("people.unlink", "Unlinks a sign-in.", Action.EDIT, self._run_unlink, _link_details)
        self.merge = _operation(
            "people.merge",
            "Makes one person of two profiles.",
            Action.MERGE,
            self._run_merge,
            _merge_details,
        )
        self.preview_merge = _operation(
            "people.merge.preview", "Says what a merge would move.", Action.MERGE, self._run_preview_merge
        )
        self.create_token = _operation(
            "people.tokens.create",
            "Makes an access token for a service.",
            Action.EDIT,
            self._run_create_token,
            _create_token_details,
        )
        self.tokens = _operation("people.tokens.list", "Lists a profile's tokens.", Action.READ, self._run_tokens)
        self.revoke_token = _operation(
            "people.tokens.revoke",
            "Ends a token at once.",
            Action.EDIT,
            self._run_revoke_token,
            _revoke_token_details,
            find=_find_token,
        )

    async def _run_list(self, permit: Permit[FunctionTarget], _turn: Turn, arguments: Listing) -> Page[Profile]:
        return await self._identities.people(permit.requester.tenant, limit=arguments.limit, cursor=arguments.cursor)

    async def _run_show(self, permit: Permit[FunctionTarget], _turn: Turn, arguments: OfPerson[None]) -> Person:
        return await self._person(permit, ProfileId(arguments.profile))

    async def _run_add(self, permit: Permit[FunctionTarget], _turn: Turn, body: PersonBody) -> Person:
        profile = await self._people.add(
            permit.requester, name=body.name, emails=body.emails, roles=_roles(body.roles), kind=body.kind
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
        await self._people.set_roles(permit.requester, profile, _roles(arguments.body.roles))
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

    async def _change_details(
        self, permit: Permit[FunctionTarget], _turn: Turn, arguments: OfPerson[PersonPatch]
    ) -> dict[str, object]:
        asked = arguments.body.model_dump(exclude_none=True)
        before = await self._identities.profile(permit.requester.tenant, ProfileId(arguments.profile))
        was = {} if before is None else {field: getattr(before, field) for field in asked}
        return {**_brief(asked), "before": _brief(was)}

    async def _role_details(
        self, permit: Permit[FunctionTarget], _turn: Turn, arguments: OfPerson[RolesBody]
    ) -> dict[str, object]:
        before = await self._identities.profile(permit.requester.tenant, ProfileId(arguments.profile))
        roles = role_names(_roles(arguments.body.roles))
        return {"roles": roles, "before": [] if before is None else role_names(before.roles)}

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


async def token_details(_permit: Permit[FunctionTarget], _turn: Turn, body: TokenBody) -> dict[str, object]:
    """What a new token will be able to do and for how long, for the audit."""
    scopes = "those of the credential" if body.scopes is None else few(sorted(body.scopes))
    return {"name": body.name, "scopes": scopes, "expires_in_days": body.expires_in_days}


async def _add_details(_permit: Permit[FunctionTarget], _turn: Turn, body: PersonBody) -> dict[str, object]:
    roles = role_names(_roles(body.roles))
    return {"name": body.name, "kind": body.kind, "emails": few(body.emails), "roles": roles}


async def _disable_details(_permit: Permit[FunctionTarget], _turn: Turn, _of: OfPerson[None]) -> dict[str, object]:
    return {"disabled": True}


async def _link_details(_permit: Permit[FunctionTarget], _turn: Turn, of: OfPerson[IdentityBody]) -> dict[str, object]:
    return {"identity": "#".join(of.body.key)}


async def _merge_details(_permit: Permit[FunctionTarget], _turn: Turn, of: OfPerson[MergeBody]) -> dict[str, object]:
    return {"retired": of.profile[:LONGEST_NAME], "survivor": of.body.into[:LONGEST_NAME]}


async def _create_token_details(
    permit: Permit[FunctionTarget], turn: Turn, of: OfPerson[TokenBody]
) -> dict[str, object]:
    return await token_details(permit, turn, of.body)


async def _revoke_token_details(_permit: Permit[FunctionTarget], _turn: Turn, of: OfPerson[str]) -> dict[str, object]:
    return {"profile": of.profile[:LONGEST_NAME]}


def _brief(fields: Mapping[str, Any]) -> dict[str, object]:
    return {name: few(value) if isinstance(value, list | tuple) else value for name, value in fields.items()}


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


def _roles(bodies: list[RoleBody]) -> tuple[RoleAssignment, ...]:
    return tuple(RoleAssignment(role=body.role, agent=AgentName(body.agent)) for body in bodies)
