"""What is asked of people and tokens, over REST and the command line, and what comes back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Generic, Self, TypeVar

from pydantic import Field, model_validator

from gateway.keys import channel_issuer
from gateway.model import AccessToken, AgentName, Identity, Profile, RoleAssignment
from gateway.tools.arguments import Arguments

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


def assignments(bodies: Sequence[RoleBody]) -> tuple[RoleAssignment, ...]:
    """The roles that were sent."""
    return tuple(RoleAssignment(role=body.role, agent=AgentName(body.agent)) for body in bodies)
