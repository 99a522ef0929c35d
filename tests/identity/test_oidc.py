"""Tests that a bearer token is worth exactly what a trusted issuer signed, and nothing else is worth anything."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from gateway.errors import ConfigurationFaults
from gateway.identity.issuers import ScopePolicy
from gateway.identity.oidc import OidcVerifier
from gateway.model import Principal
from tests.identity.conftest import ACME, Verifiers, refusal
from tests.issuer import ABSENT, AUDIENCE, LocalIssuer, encode, signing_key

NOW = int(datetime(2026, 12, 1, 9, 0, tzinfo=UTC).timestamp())


async def test_a_good_token_becomes_the_principal_that_it_was_signed_for(
    issuer: LocalIssuer, verifiers: Verifiers
) -> None:
    """Design section 5: the identity key is (issuer, subject), the tenant is the issuer's."""
    principal = await verifiers.trusting().verify(issuer.mint("alice"))

    assert principal == Principal(
        tenant=ACME,
        issuer=issuer.url,
        subject="alice",
        credential="oidc",
        scopes=frozenset({"*"}),
        expires_at=datetime(2026, 12, 1, 9, 5, tzinfo=UTC),
    )


@pytest.mark.parametrize("algorithm", ["RS256", "ES256", "EdDSA", "Ed25519"])
async def test_each_allowed_algorithm_verifies_and_only_where_the_issuer_allows_it(
    issuer: LocalIssuer, verifiers: Verifiers, algorithm: str
) -> None:
    """RFC 8725 section 3.1: the algorithm comes from the settings. RFC 9864 calls EdDSA with Ed25519 by both names."""
    issuer.rotate(f"of-{algorithm}", algorithm)
    token = issuer.mint()
    others = frozenset({"RS256", "ES256", "EdDSA", "Ed25519"}) - {algorithm}

    assert (await verifiers.trusting().verify(token)).subject == "alice"
    assert await refusal(verifiers.trusting(algorithms=others), token) == "algorithm_not_allowed"


async def test_both_names_of_ed25519_fit_a_key_that_is_published_under_either(
    issuer: LocalIssuer, verifiers: Verifiers
) -> None:
    """RFC 9864 section 2: EdDSA is the old name; issuers change their keys and their tokens at different times."""
    issuer.rotate("of-EdDSA", "EdDSA")

    principal = await verifiers.trusting().verify(issuer.mint(header={"alg": "Ed25519"}))

    assert principal.subject == "alice"


async def test_the_leeway_is_for_clocks_that_differ_and_no_longer(issuer: LocalIssuer, verifiers: Verifiers) -> None:
    """RFC 7519 section 4.1.4: some small leeway, here the configured one, at both ends."""
    verifier = verifiers.trusting(leeway_s=10)

    assert (await verifier.verify(issuer.mint(exp=NOW - 9))).subject == "alice"
    assert await refusal(verifier, issuer.mint(exp=NOW - 10)) == "token_expired"
    assert (await verifier.verify(issuer.mint(iat=NOW + 10, nbf=NOW + 10))).subject == "alice"
    assert await refusal(verifier, issuer.mint(iat=NOW + 11)) == "not_yet_valid"
    assert await refusal(verifier, issuer.mint(nbf=NOW + 11)) == "not_yet_valid"


@pytest.mark.parametrize("typ", ["at+jwt", "application/at+jwt", "AT+JWT", "Application/AT+jwt"])
async def test_the_type_of_an_access_token_is_a_media_type(issuer: LocalIssuer, verifiers: Verifiers, typ: str) -> None:
    """RFC 7515 section 4.1.9: compared without case, and `application/` may be left out."""
    assert (await verifiers.trusting().verify(issuer.mint(header={"typ": typ}))).subject == "alice"


@pytest.mark.parametrize("typ", ["JWT", "jwt", ABSENT])
async def test_a_plain_type_passes_only_by_the_issuers_setting_and_never_for_an_id_token(
    issuer: LocalIssuer, verifiers: Verifiers, typ: Any
) -> None:
    """Design section 5.1: ID tokens are refused; without RFC 9068 their audience and the issuer's words tell them."""
    verifier = verifiers.trusting(accept_plain_typ=True)
    plain: dict[str, Any] = {"typ": typ}

    assert (await verifier.verify(issuer.mint(header=plain))).subject == "alice"
    assert (
        await verifier.verify(issuer.mint(header=plain, typ="Bearer", token_use="access", azp="console"))
    ).subject == "alice"
    assert (await verifier.verify(issuer.mint(header=plain, client_id=ABSENT))).subject == "alice"
    assert await refusal(verifiers.trusting(), issuer.mint(header=plain)) == "type_not_allowed"
    assert await refusal(verifier, issuer.mint(header={"typ": "logout+jwt"})) == "type_not_allowed"
    marks: list[dict[str, Any]] = [{"client_id": AUDIENCE}, {"azp": AUDIENCE}, {"typ": "ID"}, {"nonce": "n"}]
    for of_id_token in marks:
        assert await refusal(verifier, issuer.mint(header=plain, **of_id_token)) == "id_token"


async def test_an_audience_among_several_is_ours_too(issuer: LocalIssuer, verifiers: Verifiers) -> None:
    """RFC 7519 section 4.1.3: a list names every service that the token is for."""
    assert (await verifiers.trusting().verify(issuer.mint(aud=["https://other.example", AUDIENCE]))).subject == "alice"


@pytest.mark.parametrize(
    ("claims", "areas"),
    [
        ({}, set()),
        ({"scope": ""}, set()),
        ({"scope": "openid profile"}, set()),
        ({"scope": "gateway:memory gateway:session openid"}, {"memory", "session"}),
        ({"scope": "memory admin"}, set()),
        ({"scope": "gateway:everything"}, set()),
        ({"scope": "gateway:*"}, {"*"}),
        ({"scp": ["gateway:admin"]}, {"admin"}),
        ({"scp": "gateway:gateway"}, {"gateway"}),
        ({"scope": "gateway:memory", "scp": ["gateway:*"]}, {"memory"}),
    ],
)
async def test_scopes_are_those_of_the_token_where_the_issuer_is_set_so(
    issuer: LocalIssuer, verifiers: Verifiers, claims: dict[str, Any], areas: set[str]
) -> None:
    """Scopes are enforced, not only parsed: a token with none calls nothing, and a person's scopes can be narrowed."""
    by_token = verifiers.trusting(scopes=ScopePolicy.TOKEN, scope_prefix="gateway:")
    by_person = verifiers.trusting(scopes=ScopePolicy.PERSON, scope_prefix="gateway:")

    assert (await by_token.verify(issuer.mint(**claims))).scopes == areas
    assert (await by_person.verify(issuer.mint(**claims))).scopes == {"*"}


@pytest.mark.parametrize("scope", [7, {"memory": True}, ["memory", 7]])
async def test_scopes_that_are_no_words_are_refused(issuer: LocalIssuer, verifiers: Verifiers, scope: Any) -> None:
    """RFC 8693 section 4.2: a string of words; guessing at anything else could only widen."""
    verifier = verifiers.trusting(scopes=ScopePolicy.TOKEN)

    assert (await verifier.verify(issuer.mint(scope="memory"))).scopes == {"memory"}
    assert await refusal(verifier, issuer.mint(scope=scope)) == "claim_malformed"


@pytest.mark.parametrize(
    "claims",
    [{"sub": "console"}, {"client_id": ABSENT, "azp": "alice"}, {"gty": "client-credentials"}, {"idtyp": "app"}],
)
async def test_a_client_that_got_a_token_for_itself_is_a_service_and_has_the_tokens_scopes(
    issuer: LocalIssuer, verifiers: Verifiers, claims: dict[str, Any]
) -> None:
    """RFC 9068 section 2.2: without a person, `sub` names the client. No setting for people widens it."""
    verifier = verifiers.trusting(trust_email=True)
    vouched: dict[str, Any] = {"email": "alice@acme.example", "email_verified": True}

    person = await verifier.verify(issuer.mint(**vouched))
    service = await verifier.verify(issuer.sign({"scope": "gateway", **vouched, **claims}))

    assert (person.service, person.scopes, person.email) == (False, frozenset({"*"}), "alice@acme.example")
    assert (service.service, service.scopes, service.email) == (True, frozenset({"gateway"}), None)


@pytest.mark.parametrize(
    ("email", "verified", "expected"),
    [
        (" Alice@Acme.Example ", True, "alice@acme.example"),
        ("josé@acme.example", True, "josé@acme.example"),
        ("alice@acme.example", "true", None),
        ("alice@acme.example", False, None),
        ("alice@acme.example", None, None),
        ("alice", True, None),
        (["alice@acme.example"], True, None),
        ("mi\u212ae@acme.example", True, None),  # the Kelvin sign, which folds to "k"
        ("straße@acme.example", True, None),
    ],
)
async def test_an_email_counts_only_if_verified_by_an_issuer_that_is_trusted_with_it(
    issuer: LocalIssuer, verifiers: Verifiers, email: Any, verified: Any, expected: str | None
) -> None:
    """Design section 5, "identity key"; and no letter that folds into another may lead to another's mailbox."""
    token = issuer.mint(email=email, email_verified=verified)

    assert (await verifiers.trusting(trust_email=True).verify(token)).email == expected
    assert (await verifiers.trusting().verify(token)).email is None


async def test_the_tenant_comes_from_the_named_claim_and_a_missing_or_unknown_one_is_refused(
    issuer: LocalIssuer, verifiers: Verifiers
) -> None:
    """Design section 5, "tenant": from the issuer's settings or a named claim."""
    by_name = verifiers.trusting(tenant=None, tenant_claim="org")
    by_table = verifiers.trusting(tenant=None, tenant_claim="tid", tenants={"6d0e": ACME})

    assert (await by_name.verify(issuer.mint(org="globex"))).tenant == "globex"
    assert (await by_table.verify(issuer.mint(tid="6d0e"))).tenant == ACME
    for missing in (ABSENT, None, "", 7, ["globex"]):
        assert await refusal(by_name, issuer.mint(org=missing)) == "tenant_missing"
    assert await refusal(by_name, issuer.mint(org="../globex")) == "tenant_unknown"
    assert await refusal(by_table, issuer.mint(tid="acme")) == "tenant_unknown"


async def test_each_issuer_signs_for_itself_alone(issuer: LocalIssuer, verifiers: Verifiers) -> None:
    """ASVS V6.8.1: a token that names another trusted issuer is checked with that one's keys."""
    with LocalIssuer(issuer.clock) as other:
        other.keys = [signing_key("other's")]
        both = [verifiers.settings(), verifiers.settings(issuer=other.url, max_token_length=1_000)]
        verifier = OidcVerifier(both, verifiers._http, issuer.clock)

        assert (await verifier.verify(issuer.mint("alice"))).issuer == issuer.url
        assert (await verifier.verify(other.mint("alice"))).issuer == other.url
        assert await refusal(verifier, other.mint(iss=issuer.url)) == "key_unknown"
        assert (await verifier.verify(issuer.mint(padding="x" * 800))).subject == "alice"
        assert await refusal(verifier, other.mint(padding="x" * 800)) == "token_too_long"
        await verifier.aclose()


def test_two_entries_for_one_issuer_are_refused(verifiers: Verifiers, issuer: LocalIssuer) -> None:
    """Which audience would count must not depend on their order."""
    with pytest.raises(ConfigurationFaults) as caught:
        OidcVerifier([verifiers.settings(), verifiers.settings(audience="x")], verifiers._http, issuer.clock)

    assert [(fault.field, fault.rule) for fault in caught.value.faults] == [("issuer", "unique")]


async def test_a_verifier_that_trusts_nobody_refuses_everything(issuer: LocalIssuer, verifiers: Verifiers) -> None:
    """Design section 5: each kind of credential is off until it is set up."""
    assert await refusal(OidcVerifier([], verifiers._http, issuer.clock), issuer.mint()) == "token_too_long"
    assert issuer.requests == []


async def test_a_verified_token_is_remembered_until_it_expires(issuer: LocalIssuer, verifiers: Verifiers) -> None:
    """A token in use is not verified at each request, and still ends with its `exp`, leeway included."""
    verifier = verifiers.trusting(leeway_s=10)
    token = issuer.mint(exp=NOW + 20)
    first = await verifier.verify(token)

    assert await verifier.verify(token) is first
    issuer.clock.advance(25)
    again = await verifier.verify(token)
    assert again == first
    assert again is not first
    issuer.clock.advance(5)
    assert await refusal(verifier, token) == "token_expired"


async def test_a_verified_token_is_remembered_for_a_minute_at_most(issuer: LocalIssuer, verifiers: Verifiers) -> None:
    """The bound of the cache of verified tokens, whatever the wall clock does."""
    verifier = verifiers.trusting()
    token = issuer.mint()
    first = await verifier.verify(token)
    before = issuer.clock.now()

    issuer.clock.advance(60)
    issuer.clock.set(before)

    assert await verifier.verify(token) is not first


async def test_remembered_tokens_are_bounded(issuer: LocalIssuer, verifiers: Verifiers) -> None:
    """The oldest makes room, so that many tokens can't fill the memory."""
    verifier = verifiers.trusting(capacity=2)
    tokens = [issuer.mint(name) for name in ("alice", "bob", "carol")]
    first, second, third = [await verifier.verify(token) for token in tokens]

    assert await verifier.verify(tokens[2]) is third
    assert await verifier.verify(tokens[1]) is second
    assert await verifier.verify(tokens[0]) is not first


def test_tokens_of_the_tests_are_made_not_copied(issuer: LocalIssuer) -> None:
    """The helper writes base64url as RFC 7515 section 2 does, or the tables above would prove nothing."""
    assert encode(b"\xfb\xff") == "-_8"
    assert issuer.mint().count(".") == 2
