"""Tests that a token is made by its own person, with no more than they hold, and ends when they say so."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from gateway.errors import Conflict, Invalid, NotFound, ToolNotAllowed
from gateway.identity.access_tokens import digest
from gateway.identity.reserved import OPERATOR_ISSUER
from gateway.identity.tokens import AccessTokens
from gateway.model import Profile, ProfileId, Requester, SessionId, TurnBinding
from tests.cast import FLIGHT
from tests.clock import SettableClock
from tests.identity.conftest import ACME, GLOBEX, Store, weighing


@pytest.fixture
def desk(store: Store, clock: SettableClock) -> AccessTokens:
    """Where tokens are made."""
    return AccessTokens(store.identities, weighing(store), clock)


async def count(store: Store, profile: Profile) -> int:
    """How many tokens the profile has."""
    return len(await store.identities.tokens(profile.tenant, profile.id))


async def test_a_person_makes_a_token_and_reads_its_secret_once(desk: AccessTokens, store: Store) -> None:
    """Interface: `POST /v1/me/tokens` gives the secret once; what is stored is its hash."""
    alice = await store.person("Alice", "member")
    as_alice = await store.requester(alice)

    secret, token = await desk.create(as_alice, alice.id, name=" laptop ", expires_in_days=30)

    assert (token.name, token.profile, token.scopes) == ("laptop", alice.id, frozenset({"*"}))
    assert token.expires_at - token.created_at == timedelta(days=30)
    assert await store.identities.token_by_hash(digest(secret)) == token
    assert await desk.list(as_alice, alice.id) == [token]


@pytest.mark.parametrize(
    ("held", "wanted", "given"),
    [
        (("*",), None, {"*"}),
        (("*",), {"memory", "admin"}, {"memory", "admin"}),
        (("memory", "session"), None, {"memory", "session"}),
        (("memory", "session"), {"memory"}, {"memory"}),
        (("memory",), {"memory", "admin"}, None),
        (("memory",), {"*"}, None),
    ],
)
async def test_a_token_carries_no_more_than_the_credential_it_was_made_with(
    desk: AccessTokens, store: Store, held: tuple[str, ...], wanted: set[str] | None, given: set[str] | None
) -> None:
    """Otherwise a narrow token would be worth a wide one."""
    alice = await store.person("Alice", "member")
    actor = await store.requester(alice, *held)
    scopes = None if wanted is None else frozenset(wanted)
    if given is not None:
        _, token = await desk.create(actor, alice.id, name="laptop", expires_in_days=1, scopes=scopes)
        assert token.scopes == given
    else:
        with pytest.raises(Invalid) as caught:
            await desk.create(actor, alice.id, name="laptop", expires_in_days=1, scopes=scopes)
        assert [fault.rule for fault in caught.value.faults] == ["subset"]
        assert await count(store, alice) == 0


FAULTY: dict[str, tuple[dict[str, Any], list[tuple[str, str]]]] = {
    "no name": ({"name": " "}, [("name", "text")]),
    "name of two lines": ({"name": "a\nb"}, [("name", "text")]),
    "name over its limit": ({"name": "a" * 101}, [("name", "text")]),
    "no days": ({"expires_in_days": 0}, [("expires_in_days", "range")]),
    "more than a year": ({"expires_in_days": 366}, [("expires_in_days", "range")]),
    "no scopes": ({"scopes": frozenset()}, [("scopes", "required")]),
    "unknown scope": ({"scopes": frozenset({"memory", "everything"})}, [("scopes", "known")]),
    "everything at once": (
        {"name": "", "expires_in_days": -1, "scopes": frozenset({"x", "y"})},
        [("name", "text"), ("expires_in_days", "range"), ("scopes", "known"), ("scopes", "known")],
    ),
}


@pytest.mark.parametrize(("changes", "faults"), FAULTY.values(), ids=FAULTY)
async def test_a_token_with_faults_is_told_all_of_them_and_is_not_made(
    desk: AccessTokens, store: Store, changes: dict[str, Any], faults: list[tuple[str, str]]
) -> None:
    """Design section 5.4: an expiry always; all faults at once."""
    alice = await store.person("Alice", "member")
    usual: dict[str, Any] = {"name": "laptop", "expires_in_days": 365}
    with pytest.raises(Invalid) as caught:
        await desk.create(await store.requester(alice), alice.id, **(usual | changes))

    assert [(fault.field, fault.rule) for fault in caught.value.faults] == faults
    assert await count(store, alice) == 0


@pytest.mark.parametrize("role", ["member", "admin", "owner"])
async def test_nobody_makes_a_token_that_speaks_for_another_person(desk: AccessTokens, store: Store, role: str) -> None:
    """It would be reading as them (`impersonate`), which no role has. A service has no hands: others make its."""
    alice = await store.person("Alice", "member")
    bot = await store.person("Bot", kind="service")
    actor = await store.requester(await store.person("Erin", role))
    with pytest.raises(ToolNotAllowed):
        await desk.create(actor, alice.id, name="x", expires_in_days=1)
    assert await count(store, alice) == 0

    assert await desk.create(actor, bot.id, name="x", expires_in_days=1)


async def test_an_admin_makes_no_token_of_a_service_above_them(desk: AccessTokens, store: Store) -> None:
    """The local operator owns the tenant; its token would make an admin an owner."""
    operator = await store.person("Local operator", "owner", kind="service")
    as_erin = await store.requester(await store.person("Erin", "admin"))
    as_olivia = await store.requester(await store.person("Olivia", "owner"))
    with pytest.raises(ToolNotAllowed):
        await desk.create(as_erin, operator.id, name="x", expires_in_days=1)
    assert await count(store, operator) == 0

    assert await desk.create(as_olivia, operator.id, name="x", expires_in_days=1)


async def test_an_admin_makes_no_token_of_a_service_that_may_do_what_they_may_not(
    desk: AccessTokens, store: Store
) -> None:
    """Design section 5, "nobody raises themselves": through a supervising service an admin would read everybody."""
    reader = await store.person("Reader", "supervisor", kind="service")
    as_erin = await store.requester(await store.person("Erin", "admin"))
    as_dana = await store.requester(await store.person("Dana", "admin", "supervisor"))
    with pytest.raises(ToolNotAllowed):
        await desk.create(as_erin, reader.id, name="x", expires_in_days=1)
    assert await count(store, reader) == 0

    assert await desk.create(as_dana, reader.id, name="x", expires_in_days=1)


async def test_the_local_operator_makes_anybodys_first_token(desk: AccessTokens, store: Store) -> None:
    """Interface, "command line": who holds the machine holds the store; the demo's tokens are made so."""
    alice = await store.person("Alice", "member")
    operator = await store.person("Local operator", "owner", kind="service")

    secret, _ = await desk.create(
        await store.requester(operator, issuer="operator"), alice.id, name="first", expires_in_days=30
    )

    assert secret.startswith("gwp_")
    assert await count(store, alice) == 1


async def test_a_person_who_is_not_active_gets_no_token(desk: AccessTokens, store: Store) -> None:
    """It would begin to work by itself when they are switched on again."""
    operator = await store.requester(await store.person("Operator", "owner", kind="service"), issuer="operator")
    alice = await store.person("Alice", "member")
    disabled = await store.person("Bob", "member", disabled=True)
    merged = await store.person("Al", "member")
    await store.merge(merged, alice)
    assert await desk.create(operator, alice.id, name="x", expires_in_days=1)
    for profile in (disabled, merged):
        with pytest.raises(Conflict):
            await desk.create(operator, profile.id, name="x", expires_in_days=1)
        assert await count(store, profile) == 0


Use = Callable[[AccessTokens, Requester, ProfileId, str], Awaitable[object]]

USES: dict[str, Use] = {
    "create": lambda desk, actor, profile, _: desk.create(actor, profile, name="x", expires_in_days=1),
    "list": lambda desk, actor, profile, _: desk.list(actor, profile),
    "revoke": lambda desk, actor, profile, token: desk.revoke(actor, profile, token),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
async def test_another_tenants_person_and_a_missing_one_are_equally_not_there(
    desk: AccessTokens, store: Store, use: Use
) -> None:
    """ASVS V8.4.1: and no token of theirs changes."""
    zoe = await store.person("Zoe", "member", tenant=GLOBEX)
    _, token = await desk.create(await store.requester(zoe), zoe.id, name="x", expires_in_days=1)
    as_olivia = await store.requester(await store.person("Olivia", "owner"))
    for profile in (zoe.id, ProfileId("prf_missing")):
        with pytest.raises(NotFound):
            await use(desk, as_olivia, profile, token.id)

    assert await store.identities.tokens(GLOBEX, zoe.id) == [token]


async def test_a_token_is_revoked_by_its_person_or_an_admin_and_once(desk: AccessTokens, store: Store) -> None:
    """Design section 5.4, "revocation"; of somebody with more rights only an owner."""
    alice, bob, erin, olivia = [
        await store.person(name, role)
        for name, role in (("Alice", "member"), ("Bob", "member"), ("Erin", "admin"), ("Olivia", "owner"))
    ]
    as_alice, as_erin, as_olivia = [await store.requester(one) for one in (alice, erin, olivia)]
    tokens = [(await desk.create(as_alice, alice.id, name="x", expires_in_days=1))[1] for _ in range(2)]
    _, above = await desk.create(as_olivia, olivia.id, name="x", expires_in_days=1)

    await desk.revoke(as_alice, alice.id, tokens[0].id)
    await desk.revoke(as_erin, alice.id, tokens[1].id)
    for gone in (tokens[0].id, "tok_missing", above.id):
        with pytest.raises(NotFound):
            await desk.revoke(as_alice, alice.id, gone)
    for attempt in (desk.list(as_erin, olivia.id), desk.revoke(as_erin, olivia.id, above.id)):
        with pytest.raises(ToolNotAllowed):
            await attempt
    assert [await count(store, one) for one in (alice, bob, olivia)] == [0, 0, 1]
    assert (await store.identities.tokens(ACME, olivia.id))[0].revoked_at is None


async def test_a_token_ends_no_later_than_the_credential_it_was_made_with(
    desk: AccessTokens, store: Store, clock: SettableClock
) -> None:
    """Otherwise a token of an hour that leaked would be worth one of a year. The local operator's never ends."""
    alice = await store.person("Alice", "member")
    actor, now = await store.requester(alice), clock.now()
    soon = replace(actor, principal=replace(actor.principal, expires_at=now + timedelta(hours=1)))
    late = replace(actor, principal=replace(actor.principal, expires_at=now + timedelta(days=40)))
    operator = replace(soon, principal=replace(soon.principal, issuer=OPERATOR_ISSUER))
    with pytest.raises(Invalid) as caught:
        await desk.create(soon, alice.id, name="laptop", expires_in_days=366)
    assert "no later than the credential" in caught.value.faults[0].message
    assert await count(store, alice) == 0

    for who, lasts in ((soon, timedelta(hours=1)), (late, timedelta(days=30)), (operator, timedelta(days=30))):
        _, token = await desk.create(who, alice.id, name="laptop", expires_in_days=30)
        assert token.expires_at - now == lasts


async def test_a_person_has_at_most_a_hundred_tokens(desk: AccessTokens, store: Store) -> None:
    """What one person can pile up is bounded, also where they ask for two at once; a revoked one makes room."""
    alice = await store.person("Alice", "member")
    bob = await store.person("Bob", "member")
    as_alice, as_bob = await store.requester(alice), await store.requester(bob)
    made = [(await desk.create(as_alice, alice.id, name="t", expires_in_days=1))[1] for _ in range(99)]
    both = await asyncio.gather(
        *(desk.create(as_alice, alice.id, name="t", expires_in_days=1) for _ in range(2)), return_exceptions=True
    )
    assert sorted(type(one).__name__ for one in both) == ["Conflict", "tuple"]
    assert await count(store, alice) == 100

    await desk.create(as_bob, bob.id, name="t", expires_in_days=1)
    await desk.revoke(as_alice, alice.id, made[0].id)
    await desk.create(as_alice, alice.id, name="t", expires_in_days=1)
    assert await count(store, alice) == 100


async def test_a_turn_token_makes_no_access_token(desk: AccessTokens, store: Store) -> None:
    """Design section 5.5: it can mint nothing. The path refuses it before; this holds wherever it is called from."""
    alice = await store.person("Alice", "member")
    own = await store.requester(alice)
    turn = TurnBinding(turn="trn_1", session=SessionId("ses_1"), incarnation=1, agent=FLIGHT)
    as_runtime = replace(own, principal=replace(own.principal, turn=turn))

    with pytest.raises(ToolNotAllowed):
        await desk.create(as_runtime, alice.id, name="kept", expires_in_days=1)
    none = await count(store, alice)
    await desk.create(own, alice.id, name="kept", expires_in_days=1)

    assert (none, await count(store, alice)) == (0, 1)
