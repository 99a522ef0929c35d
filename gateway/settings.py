"""Turns `gateway.toml` and `GATEWAY_…` variables into frozen settings, or into a list of every fault in them."""

from __future__ import annotations

import ipaddress
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, IPvAnyNetwork, ValidationError, ValidationInfo, field_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from gateway.environment import PREFIX, Environment
from gateway.errors import ConfigurationFaults, Fault

Algorithm = Literal["RS256", "ES256", "EdDSA"]
NonEmpty = Annotated[str, Field(min_length=1)]
Location = tuple[str | int, ...]


class _Group(BaseModel):
    """A table of the file: frozen, and a key that nobody knows is a fault, not something to ignore."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Server(_Group):
    """Where the gateway listens, and what one request may cost."""

    host: NonEmpty = Field(default="127.0.0.1", description="Address to listen on.")
    port: int = Field(default=8080, ge=0, le=65535, description="Port to listen on; 0 takes any free one.")
    body_limit_bytes: int = Field(
        default=1024 * 1024, ge=1024, description="Largest request body; a larger one is a 413."
    )
    request_timeout_s: float = Field(
        default=30.0,
        gt=0,
        le=3600,
        description="Seconds until an answer must have begun; then it is a 503.",
    )
    metrics: Literal["loopback", "off"] = Field(
        default="loopback",
        description="Who may read `/metrics`: callers on this machine that no proxy forwards, or nobody.",
    )


class State(_Group):
    """What the embedded gateway keeps on this machine."""

    folder: Path = Field(default=Path(".gateway"), description="Folder of the database, the keys and the workspaces.")


class Demo(_Group):
    """The demo tenant, with people whose tokens are printed."""

    enabled: bool = Field(
        default=False, description="Makes the tenant `demo` at the first start. Only on a loopback address."
    )


class Audit(_Group):
    """How records of reads reach the disk; those of writes are always durable before the write."""

    reads: Literal["buffered", "durable"] = Field(
        default="buffered",
        description="`buffered` answers first and writes within `flush_ms`; `durable` waits for the disk.",
    )
    buffer_records: int = Field(
        default=10_000,
        ge=1,
        le=1_000_000,
        description="Records that may wait; when full, requests are refused (503).",
    )
    flush_ms: int = Field(default=50, ge=1, le=50, description="Longest time that a record waits, in milliseconds.")


class Policy(_Group):
    """How old an answer may be."""

    refuse_after_s: float = Field(
        default=5.0,
        gt=0,
        le=5,
        description="Seconds without word from the store after which decisions are refused with a 503.",
    )


def _safe_url(value: str | None) -> str | None:
    if value is not None and not _is_safe_url(value):
        raise ValueError("must be an https URL without user or fragment; http only for an issuer on this machine")
    return value


def _one_source_of_the_tenant(value: str | None, info: ValidationInfo) -> str | None:
    # A tenant that is itself at fault is not in `data`, and has its own line in the report.
    if "tenant" in info.data and (info.data["tenant"] is None) == (value is None):
        raise ValueError("name exactly one of tenant and tenant_claim")
    return value


class Issuer(_Group):
    """A trusted OIDC issuer. What has no default must be said: nothing about a token is taken on trust."""

    issuer: NonEmpty = Field(description="The `iss` of its tokens, byte for byte; https, or http on this machine.")
    audience: NonEmpty = Field(description="The `aud` that its tokens must name.")
    algorithms: tuple[Algorithm, ...] = Field(
        min_length=1, description="Signatures to accept. The algorithm never comes from the token."
    )
    tenant: NonEmpty | None = Field(default=None, description="The tenant of all its people. This or `tenant_claim`.")
    tenant_claim: NonEmpty | None = Field(
        default=None, validate_default=True, description="The claim that names the tenant. This or `tenant`."
    )
    jwks_uri: NonEmpty | None = Field(
        default=None, description="Where its keys are; without it they are found by discovery."
    )
    trust_email: bool = Field(
        default=False, description="Whether a verified email of this issuer may link to a profile."
    )
    provision: bool = Field(default=False, description="Whether somebody new gets a profile, with the role member.")
    accept_plain_typ: bool = Field(
        default=False,
        description="Whether `typ: JWT` or none passes for an access token, for issuers without RFC 9068.",
    )
    scopes: Literal["person", "token"] = Field(
        default="token",
        description="What a token may do: all that the person may, or only what its `scope` claim names.",
    )

    groups_claim: NonEmpty = Field(
        default="groups", description="The claim that lists a person's groups; only read where `roles` names some."
    )
    roles: dict[NonEmpty, tuple[NonEmpty, ...]] = Field(
        default={},
        description="What a group's people are, by its exact name: `supervisor`, `supervisor@flight`; never `owner`.",
    )

    @field_validator("issuer", "jwks_uri")
    @classmethod
    def _travels_safely(cls, value: str | None) -> str | None:
        return _safe_url(value)

    @field_validator("tenant_claim")
    @classmethod
    def _one_source_of_the_tenant(cls, value: str | None, info: ValidationInfo) -> str | None:
        return _one_source_of_the_tenant(value, info)


class Oidc(_Group):
    """Whose tokens are good besides our own."""

    issuers: tuple[Issuer, ...] = Field(default=(), description="Trusted issuers, each named once.")


class ProxyAssertion(_Group):
    """A header in which a proxy signs who the person is. It is verified like a token, whoever hands it over."""

    header: NonEmpty = Field(description="The header, such as `Cf-Access-Jwt-Assertion`.")
    issuer: NonEmpty = Field(
        description="The `iss` of its assertions, byte for byte: a URL, or with `jwks_uri` also a bare host name."
    )
    audience: NonEmpty = Field(description="The `aud` that its assertions must name.")
    algorithms: tuple[Algorithm, ...] = Field(
        min_length=1, description="Signatures to accept. The algorithm never comes from the assertion."
    )
    tenant: NonEmpty | None = Field(default=None, description="The tenant of all its people. This or `tenant_claim`.")
    tenant_claim: NonEmpty | None = Field(
        default=None, validate_default=True, description="The claim that names the tenant. This or `tenant`."
    )
    jwks_uri: NonEmpty | None = Field(
        default=None, description="Where the proxy's keys are; without it they are found by discovery."
    )
    trust_email: bool = Field(
        default=False,
        description="Whether this proxy vouches for each email that it names, so that one may link to a profile.",
    )
    provision: bool = Field(default=False, description="Whether somebody new gets a profile, with the role member.")
    groups_claim: NonEmpty = Field(
        default="groups", description="The claim that lists a person's groups; only read where `roles` names some."
    )
    roles: dict[NonEmpty, tuple[NonEmpty, ...]] = Field(
        default={},
        description="What a group's people are, by its exact name: `supervisor`, `supervisor@flight`; never `owner`.",
    )

    @field_validator("jwks_uri")
    @classmethod
    def _travels_safely(cls, value: str | None) -> str | None:
        return _safe_url(value)

    @field_validator("tenant_claim")
    @classmethod
    def _one_source_of_the_tenant(cls, value: str | None, info: ValidationInfo) -> str | None:
        return _one_source_of_the_tenant(value, info)


class ProxyHeader(_Group):
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
    provision: bool = Field(default=False, description="Whether somebody new gets a profile, with the role member.")


class Proxies(_Group):
    """Proxies in front of the gateway that have already found out who the person is."""

    assertions: tuple[ProxyAssertion, ...] = Field(default=(), description="Headers that a proxy signs.")
    headers: tuple[ProxyHeader, ...] = Field(default=(), description="Headers that are believed by their sender.")


class IntrospectionServer(_Group):
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
    tenant: NonEmpty | None = Field(default=None, description="The tenant of all its people. This or `tenant_claim`.")
    tenant_claim: NonEmpty | None = Field(
        default=None, validate_default=True, description="The claim that names the tenant. This or `tenant`."
    )
    trust_email: bool = Field(
        default=False, description="Whether a verified email of this server may link to a profile."
    )
    provision: bool = Field(default=False, description="Whether somebody new gets a profile, with the role member.")
    scopes: Literal["person", "token"] = Field(
        default="token",
        description="What a token may do: all that the person may, or only what its `scope` names.",
    )
    groups_claim: NonEmpty = Field(
        default="groups", description="What lists a person's groups; only read where `roles` names some."
    )
    roles: dict[NonEmpty, tuple[NonEmpty, ...]] = Field(
        default={},
        description="What a group's people are, by its exact name: `supervisor`, `supervisor@flight`; never `owner`.",
    )

    @field_validator("endpoint", "issuer")
    @classmethod
    def _travels_safely(cls, value: str) -> str | None:
        return _safe_url(value)

    @field_validator("client_secret_env")
    @classmethod
    def _one_source_of_the_secret(cls, value: str | None, info: ValidationInfo) -> str | None:
        if "client_secret_file" in info.data and (info.data["client_secret_file"] is None) == (value is None):
            raise ValueError("name exactly one of client_secret_file and client_secret_env")
        if value is not None and value.startswith(PREFIX):
            raise ValueError(f"must be another name: variables that begin with {PREFIX} are settings")
        return value

    @field_validator("tenant_claim")
    @classmethod
    def _one_source_of_the_tenant(cls, value: str | None, info: ValidationInfo) -> str | None:
        return _one_source_of_the_tenant(value, info)


class Introspection(_Group):
    """Whose opaque tokens are good, and who is asked about them."""

    servers: tuple[IntrospectionServer, ...] = Field(default=(), description="Servers to ask, one for each issuer.")


class LoginIssuer(_Group):
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
    tenant: NonEmpty | None = Field(default=None, description="The tenant of all its people. This or `tenant_claim`.")
    tenant_claim: NonEmpty | None = Field(
        default=None, validate_default=True, description="The claim that names the tenant. This or `tenant`."
    )
    trust_email: bool = Field(
        default=False, description="Whether a verified email of this issuer may link to a profile."
    )
    provision: bool = Field(default=False, description="Whether somebody new gets a profile, with the role member.")
    groups_claim: NonEmpty = Field(
        default="groups", description="The claim that lists a person's groups; only read where `roles` names some."
    )
    roles: dict[NonEmpty, tuple[NonEmpty, ...]] = Field(
        default={},
        description="What a group's people are, by its exact name: `supervisor`, `supervisor@flight`; never `owner`.",
    )

    @field_validator("issuer")
    @classmethod
    def _travels_safely(cls, value: str) -> str:
        _safe_url(value)
        return value

    @field_validator("client_secret_env")
    @classmethod
    def _one_source_of_the_secret(cls, value: str | None, info: ValidationInfo) -> str | None:
        if value is not None and info.data.get("client_secret_file") is not None:
            raise ValueError("name client_secret_file or client_secret_env, not both")
        if value is not None and value.startswith(PREFIX):
            raise ValueError(f"must be another name: variables that begin with {PREFIX} are settings")
        return value

    @field_validator("scopes")
    @classmethod
    def _asks_for_an_id_token(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if "openid" not in value:
            raise ValueError("must hold openid: without it the issuer does not say who signed in")
        return value

    @field_validator("tenant_claim")
    @classmethod
    def _one_source_of_the_tenant(cls, value: str | None, info: ValidationInfo) -> str | None:
        return _one_source_of_the_tenant(value, info)


class Login(_Group):
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
        if not _is_safe_url(origin) or origin != _origin(origin):
            raise ValueError(
                "must be an origin in small letters, such as https://gateway.example.com: no path, no default port; "
                "http only on this machine"
            )
        return origin


class ConnectorAccount(_Group):
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
        if value is not None and value.startswith(PREFIX):
            raise ValueError(f"must be another name: variables that begin with {PREFIX} are settings")
        return value

    @field_validator("deliver_to")
    @classmethod
    def _travels_safely(cls, value: str | None) -> str | None:
        if value is not None and not _is_safe_url(value):
            raise ValueError("must be an https URL without user or fragment; http only for a runtime on this machine")
        return value


class Connectors(_Group):
    """Channels whose messages come to the gateway (docs/identity/channels.md)."""

    accounts: tuple[ConnectorAccount, ...] = Field(
        default=(), description="The accounts, each with the one service that may act for it."
    )


class Log(_Group):
    """What the gateway writes about itself, on standard error."""

    level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="The least that is written."
    )
    format: Literal["json", "console"] = Field(
        default="json", description="One JSON object a line, or lines for people."
    )


class Settings(BaseSettings):
    """Everything that can be set. There is no switch that turns authentication off (design section 5)."""

    model_config = SettingsConfigDict(frozen=True, extra="forbid")

    server: Server = Server()
    state: State = State()
    demo: Demo = Demo()
    audit: Audit = Audit()
    policy: Policy = Policy()
    oidc: Oidc = Oidc()
    introspection: Introspection = Introspection()
    login: Login = Login()
    proxies: Proxies = Proxies()
    connectors: Connectors = Connectors()
    log: Log = Log()

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Only what `load` hands over: nothing reads the process's environment behind its back."""
        return (init_settings,)

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """Validated settings. Raises pydantic's ValidationError."""
        return cls(**values)


def load(config: Path | None, environ: Mapping[str, str]) -> Settings:
    """The settings of one start; a variable wins over the file.

    Without `config` the file is the one that GATEWAY_CONFIG names, else `gateway.toml` in the current folder if there
    is one.

    Raises:
        ConfigurationFaults: every fault in the file and in the variables, each with its full name.
    """
    file_values, faults = _read(_chosen(config, environ))
    environment = Environment(Settings, environ)
    values = _merged(file_values, environment())
    faults += environment.faults
    faults += _repeated(values, environment, "oidc", "issuer")
    faults += _repeated(values, environment, "login", "issuer")
    faults += _repeated(values, environment, "login", "name")
    settings: Settings | None = None
    try:
        settings = Settings.of(values)
    except ValidationError as error:
        faults += _named(error, environment)
    else:
        faults += _public_demo(settings, settings.demo.enabled)
        faults += _disagreeing(settings, environment)
    if faults or settings is None:
        raise ConfigurationFaults(faults)
    return settings


def refuse_public_demo(settings: Settings, has_demo_tenant: bool) -> None:
    """Refuses to serve the demo tenant, whose tokens were printed, on an address that others can reach (design 5).

    Raises:
        ConfigurationFaults: there is a demo tenant, or will be, and `server.host` is not a loopback address.
    """
    faults = _public_demo(settings, has_demo_tenant or settings.demo.enabled)
    if faults:
        raise ConfigurationFaults(faults)


def is_loopback(host: str) -> bool:
    """Whether an address, or the name `localhost` (RFC 6761 section 6.3), can only be reached from this machine."""
    if host == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return bool((mapped or address).is_loopback)


def _public_demo(settings: Settings, has_demo_tenant: bool) -> list[Fault]:
    if not has_demo_tenant or is_loopback(settings.server.host):
        return []
    message = (
        f"{settings.server.host} can be reached from elsewhere, and there is a demo tenant: "
        "listen on 127.0.0.1, or start with another state folder and demo.enabled = false"
    )
    return [Fault(field="server.host", rule="loopback_for_demo", message=message)]


def _is_safe_url(text: str) -> bool:
    try:
        url = urlsplit(text)
        host, _ = url.hostname, url.port
    except ValueError:
        return False
    if not host or url.username is not None or url.password is not None or url.fragment or text != text.strip():
        return False
    return url.scheme == "https" or (url.scheme == "http" and is_loopback(host))


def _origin(url: str) -> str:
    """The origin of a URL as a browser writes it in `Origin` (RFC 6454 section 6.2)."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    shown = f"[{host}]" if ":" in host else host
    port = "" if parts.port in (None, {"https": 443, "http": 80}.get(parts.scheme)) else f":{parts.port}"
    return f"{parts.scheme}://{shown}{port}" if host.isascii() else ""


def _chosen(config: Path | None, environ: Mapping[str, str]) -> Path | None:
    if config is not None:
        return config
    if named := environ.get("GATEWAY_CONFIG"):
        return Path(named)
    usual = Path("gateway.toml")
    return usual if usual.exists() else None


def _read(path: Path | None) -> tuple[dict[str, Any], list[Fault]]:
    if path is None:
        return {}, []
    try:
        return tomllib.loads(path.read_text(encoding="utf-8")), []
    except OSError as error:
        message = f"can't be read: {error.strerror}"
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        message = f"is not TOML: {error}"
    return {}, [Fault(field=str(path), rule="config_file", message=message)]


def _merged(low: Mapping[str, Any], high: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(low)
    for key, value in high.items():
        below = merged.get(key)
        merged[key] = _merged(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
    return merged


def _repeated(
    values: Mapping[str, Any], environment: Environment, table: Literal["oidc", "login"], key: str
) -> Iterator[Fault]:
    """Two entries for one issuer would leave it open which of them counts; seen here, before validation can stop."""
    group = values.get(table)
    issuers = group.get("issuers") if isinstance(group, dict) else None
    seen: set[str] = set()
    for index, entry in enumerate(issuers if isinstance(issuers, list) else []):
        value = entry.get(key) if isinstance(entry, dict) else None
        if isinstance(value, str) and value in seen:
            field = environment.spell((table, "issuers", index, key))
            yield Fault(field=field, rule="unique", message=f"an earlier entry has this {key}; name each one once")
        elif isinstance(value, str):
            seen.add(value)


def _disagreeing(settings: Settings, environment: Environment) -> Iterator[Fault]:
    """One issuer has one kind of people, whether they come with a token of either kind or with a browser."""
    others: list[Issuer | ProxyAssertion | LoginIssuer] = [*settings.oidc.issuers, *settings.proxies.assertions]
    for index, one in enumerate(settings.login.issuers):
        yield from _differences(one, others, ("login", "issuers", index), environment)
    others += settings.login.issuers
    for index, server in enumerate(settings.introspection.servers):
        yield from _differences(server, others, ("introspection", "servers", index), environment)


def _differences(
    one: LoginIssuer | IntrospectionServer,
    others: Sequence[Issuer | ProxyAssertion | LoginIssuer],
    where: Location,
    environment: Environment,
) -> Iterator[Fault]:
    found: dict[str, None] = {}
    for other in others:
        # An email in a proxy's assertion is worth what the operator says of that proxy.
        emails = () if isinstance(other, ProxyAssertion) else ("trust_email",)
        keys = ("tenant", "tenant_claim", "provision", *emails) if other.issuer == one.issuer else ()
        found |= dict.fromkeys(key for key in keys if getattr(one, key) != getattr(other, key))
    for key in found:
        message = "another entry of the same issuer says otherwise"
        yield Fault(field=environment.spell((*where, key)), rule="agrees", message=message)


def _named(error: ValidationError, environment: Environment) -> Iterator[Fault]:
    problems = error.errors(include_url=False, include_input=False, include_context=False)
    locations = [problem["loc"] for problem in problems]
    for problem in problems:
        location: Location = problem["loc"]
        within = any(one[:-1] == location for one in locations)
        if problem["type"] == "too_short" and within:
            continue  # a list counts as empty while its items are at fault; those are named
        if problem["type"] == "extra_forbidden":
            message = "is no setting; docs/settings.md lists them all"
        else:
            message = problem["msg"].removeprefix("Value error, ")
        yield Fault(field=environment.spell(location), rule=problem["type"], message=message)
