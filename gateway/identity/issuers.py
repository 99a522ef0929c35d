"""Turns what an operator writes about a trusted issuer into settings that can't be used wrongly (design 5.1)."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from urllib.parse import urlsplit

from gateway.errors import ConfigurationFaults, Fault
from gateway.identity.reserved import is_reserved
from gateway.identity.roles import mapping_faults
from gateway.model import RoleAssignment, TenantId

ALGORITHMS = frozenset({"RS256", "ES256", "EdDSA", "Ed25519"})
_CHOICE = ", ".join(sorted(ALGORITHMS))
_LONGEST_TOKEN = 65_536
_PLAIN_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,253}[A-Za-z0-9])?")
_LONGEST_LEEWAY_S = 300


class Purpose(StrEnum):
    """What an issuer signs for us; the value is the kind of credential that it becomes."""

    ACCESS = "oidc"  # access tokens, sent as bearer tokens
    ASSERTION = "proxy_assertion"  # a proxy's word about who is behind it, in a header of the proxy's own


class ScopePolicy(StrEnum):
    """Where the scopes of a person's token come from."""

    PERSON = "person"  # a person who is signed in reaches all that they may do here
    TOKEN = "token"  # noqa: S105 - only what the token's `scope` or `scp` names; no such claim is no scope at all


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyTimes:
    """How long an issuer's keys are used, and how often and how patiently it is asked for them."""

    refresh_s: float = 300  # a key that was rotated out stops working after this long
    cool_down_s: float = 30  # between two fetches for an unknown `kid`, so that made-up ones can't flood the issuer
    retry_s: float = 5  # between two tries while the issuer is away
    max_stale_s: float = 3_600  # how long old keys are used while it is away
    timeout_s: float = 5  # for discovery and keys together
    max_bytes: int = 262_144  # of one answer


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimRules:
    """What the claims of one issuer must say, and what they are worth here; however they were found to be true."""

    issuer: str  # compared byte for byte with `iss`; with the subject it is the identity key
    audience: str  # what `aud` must contain; there is no default, and an empty one would accept anybody's tokens
    tenant: TenantId | None = None  # this, or `tenant_claim`
    tenant_claim: str | None = None
    tenants: Mapping[str, TenantId] = field(default_factory=dict)  # claim's value → tenant; empty: it is its name
    purpose: Purpose = Purpose.ACCESS
    trust_email: bool = False
    provision: bool = False  # an unknown person gets a profile at their first request
    scopes: ScopePolicy = ScopePolicy.PERSON
    scope_prefix: str = ""  # "gateway:" reads `gateway:memory` as "memory"
    groups_claim: str = "groups"
    # Of a person, by the exact name of a group that they are in.
    roles: Mapping[str, tuple[RoleAssignment, ...]] = field(default_factory=dict)
    leeway_s: int = 30
    max_token_length: int = 16_384


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuerSettings(ClaimRules):
    """One trusted issuer. Raises ConfigurationFaults, with every fault at once, for settings that must not be used."""

    algorithms: frozenset[str]
    jwks_uri: str | None = None  # None: by discovery
    accept_plain_typ: bool = False  # also `typ: JWT` or none, for issuers that don't follow RFC 9068
    keys: KeyTimes = field(default_factory=KeyTimes)

    def __post_init__(self) -> None:
        faults = [*_address_faults(self), *claim_faults(self), *_algorithm_faults(self), *_time_faults(self.keys)]
        if faults:
            raise ConfigurationFaults(faults)

    @property
    def on_loopback(self) -> bool:
        """Whether the issuer is on this machine, the only place where plain http is allowed."""
        return is_loopback(self.issuer)


def is_loopback(url: str) -> bool:
    """Whether the host of `url` is this machine, by name or by address."""
    host = urlsplit(url).hostname or ""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def is_safe_url(url: str, *, loopback: bool) -> bool:
    """Whether `url` may be fetched: https, or http on this machine where `loopback` allows it; nothing hidden in it."""
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 - reading it is what checks it
    except ValueError:
        return False
    if not parts.hostname or parts.username is not None or parts.fragment or not url.isprintable():
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and loopback and is_loopback(url))


def claim_faults(rules: ClaimRules) -> Iterator[Fault]:
    """Every rule about claims that must not be used."""
    if not rules.audience.strip():
        yield Fault(field="audience", rule="required", message="name the audience that tokens for this gateway carry")
    if not 0 <= rules.leeway_s <= _LONGEST_LEEWAY_S:
        yield Fault(field="leeway_s", rule="range", message=f"must be from 0 to {_LONGEST_LEEWAY_S} seconds")
    if not 256 <= rules.max_token_length <= _LONGEST_TOKEN:
        yield Fault(field="max_token_length", rule="range", message=f"must be from 256 to {_LONGEST_TOKEN}")
    if bool(rules.tenant) == bool(rules.tenant_claim):
        yield Fault(field="tenant", rule="one_of", message="give either a tenant or the claim that names it")
    if rules.tenants and not rules.tenant_claim:
        yield Fault(field="tenants", rule="needs", message="only has a meaning together with tenant_claim")
    if not rules.groups_claim.strip():
        yield Fault(field="groups_claim", rule="required", message="name the claim that lists a person's groups")
    yield from mapping_faults(rules.roles)


def is_plain_name(issuer: str) -> bool:
    """Whether `issuer` is a name that is no URL, such as the bare host name that Pomerium signs with."""
    return bool(_PLAIN_NAME.fullmatch(issuer))


def _address_faults(settings: IssuerSettings) -> Iterator[Fault]:
    proxy = settings.purpose is Purpose.ASSERTION
    if is_reserved(settings.issuer):
        yield Fault(field="issuer", rule="reserved", message="is the gateway's own name; name the issuer of the proxy")
    elif not _is_address(settings.issuer) and not (proxy and settings.jwks_uri and is_plain_name(settings.issuer)):
        otherwise = "; a name that is no URL needs a jwks_uri" if proxy else ""
        yield Fault(
            field="issuer", rule="https", message=f"must be an https URL (http only on this machine){otherwise}"
        )
    elif settings.jwks_uri is not None and not is_safe_url(settings.jwks_uri, loopback=proxy or settings.on_loopback):
        where = "on this machine" if proxy else "beside a local issuer"
        yield Fault(field="jwks_uri", rule="https", message=f"must be an https URL (http only {where})")


def _is_address(issuer: str) -> bool:
    return is_safe_url(issuer, loopback=True) and "?" not in issuer


def _algorithm_faults(settings: IssuerSettings) -> Iterator[Fault]:
    if not settings.algorithms:
        yield Fault(field="algorithms", rule="required", message=f"name at least one of {_CHOICE}")
    for unknown in sorted(settings.algorithms - ALGORITHMS):
        yield Fault(field="algorithms", rule="known", message=f"{unknown} is not one of {_CHOICE}")


def _time_faults(times: KeyTimes) -> Iterator[Fault]:
    for name in ("refresh_s", "cool_down_s", "retry_s", "timeout_s", "max_bytes"):
        if getattr(times, name) <= 0:
            yield Fault(field=f"keys.{name}", rule="range", message="must be more than 0")
    if times.max_stale_s < times.refresh_s:
        yield Fault(field="keys.max_stale_s", rule="range", message="must be at least refresh_s")
