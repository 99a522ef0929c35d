"""Turns a person's turn in a session into a token for the agent's runtime (`gwt_…`), and that into who calls.

It is signed by the gateway for one turn, carries no more than the credential that it was made from, ends with it, and
makes no other credential (design section 5.5). What it may run is checked in the path: `stages/open_session.py`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import orjson
from joserfc import jws

from gateway.bounded import keep
from gateway.errors import ToolNotAllowed, Unauthenticated
from gateway.identity.access_tokens import ACCESS_TOKEN, LOCAL_ISSUER
from gateway.identity.assertions import WEBHOOK
from gateway.identity.credentials import Credentials
from gateway.identity.refusals import Reason, refused
from gateway.identity.reserved import OPERATOR_ISSUER
from gateway.identity.signatures import ED25519, Unverified, VerificationKey, check_signature, take_apart
from gateway.identity.turn_claims import Source, TurnClaims, claims_of, read_claims
from gateway.identity.turn_keys import LIFETIME, TurnKey, TurnKeys
from gateway.keys import new_id
from gateway.model import Principal, ProfileId, Requester, SessionFacts, TenantId, TurnBinding
from gateway.ports import Clock, Identities

PREFIX = "gwt_"
HEADER = b"gateway-turn-token"
TYPE = "gateway-turn+jwt"
MAKES_NOTHING = "A turn token makes no other token. Use a credential of your own."
_ALGORITHM = ED25519.name
_LONGEST = 16_384

# Whose a credential is now; None where it has ended.
Check = Callable[[TenantId, Source], Awaitable[ProfileId | None]]


@dataclass(frozen=True, slots=True)
class _Verified:
    """A token whose signature was checked, and whose credentials were good at this epoch."""

    claims: TurnClaims
    kid: str
    epoch: int


class Origins:
    """Whether the credential that a token was made from still holds: one check for each kind that the gateway keeps.

    Those of others are not kept here, so what counts is that their principal is still linked to an active profile.
    """

    def __init__(self, identities: Identities, clock: Clock, more: Mapping[str, Check] | None = None) -> None:
        """`more` are checks by kind of credential, such as sign-ins by their id."""
        self._identities = identities
        self._clock = clock
        self._checks: dict[str, Check] = {
            ACCESS_TOKEN: self._access_token,
            WEBHOOK: self._service,
            **(more or {}),
        }

    async def hold(self, claims: TurnClaims) -> bool:
        """Whether every one still does, and the first is still the person's. Raises Unavailable."""
        tenant, profile = claims.principal.tenant, claims.principal.subject
        whose = [await self._check(source)(tenant, source) for source in claims.sources]
        return None not in whose and whose[0] == profile

    def _check(self, source: Source) -> Check:
        return self._checks.get(source.kind, self._linked)

    async def _access_token(self, tenant: TenantId, source: Source) -> ProfileId | None:
        kept = await self._identities.tokens(tenant, ProfileId(source.subject))
        good = any(one.id == source.id and self._clock.now() < one.expires_at for one in kept)
        return ProfileId(source.subject) if good else None

    async def _service(self, tenant: TenantId, source: Source) -> ProfileId | None:
        """A webhook is signed anew each time; what lasts is the service that its account is brought by."""
        profile = await self._identities.profile(tenant, ProfileId(source.subject))
        return None if profile is None or profile.merged_into or profile.disabled else profile.id

    async def _linked(self, tenant: TenantId, source: Source) -> ProfileId | None:
        if source.issuer == LOCAL_ISSUER:  # one of ours that nobody here knows how to look up
            return None
        profile = await self._identities.profile_of(tenant, source.issuer, source.subject)
        return None if profile is None or profile.merged_into or profile.disabled else profile.id


class TurnTokens:
    """Mints and verifies turn tokens."""

    def __init__(
        self,
        keys: TurnKeys,
        origins: Origins,
        clock: Clock,
        epochs: Callable[[TenantId], int],
        *,
        capacity: int = 10_000,
    ) -> None:
        self._keys = keys
        self._origins = origins
        self._clock = clock
        self._epochs = epochs
        self._capacity = capacity
        self._verified: dict[bytes, _Verified] = {}

    def mint(
        self, requester: Requester, facts: SessionFacts, kind: str | None = None
    ) -> tuple[str, TurnBinding, datetime]:
        """A token for the next turn of `requester` in this session, what it is bound to, and when it ends: in 15
        minutes, and never after the credential that it is made from (the local operator's has no end).

        `kind` is what was said of the turn when its context was assembled; its tools see no more than that.

        Raises ToolNotAllowed where it would be made from another turn token; Unavailable without a key to sign with.
        """
        principal, session, now = requester.principal, facts.session, self._clock.now()
        if any(one.turn is not None for one in (principal, *principal.beside)):
            raise ToolNotAllowed(MAKES_NOTHING)
        binding = TurnBinding(
            turn=new_id("trn", now),
            session=session.id,
            incarnation=session.incarnation,
            agent=session.agent,
            kind=kind,
        )
        expires = int(_end(principal, now).timestamp())
        claims = claims_of(principal, requester.profile.id, binding, int(now.timestamp()), expires)
        return self._sign(claims), binding, datetime.fromtimestamp(expires, UTC)

    def _sign(self, claims: Mapping[str, object]) -> str:
        key = self._keys.signing()
        header = {"alg": _ALGORITHM, "typ": TYPE, "kid": key.kid}
        return PREFIX + jws.serialize_compact(header, orjson.dumps(claims), key.key, algorithms=[_ALGORITHM])

    async def verify(self, token: str) -> Principal:
        """Who calls, with `turn` as it is bound. Raises Unauthenticated, with one text for every reason; Unavailable.

        Where the call may go is not said here: a good token for one session is refused in another (`open_session`).
        """
        if len(token) > _LONGEST or not token.isascii():
            raise refused(Reason.TOKEN_TOO_LONG if token.isascii() else Reason.TOKEN_MALFORMED)
        fingerprint = hashlib.blake2b(token.encode("ascii"), digest_size=32).digest()
        known = self._verified.get(fingerprint)
        if known is None or self._keys.find(known.kid) is None:
            if not token.startswith(PREFIX):
                raise refused(Reason.TOKEN_MALFORMED)
            parts = take_apart(token.removeprefix(PREFIX))
            self._check_signed(parts)
            known = _Verified(read_claims(parts.claims, self._clock.now()), parts.kid or "", -1)
        elif self._clock.now().timestamp() >= known.claims.expires:
            raise refused(Reason.TOKEN_EXPIRED)
        return await self._current(fingerprint, known)

    def _check_signed(self, parts: Unverified) -> None:
        if parts.type != TYPE:
            raise refused(Reason.TYPE_NOT_ALLOWED)
        if parts.algorithm != _ALGORITHM:
            raise refused(Reason.ALGORITHM_NOT_ALLOWED)
        key = self._keys.find(parts.kid)
        if key is None:
            raise refused(Reason.KEY_UNKNOWN)
        check_signature(parts, _public(key))

    async def _current(self, fingerprint: bytes, known: _Verified) -> Principal:
        """The principal, once its credentials are known to hold at the epoch of now. Every revocation raises it."""
        principal = known.claims.principal
        epoch = self._epochs(principal.tenant)
        if known.epoch != epoch:
            if not await self._origins.hold(known.claims):
                raise refused(Reason.TURN_ORIGIN_ENDED)
            # Read inside this epoch, or not kept: a change in between can't leave an old answer here.
            if self._epochs(principal.tenant) == epoch:
                keep(self._verified, fingerprint, _Verified(known.claims, known.kid, epoch), self._capacity)
        return principal


class TurnTokenHeader:
    """A turn token in a header of its own, beside the bearer token of the service that carries it."""

    def __init__(self, tokens: TurnTokens) -> None:
        self._tokens = tokens

    async def verify(self, values: Sequence[str], _credentials: Credentials) -> Principal:
        """The principal. Raises Unauthenticated: several, or not a good one; Unavailable."""
        if len(values) > 1:
            raise Unauthenticated(
                "Send one Gateway-Turn-Token header, not several.",
                reason="credentials_several",
                error="invalid_request",
            )
        return await self._tokens.verify(values[0])


def _end(principal: Principal, now: datetime) -> datetime:
    own, longest = principal.expires_at, now + LIFETIME
    return longest if own is None or principal.issuer == OPERATOR_ISSUER else min(longest, own)


def _public(key: TurnKey) -> VerificationKey:
    return VerificationKey(key.kid, ED25519, key.key)
