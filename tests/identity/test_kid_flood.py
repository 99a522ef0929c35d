"""A flood of tokens with made-up keys, and what is remembered of tokens that are good: both are bounded."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import Final

import httpx2
import pytest

from gateway.errors import Unauthenticated
from gateway.identity.oidc import OidcVerifier
from gateway.identity.signatures import Unverified, VerificationKey, check_signature
from gateway.settings import Settings
from tests.clock import SettableClock
from tests.conftest import LogCapture
from tests.house import WHERE
from tests.identity.attack_events import happens
from tests.identity.attack_traces import Traces
from tests.identity.attacking import world
from tests.identity.conftest import Verifiers, refusal
from tests.issuer import KEYS, LocalIssuer, encode, signing_key

FLOOD: Final = 10_000
COOL_DOWN_S: Final = 30
ME = "/v1/me"


def made_up(issuer: LocalIssuer, count: int) -> list[str]:
    """Tokens that differ in their `kid` alone; nothing has to be signed, since no key of theirs is known."""
    _, claims, signature = issuer.mint().split(".")
    headers = (f'{{"alg":"ES256","typ":"at+jwt","kid":"made-up-{number}"}}' for number in range(count))
    return [f"{encode(header.encode())}.{claims}.{signature}" for header in headers]


async def reason(verifier: OidcVerifier, token: str) -> str:
    """Why it is refused."""
    try:
        await verifier.verify(token)
    except Unauthenticated as error:
        return error.reason
    return "accepted"


async def test_ten_thousand_made_up_keys_cost_one_fetch_and_nobody_is_kept_out(
    issuer: LocalIssuer, verifiers: Verifiers
) -> None:
    """Issue 3, "what it must show" 3: at most one in a cool-down. Whoever has a good token does not notice."""
    verifier = verifiers.trusting()
    assert (await verifier.verify(issuer.mint())).subject == "alice"
    issuer.clock.advance(COOL_DOWN_S)
    issuer.requests.clear()

    reasons = Counter([await reason(verifier, token) for token in made_up(issuer, FLOOD)])
    assert reasons == {"key_unknown": FLOOD}
    assert issuer.requests.count(KEYS) == 1
    assert (await verifier.verify(issuer.mint("bob"))).subject == "bob"

    # A real rotation in the middle of the flood is seen with the next fetch.
    issuer.rotate("second")
    new = issuer.mint()
    assert await refusal(verifier, new) == "key_unknown"
    issuer.clock.advance(COOL_DOWN_S)
    assert (await verifier.verify(new)).subject == "alice"
    assert issuer.requests.count(KEYS) == 2


async def test_a_flood_over_several_cool_downs_costs_one_fetch_in_each(
    issuer: LocalIssuer, verifiers: Verifiers
) -> None:
    """Issue 3: the bound is in time, however the tokens are spread over it."""
    verifier = verifiers.trusting()
    await verifier.verify(issuer.mint())
    issuer.requests.clear()

    for token in made_up(issuer, 2_000):
        issuer.clock.advance(0.1)  # 200 s in all
        assert await reason(verifier, token) == "key_unknown"

    assert issuer.requests.count(KEYS) <= 200 / COOL_DOWN_S


async def test_a_flood_that_comes_at_once_waits_for_one_fetch(issuer: LocalIssuer, verifiers: Verifiers) -> None:
    """Issue 3: also before any key is known, while the issuer takes its time."""
    verifier = verifiers.trusting()
    flood = made_up(issuer, 500)

    with issuer.holding():
        waiting = [asyncio.create_task(reason(verifier, token)) for token in flood]
        honest = asyncio.create_task(verifier.verify(issuer.mint()))
        assert await asyncio.to_thread(issuer.arrived.acquire, timeout=5)
    reasons = Counter(await asyncio.gather(*waiting))

    assert reasons == {"key_unknown": len(flood)}
    assert (await honest).subject == "alice"
    assert issuer.requests.count(KEYS) == 1


async def test_a_flood_over_http_fills_no_audit_and_changes_nothing(
    settings: Settings, tmp_path: Path, clock: SettableClock, logs: LogCapture
) -> None:
    """Design section 12: refusals without a tenant are counted; each costs a look at its header and no more."""
    async with world(settings, tmp_path, clock, logs) as attacked:
        main = attacked.issuers["main"]
        honest = {"Authorization": f"Bearer {main.mint()}"}
        transport = httpx2.ASGITransport(app=attacked.home.app)
        async with httpx2.AsyncClient(transport=transport, base_url=WHERE) as client:
            assert (await client.get(ME, headers=honest)).status_code == 200
            traces = await Traces.before(attacked)
            main.requests.clear()

            for token in made_up(main, FLOOD):
                answer = await client.get(ME, headers={"Authorization": f"Bearer {token}"})
                assert answer.status_code == 401

            told = await traces.told()
            assert (told.audited, Counter(told.counted)) == ([], {"key_unknown": FLOOD})
            assert await traces.unchanged()
            assert main.requests.count(KEYS) <= 1
            assert (await client.get(ME, headers=honest)).status_code == 200


async def test_a_token_in_use_is_checked_once_and_its_memory_is_bounded(
    issuer: LocalIssuer, verifiers: Verifiers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue 3: verified tokens are answered from a bounded cache; refused ones never are."""
    checked: list[str] = []

    def check(parts: Unverified, key: VerificationKey) -> None:
        checked.append(parts.text)
        check_signature(parts, key)

    monkeypatch.setattr("gateway.identity.oidc.check_signature", check)
    verifier = verifiers.trusting(capacity=3)
    tokens = [issuer.mint(f"person-{number}") for number in range(4)]

    for _ in range(5):
        await verifier.verify(tokens[0])
    assert checked == [tokens[0]]
    for token in tokens[1:]:
        await verifier.verify(token)
    await verifier.verify(tokens[3])
    assert checked == tokens
    await verifier.verify(tokens[0])  # the oldest had made room
    assert checked == [*tokens, tokens[0]]

    bad = issuer.mint(key=signing_key("stranger"), header={"kid": "first"})
    checked.clear()
    assert [await refusal(verifier, bad) for _ in range(3)] == ["signature_wrong"] * 3
    assert checked == [bad] * 3


@pytest.mark.parametrize(
    ("event", "reason_told"),
    [
        ("main rotates to second", "key_unknown"),
        ("alice is disabled", "profile_disabled"),
        ("alice is unlinked", "person_unknown"),
        ("600 seconds pass", "token_expired"),
    ],
)
async def test_a_remembered_token_dies_with_its_key_its_profile_its_link_and_itself(
    settings: Settings,
    tmp_path: Path,
    clock: SettableClock,
    logs: LogCapture,
    event: str,
    reason_told: str,
) -> None:
    """Issue 3: a cache that outlived any of them would let in whom an admin has just put out."""
    async with world(settings, tmp_path, clock, logs) as attacked:
        main = attacked.issuers["main"]
        alice, bob = main.mint(exp=int(clock.now().timestamp()) + 400), main.mint("bob", exp=_in_a_day(clock))
        if event == "main rotates to second":
            alice = main.mint(exp=_in_a_day(clock))
        for token in (alice, bob, alice):
            assert (await attacked.home.get(None, ME, headers=_with(token))).status_code == 200

        await happens(attacked, event, _nothing)
        if event == "main rotates to second":
            await happens(attacked, "300 seconds pass", _nothing)
        traces = await Traces.before(attacked)
        answer = await attacked.home.get(None, ME, headers=_with(alice))
        told = await traces.told()

        assert answer.status_code == 401
        assert [*told.audited, *told.counted] == [reason_told]
        others = await attacked.home.get(None, ME, headers=_with(bob))
        assert others.status_code == (401 if event == "main rotates to second" else 200)


def _in_a_day(clock: SettableClock) -> int:
    return int(clock.now().timestamp()) + 86_400


def _with(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


async def _nothing() -> httpx2.Response:
    raise AssertionError("nothing is attempted here")
