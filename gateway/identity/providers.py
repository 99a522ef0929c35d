"""Turns an issuer's discovery document into the addresses that a sign-in goes over (OpenID Connect Discovery)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx2

from gateway.errors import Unavailable
from gateway.identity.id_tokens import id_token_claims
from gateway.identity.issuers import IssuerSettings, is_safe_url
from gateway.identity.jwks import BadAnswer, IssuerKeys, fetch_metadata
from gateway.ports import Clock

AWAY = "The identity provider can't be reached, so nobody can sign in there now. Try again in a moment."
_SECRET_METHODS = ("client_secret_basic", "client_secret_post")


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """What an issuer says of itself."""

    authorization_endpoint: str
    token_endpoint: str
    userinfo_endpoint: str | None
    end_session_endpoint: str | None
    says_issuer: bool  # RFC 9207: each authorization response carries `iss`
    secret_method: str  # how a client with a secret shows it (RFC 6749 section 2.3.1)


class Providers:
    """Holds one issuer's addresses: fetched again on schedule, and used a while longer when the issuer is away."""

    def __init__(self, settings: IssuerSettings, http: httpx2.AsyncClient, clock: Clock) -> None:
        self._settings = settings
        self._times = settings.keys
        self._http = http
        self._clock = clock
        self._known: Provider | None = None
        self._fetched_at = float("-inf")
        self._attempted_at = float("-inf")
        self._one_at_a_time = asyncio.Lock()

    async def current(self) -> Provider:
        """What the issuer says now. Raises Unavailable where it did not say so for too long."""
        async with self._one_at_a_time:
            await self._refresh()
        if self._known is None or self._clock.monotonic() - self._fetched_at >= self._times.max_stale_s:
            raise Unavailable(AWAY, retry_after_s=int(self._times.retry_s))
        return self._known

    async def _refresh(self) -> None:
        now = self._clock.monotonic()
        if now - self._fetched_at < self._times.refresh_s or now - self._attempted_at < self._times.retry_s:
            return
        try:
            await self._fetch(now)
        finally:  # from the end on, or each of those who wait here would wait for a try of their own
            self._attempted_at = self._clock.monotonic()

    async def _fetch(self, now: float) -> None:
        try:
            async with asyncio.timeout(self._times.timeout_s):
                document = await fetch_metadata(self._settings, self._http)
            self._known = _provider(document, self._settings)
        except (httpx2.HTTPError, httpx2.InvalidURL, TimeoutError, BadAnswer):
            return
        self._fetched_at = now


def _provider(document: Mapping[str, Any], settings: IssuerSettings) -> Provider:
    authorization, token = (_address(document, f"{name}_endpoint", settings) for name in ("authorization", "token"))
    if authorization is None or token is None:
        raise BadAnswer(f"{settings.issuer} names no authorization or token endpoint that may be used")
    return Provider(
        authorization_endpoint=authorization,
        token_endpoint=token,
        userinfo_endpoint=_address(document, "userinfo_endpoint", settings),
        end_session_endpoint=_address(document, "end_session_endpoint", settings),
        says_issuer=document.get("authorization_response_iss_parameter_supported") is True,
        secret_method=_secret_method(document.get("token_endpoint_auth_methods_supported")),
    )


def _address(document: Mapping[str, Any], name: str, settings: IssuerSettings) -> str | None:
    found = document.get(name)
    usable = isinstance(found, str) and is_safe_url(found, loopback=settings.on_loopback)
    return found if usable else None


def _secret_method(supported: Any) -> str:
    """The first of ours that the issuer takes; OpenID Connect Discovery section 3: unsaid, it takes the header."""
    offered = supported if isinstance(supported, list) else []
    return next((method for method in _SECRET_METHODS if method in offered), _SECRET_METHODS[0])


class SignInIssuer:
    """An issuer that people sign in at: its rules, its keys and its addresses. Close it with `aclose`."""

    def __init__(self, settings: IssuerSettings, http: httpx2.AsyncClient, clock: Clock) -> None:
        """`settings.audience` is what the issuer calls us, its client."""
        self.settings = settings
        self.providers = Providers(settings, http, clock)
        self._keys = IssuerKeys(settings, http, clock)

    async def claims(self, id_token: str, *, nonce: str, access_token: str | None) -> Mapping[str, Any]:
        """What the ID token says of who signed in. Raises Unauthenticated with its reason; Unavailable."""
        return await id_token_claims(id_token, self.settings, self._keys, nonce=nonce, access_token=access_token)

    async def aclose(self) -> None:
        """Ends fetches in flight."""
        await self._keys.aclose()
