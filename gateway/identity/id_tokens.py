"""Turns an ID token into the claims that an issuer signed for this sign-in (OpenID Connect Core section 3.1.3.7)."""

from __future__ import annotations

import hashlib
import hmac
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from typing import Any

from gateway.identity.issuers import IssuerSettings
from gateway.identity.jwks import IssuerKeys
from gateway.identity.oidc import check_signed
from gateway.identity.refusals import Reason, refused
from gateway.identity.signatures import Unverified, take_apart

_HASHES = {"RS256": hashlib.sha256, "ES256": hashlib.sha256, "EdDSA": hashlib.sha512, "Ed25519": hashlib.sha512}


async def id_token_claims(
    token: str, settings: IssuerSettings, keys: IssuerKeys, *, nonce: str, access_token: str | None
) -> Mapping[str, Any]:
    """The claims of an ID token that is good for the sign-in that `nonce` was made for. Times are not looked at.

    `settings.audience` is the client. Raises Unauthenticated with its reason; Unavailable without keys.
    """
    if len(token) > settings.max_token_length:
        raise refused(Reason.TOKEN_TOO_LONG)
    parts = take_apart(token)
    if (parts.type or "JWT").upper() != "JWT":
        raise refused(Reason.TYPE_NOT_ALLOWED)  # an access token or a logout token
    if parts.algorithm not in settings.algorithms:
        raise refused(Reason.ALGORITHM_NOT_ALLOWED)
    await check_signed(parts, keys)
    _check_is_for_us(parts.claims, settings)
    _check_is_of_this_sign_in(parts, nonce, access_token)
    return parts.claims


def _check_is_for_us(claims: Mapping[str, Any], settings: IssuerSettings) -> None:
    if claims.get("iss") != settings.issuer:
        raise refused(Reason.ISSUER_WRONG)
    # Rule 3: other audiences that we don't trust are refused, and we trust none.
    if claims.get("aud") not in (settings.audience, [settings.audience]):
        raise refused(Reason.AUDIENCE_WRONG)
    if claims.get("azp", settings.audience) != settings.audience:
        raise refused(Reason.AUTHORIZED_PARTY_WRONG)
    if "events" in claims:  # RFC 8417: a logout or security token
        raise refused(Reason.TYPE_NOT_ALLOWED)


def _check_is_of_this_sign_in(parts: Unverified, nonce: str, access_token: str | None) -> None:
    said = parts.claims.get("nonce")
    if not isinstance(said, str) or not _same(said, nonce):
        raise refused(Reason.NONCE_WRONG)
    if "at_hash" in parts.claims and not _is_hash_of(parts, access_token):
        raise refused(Reason.ACCESS_TOKEN_HASH_WRONG)


def _is_hash_of(parts: Unverified, access_token: str | None) -> bool:
    """OpenID Connect Core section 3.1.3.6: the left half of the hash that the algorithm uses."""
    said = parts.claims["at_hash"]
    if not isinstance(said, str) or access_token is None:
        return False
    whole = _HASHES[parts.algorithm](access_token.encode("utf-8", "surrogatepass")).digest()
    half = urlsafe_b64encode(whole[: len(whole) // 2]).rstrip(b"=").decode("ascii")
    return _same(said, half)


def _same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode("utf-8", "surrogatepass"), other.encode("utf-8", "surrogatepass"))
