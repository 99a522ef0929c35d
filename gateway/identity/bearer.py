"""Turns an `Authorization` header into a principal: the token's shape says who verifies it (RFC 6750 section 2.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gateway.errors import Unauthenticated
from gateway.identity.credentials import Credentials, Verifier
from gateway.identity.refusals import Reason, refused
from gateway.model import Principal

HEADER = b"authorization"
SEND_A_TOKEN = "Send a token: 'Authorization: Bearer gwp_…'."  # noqa: S105 - a sentence, not one
_JWS_DOTS = 2  # a compact JWS has three parts (RFC 7515 section 7.1)


class BearerHeader:
    """Hands a bearer token to the one verifier of its kind; a token never falls through to another one."""

    def __init__(self, *, own: Mapping[str, Verifier], signed: Verifier | None, opaque: Verifier | None) -> None:
        """`own` are the gateway's tokens by prefix (`gwp_`); `signed` verifies JWTs, `opaque` whatever has no shape.

        None: no issuer of that kind is trusted here.
        """
        self._own = own
        self._signed = signed
        self._opaque = opaque

    async def verify(self, values: Sequence[str], _credentials: Credentials) -> Principal:
        """The principal. Raises Unauthenticated: several, not a bearer token, or not a good one; Unavailable."""
        token = _token(values)
        return await self._verifier(token).verify(token)

    def _verifier(self, token: str) -> Verifier:
        own = self._own.get(token[:4])
        if own is not None:
            return own
        other = self._signed if token.count(".") == _JWS_DOTS else self._opaque
        if other is None:
            raise refused(Reason.TOKEN_UNKNOWN)
        return other


def _token(values: Sequence[str]) -> str:
    if len(values) > 1:
        raise Unauthenticated(
            "Send one Authorization header, not several.", reason="credentials_several", error="invalid_request"
        )
    scheme, _, token = values[0].partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise Unauthenticated(SEND_A_TOKEN, reason="credential_malformed", error="invalid_request")
    return token.strip()
