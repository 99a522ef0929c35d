"""Turns the settings of identity into the ways in: what verifies each kind of credential, and what that stands on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TypedDict, TypeVar

import httpx2

from gateway.errors import ConfigurationFaults, Fault
from gateway.identity.access_tokens import PREFIX, AccessTokenVerifier, TokenUse
from gateway.identity.bearer import HEADER, BearerHeader
from gateway.identity.cookies import PREFIX as COOKIE_PREFIX
from gateway.identity.credentials import HeaderVerifier, Verifier
from gateway.identity.introspection import IntrospectionVerifier
from gateway.identity.introspection_server import ClientMethod, IntrospectionSettings
from gateway.identity.issuers import IssuerSettings, Purpose, ScopePolicy
from gateway.identity.login import BROWSER, BrowserOrigin, CookieVerifier, NoBearer
from gateway.identity.login import HEADER as COOKIE_HEADER
from gateway.identity.oidc import OidcVerifier
from gateway.identity.providers import SignInIssuer
from gateway.identity.proxies import Proxies, SignedHeader
from gateway.identity.proxy_headers import HeaderGuard, TrustedProxy
from gateway.identity.roles import role_of
from gateway.identity.secret_sources import ClientSecret
from gateway.identity.seen import Seen
from gateway.identity.turn_keys import KeyFolder, TurnKeys
from gateway.identity.turn_tokens import HEADER as TURN_HEADER
from gateway.identity.turn_tokens import PREFIX as TURN_PREFIX
from gateway.identity.turn_tokens import Origins, TurnTokenHeader, TurnTokens
from gateway.model import RoleAssignment, TenantId
from gateway.ports import Clock, Identities, SignIns
from gateway.settings import (
    IntrospectionServer,
    Issuer,
    Login,
    LoginIssuer,
    ProxyAssertion,
    ProxyHeader,
    Settings,
)

EntryT = TypeVar("EntryT")
MadeT = TypeVar("MadeT")


@dataclass(frozen=True, kw_only=True)
class LoginWays:
    """What browsers sign in with, and are known by then."""

    verifier: CookieVerifier
    issuers: Mapping[str, SignInIssuer]  # by their names in the settings

    async def aclose(self) -> None:
        """Ends fetches in flight."""
        for issuer in self.issuers.values():
            await issuer.aclose()


@dataclass(frozen=True, kw_only=True)
class WaysIn:
    """What the authenticate stage is given, and what has to be kept going and closed with it."""

    verifiers: Mapping[bytes, HeaderVerifier]  # by the lower-case name of their header
    provisioning: frozenset[str]  # issuers whose people get a profile at their first request
    token_use: TokenUse
    oidc: OidcVerifier | None
    introspection: IntrospectionVerifier | None
    turn_tokens: TurnTokens
    proxies: Proxies
    seen: Seen
    login: LoginWays | None

    @property
    def guard(self) -> HeaderGuard | None:
        """What takes a proxy's headers away from everybody else; None where no plain header is believed."""
        return self.proxies.guard

    def check_secrets(self) -> None:
        """Raises ConfigurationFaults for a secret that is not where the settings say: for who serves, at the start."""
        if self.introspection is not None:
            _each("introspection.servers", self.introspection.settings, lambda one: one.client_secret.read())

    async def aclose(self) -> None:
        """Ends fetches in flight."""
        await self.proxies.aclose()
        if self.oidc is not None:
            await self.oidc.aclose()
        if self.introspection is not None:
            await self.introspection.aclose()
        if self.login is not None:
            await self.login.aclose()


def ways_in(
    settings: Settings,
    identities: Identities,
    sign_ins: SignIns,
    http: httpx2.AsyncClient,
    clock: Clock,
    epochs: Callable[[TenantId], int],
    environ: Mapping[str, str],
) -> WaysIn:
    """Each way in that is configured. Makes the first key of turn tokens where there is none; `environ` holds the
    secrets that the settings name a variable for.

    Raises ConfigurationFaults for what can't be used, OSError where the state folder can't.
    """
    use = TokenUse(identities)
    own: dict[str, Verifier] = {PREFIX: AccessTokenVerifier(identities, clock, epochs, use)}
    issuers = _each("oidc.issuers", settings.oidc.issuers, _issuer)
    oidc = OidcVerifier(issuers, http, clock) if issuers else None
    servers = _each("introspection.servers", settings.introspection.servers, lambda one: _server(one, environ))
    introspection = IntrospectionVerifier(servers, http, clock) if servers else None
    proxies = Proxies(
        _each("proxies.assertions", settings.proxies.assertions, _signed),
        _each("proxies.headers", settings.proxies.headers, _plain),
        issuers=issuers,
        http=http,
        clock=clock,
        asked=servers,
        sign_ins=[one.issuer for one in settings.login.issuers],
    )
    folder = KeyFolder(settings.state.folder)
    folder.ensure(clock.now())
    seen, idle = Seen(sign_ins, clock), timedelta(minutes=settings.login.idle_minutes)
    rules = _each("login.issuers", settings.login.issuers, _login_issuer)
    trusted = {one.issuer: one for one in rules}
    by_browser = BrowserOrigin(sign_ins, identities, seen, issuers=trusted, idle=idle)
    origins = Origins(identities, clock, {BROWSER: by_browser})
    turn_tokens = TurnTokens(TurnKeys(folder, clock), origins, clock, epochs)
    own[TURN_PREFIX] = turn_tokens
    own[COOKIE_PREFIX] = NoBearer()
    verifiers: dict[bytes, HeaderVerifier] = {
        HEADER: BearerHeader(own=own, signed=oidc, opaque=introspection),
        TURN_HEADER: TurnTokenHeader(turn_tokens),
        **proxies.verifiers,
    }
    login = _login(settings.login, trusted, idle, sign_ins, identities, seen, http, clock, epochs)
    if login is not None:
        verifiers[COOKIE_HEADER] = login.verifier
    return WaysIn(
        verifiers=verifiers,
        provisioning=proxies.provisioning.union(one.issuer for one in (*issuers, *servers, *rules) if one.provision),
        token_use=use,
        oidc=oidc,
        introspection=introspection,
        proxies=proxies,
        turn_tokens=turn_tokens,
        seen=seen,
        login=login,
    )


def _login(
    settings: Login,
    trusted: Mapping[str, IssuerSettings],
    idle: timedelta,
    sign_ins: SignIns,
    identities: Identities,
    seen: Seen,
    http: httpx2.AsyncClient,
    clock: Clock,
    epochs: Callable[[TenantId], int],
) -> LoginWays | None:
    """None where nobody signs in with a browser: then a cookie is not a credential either."""
    if not settings.issuers or settings.public_url is None:
        return None
    verifier = CookieVerifier(
        sign_ins, identities, clock, epochs, seen, issuers=trusted, idle=idle, origin=settings.public_url
    )
    issuers = {one.name: SignInIssuer(trusted[one.issuer], http, clock) for one in settings.issuers}
    return LoginWays(verifier=verifier, issuers=issuers)


def _login_issuer(one: LoginIssuer) -> IssuerSettings:
    return IssuerSettings(
        **_people(one),
        audience=one.client_id,
        algorithms=_algorithms(one.algorithms),
    )


def _signed(one: ProxyAssertion) -> SignedHeader:
    issuer = IssuerSettings(
        **_people(one),
        audience=one.audience,
        algorithms=_algorithms(one.algorithms),
        purpose=Purpose.ASSERTION,
        jwks_uri=one.jwks_uri,
    )
    return SignedHeader(one.header, issuer)


def _plain(one: ProxyHeader) -> TrustedProxy:
    return TrustedProxy(
        header=one.header,
        networks=tuple(one.networks),
        issuer=one.issuer,
        tenant=TenantId(one.tenant),
        allow_loopback=one.allow_loopback,
        provision=one.provision,
    )


def _issuer(one: Issuer) -> IssuerSettings:
    return IssuerSettings(
        **_people(one),
        audience=one.audience,
        algorithms=_algorithms(one.algorithms),
        jwks_uri=one.jwks_uri,
        accept_plain_typ=one.accept_plain_typ,
        scopes=ScopePolicy(one.scopes),
    )


def _server(one: IntrospectionServer, environ: Mapping[str, str]) -> IntrospectionSettings:
    return IntrospectionSettings(
        **_people(one),
        endpoint=one.endpoint,
        audience=one.audience,
        client_id=one.client_id,
        client_secret=ClientSecret(one.client_secret_file, one.client_secret_env, environ),
        client_method=ClientMethod(one.client_method),
        prefix=one.prefix,
        scopes=ScopePolicy(one.scopes),
    )


class _People(TypedDict):
    """The claim rules that each table of somebody's people has."""

    issuer: str
    tenant: TenantId | None
    tenant_claim: str | None
    trust_email: bool
    provision: bool
    groups_claim: str
    roles: Mapping[str, tuple[RoleAssignment, ...]]


def _people(one: Issuer | LoginIssuer | ProxyAssertion | IntrospectionServer) -> _People:
    return {
        "issuer": one.issuer,
        "tenant": TenantId(one.tenant) if one.tenant else None,
        "tenant_claim": one.tenant_claim,
        "trust_email": one.trust_email,
        "provision": one.provision,
        "groups_claim": one.groups_claim,
        "roles": _roles(one.roles),
    }


def _algorithms(names: Sequence[str]) -> frozenset[str]:
    """RFC 9864 gave EdDSA with Ed25519 a name of its own; an issuer may write either."""
    return frozenset(names) | ({"Ed25519"} if "EdDSA" in names else frozenset())


def _roles(groups: Mapping[str, Sequence[str]]) -> dict[str, tuple[RoleAssignment, ...]]:
    return {group: tuple(map(role_of, roles)) for group, roles in groups.items()}


def _each(where: str, settings: Sequence[EntryT], made: Callable[[EntryT], MadeT]) -> list[MadeT]:
    """What each entry of the list `where` is made into. Raises ConfigurationFaults, each fault with its full name."""
    results: list[MadeT] = []
    faults: list[Fault] = []
    for index, entry in enumerate(settings):
        try:
            results.append(made(entry))
        except ConfigurationFaults as error:
            faults += [replace(fault, field=f"{where}[{index}].{fault.field}") for fault in error.faults]
    if faults:
        raise ConfigurationFaults(faults)
    return results
