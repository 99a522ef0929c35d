"""Tests that a key verifies with its own algorithm and with no other, whoever asks."""

from __future__ import annotations

import warnings

import pytest
from joserfc.jwk import import_key

from gateway.errors import Unauthenticated
from gateway.identity.signatures import ED25519, P256, RSA, Family, VerificationKey, check_signature, take_apart
from tests.issuer import sign, signing_key

FAMILIES = [("RS256", RSA), ("ES256", P256), ("EdDSA", ED25519), ("Ed25519", ED25519)]


def verification_key(algorithm: str, family: Family) -> VerificationKey:
    """The public half of the test key of this algorithm."""
    published = signing_key(f"of-{algorithm}", algorithm).key.as_dict(private=False)
    return VerificationKey("x", family, import_key(published))


@pytest.mark.parametrize(("algorithm", "family"), FAMILIES)
def test_a_key_verifies_with_its_own_algorithm_alone(algorithm: str, family: Family) -> None:
    """RFC 8725 section 3.1: one key, one algorithm. The header is compared with it and never followed."""
    key = verification_key(algorithm, family)
    honest = take_apart(sign({"alg": algorithm}, {"sub": "alice"}, signing_key(f"of-{algorithm}", algorithm)))
    with warnings.catch_warnings(record=True) as warned:
        check_signature(honest, key)
    assert warned == []  # EdDSA is an old name, not a fault of the issuer's that each request should log

    for other in ("none", "HS256", "RS384", "PS256", "ES384", "Ed448", algorithm.lower()):
        lying = take_apart(sign({"alg": other}, {"sub": "alice"}, signing_key(f"of-{algorithm}", algorithm)))
        with pytest.raises(Unauthenticated) as caught:
            check_signature(lying, key)
        assert caught.value.reason == "algorithm_not_allowed"


@pytest.mark.parametrize(("algorithm", "family"), FAMILIES)
def test_the_key_of_somebody_else_does_not_verify(algorithm: str, family: Family) -> None:
    """Neither a key of another kind, labelled like it, nor another of the same kind."""
    token = take_apart(sign({"alg": algorithm}, {"sub": "alice"}, signing_key(f"of-{algorithm}", algorithm)))
    check_signature(token, verification_key(algorithm, family))

    strangers = [signing_key(f"stranger-{algorithm}", algorithm)]
    strangers += [signing_key(f"of-{other}", other) for other, kind in FAMILIES if kind is not family]
    for stranger in strangers:
        mislabelled = VerificationKey("x", family, stranger.key)
        with pytest.raises(Unauthenticated) as caught:
            check_signature(token, mislabelled)
        assert caught.value.reason == "signature_wrong"
