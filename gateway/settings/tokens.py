"""Whose tokens are good besides our own: signed ones, those of a proxy, and opaque ones that are asked about."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, IPvAnyNetwork, ValidationInfo, field_validator

from gateway.settings.tables import (
    Algorithm,
    Group,
    GroupRoles,
    GroupsClaim,
    NonEmpty,
    OneTenant,
    Provision,
    TenantClaim,
    no_setting,
    safe_url,
)


class Issuer(Group):
    """A trusted OIDC issuer. What has no default must be said: nothing about a token is taken on trust."""

    issuer: NonEmpty = Field(description="The `iss` of its tokens, byte for byte; https, or http on this machine.")
    audience: NonEmpty = Field(description="The `aud` that its tokens must name.")
    algorithms: tuple[Algorithm, ...] = Field(
        min_length=1, description="Signatures to accept. The algorithm never comes from the token."
    )
    tenant: OneTenant = None
    tenant_claim: TenantClaim = None
    jwks_uri: NonEmpty | None = Field(
        default=None, description="Where its keys are; without it they are found by discovery."
    )
    trust_email: bool = Field(
        default=False, description="Whether a verified email of this issuer may link to a profile."
    )
    provision: Provision = False
    accept_plain_typ: bool = Field(
        default=False,
        description="Whether `typ: JWT` or none passes for an access token, for issuers without RFC 9068.",
    )
    scopes: Literal["person", "token"] = Field(
        default="token",
        description="What a token may do: all that the person may, or only what its `scope` claim names.",
    )

    groups_claim: GroupsClaim = "groups"
    roles: GroupRoles = Field(default={})

    @field_validator("issuer", "jwks_uri")
    @classmethod
    def _travels_safely(cls, value: str | None) -> str | None:
        return safe_url(value)


class Oidc(Group):
    """Whose tokens are good besides our own."""

    issuers: tuple[Issuer, ...] = Field(default=(), description="Trusted issuers, each named once.")


class ProxyAssertion(Group):
    """A header in which a proxy signs who the person is. It is verified like a token, whoever hands it over."""

    header: NonEmpty = Field(description="The header, such as `Cf-Access-Jwt-Assertion`.")
    issuer: NonEmpty = Field(
        description="The `iss` of its assertions, byte for byte: a URL, or with `jwks_uri` also a bare host name."
    )
    audience: NonEmpty = Field(description="The `aud` that its assertions must name.")
    algorithms: tuple[Algorithm, ...] = Field(
        min_length=1, description="Signatures to accept. The algorithm never comes from the assertion."
    )
    tenant: OneTenant = None
    tenant_claim: TenantClaim = None
    jwks_uri: NonEmpty | None = Field(
        default=None, description="Where the proxy's keys are; without it they are found by discovery."
    )
    trust_email: bool = Field(
        default=False,
        description="Whether this proxy vouches for each email that it names, so that one may link to a profile.",
    )
    provision: Provision = False
    groups_claim: GroupsClaim = "groups"
    roles: GroupRoles = Field(default={})

    @field_validator("jwks_uri")
    @classmethod
    def _travels_safely(cls, value: str | None) -> str | None:
        return safe_url(value)


class ProxyHeader(Group):
    """A header in which a proxy names the person without a signature. It counts only from the proxy's own address."""

    header: NonEmpty = Field(description="The header, such as `X-Forwarded-User`. It names a person, and nothing else.")
    networks: tuple[IPvAnyNetwork, ...] = Field(
        min_length=1,
        description="Where the proxy connects from (CIDR). From anywhere else the header is taken away unread.",
    )
    issuer: NonEmpty = Field(description="The issuer of the people that it names: a name of your own for this proxy.")
    tenant: NonEmpty = Field(description="The tenant of all its people.")
    allow_loopback: bool = Field(
        default=False,
        description="Whether the proxy may run on this machine; every process here can then say who it is.",
    )
    provision: Provision = False


class Proxies(Group):
    """Proxies in front of the gateway that have already found out who the person is."""

    assertions: tuple[ProxyAssertion, ...] = Field(default=(), description="Headers that a proxy signs.")
    headers: tuple[ProxyHeader, ...] = Field(default=(), description="Headers that are believed by their sender.")


class IntrospectionServer(Group):
    """A server that is asked about opaque tokens (RFC 7662). The gateway is a client there, with a secret."""

    endpoint: NonEmpty = Field(description="Its introspection endpoint; https, or http on this machine.")
    issuer: NonEmpty = Field(description="The issuer of its people, as an `iss` would name it.")
    audience: NonEmpty = Field(description="The `aud` that its answers must name.")
    client_id: NonEmpty = Field(description="What the server calls the gateway.")
    client_secret_file: Path | None = Field(
        default=None, description="A file that holds the client's secret and nothing else. This or `client_secret_env`."
    )
    client_secret_env: NonEmpty | None = Field(
        default=None,
        validate_default=True,
        description="The environment variable that holds the client's secret. This or `client_secret_file`.",
    )
    client_method: Literal["client_secret_basic", "client_secret_post"] = Field(
        default="client_secret_basic", description="How the secret is sent: in a header, or in the form."
    )
    prefix: str = Field(
        default="",
        description="What its tokens begin with. With several servers each needs one, none the beginning of another.",
    )
    tenant: OneTenant = None
    tenant_claim: TenantClaim = None
    trust_email: bool = Field(
        default=False, description="Whether a verified email of this server may link to a profile."
    )
    provision: Provision = False
    scopes: Literal["person", "token"] = Field(
        default="token",
        description="What a token may do: all that the person may, or only what its `scope` names.",
    )
    groups_claim: NonEmpty = Field(
        default="groups", description="What lists a person's groups; only read where `roles` names some."
    )
    roles: GroupRoles = Field(default={})

    @field_validator("endpoint", "issuer")
    @classmethod
    def _travels_safely(cls, value: str) -> str | None:
        return safe_url(value)

    @field_validator("client_secret_env")
    @classmethod
    def _one_source_of_the_secret(cls, value: str | None, info: ValidationInfo) -> str | None:
        if "client_secret_file" in info.data and (info.data["client_secret_file"] is None) == (value is None):
            raise ValueError("name exactly one of client_secret_file and client_secret_env")
        return no_setting(value)


class Introspection(Group):
    """Whose opaque tokens are good, and who is asked about them."""

    servers: tuple[IntrospectionServer, ...] = Field(default=(), description="Servers to ask, one for each issuer.")
