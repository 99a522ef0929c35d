"""Turns `gateway.toml` and `GATEWAY_…` variables into frozen settings, or into a list of every fault in them."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import ValidationError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from gateway.environment import Environment
from gateway.errors import ConfigurationFaults, Fault
from gateway.settings.people import Connectors, Login, LoginIssuer
from gateway.settings.redis import Redis
from gateway.settings.serving import Audit, DatabaseServer, Demo, Log, Policy, Server, State
from gateway.settings.tables import is_loopback
from gateway.settings.tokens import Introspection, IntrospectionServer, Issuer, Oidc, Proxies, ProxyAssertion

Location = tuple[str | int, ...]


class Settings(BaseSettings):
    """Everything that can be set. There is no switch that turns authentication off (design section 5)."""

    model_config = SettingsConfigDict(frozen=True, extra="forbid")

    server: Server = Server()
    state: State = State()
    redis: Redis = Redis()
    database: DatabaseServer = DatabaseServer()
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
        faults += _id_tokens_let_in(settings, environment)
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


def _public_demo(settings: Settings, has_demo_tenant: bool) -> list[Fault]:
    if not has_demo_tenant or is_loopback(settings.server.host):
        return []
    message = (
        f"{settings.server.host} can be reached from elsewhere, and there is a demo tenant: "
        "listen on 127.0.0.1, or start with another state folder and demo.enabled = false"
    )
    return [Fault(field="server.host", rule="loopback_for_demo", message=message)]


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


def _id_tokens_let_in(settings: Settings, environment: Environment) -> Iterator[Fault]:
    """An ID token names our client as its audience. Where that is the audience of access tokens too, and these need no
    `typ` of their own, nothing would tell the two apart."""
    clients = {(one.issuer, one.client_id) for one in settings.login.issuers}
    for index, one in enumerate(settings.oidc.issuers):
        if one.accept_plain_typ and (one.issuer, one.audience) in clients:
            message = (
                "is also the client_id that people sign in with there, so an ID token would pass for an access token: "
                "give access tokens an audience of their own, or set accept_plain_typ to false"
            )
            field = environment.spell(("oidc", "issuers", index, "audience"))
            yield Fault(field=field, rule="audience_of_its_own", message=message)


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
