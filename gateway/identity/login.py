"""Turns a browser's cookie into the person who signed in with it (design section 5.6)."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from gateway.bounded import keep
from gateway.identity import cookies
from gateway.identity.access_tokens import LOCAL_ISSUER
from gateway.identity.credentials import Credentials
from gateway.identity.issuers import ClaimRules
from gateway.identity.refusals import Reason, refused
from gateway.identity.scopes import EVERYTHING
from gateway.identity.seen import Seen
from gateway.identity.turn_claims import Source
from gateway.model import Principal, ProfileId, SignIn, TenantId
from gateway.ports import Clock, Identities, SignIns

HEADER = b"cookie"
BROWSER = "browser"
SEND_CSRF_TOKEN = "Send the X-CSRF-Token that GET /v1/me answers with; a page of another site can't."  # noqa: S105 - a sentence
_READS = frozenset({"GET", "HEAD"})


@dataclass(frozen=True, slots=True)
class _Known:
    """A sign-in as it was in this epoch of its tenant, and the principal that it makes."""

    sign_in: SignIn
    principal: Principal
    epoch: int


class CookieVerifier:
    """Verifies the cookie against the store, or against what the store said in the same epoch.

    Every end of a sign-in raises its tenant's epoch (ports), so an entry of another epoch counts for nothing.
    """

    def __init__(
        self,
        sign_ins: SignIns,
        identities: Identities,
        clock: Clock,
        epochs: Callable[[TenantId], int],
        seen: Seen,
        *,
        issuers: Mapping[str, ClaimRules],
        idle: timedelta,
        origin: str,
        capacity: int = 10_000,
    ) -> None:
        """`issuers` are those that people sign in at, by their `iss`: what their word is worth now, and not what it was
        at the sign-in. `origin` is the one that browsers see: what a write's `Origin` has to be."""
        self._sign_ins = sign_ins
        self._identities = identities
        self._clock = clock
        self._epochs = epochs
        self._seen = seen
        self._issuers = issuers
        self._idle = idle
        self._origin = origin
        self._capacity = capacity
        self._known: dict[bytes, _Known] = {}

    async def verify(self, values: Sequence[str], credentials: Credentials) -> Principal | None:
        """The principal; None where the request holds no cookie of ours.

        Raises Unauthenticated: two cookies, one that does not hold, or a write that another site may have caused;
        Unavailable.
        """
        value = cookies.named(values, cookies.COOKIE)
        if value is None:
            return None
        _, principal = await self.signed_in(value)
        if credentials.method not in _READS:
            tokens = [token for name, token in credentials.headers if name == b"x-csrf-token"]
            self.check_write(value, tokens[0].decode("latin-1") if len(tokens) == 1 else "", credentials)
        return principal

    async def signed_in(self, value: str) -> tuple[SignIn, Principal]:
        """The sign-in of a cookie's value, and who it is. Raises Unauthenticated, Unavailable."""
        if not cookies.is_well_formed(value):
            raise refused(Reason.TOKEN_MALFORMED)
        hashed = cookies.digest(value)
        known = self._known.get(hashed)
        if known is None or not self._is_current(known):
            known = await self._load(value, hashed)
        if not self._seen.in_force(known.sign_in, self._idle):
            raise refused(Reason.SIGN_IN_EXPIRED)
        self._seen.record(known.sign_in, self._clock.now())
        return known.sign_in, known.principal

    def check_write(self, value: str, csrf_token: str, credentials: Credentials) -> None:
        """Raises Unauthenticated for a write that does not come from a page of ours.

        The token is what proves it; `Origin` and `Sec-Fetch-Site` say so too where the browser sends them.
        """
        self.check_origin(credentials)
        if not csrf_token:
            raise refused(Reason.CSRF_TOKEN_MISSING, SEND_CSRF_TOKEN)
        expected = cookies.csrf_token(value).encode("ascii")
        if not hmac.compare_digest(expected, csrf_token.encode("utf-8", "surrogatepass")):
            raise refused(Reason.CSRF_TOKEN_WRONG, SEND_CSRF_TOKEN)

    def check_origin(self, credentials: Credentials) -> None:
        """Raises Unauthenticated where the browser says that a page of another site sent this."""
        for name, sent in credentials.headers:
            if name == b"origin" and sent != self._origin.encode("ascii"):
                raise refused(Reason.ORIGIN_WRONG, SEND_CSRF_TOKEN)
            if name == b"sec-fetch-site" and sent not in (b"same-origin", b"none"):
                raise refused(Reason.ORIGIN_WRONG, SEND_CSRF_TOKEN)

    def _is_current(self, known: _Known) -> bool:
        """Whether it is of this epoch. When it was last seen may since have been written, and be forgotten here, or
        have been told to another process: so one that seems to be over is looked up before that is said."""
        return known.epoch == self._epochs(known.sign_in.tenant) and self._seen.in_force(known.sign_in, self._idle)

    async def _load(self, value: str, hashed: bytes) -> _Known:
        # The first look-up says whose epoch to watch; the second was read inside that epoch, so a change in between
        # can't leave an old answer here.
        first = await self._sign_ins.by_digest(hashed)
        if first is None:
            raise refused(Reason.SIGN_IN_UNKNOWN)
        epoch = self._epochs(first.tenant)
        sign_in = await self._sign_ins.by_digest(hashed)
        if sign_in is None:
            raise refused(Reason.SIGN_IN_UNKNOWN)
        rules = _rules_of(sign_in, self._issuers)
        if sign_in.revoked_at is not None or rules is None:
            raise refused(Reason.SIGN_IN_ENDED)
        if not await _is_linked(sign_in, self._identities):
            raise refused(Reason.SIGN_IN_ENDED)
        known = _Known(sign_in, replace(_principal(sign_in, rules), csrf_token=cookies.csrf_token(value)), epoch)
        if self._epochs(sign_in.tenant) == epoch:
            keep(self._known, hashed, known, self._capacity)
        return known


class BrowserOrigin:
    """Whether the sign-in that a turn token was made with still holds, and whose it is (`turn_tokens.Origins`)."""

    def __init__(
        self,
        sign_ins: SignIns,
        identities: Identities,
        seen: Seen,
        *,
        issuers: Mapping[str, ClaimRules],
        idle: timedelta,
    ) -> None:
        """`issuers` as of `CookieVerifier`."""
        self._sign_ins = sign_ins
        self._identities = identities
        self._seen = seen
        self._issuers = issuers
        self._idle = idle

    async def __call__(self, tenant: TenantId, source: Source) -> ProfileId | None:
        """The profile; None for a sign-in that has ended. Raises Unavailable."""
        profile = ProfileId(source.subject)
        kept = await self._sign_ins.of_profile(tenant, profile)
        sign_in = next((one for one in kept if one.id == source.id), None)
        if sign_in is None or _rules_of(sign_in, self._issuers) is None:
            return None
        if not await _is_linked(sign_in, self._identities):
            return None
        return profile if self._seen.in_force(sign_in, self._idle) else None


class NoBearer:
    """Refuses a cookie's value that is sent as a token: script could read what it takes to send it there."""

    async def verify(self, _token: str) -> Principal:
        """Raises Unauthenticated."""
        raise refused(Reason.COOKIE_AS_BEARER)


async def _is_linked(sign_in: SignIn, identities: Identities) -> bool:
    """Whether its identity still is its profile's: a link that was taken away, or that moved to the survivor of a
    merge, ends what was made with it."""
    linked = await identities.profile_of(sign_in.tenant, sign_in.issuer, sign_in.subject)
    return linked is not None and linked.id == sign_in.profile


def _rules_of(sign_in: SignIn, issuers: Mapping[str, ClaimRules]) -> ClaimRules | None:
    """The rules of its issuer; None where people no longer sign in there, or now into another tenant. Whoever takes an
    issuer out of the settings does not wait for what it vouched for to end by itself."""
    rules = issuers.get(sign_in.issuer)
    return rules if rules is not None and rules.tenant in (None, sign_in.tenant) else None


def _principal(sign_in: SignIn, rules: ClaimRules) -> Principal:
    """The profile itself, as of an access token: a retired one fails closed, and is not its survivor. A role that no
    group is mapped to any more is none."""
    mapped = {role for roles in rules.roles.values() for role in roles}
    return Principal(
        tenant=sign_in.tenant,
        issuer=LOCAL_ISSUER,
        subject=sign_in.profile,
        credential=BROWSER,
        scopes=frozenset({EVERYTHING}),
        expires_at=sign_in.expires_at,
        credential_id=sign_in.id,
        roles=tuple(role for role in sign_in.roles if role in mapped),
    )
