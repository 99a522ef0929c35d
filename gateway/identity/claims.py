"""Turns the signed claims of an access token into a principal, or a refusal (RFC 7519, RFC 9068 section 4)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from gateway.identity import emails
from gateway.identity.groups import roles_in
from gateway.identity.issuers import ClaimRules, IssuerSettings, Purpose, ScopePolicy
from gateway.identity.refusals import Reason, refused
from gateway.identity.scopes import EVERYTHING, areas_in
from gateway.keys import is_name
from gateway.model import Principal, TenantId

OIDC = Purpose.ACCESS.value
PROXY_ASSERTION = Purpose.ASSERTION.value
INTROSPECTION = "introspection"
_LATEST = 253_402_300_799  # the last second of the year 9999
_LONGEST_SUBJECT = 255  # OpenID Connect Core section 2
_OF_ID_TOKENS = frozenset({"nonce", "at_hash", "c_hash", "s_hash"})

Claims = Mapping[str, Any]


def check_type(typ: str | None, settings: IssuerSettings) -> None:
    """RFC 9068 section 2.1: `at+jwt`, case and `application/` aside; plain ones only where the settings say so.

    Proxies sign with a plain type. An access token in their header was not put there by them.
    """
    name = "" if typ is None else typ.lower().removeprefix("application/")
    is_plain = name in ("", "jwt")
    if settings.purpose is Purpose.ASSERTION:
        allowed = is_plain
    else:
        allowed = name == "at+jwt" or (settings.accept_plain_typ and is_plain)
    if not allowed:
        raise refused(Reason.TYPE_NOT_ALLOWED)


def principal_of(
    claims: Claims, typ: str | None, settings: ClaimRules, now: datetime, *, credential: str = OIDC
) -> Principal:
    """Who the token speaks for, once its claims and `iss` are known to be the issuer's; `credential` is its kind.

    Raises Unauthenticated: another audience, an ID token, a token bound to a key of its holder, too early or too late,
    no subject or tenant, or a claim that is not what it should be.
    """
    _check_audience(claims, settings)
    _check_purpose(claims)
    if settings.purpose is Purpose.ACCESS:
        _check_is_for_access(claims, typ)
    expires_at = _check_times(claims, settings, now)
    service = _is_of_a_service(claims)
    return Principal(
        tenant=_tenant(claims, settings),
        issuer=settings.issuer,
        subject=_subject(claims),
        credential=credential,
        scopes=_scopes(claims, settings, service=service),
        expires_at=expires_at,
        email=None if service else _email(claims, settings),
        service=service,
        # A service is let in by an admin who holds all its roles, and an admin sees only those given by hand.
        roles=() if service else roles_in(claims, settings),
    )


def _audiences(claims: Claims) -> list[Any]:
    audience = claims.get("aud")
    return audience if isinstance(audience, list) else [audience]


def _check_audience(claims: Claims, settings: ClaimRules) -> None:
    if settings.audience not in _audiences(claims):
        raise refused(Reason.AUDIENCE_WRONG)


def _check_purpose(claims: Claims) -> None:
    """Refuses what was signed for another purpose.

    An ID token says to a client who signed in; it is no right to call us. Its marks are the hashes and nonce that only
    it carries (OpenID Connect Core sections 2 and 3.3.2.11), or an issuer's own word (`token_use` of Cognito and Hydra,
    which tells refresh tokens too). Events (RFC 8417) are logout and security tokens. A bound token (`cnf`) may not be
    taken as a bearer token (RFC 9449 section 7.2), and we check no binding.
    """
    if "cnf" in claims:
        raise refused(Reason.SENDER_CONSTRAINED)
    use = claims.get("token_use", "access")
    if "events" in claims or not _OF_ID_TOKENS.isdisjoint(claims) or use not in ("access", "access_token"):
        raise refused(Reason.ID_TOKEN)


def _check_is_for_access(claims: Claims, typ: str | None) -> None:
    """Refuses an ID token whose type does not tell: its audience is nothing but the client itself, or it says so
    (`typ` of Keycloak). An assertion may well have an audience alone, since its header says what it is for."""
    says_access = typ is not None and typ.lower().endswith("at+jwt")
    if not says_access and (_is_for_its_client(claims) or claims.get("typ", "Bearer") != "Bearer"):
        raise refused(Reason.ID_TOKEN)


def _is_for_its_client(claims: Claims) -> bool:
    clients = [claims[name] for name in ("azp", "client_id") if name in claims]
    return all(audience in clients for audience in _audiences(claims))


def _check_times(claims: Claims, settings: ClaimRules, now: datetime) -> datetime:
    at, leeway = now.timestamp(), settings.leeway_s
    expiry, issued, earliest = (_time(claims, name) for name in ("exp", "iat", "nbf"))
    if expiry is None:
        raise refused(Reason.EXPIRY_MISSING)
    if issued is None:
        raise refused(Reason.ISSUED_AT_MISSING)
    if at >= expiry + leeway:
        raise refused(Reason.TOKEN_EXPIRED)
    if at + leeway < max(issued, earliest or 0):
        raise refused(Reason.NOT_YET_VALID)
    return datetime.fromtimestamp(expiry, UTC)


def _time(claims: Claims, name: str) -> float | None:
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _LATEST:
        raise refused(Reason.CLAIM_MALFORMED)
    return value


def _subject(claims: Claims) -> str:
    subject = claims.get("sub")
    if not isinstance(subject, str) or not subject.strip():
        raise refused(Reason.SUBJECT_MISSING)
    if len(subject) > _LONGEST_SUBJECT or not subject.isprintable():
        raise refused(Reason.CLAIM_MALFORMED)
    return subject


def _tenant(claims: Claims, settings: ClaimRules) -> TenantId:
    if settings.tenant is not None:
        return settings.tenant
    value = claims.get(settings.tenant_claim or "")
    if not isinstance(value, str) or not value:
        raise refused(Reason.TENANT_MISSING)
    if settings.tenants:
        known = settings.tenants.get(value)
        if known is None:
            raise refused(Reason.TENANT_UNKNOWN)
        return known
    if not is_name(value):
        raise refused(Reason.TENANT_UNKNOWN)
    return TenantId(value)


def _is_of_a_service(claims: Claims) -> bool:
    """Whether a client got the token for itself: RFC 9068 section 2.2, and what Auth0 and Entra ID write instead."""
    client = claims.get("client_id", claims.get("azp"))
    return (
        (client is not None and claims.get("sub") == client)
        or claims.get("gty") == "client-credentials"
        or claims.get("idtyp") == "app"
    )


def _scopes(claims: Claims, settings: ClaimRules, *, service: bool) -> frozenset[str]:
    if settings.scopes is ScopePolicy.PERSON and not service:
        return frozenset({EVERYTHING})
    return areas_in(_scope_words(claims), settings.scope_prefix)


def _scope_words(claims: Claims) -> list[str]:
    """`scope` (RFC 9068 section 2.2.3), else `scp` as Entra ID and Okta write it."""
    value = claims.get("scope", claims.get("scp", ""))
    if isinstance(value, str):
        return value.split(" ")
    if isinstance(value, list) and all(isinstance(word, str) for word in value):
        return value
    raise refused(Reason.CLAIM_MALFORMED)


def _email(claims: Claims, settings: ClaimRules) -> str | None:
    """The address, if this issuer may vouch for it and says that it did (`email_verified` is true, not "true").

    Proxies write no `email_verified`: for them `trust_email` is the operator's word that they vouch for each address.
    """
    email = claims.get("email")
    verified = claims.get("email_verified", settings.purpose is Purpose.ASSERTION)
    if not settings.trust_email or verified is not True or not isinstance(email, str):
        return None
    return emails.fold(email) if emails.is_address(email) and emails.is_unambiguous(email) else None


def signed_in(claims: Claims, settings: ClaimRules, now: datetime) -> Principal:
    """Who an ID token says signed in, once its signature, issuer, audience and nonce are known to be right.

    Raises Unauthenticated: too early or too late, no subject or tenant, or a claim that is not what it should be.
    """
    _check_times(claims, settings, now)
    return Principal(
        tenant=_tenant(claims, settings),
        issuer=settings.issuer,
        subject=_subject(claims),
        credential=OIDC,
        scopes=frozenset({EVERYTHING}),
        email=_email(claims, settings),
        roles=roles_in(claims, settings),
    )
