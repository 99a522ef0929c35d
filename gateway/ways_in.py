"""Turns the settings of identity into the ways in: what verifies each kind of credential, and what that stands on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import httpx2

from gateway.errors import ConfigurationFaults, Fault
from gateway.identity.access_tokens import PREFIX, AccessTokenVerifier, TokenUse
from gateway.identity.bearer import HEADER, BearerHeader
from gateway.identity.credentials import HeaderVerifier, Verifier
from gateway.identity.introspection import IntrospectionVerifier
from gateway.identity.introspection_server import ClientMethod, IntrospectionSettings
from gateway.identity.issuers import ClaimRules, IssuerSettings, Purpose, ScopePolicy
from gateway.identity.oidc import OidcVerifier
from gateway.identity.proxies import Proxies, SignedHeader
from gateway.identity.proxy_headers import HeaderGuard, TrustedProxy
from gateway.identity.roles import role_of
from gateway.identity.secret_sources import read_secret
from gateway.identity.turn_keys import KeyFolder, TurnKeys
from gateway.identity.turn_tokens import HEADER as TURN_HEADER
from gateway.identity.turn_tokens import PREFIX as TURN_PREFIX
from gateway.identity.turn_tokens import Origins, TurnTokenHeader, TurnTokens
from gateway.model import RoleAssignment, TenantId
from gateway.ports import Clock, Identities
from gateway.settings import IntrospectionServer, Issuer, ProxyAssertion, ProxyHeader, Settings

EntryT = TypeVar("EntryT")
MadeT = TypeVar("MadeT")


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

    @property
    def guard(self) -> HeaderGuard | None:
        """What takes a proxy's headers away from everybody else; None where no plain header is believed."""
        return self.proxies.guard

    async def aclose(self) -> None:
        """Ends fetches in flight."""
        await self.proxies.aclose()
        if self.oidc is not None:
            await self.oidc.aclose()
        if self.introspection is not None:
            await self.introspection.aclose()


def ways_in(
    settings: Settings,
    identities: Identities,
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
    _check_agreement(issuers, servers)
    introspection = IntrospectionVerifier(servers, http, clock) if servers else None
    proxies = Proxies(
        _each("proxies.assertions", settings.proxies.assertions, _signed),
        _each("proxies.headers", settings.proxies.headers, _plain),
        issuers=issuers,
        http=http,
        clock=clock,
        asked=servers,
    )
    folder = KeyFolder(settings.state.folder)
    folder.ensure(clock.now())
    turn_tokens = TurnTokens(TurnKeys(folder, clock), Origins(identities, clock), clock, epochs)
    own[TURN_PREFIX] = turn_tokens
    return WaysIn(
        verifiers={
            HEADER: BearerHeader(own=own, signed=oidc, opaque=introspection),
            TURN_HEADER: TurnTokenHeader(turn_tokens),
            **proxies.verifiers,
        },
        provisioning=proxies.provisioning.union(one.issuer for one in (*issuers, *servers) if one.provision),
        token_use=use,
        oidc=oidc,
        introspection=introspection,
        proxies=proxies,
        turn_tokens=turn_tokens,
    )


def _signed(one: ProxyAssertion) -> SignedHeader:
    issuer = IssuerSettings(
        issuer=one.issuer,
        audience=one.audience,
        algorithms=frozenset(one.algorithms),
        tenant=TenantId(one.tenant) if one.tenant else None,
        tenant_claim=one.tenant_claim,
        purpose=Purpose.ASSERTION,
        jwks_uri=one.jwks_uri,
        trust_email=one.trust_email,
        provision=one.provision,
        groups_claim=one.groups_claim,
        roles=_roles(one.roles),
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
        issuer=one.issuer,
        audience=one.audience,
        algorithms=frozenset(one.algorithms),
        tenant=TenantId(one.tenant) if one.tenant else None,
        tenant_claim=one.tenant_claim,
        jwks_uri=one.jwks_uri,
        trust_email=one.trust_email,
        provision=one.provision,
        accept_plain_typ=one.accept_plain_typ,
        scopes=ScopePolicy(one.scopes),
        groups_claim=one.groups_claim,
        roles=_roles(one.roles),
    )


def _check_agreement(issuers: Sequence[ClaimRules], servers: Sequence[ClaimRules]) -> None:
    """One issuer has one kind of people, whichever of its tokens they bring. Raises ConfigurationFaults."""
    signing = {one.issuer: one for one in issuers}
    faults = [
        Fault(
            field=f"introspection.servers[{index}].{key}",
            rule="agrees",
            message="oidc.issuers says something else of the same issuer",
        )
        for index, one in enumerate(servers)
        for key in ("tenant", "tenant_claim", "trust_email", "provision")
        if one.issuer in signing and getattr(one, key) != getattr(signing[one.issuer], key)
    ]
    if faults:
        raise ConfigurationFaults(faults)


def _server(one: IntrospectionServer, environ: Mapping[str, str]) -> IntrospectionSettings:
    return IntrospectionSettings(
        endpoint=one.endpoint,
        issuer=one.issuer,
        audience=one.audience,
        client_id=one.client_id,
        client_secret=read_secret(one.client_secret_file, one.client_secret_env, environ),
        client_method=ClientMethod(one.client_method),
        prefix=one.prefix,
        tenant=TenantId(one.tenant) if one.tenant else None,
        tenant_claim=one.tenant_claim,
        trust_email=one.trust_email,
        provision=one.provision,
        scopes=ScopePolicy(one.scopes),
        groups_claim=one.groups_claim,
        roles=_roles(one.roles),
    )


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
