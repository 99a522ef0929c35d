"""Turns an OIDC bearer token into the principal that a trusted issuer signed it for (design section 5.1)."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import httpx2

from gateway.bounded import keep
from gateway.errors import ConfigurationFaults, Fault
from gateway.identity.claims import check_type, principal_of
from gateway.identity.issuers import IssuerSettings
from gateway.identity.jwks import IssuerKeys, KeySnapshot
from gateway.identity.refusals import Reason, refused
from gateway.identity.signatures import Unverified, check_signature, take_apart
from gateway.model import Principal
from gateway.ports import Clock

_VERIFIED_FOR_S = 60


@dataclass(frozen=True, slots=True)
class IssuerStatus:
    """What readiness and the doctor say of an issuer."""

    issuer: str
    keys_age_s: float  # infinite where none were fetched yet
    fault: str | None


class _Trusted:
    """An issuer with its keys."""

    def __init__(self, settings: IssuerSettings, http: httpx2.AsyncClient, clock: Clock) -> None:
        self.settings = settings
        self.keys = IssuerKeys(settings, http, clock)


@dataclass(frozen=True, slots=True)
class _Verified:
    """A principal whose token was verified with the keys of one generation."""

    principal: Principal
    issuer: _Trusted
    generation: int
    until: float  # wall clock, for `exp`
    until_monotonic: float


class OidcVerifier:
    """Verifies bearer tokens of the trusted issuers; close it with `aclose` to end fetches in flight."""

    def __init__(
        self, issuers: Sequence[IssuerSettings], http: httpx2.AsyncClient, clock: Clock, *, capacity: int = 10_000
    ) -> None:
        """Raises ConfigurationFaults where two entries name one issuer: which audience would count?"""
        self._trusted = {settings.issuer: _Trusted(settings, http, clock) for settings in issuers}
        if len(self._trusted) != len(issuers):
            fault = Fault(field="issuer", rule="unique", message="name each issuer once")
            raise ConfigurationFaults([fault])
        self._longest = max((settings.max_token_length for settings in issuers), default=0)
        self._clock = clock
        self._capacity = capacity
        self._verified: dict[bytes, _Verified] = {}

    async def verify(self, token: str) -> Principal:
        """The principal. Raises Unauthenticated, with one text for every reason; Unavailable without keys."""
        if len(token) > self._longest:
            raise refused(Reason.TOKEN_TOO_LONG)
        if not token.isascii():
            raise refused(Reason.TOKEN_MALFORMED)
        fingerprint = hashlib.blake2b(token.encode("ascii"), digest_size=32).digest()
        known = self._verified.get(fingerprint)
        if known is not None and await self._still_holds(known):
            return known.principal
        verified = await self._verify(token)
        keep(self._verified, fingerprint, verified, self._capacity)
        return verified.principal

    def status(self) -> tuple[IssuerStatus, ...]:
        """How fresh each issuer's keys are."""
        return tuple(
            IssuerStatus(name, trusted.keys.age_s, trusted.keys.fault) for name, trusted in self._trusted.items()
        )

    async def aclose(self) -> None:
        """Ends fetches in flight."""
        for trusted in self._trusted.values():
            await trusted.keys.aclose()

    async def _still_holds(self, known: _Verified) -> bool:
        # Asking for the keys first keeps the bound on rotated-out keys for tokens that are used all the time, too.
        snapshot = await known.issuer.keys.current()
        return (
            known.generation == snapshot.generation
            and self._clock.now().timestamp() < known.until
            and self._clock.monotonic() < known.until_monotonic
        )

    async def _verify(self, token: str) -> _Verified:
        parts = take_apart(token)
        trusted = self._issuer_of(parts)
        settings = trusted.settings
        if len(token) > settings.max_token_length:
            raise refused(Reason.TOKEN_TOO_LONG)
        check_type(parts.type, settings)
        if parts.algorithm not in settings.algorithms:
            raise refused(Reason.ALGORITHM_NOT_ALLOWED)
        snapshot = await check_signed(parts, trusted.keys)
        principal = principal_of(
            parts.claims, parts.type, settings, self._clock.now(), credential=settings.purpose.value
        )
        until_monotonic = self._clock.monotonic() + _VERIFIED_FOR_S
        return _Verified(principal, trusted, snapshot.generation, parts.claims["exp"], until_monotonic)

    def _issuer_of(self, parts: Unverified) -> _Trusted:
        name = parts.claims.get("iss")
        trusted = self._trusted.get(name) if isinstance(name, str) else None
        if trusted is None:
            raise refused(Reason.ISSUER_UNKNOWN)
        return trusted


async def check_signed(parts: Unverified, keys: IssuerKeys) -> KeySnapshot:
    """The keys that `parts` is signed with one of. Raises Unauthenticated, or Unavailable without keys."""
    snapshot = await keys.current()
    key = snapshot.find(parts.kid, parts.algorithm)
    if key is None:
        snapshot = await keys.refetched()
        key = snapshot.find(parts.kid, parts.algorithm)
    if key is None:
        raise refused(Reason.KEY_UNKNOWN)
    check_signature(parts, key)
    return snapshot
