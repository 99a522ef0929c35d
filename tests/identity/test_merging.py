"""Tests that only an owner makes one of two people, that an owner stays, and what any order of changes leaves."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from random import Random

import pytest

from gateway.errors import Conflict, GatewayError, Invalid, NotFound, ToolNotAllowed
from gateway.identity.merging import Merging
from gateway.identity.owners import Owners
from gateway.identity.people import People
from gateway.identity.reserved import OPERATOR_ISSUER
from gateway.model import Identity, Profile, ProfileId
from gateway.stages.authenticate import OPERATOR_SUBJECT
from tests.clock import SettableClock
from tests.identity.conftest import ACME, GLOBEX, Store, weighing

OKTA = "https://okta.example"


@pytest.fixture
def merging(store: Store, clock: SettableClock) -> Merging:
    """What owners do."""
    return Merging(store.identities, Owners(store.identities), weighing(store), clock)


async def state_of(store: Store, *people: Profile) -> object:
    """All that a merge would change, and the epoch."""
    profiles = [await store.identities.profile(one.tenant, one.id) for one in people]
    links = [await store.identities.identities(one.tenant, one.id) for one in people]
    return profiles, links, dict(store.epochs.known)


async def test_only_an_owner_or_the_operator_merges(store: Store, merging: Merging) -> None:
    """Design section 5, "nobody raises themselves": a merge is a link of a person's sign-ins, and of their sessions."""
    one, other = await store.person("Al", "member"), await store.person("Alice", "member")
    erin, olga = await store.person("Erin", "admin", "member"), await store.person("Olga", "owner")
    operator = await store.person("local operator", "owner", kind="service")
    before = await state_of(store, one, other, erin)

    as_erin = await store.requester(erin)
    for retired, into in ((one, other), (erin, one), (one, erin), (one, olga), (olga, erin)):
        for ask in (merging.preview, merging.merge):
            with pytest.raises(ToolNotAllowed):
                await ask(as_erin, retired.id, into.id)
    assert await state_of(store, one, other, erin) == before

    preview = await merging.preview(await store.requester(olga), one.id, other.id)
    assert (preview.retired, preview.survivor, preview.merged_at) == (one.id, other.id, None)
    assert await state_of(store, one, other, erin) == before
    done = await merging.merge(await store.requester(olga), one.id, other.id)
    assert done.merged_at == store.clock.now()
    assert await merging.merge(await store.requester(operator), one.id, other.id) == done
    assert (await merging.merge(await store.requester(operator), erin.id, other.id)).retired == erin.id


async def test_what_can_not_be_merged_is_refused_with_nothing_changed(store: Store, merging: Merging) -> None:
    """Each answer says what was wrong; beside it the same owner merges two who can be one."""
    olga = await store.person("Olga", "owner")
    one, other = await store.person("Al", "member"), await store.person("Alice", "member")
    robot = await store.person("robot", kind="service")
    away = await store.person("Away", disabled=True)
    operator = await store.person("local operator", "owner", kind="service")
    await store.identities.link(
        ACME, Identity(issuer=OPERATOR_ISSUER, subject=OPERATOR_SUBJECT, profile=operator.id), store.clock.now()
    )
    stranger = await store.person("Alice", tenant=GLOBEX)
    actor = await store.requester(olga)
    everybody = (olga, one, other, robot, away, operator, stranger)
    before = await state_of(store, *everybody)
    refusals: list[tuple[ProfileId, ProfileId, type[GatewayError]]] = [
        (one.id, one.id, Invalid),
        (one.id, stranger.id, Invalid),
        (stranger.id, one.id, NotFound),
        (ProfileId("prf_nobody"), one.id, NotFound),
        (one.id, robot.id, Conflict),
        (one.id, away.id, Conflict),
        (away.id, one.id, Conflict),
        (operator.id, robot.id, Conflict),
        (robot.id, operator.id, Conflict),
    ]
    for retired, into, error in refusals:
        for ask in (merging.preview, merging.merge):
            with pytest.raises(error):
                await ask(actor, retired, into)
    assert await state_of(store, *everybody) == before

    await merging.merge(actor, one.id, other.id)
    for retired, into in ((other.id, one.id), (one.id, olga.id), (olga.id, one.id)):
        with pytest.raises(Conflict):
            await merging.merge(actor, retired, into)


async def test_the_last_owner_is_merged_into_an_owner_only(store: Store, merging: Merging) -> None:
    """Design section 5: an owner stays. Two who are both owners may become one."""
    olga, alice = await store.person("Olga", "owner"), await store.person("Alice", "member")
    actor = await store.requester(olga)
    for ask in (merging.preview, merging.merge):
        with pytest.raises(Conflict):
            await ask(actor, olga.id, alice.id)
    assert (await merging.merge(actor, alice.id, olga.id)).survivor == olga.id

    second, bob = await store.person("Olga at home", "owner"), await store.person("Bob", "member")
    assert (await merging.merge(actor, olga.id, second.id)).survivor == second.id
    with pytest.raises(Conflict):
        await merging.merge(await store.requester(second), second.id, bob.id)


async def test_two_owners_who_are_merged_away_at_once_leave_one(store: Store, merging: Merging) -> None:
    """Both looked while the other was still there."""
    owners = [await store.person(name, "owner") for name in ("Olga", "Olivia")]
    alice = await store.person("Alice", "member")
    asked = [merging.merge(await store.requester(one), one.id, alice.id) for one in owners]

    results = await asyncio.gather(*asked, return_exceptions=True)

    assert [type(one) for one in results].count(Conflict) == 1
    now = [await store.identities.profile(ACME, one.id) for one in owners]
    assert [one.merged_into for one in now if one is not None].count(None) == 1


# ── any order of changes ─────────────────────────────────────────────────────────────────────────────────────────────


@dataclass
class Walk:
    """Random changes by an owner over a few people."""

    dice: Random
    store: Store
    people: People
    merging: Merging
    olga: Profile
    everybody: list[Profile]

    async def step(self) -> None:
        """One change; what can't be done is refused and changes nothing."""
        actor = await self.store.requester(self.olga)
        one, other = self.dice.sample(self.everybody, 2)
        subject, email = self.dice.choice("abcd"), f"{self.dice.choice('abcd')}@acme.example"
        changes: list[Callable[[], Awaitable[object]]] = [
            lambda: self.people.link(actor, one.id, issuer=OKTA, subject=subject),
            lambda: self.people.unlink(actor, one.id, issuer=OKTA, subject=subject),
            lambda: self.people.change(actor, one.id, emails=[email]),
            lambda: self.people.change(actor, one.id, disabled=self.dice.random() < 0.4),
            lambda: self.merging.merge(actor, one.id, other.id),
        ]
        chosen = self.dice.choices(changes, weights=(4, 1, 3, 2, 2))[0]
        before = await state_of(self.store, *self.everybody)
        try:
            await chosen()
        except GatewayError:
            assert await state_of(self.store, *self.everybody) == before

    async def check(self) -> None:
        """What must hold of the whole, whatever happened."""
        now = [await self.store.identities.profile(ACME, one.id) for one in self.everybody]
        found = [one for one in now if one is not None]
        unmerged = {one.id for one in found if one.merged_into is None}
        emails = [email for one in found for email in one.emails]
        assert len(emails) == len(set(emails))
        for one in found:
            assert one.merged_into is None or one.merged_into in unmerged  # one hop
            links = await self.store.identities.identities(ACME, one.id)
            if one.merged_into is not None:
                assert (one.emails, list(links), one.roles) == ((), [], ())
                continue
            assert set(one.aliases) == {gone.id for gone in found if gone.merged_into == one.id}
            for link in links:
                holder = await self.store.identities.profile_of(ACME, link.issuer, link.subject)
                assert holder is not None
                assert holder.id == one.id
            for email in one.emails:
                holder = await self.store.identities.profile_with_email(ACME, email)
                assert holder is not None
                assert holder.id == one.id


@pytest.mark.parametrize("seed", range(8))
async def test_any_order_of_links_merges_and_ends_leaves_each_sign_in_with_one_person(
    store: Store, merging: Merging, people: People, seed: int
) -> None:
    """Every identity and live email belongs to exactly one unmerged profile, and no chain is longer than one hop."""
    olga = await store.person("Olga", "owner")
    everybody = [await store.person(name, "member") for name in ("Alice", "Bob", "Carol", "Dana", "Erin")]
    walk = Walk(Random(seed), store, people, merging, olga, everybody)
    for _ in range(40):
        await walk.step()
        await walk.check()
