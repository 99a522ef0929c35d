"""Turns a personal access token (`gwp_…`) into the principal that it stands for (design section 5.4).

A secret is `gwp_`, 43 base62 digits of 256 random bits, and 6 of their CRC-32: so a mistyped one is told from an
unknown one without a look-up, and secret scanners find leaked ones with few false alarms.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import string
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from gateway.bounded import keep
from gateway.identity.refusals import Reason, refused
from gateway.model import AccessToken, Principal, TenantId
from gateway.ports import Clock, Identities

PREFIX = "gwp_"
LOCAL_ISSUER = "gateway"  # no issuer from outside has this name (reserved.py)
ACCESS_TOKEN = "access_token"  # noqa: S105 - the kind of a credential, not one

_DIGITS = string.digits + string.ascii_uppercase + string.ascii_lowercase
_RANDOM_DIGITS = 43  # 62 ** 43 > 2 ** 256
_CHECK_DIGITS = 6  # 62 ** 6 > 2 ** 32
_SHAPE = re.compile(rf"{PREFIX}[0-9A-Za-z]{{{_RANDOM_DIGITS + _CHECK_DIGITS}}}", re.ASCII)


def _base62(number: int, width: int) -> str:
    digits = []
    for _ in range(width):
        number, digit = divmod(number, len(_DIGITS))
        digits.append(_DIGITS[digit])
    return "".join(reversed(digits))


def _check_digits(body: str) -> str:
    return _base62(zlib.crc32(body.encode("ascii")), _CHECK_DIGITS)


def mint() -> tuple[str, bytes]:
    """A new secret, to be shown once, and the hash of it, to be stored."""
    body = _base62(secrets.randbits(256), _RANDOM_DIGITS)
    secret = f"{PREFIX}{body}{_check_digits(body)}"
    return secret, digest(secret)


def digest(secret: str) -> bytes:
    """What is stored of a secret. A plain hash will do: 256 random bits can't be guessed, so nothing slows guessing."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()


def is_well_formed(secret: str) -> bool:
    """Whether `secret` has the shape and the right check digits; both are public, so telling early tells nothing."""
    if _SHAPE.fullmatch(secret) is None:
        return False
    body = secret[len(PREFIX) : -_CHECK_DIGITS]
    return secret.endswith(_check_digits(body))


class TokenUse:
    """Collects when each token was last used, so that a read of it costs no write; `app` flushes it now and then."""

    def __init__(self, identities: Identities) -> None:
        self._identities = identities
        self._seen: dict[str, datetime] = {}

    def record(self, token_id: str, at: datetime) -> None:
        """Remembers the newest use."""
        self._seen[token_id] = at

    async def flush(self) -> None:
        """Writes what was collected. Raises Unavailable when the store is away, and then loses nothing."""
        written = dict(self._seen)
        if not written:
            return
        await self._identities.touch_tokens(written)
        # What was used again in the meantime waits for the next time.
        self._seen = {token: at for token, at in self._seen.items() if written.get(token) != at}


@dataclass(frozen=True, slots=True)
class _Known:
    """A stored token, as it was in this epoch of its tenant, and the principal that it makes."""

    token: AccessToken
    principal: Principal
    epoch: int


class AccessTokenVerifier:
    """Verifies personal access tokens against the store, or against what the store said in the same epoch.

    Every change of a token raises its tenant's epoch (ports), so an entry of another epoch counts for nothing.
    """

    def __init__(
        self,
        identities: Identities,
        clock: Clock,
        epochs: Callable[[TenantId], int],
        use: TokenUse,
        *,
        capacity: int = 10_000,
    ) -> None:
        self._identities = identities
        self._clock = clock
        self._epochs = epochs
        self._use = use
        self._capacity = capacity
        self._known: dict[bytes, _Known] = {}

    async def verify(self, secret: str) -> Principal:
        """The principal of `secret`: the profile itself, with the token's scopes.

        Raises Unauthenticated, with one text whether it is malformed, unknown, revoked or expired; Unavailable.
        """
        hashed = digest(secret)
        known = self._known.get(hashed)
        if known is not None and known.epoch == self._epochs(known.token.tenant):
            token, principal = known.token, known.principal
        else:
            token, principal = await self._stored(secret, hashed)
        now = self._clock.now()
        if token.revoked_at is not None:
            raise refused(Reason.TOKEN_REVOKED)
        if now >= token.expires_at:
            raise refused(Reason.TOKEN_EXPIRED)
        self._use.record(token.id, now)
        return principal

    async def _stored(self, secret: str, hashed: bytes) -> tuple[AccessToken, Principal]:
        if not is_well_formed(secret):
            raise refused(Reason.TOKEN_MALFORMED)
        token = await self._load(hashed)
        if token is None:
            raise refused(Reason.TOKEN_UNKNOWN)
        return token, _principal(token)

    async def _load(self, hashed: bytes) -> AccessToken | None:
        # Known and unknown secrets cost the same two look-ups, so time does not tell them apart. The first says whose
        # epoch to watch; the second was read inside that epoch, so a change in between can't leave an old answer here.
        first = await self._identities.token_by_hash(hashed)
        epoch = None if first is None else self._epochs(first.tenant)
        token = await self._identities.token_by_hash(hashed)
        if token is not None and epoch is not None and self._epochs(token.tenant) == epoch:
            keep(self._known, hashed, _Known(token, _principal(token), epoch), self._capacity)
        return token


def _principal(token: AccessToken) -> Principal:
    return Principal(
        tenant=token.tenant,
        issuer=LOCAL_ISSUER,
        subject=token.profile,
        credential=ACCESS_TOKEN,
        scopes=token.scopes,
        expires_at=token.expires_at,
        credential_id=token.id,
    )
