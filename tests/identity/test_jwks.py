"""Tests that keys come from the issuer alone, are asked for seldom, and are believed for a bounded time only."""

from __future__ import annotations

import asyncio
import gzip
import math
from typing import Any

import orjson
import pytest
from joserfc.jwk import ECKey, OctKey, OKPKey

from gateway.errors import Unauthenticated, Unavailable
from gateway.identity.issuers import KeyTimes
from gateway.identity.jwks import IssuerKeys
from gateway.identity.oidc import OidcVerifier
from tests.identity.conftest import Verifiers
from tests.issuer import ABSENT, DISCOVERY, KEYS, LocalIssuer, signing_key
from tests.loopback import PATIENCE_S, Answer

FETCH = [DISCOVERY, KEYS]


async def refused(verifier: OidcVerifier, token: str) -> str:
    """The reason why the token is refused."""
    with pytest.raises(Unauthenticated) as caught:
        await verifier.verify(token)
    return caught.value.reason


async def unavailable(verifier: OidcVerifier, token: str) -> None:
    """The token can't be checked now, which is neither yes nor no."""
    with pytest.raises(Unavailable) as caught:
        await verifier.verify(token)
    assert "Retry-After" in caught.value.headers


async def test_keys_are_found_by_discovery_once_for_many_tokens(issuer: LocalIssuer, verifier: OidcVerifier) -> None:
    """OpenID Connect Discovery section 4: one look-up serves until the keys are due again."""
    for name in ("alice", "bob", "carol"):
        assert (await verifier.verify(issuer.mint(name))).subject == name

    assert issuer.requests == FETCH
    assert [(one.issuer, one.keys_age_s, one.fault) for one in verifier.status()] == [(issuer.url, 0, None)]


async def test_a_configured_key_address_needs_no_discovery(issuer: LocalIssuer, verifiers: Verifiers) -> None:
    """Design section 5.1: discovery is for issuers whose settings name no address."""
    await verifiers.trusting(jwks_uri=issuer.url + KEYS).verify(issuer.mint())

    assert issuer.requests == [KEYS]


async def test_nothing_is_fetched_before_the_first_token(issuer: LocalIssuer, verifier: OidcVerifier) -> None:
    """A gateway starts while its issuer is away; readiness says that the keys were never fetched."""
    assert verifier.status()[0].keys_age_s == math.inf
    assert issuer.requests == []


async def test_a_new_key_is_fetched_when_its_first_token_comes(issuer: LocalIssuer, verifier: OidcVerifier) -> None:
    """RFC 7517 and the conventions: refetch on an unknown `kid`; the token that is remembered is checked again."""
    old = issuer.mint()
    await verifier.verify(old)
    issuer.clock.advance(30)
    issuer.rotate("second")

    assert (await verifier.verify(issuer.mint())).subject == "alice"
    assert issuer.requests == FETCH * 2
    assert await refused(verifier, old) == "key_unknown"


async def test_made_up_key_names_do_not_flood_the_issuer(issuer: LocalIssuer, verifier: OidcVerifier) -> None:
    """Design section 5.1, "a cool-down": a hundred unknown keys cost one fetch in each cool-down."""
    await verifier.verify(issuer.mint())
    for round_of in range(3):
        issuer.clock.advance(30)
        for number in range(30):
            token = issuer.mint(header={"kid": f"made-up-{round_of}-{number}"})
            assert await refused(verifier, token) == "key_unknown"

    assert issuer.requests == FETCH * 4
    assert (await verifier.verify(issuer.mint())).subject == "alice"


async def test_a_key_that_was_rotated_out_stops_working_within_the_refresh(
    issuer: LocalIssuer, verifiers: Verifiers
) -> None:
    """The bound holds for a token that is in use all the time, too, and so is remembered (a reported failure)."""
    verifier = verifiers.trusting(keys=KeyTimes(refresh_s=100), leeway_s=300)
    token = issuer.mint()
    await verifier.verify(token)
    issuer.rotate("second")

    issuer.clock.advance(99)
    assert (await verifier.verify(token)).subject == "alice"
    issuer.clock.advance(1)
    assert await refused(verifier, token) == "key_unknown"


async def test_a_refresh_that_finds_the_same_keys_changes_nothing(issuer: LocalIssuer, verifier: OidcVerifier) -> None:
    """Only a change of keys makes remembered tokens be checked again."""
    token = issuer.mint(exp=int(issuer.clock.now().timestamp()) + 1_000)
    await verifier.verify(token)
    issuer.clock.advance(290)
    remembered = await verifier.verify(token)
    issuer.clock.advance(10)

    assert await verifier.verify(token) is remembered
    assert issuer.requests == FETCH * 2


async def test_many_first_requests_wait_for_one_fetch(issuer: LocalIssuer, verifier: OidcVerifier) -> None:
    """At most one fetch in flight for each issuer."""
    with issuer.holding():
        waiting = [asyncio.create_task(verifier.verify(issuer.mint(f"person-{number}"))) for number in range(20)]
        assert await asyncio.to_thread(issuer.arrived.acquire, timeout=PATIENCE_S)
        await asyncio.sleep(0)
        assert not any(task.done() for task in waiting)
    principals = await asyncio.wait_for(asyncio.gather(*waiting), PATIENCE_S)

    assert [principal.subject for principal in principals] == [f"person-{number}" for number in range(20)]
    assert issuer.requests == FETCH


async def test_who_hangs_up_does_not_end_the_fetch_of_the_others(issuer: LocalIssuer, verifier: OidcVerifier) -> None:
    """Otherwise somebody who hangs up again and again keeps new keys away from everybody."""
    with issuer.holding():
        impatient = asyncio.create_task(verifier.verify(issuer.mint("mallory")))
        assert await asyncio.to_thread(issuer.arrived.acquire, timeout=PATIENCE_S)
        patient = asyncio.create_task(verifier.verify(issuer.mint("alice")))
        await asyncio.sleep(0)
        impatient.cancel()
        with pytest.raises(asyncio.CancelledError):
            await impatient

    assert (await asyncio.wait_for(patient, PATIENCE_S)).subject == "alice"
    assert issuer.requests == FETCH


async def test_closing_ends_a_fetch_in_flight(issuer: LocalIssuer, verifier: OidcVerifier) -> None:
    """Nothing outlives the verifier."""
    with issuer.holding():
        asking = asyncio.create_task(verifier.verify(issuer.mint()))
        assert await asyncio.to_thread(issuer.arrived.acquire, timeout=PATIENCE_S)
        await asyncio.wait_for(verifier.aclose(), PATIENCE_S)
        with pytest.raises(asyncio.CancelledError):
            await asking


async def test_an_issuer_that_was_never_reached_makes_tokens_uncheckable_not_wrong(
    issuer: LocalIssuer, verifier: OidcVerifier
) -> None:
    """Design section 12: outages refuse with 503; and the issuer is asked again only after a while."""
    token = issuer.mint()
    issuer.go_down()
    await unavailable(verifier, token)
    assert "ConnectError" in str(verifier.status()[0].fault)
    issuer.come_back()

    await unavailable(verifier, token)
    assert issuer.requests == []
    issuer.clock.advance(5)
    assert (await verifier.verify(token)).subject == "alice"
    assert verifier.status()[0].fault is None


async def test_old_keys_serve_for_a_bounded_time_while_the_issuer_is_away(
    issuer: LocalIssuer, verifier: OidcVerifier
) -> None:
    """Design section 5.1: bounded use of old keys while the issuer is down, then 503."""
    later = int(issuer.clock.now().timestamp()) + 10_000
    token = issuer.mint(exp=later)
    await verifier.verify(token)
    issuer.go_down()

    for seconds in (300, 1_000, 2_299):
        issuer.clock.advance(seconds)
        assert (await verifier.verify(token)).subject == "alice"
    issuer.clock.advance(1)
    await unavailable(verifier, token)

    issuer.come_back()
    issuer.clock.advance(5)
    assert (await verifier.verify(token)).subject == "alice"


async def test_an_unknown_key_is_not_called_wrong_while_the_issuer_is_away(
    issuer: LocalIssuer, verifier: OidcVerifier
) -> None:
    """The key may be new: a 401 would send people to sign in again for nothing."""
    known = issuer.mint()
    await verifier.verify(known)
    issuer.go_down()
    issuer.clock.advance(30)

    await unavailable(verifier, issuer.mint(header={"kid": "unknown"}))
    assert (await verifier.verify(known)).subject == "alice"


async def test_once_an_issuer_is_known_to_be_away_nobody_waits_for_it(
    issuer: LocalIssuer, verifier: OidcVerifier
) -> None:
    """Its time-outs are not everybody's: old keys answer at once and it is tried again in the background."""
    later = int(issuer.clock.now().timestamp()) + 10_000
    token = issuer.mint(exp=later)
    await verifier.verify(token)
    issuer.go_down()
    issuer.clock.advance(300)
    await verifier.verify(token)
    issuer.come_back()
    issuer.rotate("second")
    issuer.clock.advance(5)

    with issuer.holding():
        # Answered while the fetch still hangs.
        assert (await asyncio.wait_for(verifier.verify(token), PATIENCE_S)).subject == "alice"
        assert await asyncio.to_thread(issuer.arrived.acquire, timeout=PATIENCE_S)
        arriving = asyncio.create_task(verifier.verify(issuer.mint(exp=later)))
        await asyncio.sleep(0)
    assert (await asyncio.wait_for(arriving, PATIENCE_S)).subject == "alice"  # it waited for the new key
    assert await refused(verifier, token) == "key_unknown"


def _discovery(issuer: LocalIssuer, /, **changes: Any) -> Answer:
    return Answer(orjson.dumps({"issuer": issuer.url, "jwks_uri": issuer.url + KEYS, **changes}))


def _keys(issuer: LocalIssuer) -> bytes:
    return orjson.dumps({"keys": [key.published() for key in issuer.keys]})


BAD_ANSWERS: dict[str, Any] = {
    "discovery of another issuer": lambda issuer: {DISCOVERY: _discovery(issuer, issuer="https://id.example")},
    "discovery with a slash more": lambda issuer: {DISCOVERY: _discovery(issuer, issuer=issuer.url + "/")},
    "discovery without keys": lambda issuer: {DISCOVERY: _discovery(issuer, jwks_uri=None)},
    "discovery of keys over http": lambda issuer: {DISCOVERY: _discovery(issuer, jwks_uri="http://id.example/keys")},
    "discovery of a local file": lambda issuer: {DISCOVERY: _discovery(issuer, jwks_uri="file:///etc/passwd")},
    "discovery that is a list": lambda _: {DISCOVERY: Answer(b"[]")},
    "discovery that is a page": lambda _: {DISCOVERY: Answer(b"<html>")},
    "discovery that is missing": lambda _: {DISCOVERY: Answer(b"{}", status=404)},
    "failing issuer": lambda _: {DISCOVERY: Answer(b"{}", status=500)},
    "keys that are no list": lambda _: {KEYS: Answer(b'{"keys": {}}')},
    "keys that are missing": lambda _: {KEYS: Answer(b"{}")},
    "more keys than anybody has": lambda _: {KEYS: Answer(orjson.dumps({"keys": [{}] * 65}))},
    "keys without end": lambda issuer: {KEYS: Answer(_keys(issuer) + b" " * 300_000)},
    "a redirect": lambda issuer: {KEYS: Answer(b"", status=302, headers={"Location": issuer.url + "/elsewhere"})},
    "a compressed answer": lambda issuer: {
        KEYS: Answer(gzip.compress(_keys(issuer)), headers={"Content-Encoding": "gzip"})
    },
}


@pytest.mark.parametrize("answers", BAD_ANSWERS.values(), ids=BAD_ANSWERS)
async def test_an_answer_that_is_not_the_issuers_keys_is_not_believed(
    issuer: LocalIssuer, verifier: OidcVerifier, answers: Any
) -> None:
    """Discovery section 4.3 (exact issuer), limits of size and no redirects: no keys are 503, never another's keys."""
    issuer.answers = {"/elsewhere": Answer(_keys(issuer)), **answers(issuer)}
    await unavailable(verifier, issuer.mint())
    assert "/elsewhere" not in issuer.requests
    assert "BadAnswer" in str(verifier.status()[0].fault)

    issuer.answers = {}
    issuer.clock.advance(5)
    assert (await verifier.verify(issuer.mint())).subject == "alice"


async def test_a_slow_issuer_is_given_up_on(issuer: LocalIssuer, verifiers: Verifiers) -> None:
    """A timeout on everything that leaves the process."""
    verifier = verifiers.trusting(keys=KeyTimes(timeout_s=0.05))
    with issuer.holding():
        await asyncio.wait_for(unavailable(verifier, issuer.mint()), PATIENCE_S)
    assert "TimeoutError" in str(verifier.status()[0].fault)

    issuer.clock.advance(5)
    patient = verifiers.trusting()
    assert (await patient.verify(issuer.mint())).subject == "alice"


def _key(**changes: Any) -> dict[str, Any]:
    return {**signing_key("first").published(), **changes}


UNUSABLE_KEYS: dict[str, Any] = {
    "no object": 7,
    "no type": {"kid": "first"},
    "a type of the future": _key(kty="ML-DSA"),
    "a shared secret": {**OctKey.generate_key(256).as_dict(), "kid": "first", "alg": "ES256"},
    "for encryption": _key(use="enc"),
    "not for verifying": _key(key_ops=["sign"]),
    "published with its private half": {**signing_key("first").key.as_dict(private=True), "kid": "first"},
    "for another algorithm": _key(alg="ES512"),
    "of another curve": {**ECKey.generate_key("P-384").as_dict(private=False), "kid": "first"},
    "of a curve that can't sign": {**OKPKey.generate_key("X25519").as_dict(private=False), "kid": "first"},
    "not on the curve": _key(x=_key()["y"]),
    "cut off": _key(x=None),
    "not base64": _key(x="!"),
    "RSA without a number": {"kty": "RSA", "kid": "first", "e": "AQAB"},
    "RSA that is too short": {"kty": "RSA", "kid": "first", "n": "w" * 171, "e": "AQAB"},
    "RSA that is too long": {"kty": "RSA", "kid": "first", "n": "w" * 1_000, "e": "AQAB"},
    "RSA with an even exponent": {**signing_key("of-RS256", "RS256").published(), "kid": "first", "e": "AQ"},
}


@pytest.mark.parametrize("unusable", UNUSABLE_KEYS.values(), ids=UNUSABLE_KEYS)
async def test_a_key_that_can_not_be_used_spoils_only_itself(
    issuer: LocalIssuer, verifier: OidcVerifier, unusable: Any
) -> None:
    """RFC 7517 section 5: leave out what is not understood. Weak keys, secrets and lost keys are never used."""
    good = signing_key("second")
    issuer.answers[KEYS] = Answer(orjson.dumps({"keys": [unusable, good.published()]}))

    assert (await verifier.verify(issuer.mint(key=good))).subject == "alice"
    assert await refused(verifier, issuer.mint()) == "key_unknown"


async def test_an_issuer_that_withdraws_all_its_keys_signs_nothing(issuer: LocalIssuer, verifier: OidcVerifier) -> None:
    """An empty set is an answer, not an outage: the old keys are not used on."""
    token = issuer.mint()
    await verifier.verify(token)
    issuer.keys = []
    issuer.clock.advance(300)

    assert await refused(verifier, token) == "key_unknown"


async def test_a_token_without_a_key_name_is_checked_only_where_there_is_no_choice(
    issuer: LocalIssuer, verifiers: Verifiers
) -> None:
    """RFC 7515 section 4.1.4: `kid` is a hint. With two keys that fit, guessing is not checking."""
    rsa, ec, other = signing_key("of-RS256", "RS256"), signing_key("first"), signing_key("second")
    issuer.keys = [rsa, ec]
    token = issuer.mint(key=ec, header={"kid": None})
    nameless = issuer.mint(key=ec, header={"kid": ABSENT})

    assert await refused(verifiers.trusting(), token) == "header_malformed"
    assert (await verifiers.trusting().verify(nameless)).subject == "alice"
    issuer.keys = [rsa, ec, other]
    assert await refused(verifiers.trusting(), nameless) == "key_ambiguous"


async def test_two_keys_of_one_name_and_kind_are_no_key(issuer: LocalIssuer, verifier: OidcVerifier) -> None:
    """RFC 7517 section 4.5: names should differ; which of the two counts must not depend on their order."""
    issuer.answers[KEYS] = Answer(
        orjson.dumps({"keys": [_key(), {**signing_key("second").published(), "kid": "first"}]})
    )

    assert await refused(verifier, issuer.mint()) == "key_ambiguous"


async def test_the_keys_of_a_verification_do_not_change_beneath_it(issuer: LocalIssuer, verifiers: Verifiers) -> None:
    """A rotation during a verification gives the old keys or the new ones, never a mixture."""
    keys = IssuerKeys(verifiers.settings(), verifiers._http, issuer.clock)
    before = await keys.current()
    issuer.rotate("second")
    issuer.clock.advance(300)
    after = await keys.current()

    assert [key.kid for key in before.keys] == ["first"]
    assert [key.kid for key in after.keys] == ["second"]
    assert (before.generation, after.generation) == (1, 2)
    await keys.aclose()


async def test_closing_what_never_fetched_is_quiet(issuer: LocalIssuer, verifiers: Verifiers) -> None:
    """Every verifier is closed, used or not."""
    await IssuerKeys(verifiers.settings(), verifiers._http, issuer.clock).aclose()

    assert issuer.requests == []
