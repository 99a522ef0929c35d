"""What a merge moves in the store, whole or not at all (ports.Identities.merge; design section 5, "merge")."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from gateway.errors import Conflict, Invalid
from gateway.model import (
    ANY_AGENT,
    OUTSIDE,
    AccessToken,
    Agent,
    Identity,
    ProfileId,
    Relation,
    Resource,
    RoleAssignment,
    Scope,
    Whose,
)
from gateway.ports import SessionFilter
from tests.backends.stores import (
    ACME,
    ALICE,
    BOB,
    CAROL,
    DANA,
    FLIGHT,
    GLOBEX,
    NOW,
    Stores,
    a_draft,
    a_group,
    a_profile,
    a_session,
)
from tests.backends.test_list_is_the_predicate import PEOPLE, World, listed

ISSUER = "https://login.example"
LATER = NOW + timedelta(hours=1)
OF_ONE = frozenset(
    (FLIGHT, resource, Relation.SELF, whose)
    for resource in (Resource.SESSION_PRIVATE, Resource.SESSION_SHARED)
    for whose in (Whose.OWN, Whose.SHARED)
)


def a_token(name: str, profile: ProfileId) -> AccessToken:
    """A token that is good for a day."""
    return AccessToken(
        id=f"tok_{name}",
        tenant=ACME,
        profile=profile,
        name=name,
        scopes=frozenset({"*"}),
        created_at=NOW,
        expires_at=NOW + timedelta(days=1),
    )


async def list_of(stores: Stores, profile: ProfileId) -> set[str]:
    """What somebody's own list shows."""
    page = await stores.sessions.list(ACME, Scope(profile, OUTSIDE, OF_ONE), SessionFilter(), limit=50, cursor=None)
    return {one.id for one in page.items}


async def test_sign_ins_and_emails_move_tokens_and_roles_end_and_the_epoch_rises_once(stores: Stores) -> None:
    """The survivor keeps its own roles; whoever was merged into the retired one is one hop from the survivor."""
    store = stores.identities
    member, auditor = (RoleAssignment(role=one, agent=ANY_AGENT) for one in ("member", "auditor"))
    await store.change_profile(ACME, ALICE, name=None, emails=["a@example.com", "al@example.com"], disabled=None)
    await store.change_profile(ACME, BOB, name=None, emails=["b@example.com"], disabled=None)
    await store.set_roles(ACME, ALICE, [auditor])
    await store.set_roles(ACME, BOB, [member])
    for subject, profile in (("alice", ALICE), ("bob", BOB), ("carol", CAROL)):
        await store.link(ACME, Identity(issuer=ISSUER, subject=subject, profile=profile), NOW)
    for name, profile in (("gone", ALICE), ("live", ALICE), ("other", BOB)):
        await store.add_token(a_token(name, profile), name.encode())
    await store.revoke_token(ACME, ALICE, "tok_gone", NOW)
    await store.merge(ACME, CAROL, ALICE, NOW)
    before = await stores.epoch()
    stores.announced.clear()

    preview = await store.preview_merge(ACME, ALICE, BOB)
    assert (await stores.epoch(), stores.announced) == (before, [])
    report = await store.merge(ACME, ALICE, BOB, LATER)

    assert report is not None
    assert preview == replace(report, merged_at=None)
    assert report.merged_at == LATER
    assert report.identities == tuple(Identity(issuer=ISSUER, subject=one, profile=BOB) for one in ("alice", "carol"))
    assert report.emails == ("a@example.com", "al@example.com")
    assert (report.aliases, report.tokens, report.roles_ended) == ((CAROL,), ("tok_live",), (auditor,))
    assert stores.announced == [(ACME, before + 1)]
    survivor = await store.profile(ACME, BOB)
    assert survivor is not None
    assert survivor.emails == ("b@example.com", "a@example.com", "al@example.com")
    assert (survivor.roles, survivor.aliases) == ((member,), (ALICE, CAROL))
    for gone in (ALICE, CAROL):
        retired = await store.profile(ACME, gone)
        assert retired is not None
        assert (retired.merged_into, retired.emails, retired.roles, retired.aliases) == (BOB, (), (), ())
        assert not await store.identities(ACME, gone)
        assert not await store.tokens(ACME, gone)
    found = [await store.profile_of(ACME, ISSUER, one) for one in ("alice", "bob", "carol")]
    assert [one and one.id for one in found] == [BOB] * 3
    revoked = await store.token_by_hash(b"live")
    assert revoked is not None
    assert revoked.revoked_at == LATER
    assert [one.id for one in await store.tokens(ACME, BOB)] == ["tok_other"]


async def test_the_same_merge_again_changes_nothing_and_answers_the_same(stores: Stores) -> None:
    """Design section 5: repeating it is a no-op; also after what it moved has changed hands."""
    store = stores.identities
    identity = Identity(issuer=ISSUER, subject="alice", profile=ALICE)
    await store.link(ACME, identity, NOW)
    await store.set_roles(ACME, ALICE, [RoleAssignment(role="member", agent=FLIGHT)])
    await stores.sessions.create(a_session("0001"), [ALICE])
    first = await store.merge(ACME, ALICE, BOB, NOW)
    await store.unlink(ACME, replace(identity, profile=BOB))
    await store.change_profile(ACME, BOB, name=None, emails=None, disabled=True)
    before = await stores.epoch()
    assert first is not None
    assert await store.merge(ACME, ALICE, BOB, LATER) == first
    assert await store.preview_merge(ACME, ALICE, BOB) == first
    assert await stores.epoch() == before


@pytest.mark.parametrize(
    ("retired", "survivor"),
    [
        (BOB, ALICE),  # the other way round
        (ALICE, CAROL),  # into somebody else
        (CAROL, ALICE),  # into a retired one
        (CAROL, ProfileId("prf_off")),  # into a disabled one
        (ProfileId("prf_off"), CAROL),  # a disabled one: its sign-ins would work again
        (CAROL, ProfileId("prf_robot")),  # a person into a service
        (ProfileId("prf_robot"), CAROL),
    ],
)
async def test_two_that_can_not_be_one_stay_as_they_are(
    stores: Stores, retired: ProfileId, survivor: ProfileId
) -> None:
    """Design section 5; nothing is written, and carol can be merged into bob beside it."""
    store = stores.identities
    await store.add_profile(a_profile(ProfileId("prf_off"), disabled=True))
    await store.add_profile(a_profile(ProfileId("prf_robot"), kind="service"))
    await store.merge(ACME, ALICE, BOB, NOW)
    before = await stores.epoch()
    people = [await store.profile(ACME, one) for one in (retired, survivor)]
    for ask in (store.preview_merge(ACME, retired, survivor), store.merge(ACME, retired, survivor, NOW)):
        with pytest.raises(Conflict):
            await ask
    assert [await store.profile(ACME, one) for one in (retired, survivor)] == people
    assert await stores.epoch() == before
    assert await store.merge(ACME, CAROL, BOB, NOW) is not None


async def test_nobody_of_another_tenant_is_merged(stores: Stores) -> None:
    """Design section 11: every row carries the tenant."""
    store = stores.identities
    erin = ProfileId("prf_erin")
    await store.add_profile(a_profile(erin, GLOBEX))
    for tenant, retired, survivor in ((ACME, ALICE, erin), (ACME, erin, ALICE), (GLOBEX, ALICE, erin)):
        assert await store.merge(tenant, retired, survivor, NOW) is None
    alice = await store.profile(ACME, ALICE)
    assert alice == a_profile(ALICE)


async def test_sessions_are_the_survivors_in_lists_and_single_reads_and_keep_their_history(stores: Stores) -> None:
    """Owner and participants move; key, creator and senders stay; both private sessions stay."""
    store, sessions = stores.identities, stores.sessions
    await stores.agents.add(Agent(tenant=ACME, name=FLIGHT, workspace="f", title="F", timezone="UTC"), NOW)
    keys = {one: f"agent:{FLIGHT}:direct:{one}" for one in (ALICE, BOB)}
    privates = [replace(a_session(f"000{n}", one), key=keys[one]) for n, one in enumerate((ALICE, BOB), start=1)]
    for private in privates:
        await sessions.create(private, [private.owner])
    child = a_session("0003", ALICE, parent=privates[0])
    await sessions.create(child, ())
    secret = a_session("0004", ALICE, incognito=True)
    await sessions.create(secret, [ALICE])
    hers, both, his, theirs = (
        a_group("0005", ALICE),
        a_group("0006", CAROL),
        a_group("0007", BOB),
        a_group("0008", DANA),
    )
    await sessions.create(hers, [ALICE, CAROL])
    await sessions.create(both, [CAROL, BOB])
    await stores.transcripts.append(ACME, a_draft(both, "before alice came", sender=CAROL))
    await sessions.set_participants(ACME, both.id, [CAROL, BOB, ALICE], LATER, expected=None)
    await sessions.create(his, [BOB])
    await sessions.create(theirs, [DANA, CAROL])
    await stores.transcripts.append(ACME, a_draft(privates[0], "hello"))

    report = await store.merge(ACME, BOB, ALICE, LATER)  # bob came first, and is the one who goes

    assert report is not None
    assert (report.sessions_owned, report.sessions_shared) == (2, 1)
    assert report.private_sessions == (keys[ALICE], keys[BOB])
    assert report.groups_of_both == (both.id,)
    assert await list_of(stores, BOB) == set()
    assert await list_of(stores, ALICE) == {"ses_0001", "ses_0002", "ses_0003", "ses_0005", "ses_0006", "ses_0007"}
    for session, creator in ((privates[0], ALICE), (privates[1], BOB), (child, ALICE), (secret, ALICE), (his, BOB)):
        facts = await sessions.find(ACME, session.key)
        assert facts is not None
        assert (facts.session.owner, facts.session.creator) == (ALICE, creator)
        assert [one.profile for one in facts.participants] == [ALICE]
    shared = await sessions.find(ACME, both.id)
    assert shared is not None
    joined = {one.profile: (one.joined_after, one.joined_at) for one in shared.participants}
    assert joined == {CAROL: (0, NOW), ALICE: (0, NOW)}
    untouched = await sessions.find(ACME, theirs.id)
    assert untouched is not None
    assert {one.profile for one in untouched.participants} == {DANA, CAROL}
    page = await stores.transcripts.history(ACME, privates[0].id, incarnation=1, after=0, limit=9, cursor=None)
    assert page is not None
    assert [one.sender for one in page.items] == [ALICE]


async def test_the_earlier_joining_counts_whoever_of_the_two_is_retired(stores: Stores) -> None:
    """It is the same human: what one of them could read stays readable, from either side."""
    for number, (first, second, survivor) in enumerate([(ALICE, BOB, BOB), (CAROL, DANA, CAROL)]):
        owner = CAROL if first == ALICE else BOB
        group = a_group(f"00{number}1", owner)
        await stores.sessions.create(group, [owner, first])
        await stores.transcripts.append(ACME, a_draft(group, "early", sender=owner))
        await stores.sessions.set_participants(ACME, group.id, [owner, first, second], LATER, expected=None)
        retired = second if survivor == first else first
        await stores.identities.merge(ACME, retired, survivor, LATER)
        facts = await stores.sessions.find(ACME, group.id)
        assert facts is not None
        mine, from_the_start = facts.participant(survivor), facts.participant(owner)
        assert mine is not None
        assert from_the_start is not None
        assert (mine.joined_after, mine.joined_at) == (from_the_start.joined_after, NOW)
        assert facts.participant(retired) is None


async def test_nothing_of_a_retired_profile_is_changed_by_who_looked_before_the_merge(stores: Stores) -> None:
    """Design section 5: captured authority fails closed, in the transaction that would write."""
    store = stores.identities
    group = a_group("0001", CAROL)
    await stores.sessions.create(group, [CAROL])
    await store.merge(ACME, ALICE, BOB, NOW)
    before = await stores.epoch()
    for refused in (
        store.change_profile(ACME, ALICE, name="Alice", emails=["a@example.com"], disabled=False),
        store.set_roles(ACME, ALICE, [RoleAssignment(role="owner", agent=ANY_AGENT)]),
        store.link(ACME, Identity(issuer=ISSUER, subject="alice", profile=ALICE), NOW),
        store.add_token(a_token("new", ALICE), b"new"),
    ):
        with pytest.raises(Conflict):
            await refused
    for unknown in (
        stores.sessions.set_participants(ACME, group.id, [CAROL, ALICE], NOW, expected=None),
        stores.sessions.set_owner(ACME, group.id, ALICE, NOW, expected=None),
        stores.sessions.create(a_group("0002", ALICE), [ALICE]),
    ):
        with pytest.raises(Invalid):
            await unknown
    assert await stores.epoch() == before
    assert await store.token_by_hash(b"new") is None
    assert await store.profile_of(ACME, ISSUER, "alice") is None
    facts = await stores.sessions.find(ACME, group.id)
    assert facts is not None
    assert (facts.session.owner, [one.profile for one in facts.participants]) == (CAROL, [CAROL])


@pytest.mark.parametrize("seed", range(6))
async def test_after_merges_a_list_is_still_the_predicate(stores: Stores, seed: int) -> None:
    """Design section 7, for random trees whose people became fewer: relation, whose, and who takes part."""
    dice = random.Random(seed)
    world = World(dice)
    await world.fill(stores, 40)
    left = list(PEOPLE)
    for _ in range(dice.randint(1, 2)):
        retired, survivor = dice.sample(left, 2)
        left.remove(retired)
        await stores.identities.merge(ACME, retired, survivor, NOW)
        world.merged(retired, survivor)
        await everybody_sees_their_own(stores, world, left)


async def everybody_sees_their_own(stores: Stores, world: World, left: Sequence[ProfileId]) -> None:
    """Random scopes of those who are left, and the retired ones, who have nothing."""
    for _ in range(25):
        scope, narrow = world.scope(), world.narrow()
        assert await listed(stores, scope, narrow, world.dice) == world.expected(scope, narrow)
    for gone in set(PEOPLE) - set(left):
        mine = Scope(gone, OUTSIDE, OF_ONE)
        assert await listed(stores, mine, SessionFilter(), world.dice) == []
