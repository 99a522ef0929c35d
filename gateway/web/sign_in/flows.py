"""Turns the `state` that an issuer sends back into the sign-in that a browser began here (RFC 6749 section 10.12)."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass

from gateway.identity.refusals import Reason, refused
from gateway.ports import Clock

COOKIE = "__Host-gateway-flow"
LIVES_S = 600
_BROWSER_BYTES = 32
_BROWSER_LENGTH = 43


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """A sign-in between its beginning and its callback."""

    issuer: str  # the name in the settings
    nonce: str
    code_verifier: str
    next: str


@dataclass(frozen=True, slots=True)
class _Begun:
    """A flow, the browser it belongs to, and its end."""

    flow: Flow
    browser: bytes
    until: float


class Flows:
    """What was begun and not finished; each is good once, for ten minutes, for its browser alone.

    Anybody may begin one, so there are at most `capacity`: then the oldest goes, so that a flood locks nobody out who
    is quicker than it.
    """

    def __init__(self, clock: Clock, *, capacity: int = 20_000) -> None:
        self._clock = clock
        self._capacity = capacity
        self._begun: dict[str, _Begun] = {}

    def begin(self, state: str, browser: str, flow: Flow) -> None:
        """Remembers a flow of this browser."""
        now = self._clock.monotonic()
        self._forget(now)
        while len(self._begun) >= self._capacity:
            del self._begun[next(iter(self._begun))]
        self._begun[state] = _Begun(flow, _digest(browser), now + LIVES_S)

    def take(self, state: str, browser: str | None) -> Flow:
        """The flow, which nobody can take again. Raises Unauthenticated: there is none, or it is another browser's."""
        begun = self._begun.pop(state, None)
        if begun is None or self._clock.monotonic() >= begun.until:
            raise refused(Reason.STATE_UNKNOWN)
        if browser is None or not hmac.compare_digest(begun.browser, _digest(browser)):
            raise refused(Reason.STATE_OF_ANOTHER_BROWSER)
        return begun.flow

    def _forget(self, now: float) -> None:
        # In the order of their beginning, and all live equally long: the first that is not over ends the search.
        while self._begun:
            oldest = next(iter(self._begun))
            if self._begun[oldest].until > now:
                return
            del self._begun[oldest]


def browser_of(cookie: str | None) -> str:
    """The browser's own secret: the one it has, so that two tabs may sign in side by side, or a new one."""
    if cookie is not None and len(cookie) == _BROWSER_LENGTH and cookie.isascii():
        return cookie
    return secrets.token_urlsafe(_BROWSER_BYTES)


def _digest(browser: str) -> bytes:
    return hashlib.sha256(browser.encode("utf-8", "surrogatepass")).digest()
