"""Tests that what is not exactly an access token of the issuer for us, now, is refused: one table of every way."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from gateway.errors import Unauthenticated
from gateway.identity.issuers import ScopePolicy
from gateway.identity.oidc import OidcVerifier
from gateway.identity.scopes import AREAS
from tests.identity.conftest import Verifiers, refusal
from tests.issuer import ABSENT, AUDIENCE, LocalIssuer, encode, sign, sign_with_secret, signing_key

NOW = int(datetime(2026, 12, 1, 9, 0, tzinfo=UTC).timestamp())

BROKEN_HEADERS: dict[str, tuple[dict[str, Any], str]] = {
    "no algorithm": ({"alg": ABSENT}, "header_malformed"),
    "algorithm that is a number": ({"alg": 256}, "header_malformed"),
    "algorithm none": ({"alg": "none"}, "algorithm_not_allowed"),
    "algorithm None": ({"alg": "None"}, "algorithm_not_allowed"),
    "algorithm of another key": ({"alg": "RS256"}, "key_unknown"),
    "algorithm nobody allowed": ({"alg": "ES512"}, "algorithm_not_allowed"),
    "algorithm HS256": ({"alg": "HS256"}, "algorithm_not_allowed"),
    "type of an ID token": ({"typ": "JWT"}, "type_not_allowed"),
    "no type": ({"typ": ABSENT}, "type_not_allowed"),
    "type of a logout token": ({"typ": "logout+jwt"}, "type_not_allowed"),
    "type that only ends like ours": ({"typ": "xat+jwt"}, "type_not_allowed"),
    "type that is null": ({"typ": None}, "header_malformed"),
    "unknown key": ({"kid": "nobody's"}, "key_unknown"),
    "key that is a list": ({"kid": ["first"]}, "header_malformed"),
    "empty key": ({"kid": ""}, "key_unknown"),
    "critical extension": ({"crit": ["exp"]}, "header_not_allowed"),
    "payload that is not encoded": ({"b64": False, "crit": ["b64"]}, "header_not_allowed"),
    "key brought along": ({"jwk": signing_key("attacker").published()}, "header_not_allowed"),
    "key to be fetched": ({"jku": "https://attacker.example/keys"}, "header_not_allowed"),
    "certificate brought along": ({"x5c": ["MIIB"]}, "header_not_allowed"),
    "certificate to be fetched": ({"x5u": "https://attacker.example/cert"}, "header_not_allowed"),
    "compression": ({"zip": "DEF"}, "header_not_allowed"),
    "encryption": ({"enc": "A256GCM"}, "header_not_allowed"),
    "header over its limit": ({"x": "x" * 2_000}, "token_too_long"),
}

BROKEN_CLAIMS: dict[str, tuple[dict[str, Any], str]] = {
    "no issuer": ({"iss": ABSENT}, "issuer_unknown"),
    "issuer that is a list": ({"iss": ["https://id.example"]}, "issuer_unknown"),
    "another issuer": ({"iss": "https://id.example"}, "issuer_unknown"),
    "no audience": ({"aud": ABSENT}, "audience_wrong"),
    "empty audience": ({"aud": []}, "audience_wrong"),
    "another audience": ({"aud": "https://other.example"}, "audience_wrong"),
    "audience that begins like ours": ({"aud": AUDIENCE + "/x"}, "audience_wrong"),
    "audience in capitals": ({"aud": AUDIENCE.upper()}, "audience_wrong"),
    "audience that holds ours deeper": ({"aud": [[AUDIENCE]]}, "audience_wrong"),
    "audience that is an object": ({"aud": {AUDIENCE: True}}, "audience_wrong"),
    "no expiry": ({"exp": ABSENT}, "expiry_missing"),
    "expiry that is null": ({"exp": None}, "expiry_missing"),
    "expiry that is text": ({"exp": "9999999999"}, "claim_malformed"),
    "expiry that is true": ({"exp": True}, "claim_malformed"),
    "expiry after all time": ({"exp": 1e300}, "claim_malformed"),
    "expiry before all time": ({"exp": -1}, "claim_malformed"),
    "expired for as long as the leeway": ({"exp": NOW - 30}, "token_expired"),
    "no time of issue": ({"iat": ABSENT}, "issued_at_missing"),
    "issued in the future": ({"iat": NOW + 31}, "not_yet_valid"),
    "not valid yet": ({"nbf": NOW + 31}, "not_yet_valid"),
    "not before that is text": ({"nbf": "now"}, "claim_malformed"),
    "no subject": ({"sub": ABSENT}, "subject_missing"),
    "empty subject": ({"sub": ""}, "subject_missing"),
    "blank subject": ({"sub": "  "}, "subject_missing"),
    "subject that is a number": ({"sub": 7}, "subject_missing"),
    "subject over its limit": ({"sub": "a" * 256}, "claim_malformed"),
    "subject with a control character": ({"sub": "alice\x00"}, "claim_malformed"),
    "nonce of an ID token": ({"nonce": "n"}, "id_token"),
    "access token's hash of an ID token": ({"at_hash": "h"}, "id_token"),
    "code's hash of an ID token": ({"c_hash": "h"}, "id_token"),
    "state's hash of an ID token": ({"s_hash": "h"}, "id_token"),
    "Cognito's word for an ID token": ({"token_use": "id"}, "id_token"),
    "security event": ({"events": {}}, "id_token"),
    "bound to a key of its holder": ({"cnf": {"jkt": "x"}}, "sender_constrained"),
}


@pytest.mark.parametrize(("changes", "reason"), BROKEN_HEADERS.values(), ids=BROKEN_HEADERS)
async def test_a_header_that_asks_for_another_check_is_refused(
    issuer: LocalIssuer, verifiers: Verifiers, changes: dict[str, Any], reason: str
) -> None:
    """RFC 8725 sections 3.1, 3.10, 3.11; RFC 9068 section 4: each with a good signature, so nothing else is wrong."""
    verifier = verifiers.trusting()

    assert (await verifier.verify(issuer.mint())).subject == "alice"
    assert await refusal(verifier, issuer.mint(header=changes)) == reason
    assert set(issuer.requests) <= {"/.well-known/openid-configuration", "/keys"}  # no key of the token's was fetched


@pytest.mark.parametrize(("changes", "reason"), BROKEN_CLAIMS.values(), ids=BROKEN_CLAIMS)
async def test_claims_that_are_not_for_us_now_are_refused(
    issuer: LocalIssuer, verifiers: Verifiers, changes: dict[str, Any], reason: str
) -> None:
    """RFC 9068 section 4 and RFC 7519 section 4.1: each properly signed by the trusted issuer."""
    verifier = verifiers.trusting()

    assert (await verifier.verify(issuer.mint())).subject == "alice"
    assert await refusal(verifier, issuer.sign(changes)) == reason


def _hmac_with_public_key(issuer: LocalIssuer) -> str:
    public = issuer.keys[0].key.as_pem(private=False)
    header = {"alg": "HS256", "typ": "at+jwt", "kid": issuer.keys[0].kid}
    return sign_with_secret(header, issuer.claims(), public)


def _hmac_named_like_the_key(issuer: LocalIssuer) -> str:
    public = issuer.keys[0].key.as_pem(private=False)
    header = {"alg": issuer.keys[0].algorithm, "typ": "at+jwt", "kid": issuer.keys[0].kid}
    return sign_with_secret(header, issuer.claims(), public)


def _of_stranger(issuer: LocalIssuer) -> str:
    return issuer.mint(key=signing_key("attacker"), header={"kid": issuer.keys[0].kid})


def _unsigned(issuer: LocalIssuer) -> str:
    return issuer.mint().rpartition(".")[0] + "."


def _none_unsigned(issuer: LocalIssuer) -> str:
    return issuer.mint(header={"alg": "none"}).rpartition(".")[0] + "."


def _signature_of_another(issuer: LocalIssuer) -> str:
    return issuer.mint("alice").rpartition(".")[0] + "." + issuer.mint("bob").rpartition(".")[2]


BROKEN_TOKENS: dict[str, tuple[Callable[[LocalIssuer], str], str]] = {
    "empty": (lambda _: "", "token_malformed"),
    "two parts": (lambda issuer: issuer.mint().rpartition(".")[0], "token_malformed"),
    "four parts": (lambda issuer: issuer.mint() + ".x", "token_malformed"),
    "five parts, as JWE": (lambda _: "a.b.c.d.e", "token_malformed"),
    "no signature": (_unsigned, "token_malformed"),
    "algorithm none without signature": (_none_unsigned, "token_malformed"),
    "line end": (lambda issuer: issuer.mint() + "\n", "token_malformed"),
    "padding": (lambda issuer: issuer.mint() + "=", "token_malformed"),
    "letters of another alphabet": (lambda issuer: issuer.mint() + "é", "token_malformed"),
    "half a surrogate": (lambda issuer: issuer.mint() + "\ud800", "token_malformed"),
    "header that is not base64": (lambda issuer: "a." + issuer.mint().partition(".")[2], "header_malformed"),
    "header that is not JSON": (lambda issuer: sign(b"{", issuer.claims(), issuer.keys[0]), "header_malformed"),
    "header that is a list": (lambda issuer: sign(b"[]", issuer.claims(), issuer.keys[0]), "header_malformed"),
    "header that is not UTF-8": (lambda issuer: sign(b"\xff", issuer.claims(), issuer.keys[0]), "header_malformed"),
    "claims that are a list": (lambda issuer: sign({"alg": "ES256"}, b"[]", issuer.keys[0]), "claim_malformed"),
    "claims nested to exhaust": (
        lambda issuer: sign({"alg": "ES256"}, b'{"a":' + b"[" * 9_000, issuer.keys[0]),
        "claim_malformed",
    ),
    "claims with infinity": (
        lambda issuer: sign({"alg": "ES256"}, b'{"exp": Infinity}', issuer.keys[0]),
        "claim_malformed",
    ),
    "over the limit": (lambda issuer: issuer.mint(padding="x" * 16_384), "token_too_long"),
    "HMAC with the public key": (_hmac_with_public_key, "algorithm_not_allowed"),
    "HMAC with the public key, named ES256": (_hmac_named_like_the_key, "signature_wrong"),
    "signed by a stranger": (_of_stranger, "signature_wrong"),
    "signature of another token": (_signature_of_another, "signature_wrong"),
    "empty signature value": (lambda issuer: issuer.mint().rpartition(".")[0] + ".AA", "signature_wrong"),
    "signature over its limit": (
        lambda issuer: issuer.mint().rpartition(".")[0] + "." + "A" * 1_028,
        "signature_wrong",
    ),
}


@pytest.mark.parametrize(("make", "reason"), BROKEN_TOKENS.values(), ids=BROKEN_TOKENS)
async def test_what_the_issuer_did_not_sign_is_refused(
    issuer: LocalIssuer, verifiers: Verifiers, make: Callable[[LocalIssuer], str], reason: str
) -> None:
    """A token signed with HMAC under the public key (reported to two libraries), by nobody, by somebody else."""
    verifier = verifiers.trusting()

    assert (await verifier.verify(issuer.mint())).subject == "alice"
    assert await refusal(verifier, make(issuer)) == reason


ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_."


@pytest.mark.parametrize("algorithm", ["RS256", "ES256", "EdDSA"])
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    at=st.integers(0, 10_000), edit=st.sampled_from(["replace", "insert", "delete"]), letter=st.sampled_from(ALPHABET)
)
@example(at=-1, edit="replace", letter="B")
@example(at=-1, edit="delete", letter="A")
async def test_any_mutated_token_is_refused(
    issuer: LocalIssuer, verifier: OidcVerifier, algorithm: str, at: int, edit: str, letter: str
) -> None:
    """Whatever is changed in a token, it stops being one, also base64url that would decode to the same bytes."""
    issuer.rotate(f"of-{algorithm}", algorithm)
    token = issuer.mint()
    place = at % len(token)
    rest = token[place if edit == "insert" else place + 1 :]
    mutated = token[:place] + ("" if edit == "delete" else letter) + rest

    assert (await verifier.verify(token)).subject == "alice"
    if mutated != token:
        await refusal(verifier, mutated)


ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "iss", "aud"]), inner, max_size=3)
    ),
    max_leaves=5,
)
CLAIMS = [
    "iss",
    "aud",
    "sub",
    "exp",
    "iat",
    "nbf",
    "scope",
    "scp",
    "client_id",
    "azp",
    "email",
    "email_verified",
    "org",
]
HEADERS = ["alg", "typ", "kid", "crit", "jwk", "x5t", "other"]


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    header=st.dictionaries(st.sampled_from(HEADERS), ANYTHING, max_size=2),
    claims=st.dictionaries(st.sampled_from(CLAIMS), ANYTHING, max_size=4),
)
async def test_whatever_a_trusted_issuer_signs_is_a_principal_or_a_refusal(
    issuer: LocalIssuer, lenient: OidcVerifier, header: dict[str, Any], claims: dict[str, Any]
) -> None:
    """No claim of any shape makes another error, which would be a 500 and tell a stranger where it hurts."""
    key = issuer.keys[0]
    full = {"alg": key.algorithm, "typ": "at+jwt", "kid": key.kid} | header
    token = sign(full, issuer.claims(org="acme", scope="memory") | claims, key)
    with contextlib.suppress(Unauthenticated):  # and no other error
        principal = await lenient.verify(token)
        assert principal.subject
        assert principal.issuer == issuer.url
        assert principal.scopes <= AREAS


@pytest.fixture
def lenient(verifiers: Verifiers) -> OidcVerifier:
    """A verifier with every option on, so that every claim is looked at."""
    return verifiers.trusting(
        tenant=None, tenant_claim="org", trust_email=True, accept_plain_typ=True, scopes=ScopePolicy.TOKEN
    )


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(token=st.text(max_size=200) | st.text("aA0-_.=", max_size=60) | st.binary(max_size=60).map(encode))
async def test_any_text_is_refused_without_a_fetch(issuer: LocalIssuer, verifier: OidcVerifier, token: str) -> None:
    """A stranger's bytes cost a little parsing and nothing more."""
    await refusal(verifier, token)
    assert issuer.requests == []
