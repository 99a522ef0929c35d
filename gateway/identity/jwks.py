"""Turns a trusted issuer's address into the public keys that it signs with now (RFC 7517, OpenID Connect Discovery)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import httpx2
import orjson
from joserfc.errors import JoseError
from joserfc.jwk import import_key
from joserfc.util import base64_to_int

from gateway.errors import Unavailable
from gateway.identity.issuers import IssuerSettings, is_safe_url
from gateway.identity.refusals import Reason, refused
from gateway.identity.signatures import ED25519, P256, RSA, Family, VerificationKey
from gateway.ports import Clock

_MOST_KEYS = 64
_RSA_BITS = range(2_048, 4_097)  # below is weak (NIST SP 800-131A), above is slow enough to be a weapon
_AWAY = "The issuer that signed this token can't be reached, so the token can't be checked. Try again in a moment."


@dataclass(frozen=True, slots=True)
class KeySnapshot:
    """The keys of an issuer as one fetch found them; `generation` rises whenever they change."""

    generation: int
    keys: tuple[VerificationKey, ...]

    def find(self, kid: str | None, algorithm: str) -> VerificationKey | None:
        """The one key that fits; without a `kid` only where there is no choice. Raises Unauthenticated for several."""
        fitting = [key for key in self.keys if algorithm in key.family.aliases and kid in (None, key.kid)]
        if len(fitting) > 1:
            raise refused(Reason.KEY_AMBIGUOUS)
        return fitting[0] if fitting else None


class BadAnswer(Exception):
    """The issuer answered with something that is not a discovery document or a key set."""


class IssuerKeys:
    """Holds one issuer's keys: refreshed on schedule and for an unknown `kid`, with one fetch in flight at most."""

    def __init__(self, settings: IssuerSettings, http: httpx2.AsyncClient, clock: Clock) -> None:
        self._settings = settings
        self._times = settings.keys
        self._http = http
        self._clock = clock
        self._snapshot = KeySnapshot(0, ())
        self._published: list[Any] = []
        self._fetched_at = float("-inf")
        self._attempted_at = float("-inf")
        self._in_flight: asyncio.Task[None] | None = None
        self.fault: str | None = None  # why the last fetch failed; None after one that did not

    @property
    def age_s(self) -> float:
        """Seconds since the keys were last fetched; infinite where they never were."""
        return self._clock.monotonic() - self._fetched_at

    async def current(self) -> KeySnapshot:
        """Keys that are fresh, or old ones within the bound while the issuer is away. Raises Unavailable past it."""
        if self.age_s < self._times.refresh_s:
            return self._snapshot
        fetch = self._begin(self._times.retry_s)
        # Once an issuer is known to be away, its timeouts are not everybody's: the old keys serve meanwhile.
        known_away = self.fault is not None and self.age_s < self._times.max_stale_s
        if fetch is not None and not known_away:
            await asyncio.shield(fetch)
        return self._usable()

    async def refetched(self) -> KeySnapshot:
        """Keys after a fetch for an unknown `kid`; within the cool-down, those at hand.

        Raises Unavailable while the issuer is away: the `kid` may be of a key that we can't know yet.
        """
        fetch = self._begin(self._times.cool_down_s)
        if fetch is not None:
            await asyncio.shield(fetch)  # one caller who hangs up must not end the fetch of the others
        if self.fault is not None:
            raise Unavailable(_AWAY)
        return self._usable()

    async def aclose(self) -> None:
        """Ends a fetch in flight."""
        if self._in_flight is not None:
            self._in_flight.cancel()
            await asyncio.wait([self._in_flight])

    def _usable(self) -> KeySnapshot:
        if self.age_s < self._times.max_stale_s:
            return self._snapshot
        raise Unavailable(_AWAY)

    def _begin(self, gap_s: float) -> asyncio.Task[None] | None:
        if self._in_flight is not None and not self._in_flight.done():
            return self._in_flight
        started = self._clock.monotonic()
        if started - self._attempted_at < gap_s:
            return None
        self._attempted_at = started
        self._in_flight = asyncio.create_task(self._fetch(started))
        return self._in_flight

    async def _fetch(self, started: float) -> None:
        try:
            async with asyncio.timeout(self._times.timeout_s):
                published = await _published_keys(self._settings, self._http)
        except (httpx2.HTTPError, httpx2.InvalidURL, TimeoutError, BadAnswer) as error:
            self.fault = f"{type(error).__name__}: {error}"
            return
        self.fault = None
        self._fetched_at = started
        if published != self._published or self._snapshot.generation == 0:
            self._published = published
            self._snapshot = KeySnapshot(self._snapshot.generation + 1, tuple(_usable_keys(published)))


async def _published_keys(settings: IssuerSettings, http: httpx2.AsyncClient) -> list[Any]:
    address = settings.jwks_uri or await _discovered(settings, http)
    keys = (await fetch_document(address, settings, http)).get("keys")
    if not isinstance(keys, list) or len(keys) > _MOST_KEYS:
        raise BadAnswer(f"{address} holds no list of at most {_MOST_KEYS} keys")
    return keys


async def _discovered(settings: IssuerSettings, http: httpx2.AsyncClient) -> str:
    """The key set's address."""
    document = await fetch_metadata(settings, http)
    found = document.get("jwks_uri")
    if not isinstance(found, str) or not is_safe_url(found, loopback=settings.on_loopback):
        raise BadAnswer(f"{settings.issuer} names no jwks_uri that may be fetched")
    return found


async def fetch_metadata(settings: IssuerSettings, http: httpx2.AsyncClient) -> Mapping[str, Any]:
    """What the issuer says of itself. OpenID Connect Discovery section 4.3: the document's issuer must be exactly ours.

    Raises BadAnswer, or what the client raises where there is no answer.
    """
    address = settings.issuer.rstrip("/") + "/.well-known/openid-configuration"
    document = await fetch_document(address, settings, http)
    if document.get("issuer") != settings.issuer:
        raise BadAnswer(f"{address} is of another issuer")
    return document


async def fetch_document(address: str, settings: IssuerSettings, http: httpx2.AsyncClient) -> Mapping[str, Any]:
    """The JSON object at `address`. Raises BadAnswer, or what the client raises where there is no answer."""
    # Redirects are not followed: they would let whoever answers choose where keys come from. Nothing compressed either,
    # so that the limit counts what is read into memory.
    headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
    body = bytearray()
    async with http.stream("GET", address, headers=headers, follow_redirects=False) as response:
        plain = response.headers.get("Content-Encoding", "identity") == "identity"
        if response.status_code != httpx2.codes.OK or not plain:
            raise BadAnswer(f"{address} answered {response.status_code}, or compressed")
        async for chunk in response.aiter_raw():
            body += chunk
            if len(body) > settings.keys.max_bytes:
                raise BadAnswer(f"{address} answered with more than {settings.keys.max_bytes} bytes")
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise BadAnswer(f"{address} answered with something that is not JSON") from error
    if not isinstance(document, dict):
        raise BadAnswer(f"{address} answered with something that is not an object")
    return document


def _usable_keys(published: list[Any]) -> Iterator[VerificationKey]:
    """The keys that we verify with; others are left out, as RFC 7517 section 5 says, and don't spoil the rest."""
    for jwk in published:
        try:
            key = _verification_key(jwk)
        except (JoseError, ValueError, TypeError, KeyError):
            continue
        if key is not None:
            yield key


def _verification_key(jwk: Any) -> VerificationKey | None:
    if not isinstance(jwk, dict):
        return None
    family = _family(jwk)
    if family is None or not _is_for_verifying(jwk) or jwk.get("alg", family.name) not in family.aliases:
        return None
    # `alg` was compared here, by every name of the algorithm; joserfc would compare it by one.
    material = {name: value for name, value in jwk.items() if name in ("kty", "n", "e", "crv", "x", "y")}
    return VerificationKey(jwk.get("kid"), family, import_key(material))


def _family(jwk: Mapping[str, Any]) -> Family | None:
    match jwk.get("kty"), jwk.get("crv"):
        case "RSA", _ if base64_to_int(jwk["n"]).bit_length() in _RSA_BITS:
            return RSA
        case "EC", "P-256":
            return P256
        case "OKP", "Ed25519":
            return ED25519
    return None


def _is_for_verifying(jwk: Mapping[str, Any]) -> bool:
    # An issuer that publishes the private half ("d") has lost that key: anybody can sign with it.
    return jwk.get("use", "sig") == "sig" and "verify" in jwk.get("key_ops", ["verify"]) and "d" not in jwk
