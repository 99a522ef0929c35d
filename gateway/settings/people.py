"""How people come without a token: with a browser, or through a channel that a connector brings."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field, ValidationInfo, field_validator

from gateway.settings.tables import (
    Algorithm,
    Group,
    GroupRoles,
    GroupsClaim,
    NonEmpty,
    OneTenant,
    Provision,
    TenantClaim,
    is_safe_url,
    no_setting,
    origin_of,
    safe_url,
)


class LoginIssuer(Group):
    """An OIDC issuer that people sign in at with a browser; its ID token says who they are."""

    name: str = Field(
        pattern=r"^[a-z0-9][a-z0-9-]{0,31}$",
        description="What its addresses here are called: `/sign-in/NAME`, and `/sign-in/NAME/callback`, which it is "
        "told to send people back to.",
    )
    title: NonEmpty | None = Field(default=None, description="What people choose it by, where there are several.")
    issuer: NonEmpty = Field(description="Its address and `iss`, byte for byte; https, or http on this machine.")
    client_id: NonEmpty = Field(description="What the issuer calls the gateway, and the `aud` of its ID tokens.")
    client_secret_file: Path | None = Field(
        default=None, description="A file that holds the client's secret and nothing else."
    )
    client_secret_env: NonEmpty | None = Field(
        default=None,
        validate_default=True,
        description="The environment variable that holds it instead. Neither: a public client, with PKCE alone.",
    )
    scopes: tuple[NonEmpty, ...] = Field(
        default=("openid", "email", "profile"), description="What the issuer is asked for; `openid` among them."
    )
    algorithms: tuple[Algorithm, ...] = Field(
        min_length=1, description="Signatures of ID tokens to accept. The algorithm never comes from the token."
    )
    tenant: OneTenant = None
    tenant_claim: TenantClaim = None
    trust_email: bool = Field(
        default=False, description="Whether a verified email of this issuer may link to a profile."
    )
    provision: Provision = False
    groups_claim: GroupsClaim = "groups"
    roles: GroupRoles = Field(default={})

    @field_validator("issuer")
    @classmethod
    def _travels_safely(cls, value: str) -> str:
        safe_url(value)
        return value

    @field_validator("client_secret_env")
    @classmethod
    def _one_source_of_the_secret(cls, value: str | None, info: ValidationInfo) -> str | None:
        if value is not None and info.data.get("client_secret_file") is not None:
            raise ValueError("name client_secret_file or client_secret_env, not both")
        return no_setting(value)

    @field_validator("scopes")
    @classmethod
    def _asks_for_an_id_token(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if "openid" not in value:
            raise ValueError("must hold openid: without it the issuer does not say who signed in")
        return value


class Login(Group):
    """How people sign in with a browser. It is on where there is an issuer to sign in at."""

    issuers: tuple[LoginIssuer, ...] = Field(
        default=(), description="Where people sign in; they choose where there are several. Each named once."
    )
    public_url: str | None = Field(
        default=None,
        validate_default=True,
        description="The address that browsers see the gateway at, without a path: https, or http on this machine. "
        "Required where there are issuers.",
    )
    idle_minutes: int = Field(
        default=60, ge=5, le=1440, description="Minutes without a request after which a sign-in ends."
    )
    absolute_hours: int = Field(
        default=12, ge=1, le=720, description="Hours after which a sign-in ends, whatever is done with it."
    )

    @field_validator("public_url")
    @classmethod
    def _is_an_origin(cls, value: str | None, info: ValidationInfo) -> str | None:
        if value is None:
            if info.data.get("issuers"):
                raise ValueError("is required: issuers send people back to it, and cookies are bound to it")
            return None
        origin = value.removesuffix("/")
        if not is_safe_url(origin) or origin != origin_of(origin):
            raise ValueError(
                "must be an origin in small letters, such as https://gateway.example.com: no path, no default port; "
                "http only on this machine"
            )
        return origin


class ConnectorAccount(Group):
    """An account on a channel, whose messages a service brings to an agent."""

    channel: NonEmpty = Field(description="The channel: `line`, or what a connector of your own is called.")
    account: NonEmpty = Field(
        description="What the account is called here: in paths, links and session keys. No other of the channel has it."
    )
    tenant: NonEmpty = Field(description="The organisation whose account it is.")
    agent: NonEmpty = Field(description="The agent that answers there.")
    service: NonEmpty = Field(
        description="The service's profile, `prf_…`, which holds the role `connector` on every agent."
    )
    secret_file: Path | None = Field(
        default=None, description="LINE: a file that holds the channel secret and nothing else. This or `secret_env`."
    )
    secret_env: NonEmpty | None = Field(
        default=None, description="LINE: the environment variable that holds the channel secret."
    )
    destination: NonEmpty | None = Field(
        default=None, description="LINE: the bot's own user id; webhooks for another one are refused."
    )
    deliver_to: NonEmpty | None = Field(
        default=None,
        description="LINE: where the agent's runtime is told of a message with its context; https, or http on this "
        "machine.",
    )
    deliver_secret_file: Path | None = Field(
        default=None, description="A file that holds what deliveries are signed with. This or `deliver_secret_env`."
    )
    deliver_secret_env: NonEmpty | None = Field(
        default=None, description="The environment variable that holds what deliveries are signed with."
    )

    @field_validator("secret_env", "deliver_secret_env")
    @classmethod
    def _is_no_setting(cls, value: str | None) -> str | None:
        return no_setting(value)

    @field_validator("deliver_to")
    @classmethod
    def _travels_safely(cls, value: str | None) -> str | None:
        if value is not None and not is_safe_url(value):
            raise ValueError("must be an https URL without user or fragment; http only for a runtime on this machine")
        return value


class Connectors(Group):
    """Channels whose messages come to the gateway (docs/identity/channels.md)."""

    accounts: tuple[ConnectorAccount, ...] = Field(
        default=(), description="The accounts, each with the one service that may act for it."
    )
