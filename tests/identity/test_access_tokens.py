"""Tests that a personal access token works from its minting until its end, and not a moment longer."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Mapping
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.backends.sql.identities import SqlIdentities
from gateway.errors import Unauthenticated, Unavailable
from gateway.identity.access_tokens import AccessTokenVerifier, TokenUse, digest, is_well_formed, mint
from gateway.identity.refusals import NOT_VALID
from gateway.keys import new_id
from gateway.model import AccessToken, Principal, Profile
from tests.identity.conftest import ACME, Store


class Watched(SqlIdentities):
    """The real store, which counts look-ups, and can be held between having read a token and answering."""

    def __init__(self, store: Store) -> None:
        super().__init__(store.database)
        self.look_ups = 0
        self.held_at: int | None = None
        self.reached = asyncio.Event()
        self.go_on = asyncio.Event()

    async def token_by_hash(self, digest: bytes) -> AccessToken | None:
        token = await super().token_by_hash(digest)
        self.look_ups += 1
        if self.look_ups == self.held_at:
            self.reached.set()
            await self.go_on.wait()
        return token


class Desk:
    """A verifier over the store, and people with tokens."""

    def __init__(self, store: Store, capacity: int = 100) -> None:
        self.store = store
        self.watched = Watched(store)
        self.use = TokenUse(store.identities)
        self.verifier = AccessTokenVerifier(self.watched, store.clock, store.epochs, self.use, capacity=capacity)

    async def token(self, profile: Profile, days: int = 30) -> tuple[str, AccessToken]:
        """A stored token of `profile`."""
        secret, hashed = mint()
        now = self.store.clock.now()
        token = AccessToken(
            id=new_id("tok", now),
            tenant=profile.tenant,
            profile=profile.id,
            name="laptop",
            scopes=frozenset({"memory"}),
            created_at=now,
            expires_at=now + timedelta(days=days),
        )
        await self.store.identities.add_token(token, hashed)
        return secret, token

    async def refused(self, secret: str) -> str:
        """The reason of the refusal, whose public side is the same for all; and the token does not count as used."""
        with pytest.raises(Unauthenticated) as caught:
            await self.verifier.verify(secret)
        assert caught.value.detail == NOT_VALID
        assert caught.value.headers == {"WWW-Authenticate": 'Bearer realm="gateway", error="invalid_token"'}
        return caught.value.reason


@pytest.fixture
def desk(store: Store) -> Desk:
    """The verifier of the tests."""
    return Desk(store)


def test_a_minted_secret_is_long_and_random_and_only_its_hash_is_kept() -> None:
    """Design section 5.4: `gwp_…`, 256 random bits, stored as a hash."""
    secrets = [mint() for _ in range(200)]

    assert len({secret for secret, _ in secrets}) == 200
    for secret, hashed in secrets:
        assert re.fullmatch(r"gwp_[0-9A-Za-z]{49}", secret)
        assert is_well_formed(secret)
        assert hashed == hashlib.sha256(secret.encode()).digest() == digest(secret)


@given(at=st.integers(4, 52), letter=st.sampled_from("0123456789ABCXYZabcxyz"))
def test_one_mistyped_character_is_noticed_without_a_look_up(at: int, letter: str) -> None:
    """The check digits are a CRC-32, which finds every error of up to 32 bits in a row."""
    secret, _ = mint()
    mistyped = secret[:at] + letter + secret[at + 1 :]

    assert is_well_formed(mistyped) == (mistyped == secret)


async def test_a_token_stands_for_its_profile_with_its_own_scopes(desk: Desk, store: Store) -> None:
    """Design section 5.4: a token carries its scopes and its expiry, and names the profile directly."""
    alice = await store.person("Alice", "member")
    secret, token = await desk.token(alice)

    assert await desk.verifier.verify(secret) == Principal(
        tenant=ACME,
        issuer="gateway",
        subject=alice.id,
        credential="access_token",
        scopes=frozenset({"memory"}),
        expires_at=token.expires_at,
        credential_id=token.id,
    )


async def test_every_token_that_does_not_hold_gets_the_same_answer(desk: Desk, store: Store) -> None:
    """Malformed, unknown, revoked, expired: the bearer reads one text, the audit four reasons."""
    alice = await store.person("Alice", "member")
    good, _ = await desk.token(alice)
    revoked, token = await desk.token(alice)
    expired, _ = await desk.token(alice, days=1)
    await store.identities.revoke_token(ACME, alice.id, token.id, store.clock.now())
    store.clock.advance(24 * 3_600)

    assert (await desk.verifier.verify(good)).subject == alice.id
    assert await desk.refused(mint()[0]) == "token_unknown"
    assert await desk.refused(revoked) == "token_revoked"
    assert await desk.refused(expired) == "token_expired"
    for malformed in ("", "gwp_", good[:-1], good + "x", good.upper(), good + "\n", " " + good, "gwt_" + good[4:]):
        assert await desk.refused(malformed) == "token_malformed"
    assert await desk.refused(good[:-1] + "é") == "token_malformed"
    await desk.use.flush()
    used = {token.id: token.last_used_at for token in await store.identities.tokens(ACME, alice.id)}
    assert sum(at is not None for at in used.values()) == 1


async def test_an_unknown_token_costs_the_store_as_much_as_a_known_one(desk: Desk, store: Store) -> None:
    """So that the time of the answer does not tell them apart."""
    alice = await store.person("Alice", "member")
    secret, _ = await desk.token(alice)

    await desk.verifier.verify(secret)
    for_known = desk.watched.look_ups
    await desk.refused(mint()[0])

    assert desk.watched.look_ups == 2 * for_known


async def test_a_token_in_use_is_not_looked_up_again_until_something_changes(desk: Desk, store: Store) -> None:
    """Answers are those of one epoch: any change of the tenant's people makes the next request look."""
    alice = await store.person("Alice", "member")
    secret, _ = await desk.token(alice)
    await desk.verifier.verify(secret)
    known = desk.watched.look_ups

    for _ in range(5):
        await desk.verifier.verify(secret)
    assert desk.watched.look_ups == known
    await store.person("Bob", "member")
    await desk.verifier.verify(secret)
    assert desk.watched.look_ups > known


async def test_a_revoked_token_ends_at_once_though_it_was_in_use(desk: Desk, store: Store) -> None:
    """Design section 7, "freshness": a revocation raises the epoch; nothing older answers."""
    alice = await store.person("Alice", "member")
    secret, token = await desk.token(alice)
    other, _ = await desk.token(alice)
    assert (await desk.verifier.verify(secret)).subject == alice.id

    await store.identities.revoke_token(ACME, alice.id, token.id, store.clock.now())

    assert await desk.refused(secret) == "token_revoked"
    assert (await desk.verifier.verify(other)).subject == alice.id


async def test_an_expired_token_ends_though_it_was_remembered(desk: Desk, store: Store) -> None:
    """The expiry is compared at every request, not when the token was read."""
    alice = await store.person("Alice", "member")
    secret, token = await desk.token(alice, days=1)
    store.clock.set(token.expires_at - timedelta(seconds=1))
    assert (await desk.verifier.verify(secret)).subject == alice.id

    store.clock.set(token.expires_at)

    assert await desk.refused(secret) == "token_expired"


@pytest.mark.parametrize("held_at", [1, 2])
async def test_a_look_up_under_way_during_a_revocation_leaves_no_old_answer(
    desk: Desk, store: Store, held_at: int
) -> None:
    """A request in flight must not write back what was true before: the epoch is compared before and after."""
    alice = await store.person("Alice", "member")
    secret, token = await desk.token(alice)
    desk.watched.held_at = held_at
    under_way = asyncio.create_task(desk.verifier.verify(secret))
    await asyncio.wait_for(desk.watched.reached.wait(), 5)

    await store.identities.revoke_token(ACME, alice.id, token.id, store.clock.now())
    desk.watched.go_on.set()
    await asyncio.wait([under_way], timeout=5)

    # The request that began before may have either answer; the one after has one.
    assert under_way.done()
    assert under_way.exception() is None or isinstance(under_way.exception(), Unauthenticated)
    assert await desk.refused(secret) == "token_revoked"


async def test_remembered_tokens_are_bounded(store: Store) -> None:
    """The oldest makes room."""
    desk = Desk(store, capacity=1)
    alice = await store.person("Alice", "member")
    first, _ = await desk.token(alice)
    second, _ = await desk.token(alice)
    await desk.verifier.verify(first)
    await desk.verifier.verify(second)
    known = desk.watched.look_ups

    await desk.verifier.verify(second)
    assert desk.watched.look_ups == known
    await desk.verifier.verify(first)
    assert desk.watched.look_ups > known


async def test_last_use_is_written_when_flushed(desk: Desk, store: Store) -> None:
    """Design section 5.4, "last use": the newest of many uses, in one write."""
    alice = await store.person("Alice", "member")
    secret, _ = await desk.token(alice)
    await desk.verifier.verify(secret)
    store.clock.advance(60)
    await desk.verifier.verify(secret)

    assert [token.last_used_at for token in await store.identities.tokens(ACME, alice.id)] == [None]
    await desk.use.flush()
    assert [token.last_used_at for token in await store.identities.tokens(ACME, alice.id)] == [store.clock.now()]


class Flaky(SqlIdentities):
    """The real store, which is away for the first write, and runs `meanwhile` during the second."""

    def __init__(self, store: Store) -> None:
        super().__init__(store.database)
        self.writes: list[dict[str, datetime]] = []
        self.use = TokenUse(self)
        self.again: tuple[str, datetime] | None = None

    async def touch_tokens(self, used: Mapping[str, datetime]) -> None:
        self.writes.append(dict(used))
        if len(self.writes) == 1:
            raise Unavailable("The store can't answer right now.")
        if self.again is not None:
            self.use.record(*self.again)
        await super().touch_tokens(used)


async def test_a_flush_that_fails_or_overlaps_with_a_use_loses_nothing(store: Store) -> None:
    """What is not written, or was used again meanwhile, waits for the next flush; nothing new is no write."""
    flaky = Flaky(store)
    first, later = store.clock.now(), store.clock.now() + timedelta(seconds=1)
    flaky.use.record("tok_a", first)
    flaky.use.record("tok_b", first)
    with pytest.raises(Unavailable):
        await flaky.use.flush()
    flaky.again = ("tok_b", later)
    await flaky.use.flush()
    flaky.again = None
    await flaky.use.flush()
    await flaky.use.flush()

    both = {"tok_a": first, "tok_b": first}
    assert flaky.writes == [both, both, {"tok_b": later}]
