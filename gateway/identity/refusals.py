"""Turns the reason why a credential does not hold into the one answer that its bearer sees.

The caller always reads the same text, so that trying tokens teaches nothing; the reason goes to the audit.
"""

# ruff: noqa: S105 - names of reasons, not secrets

from __future__ import annotations

from enum import StrEnum

from gateway.errors import Unauthenticated

NOT_VALID = "This credential is not valid here. Sign in again, or ask an admin for a new one."
NOT_ADDED = "You are signed in, but you are not among this organisation's people yet. Ask an admin to add you."
NOT_ACTIVE = "Your profile here is not active. Ask an admin to switch it on again."


class Reason(StrEnum):
    """Why a credential or a principal is refused; closed, so that the audit can be counted by it."""

    TOKEN_MALFORMED = "token_malformed"
    TOKEN_TOO_LONG = "token_too_long"
    TOKEN_UNKNOWN = "token_unknown"
    TOKEN_REVOKED = "token_revoked"
    TOKEN_EXPIRED = "token_expired"
    TOKEN_INACTIVE = "token_inactive"
    HEADER_MALFORMED = "header_malformed"
    HEADER_NOT_ALLOWED = "header_not_allowed"
    TYPE_NOT_ALLOWED = "type_not_allowed"
    ALGORITHM_NOT_ALLOWED = "algorithm_not_allowed"
    ISSUER_UNKNOWN = "issuer_unknown"
    KEY_UNKNOWN = "key_unknown"
    KEY_AMBIGUOUS = "key_ambiguous"
    SIGNATURE_WRONG = "signature_wrong"
    CLAIM_MALFORMED = "claim_malformed"
    AUDIENCE_WRONG = "audience_wrong"
    EXPIRY_MISSING = "expiry_missing"
    ISSUED_AT_MISSING = "issued_at_missing"
    NOT_YET_VALID = "not_yet_valid"
    SUBJECT_MISSING = "subject_missing"
    ID_TOKEN = "id_token"
    SENDER_CONSTRAINED = "sender_constrained"
    TENANT_MISSING = "tenant_missing"
    TENANT_UNKNOWN = "tenant_unknown"
    PROFILE_UNKNOWN = "profile_unknown"
    PROFILE_RETIRED = "profile_retired"
    PROFILE_DISABLED = "profile_disabled"
    PERSON_UNKNOWN = "person_unknown"
    EMAIL_REASSIGNED = "email_reassigned"
    SERVICE_NOT_LINKED = "service_not_linked"
    TURN_ORIGIN_ENDED = "turn_origin_ended"
    PROXY_HEADER_MALFORMED = "proxy_header_malformed"
    PRINCIPAL_MALFORMED = "principal_malformed"
    COOKIE_SEVERAL = "cookie_several"
    COOKIE_AS_BEARER = "cookie_as_bearer"
    SIGN_IN_UNKNOWN = "sign_in_unknown"
    SIGN_IN_ENDED = "sign_in_ended"
    SIGN_IN_EXPIRED = "sign_in_expired"
    CSRF_TOKEN_MISSING = "csrf_token_missing"
    CSRF_TOKEN_WRONG = "csrf_token_wrong"
    ORIGIN_WRONG = "origin_wrong"
    STATE_UNKNOWN = "state_unknown"
    STATE_OF_ANOTHER_BROWSER = "state_of_another_browser"
    ISSUER_WRONG = "issuer_wrong"
    ISSUER_REFUSED = "issuer_refused"
    CODE_MISSING = "code_missing"
    CODE_REFUSED = "code_refused"
    CLIENT_REFUSED = "client_refused"
    ID_TOKEN_MISSING = "id_token_missing"
    NONCE_WRONG = "nonce_wrong"
    AUTHORIZED_PARTY_WRONG = "authorized_party_wrong"
    ACCESS_TOKEN_HASH_WRONG = "access_token_hash_wrong"
    USERINFO_WRONG = "userinfo_wrong"
    NOT_A_PERSON = "not_a_person"


def refused(reason: Reason, detail: str = NOT_VALID) -> Unauthenticated:
    """The error to raise; `invalid_token` is RFC 6750 section 3.1's word for every one of these."""
    return Unauthenticated(detail, reason=reason.value, error="invalid_token")
