"""What every store of browser sign-ins must do (ports.py)."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from gateway.backends.sql.sign_ins import KEPT_AFTER_END, MOST_SIGN_INS
from gateway.errors import Conflict
from gateway.model import ANY_AGENT, ProfileId, RoleAssignment, SignIn
from tests.backends.stores import ACME, ALICE, BOB, GLOBEX, NOW, Stores, a_profile

ISSUER = "https://login.example"
HOUR = timedelta(hours=1)


def a_sign_in(number: int = 1, profile: ProfileId = ALICE, **changed: Any) -> SignIn:
    """A browser of somebody."""
    fields: dict[str, Any] = {
        "id": f"sgn_{number:03}",
        "tenant": ACME,
        "issuer": ISSUER,
        "subject": profile.removeprefix("prf_"),
        "user_agent": "Firefox on Linux",
        "created_at": NOW,
        "last_seen_at": NOW,
        "expires_at": NOW + 12 * HOUR,
    }
    return SignIn(profile=profile, **(fields | changed))


async def test_a_sign_in_is_found_by_the_digest_of_its_cookie_as_it_was_stored(stores: Stores) -> None:
    """Design section 5.6: a server-side session."""
    whole = a_sign_in(
        email="alice@example.com",
        roles=(RoleAssignment(role="supervisor", agent=ANY_AGENT),),
        id_token="eyJ.e30.c2ln",
    )
    await stores.sign_ins.add(whole, b"one", instead_of=None)
    await stores.sign_ins.add(a_sign_in(2, BOB), b"two", instead_of=None)

    assert await stores.sign_ins.by_digest(b"one") == whole
    assert await stores.sign_ins.by_digest(b"two") == a_sign_in(2, BOB)
    assert await stores.sign_ins.by_digest(b"three") is None
    assert await stores.sign_ins.of_profile(ACME, ALICE) == [whole]
    with pytest.raises(Conflict):
        await stores.sign_ins.add(a_sign_in(3), b"one", instead_of=None)
    with pytest.raises(Conflict):
        await stores.sign_ins.add(a_sign_in(3, ProfileId("prf_nobody")), b"three", instead_of=None)


async def test_an_end_is_final_raises_the_epoch_once_and_forgets_the_id_token(stores: Stores) -> None:
    """A warm cache of another replica dies with the epoch; nobody ends what is another's."""
    await stores.sign_ins.add(a_sign_in(id_token="eyJ.e30.c2ln"), b"one", instead_of=None)
    before = await stores.epoch()

    assert not await stores.sign_ins.end(ACME, BOB, "sgn_001", NOW)
    assert not await stores.sign_ins.end(GLOBEX, ALICE, "sgn_001", NOW)
    assert not await stores.sign_ins.end(ACME, ALICE, "sgn_002", NOW)
    assert await stores.epoch() == before

    assert await stores.sign_ins.end(ACME, ALICE, "sgn_001", NOW + HOUR)
    assert not await stores.sign_ins.end(ACME, ALICE, "sgn_001", NOW + 2 * HOUR)
    assert await stores.epoch() == before + 1
    assert await stores.sign_ins.by_digest(b"one") == a_sign_in(revoked_at=NOW + HOUR)
    assert await stores.sign_ins.of_profile(ACME, ALICE) == []


async def test_a_new_sign_in_ends_the_one_of_the_same_browser_in_whatever_tenant_it_was(stores: Stores) -> None:
    """Fixation: what was there before a sign-in is good for nothing after it."""
    await stores.identities.add_profile(a_profile(BOB, GLOBEX))
    await stores.sign_ins.add(a_sign_in(1), b"one", instead_of=None)
    acme, globex = await stores.epoch(), await stores.epoch(GLOBEX)
    await stores.sign_ins.add(a_sign_in(2, BOB, tenant=GLOBEX), b"two", instead_of=b"one")

    first = await stores.sign_ins.by_digest(b"one")
    assert first is not None
    assert first.revoked_at == NOW
    assert (await stores.epoch(), await stores.epoch(GLOBEX)) == (acme + 1, globex)
    await stores.sign_ins.add(a_sign_in(3), b"three", instead_of=b"not there")
    assert (await stores.epoch(), await stores.epoch(GLOBEX)) == (acme + 1, globex)


async def test_when_it_was_last_seen_never_moves_back_and_raises_no_epoch(stores: Stores) -> None:
    """Reading costs no change of who may do what."""
    await stores.sign_ins.add(a_sign_in(), b"one", instead_of=None)
    before = await stores.epoch()
    await stores.sign_ins.touch({})
    await stores.sign_ins.touch({"sgn_001": NOW + HOUR, "sgn_404": NOW})
    await stores.sign_ins.touch({"sgn_001": NOW})

    assert await stores.sign_ins.by_digest(b"one") == a_sign_in(last_seen_at=NOW + HOUR)
    assert await stores.epoch() == before


async def test_a_profile_has_so_many_sign_ins_and_those_that_ended_long_ago_are_forgotten(stores: Stores) -> None:
    """Ours: whoever signs in over and over does not fill the store."""
    old = a_sign_in(0, created_at=NOW - 40 * 24 * HOUR, expires_at=NOW - KEPT_AFTER_END - HOUR)
    await stores.sign_ins.add(old, b"old", instead_of=None)
    over = a_sign_in(0, created_at=NOW - 13 * HOUR, expires_at=NOW, id="sgn_000x", id_token="eyJ.e30.c2ln")
    await stores.sign_ins.add(over, b"over", instead_of=None)
    for number in range(1, MOST_SIGN_INS + 2):
        await stores.sign_ins.add(a_sign_in(number), f"{number}".encode(), instead_of=None)

    kept = await stores.sign_ins.of_profile(ACME, ALICE)
    assert [one.id for one in kept] == [f"sgn_{number:03}" for number in range(MOST_SIGN_INS + 1, 1, -1)]
    assert await stores.sign_ins.by_digest(b"old") is None
    assert await stores.sign_ins.by_digest(b"over") == replace(over, id_token=None, revoked_at=NOW)
    first = await stores.sign_ins.by_digest(b"1")
    assert first is not None
    assert first.revoked_at == NOW
