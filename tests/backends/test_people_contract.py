"""What every store of tenants, people, agents, policies and notes must do (ports.py)."""

from __future__ import annotations

import unicodedata
from datetime import timedelta
from pathlib import Path

import pytest

from gateway.errors import Conflict, Invalid
from gateway.model import ANY_AGENT, AccessToken, Agent, Identity, ProfileId, RoleAssignment, SessionId
from gateway.ports import NoteRecord
from tests.backends.stores import ACME, ALICE, BOB, CAROL, FLIGHT, GLOBEX, HOTEL, NOW, Factory, Stores, a_profile

ISSUER = "https://login.example"


async def test_tenants_come_by_name_and_a_taken_name_is_a_conflict(stores: Stores) -> None:
    """ports.Tenants."""
    with pytest.raises(Conflict):
        await stores.tenants.add(ACME, demo=True, now=NOW)
    assert [(one.id, one.demo) for one in await stores.tenants.all()] == [(ACME, False), (GLOBEX, False)]
    assert await stores.tenants.find(GLOBEX) is not None


async def test_what_was_stored_is_there_when_the_store_is_opened_again(factory: Factory, tmp_path: Path) -> None:
    """Design section 12: nothing acknowledged is lost."""
    roles = (RoleAssignment(role="member", agent=FLIGHT), RoleAssignment(role="admin", agent=ANY_AGENT))
    profile = a_profile(emails=("alice@example.com", "a@example.com"), roles=roles)
    async with factory(tmp_path) as first:
        await first.tenants.add(ACME, demo=True, now=NOW)
        await first.identities.add_profile(profile)
    async with factory(tmp_path) as second:
        assert await second.identities.profile(ACME, ALICE) == profile


async def test_each_change_of_who_may_do_what_raises_the_epoch_once_and_at_once(stores: Stores) -> None:
    """Design section 7, freshness: roles, links, profiles, revocations, agents and policy."""
    token = AccessToken(
        id="tok_1", tenant=ACME, profile=ALICE, name="ci", scopes=frozenset({"*"}), created_at=NOW, expires_at=NOW
    )
    identity = Identity(issuer=ISSUER, subject="alice", profile=ALICE)
    agent = Agent(tenant=ACME, name=FLIGHT, workspace="flight", title="Flight", timezone="UTC")
    await stores.identities.add_token(token, b"digest")
    await stores.identities.touch_tokens({"tok_1": NOW})
    before = await stores.epoch()
    other = await stores.epoch(GLOBEX)
    stores.announced.clear()
    await stores.identities.add_profile(a_profile(ProfileId("prf_erin")))
    await stores.identities.change_profile(ACME, ALICE, name=None, emails=None, disabled=True)
    await stores.identities.set_roles(ACME, ALICE, [RoleAssignment(role="member", agent=FLIGHT)])
    await stores.identities.link(ACME, identity, NOW)
    assert await stores.identities.unlink(ACME, identity)
    assert await stores.identities.revoke_token(ACME, ALICE, "tok_1", NOW)
    await stores.agents.add(agent, NOW)
    await stores.policies.publish(ACME, "p", base_version=0, comment="", author=ALICE, now=NOW)
    assert await stores.epoch() == before + 8
    assert stores.announced == [(ACME, before + step) for step in range(1, 9)]
    assert await stores.epoch(GLOBEX) == other


async def test_what_changes_nothing_raises_nothing(stores: Stores) -> None:
    """ports.py: a no-op, a refusal and a missing person leave the epoch alone."""
    identity = Identity(issuer=ISSUER, subject="alice", profile=ALICE)
    await stores.identities.link(ACME, identity, NOW)
    before = await stores.epoch()
    await stores.identities.link(ACME, identity, NOW)
    with pytest.raises(Conflict):
        await stores.identities.link(ACME, Identity(issuer=ISSUER, subject="alice", profile=BOB), NOW)
    assert not await stores.identities.unlink(ACME, Identity(issuer=ISSUER, subject="alice", profile=BOB))
    assert not await stores.identities.revoke_token(ACME, ALICE, "tok_none", NOW)
    assert await stores.identities.set_roles(ACME, ProfileId("prf_nobody"), []) is None
    assert await stores.epoch() == before
    assert await stores.identities.identities(ACME, ALICE) == [identity]


async def test_an_email_belongs_to_one_unmerged_profile_of_a_tenant_and_can_move(stores: Stores) -> None:
    """Design section 5: emails are trimmed and case-folded; a merge moves them."""
    store = stores.identities
    await store.change_profile(
        ACME, ALICE, name=None, emails=[" Alice@Example.COM ", "alice@example.com"], disabled=None
    )
    with pytest.raises(Conflict):
        await store.change_profile(ACME, BOB, name="Robert", emails=["ALICE@example.com"], disabled=None)
    bob = await store.profile(ACME, BOB)
    assert bob is not None
    assert (bob.name, bob.emails) == ("Bob", ())
    held = await store.profile_with_email(ACME, "ALICE@EXAMPLE.COM")
    assert held is not None
    assert (held.id, held.emails) == (ALICE, ("alice@example.com",))
    assert await store.profile_with_email(GLOBEX, "alice@example.com") is None
    await store.change_profile(ACME, ALICE, name=None, emails=[], disabled=None)
    await store.change_profile(ACME, BOB, name=None, emails=["alice@example.com"], disabled=None)
    moved = await store.profile_with_email(ACME, "alice@example.com")
    assert moved is not None
    assert moved.id == BOB


async def test_a_merged_profile_neither_holds_an_email_nor_counts_nor_is_listed(stores: Stores) -> None:
    """Design section 5: emails are unique among the unmerged; a principal of a merged profile is its survivor."""
    retired = a_profile(ProfileId("prf_old"), emails=("x@example.com",))
    await stores.identities.add_profile(retired)
    await stores.identities.link(ACME, Identity(issuer=ISSUER, subject="old", profile=retired.id), NOW)
    await stores.identities.merge(ACME, retired.id, ALICE, NOW)
    with pytest.raises(Conflict):
        await stores.identities.change_profile(ACME, BOB, name=None, emails=["x@example.com"], disabled=True)
    await stores.identities.change_profile(ACME, BOB, name=None, emails=None, disabled=True)
    found = await stores.identities.profile_of(ACME, ISSUER, "old")
    holder = await stores.identities.profile_with_email(ACME, "x@example.com")
    assert (found and found.id, holder and holder.id) == (ALICE, ALICE)
    assert await stores.identities.count_people(ACME) == 3
    page = await stores.identities.people(ACME, limit=3, cursor=None)
    rest = await stores.identities.people(ACME, limit=3, cursor=page.next_cursor)
    assert [one.id for one in (*page.items, *rest.items)] == ["prf_alice", "prf_bob", "prf_carol", "prf_dana"]
    assert rest.next_cursor is None


@pytest.mark.parametrize(
    "other",
    ["Alice", "alice ", " alice", "alice\0", "älice", "ａlice", unicodedata.normalize("NFD", "älice"), "alice\n"],
)
async def test_an_identity_is_compared_byte_for_byte(stores: Stores, other: str) -> None:
    """Design section 5: (issuer, subject), byte for byte; a collation must not make two users one."""
    store = stores.identities
    await store.link(ACME, Identity(issuer=ISSUER, subject="alice", profile=ALICE), NOW)
    if not stores.holds(other):
        with pytest.raises(Invalid):
            await store.profile_of(ACME, ISSUER, other)
        with pytest.raises(Invalid):
            await store.link(ACME, Identity(issuer=ISSUER, subject=other, profile=BOB), NOW)
        assert [one.subject for one in await store.identities(ACME, BOB)] == []
        return
    assert await store.profile_of(ACME, ISSUER, other) is None
    assert await store.profile_of(ACME, ISSUER + "/", "alice") is None
    assert await store.profile_of(GLOBEX, ISSUER, "alice") is None
    await store.link(ACME, Identity(issuer=ISSUER, subject=other, profile=BOB), NOW)
    found = [await store.profile_of(ACME, ISSUER, subject) for subject in ("alice", other)]
    assert [one and one.id for one in found] == [ALICE, BOB]


async def test_unicode_forms_of_one_name_are_two_identities(stores: Stores) -> None:
    """Design section 5: byte for byte, so the composed and the decomposed form differ."""
    forms = (unicodedata.normalize("NFC", "Zoë"), unicodedata.normalize("NFD", "Zoë"))
    for subject, profile in zip(forms, (ALICE, BOB), strict=True):
        await stores.identities.link(ACME, Identity(issuer=ISSUER, subject=subject, profile=profile), NOW)
    found = await stores.identities.profile_of(ACME, ISSUER, unicodedata.normalize("NFD", "Zoë"))
    assert found is not None
    assert found.id == BOB


async def test_a_token_is_found_by_its_hash_listed_until_revoked_and_its_use_never_moves_back(stores: Stores) -> None:
    """Design section 5.4: stored as a hash, expiry, scopes, last use, revocation."""
    store = stores.identities
    made = [
        AccessToken(
            id=f"tok_{number}",
            tenant=ACME,
            profile=ALICE,
            name="ci",
            scopes=frozenset({"session", "memory"}),
            created_at=NOW,
            expires_at=NOW + timedelta(days=30),
        )
        for number in (1, 2)
    ]
    for token in made:
        await store.add_token(token, token.id.encode())
    with pytest.raises(Conflict):
        await store.add_token(made[0], b"tok_2")
    assert await store.token_by_hash(b"tok_1") == made[0]
    assert await store.token_by_hash(b"tok") is None
    await store.touch_tokens({"tok_1": NOW + timedelta(hours=2)})
    await store.touch_tokens({"tok_1": NOW + timedelta(hours=1), "tok_unknown": NOW})
    await store.touch_tokens({})
    assert not await store.revoke_token(ACME, BOB, "tok_2", NOW)
    assert not await store.revoke_token(GLOBEX, ALICE, "tok_2", NOW)
    assert [one.id for one in await store.tokens(ACME, ALICE)] == ["tok_2", "tok_1"]
    assert await store.revoke_token(ACME, ALICE, "tok_2", NOW)
    assert not await store.revoke_token(ACME, ALICE, "tok_2", NOW)
    (left,) = await store.tokens(ACME, ALICE)
    gone = await store.token_by_hash(b"tok_2")
    assert (left.last_used_at, gone and gone.revoked_at) == (NOW + timedelta(hours=2), NOW)


async def test_an_agents_name_and_folder_are_its_own_in_its_tenant(stores: Stores) -> None:
    """ports.Agents."""
    flight = Agent(tenant=ACME, name=FLIGHT, workspace="flight", title="Flight", timezone="Asia/Taipei")
    await stores.agents.add(flight, NOW)
    before = await stores.epoch()
    for name, workspace in ((FLIGHT, "other"), (HOTEL, "flight")):
        taken = Agent(tenant=ACME, name=name, workspace=workspace, title="", timezone="UTC")
        with pytest.raises(Conflict):
            await stores.agents.add(taken, NOW)
    assert await stores.epoch() == before
    assert await stores.agents.all(ACME) == [flight]
    assert await stores.agents.find(ACME, FLIGHT) == flight
    assert await stores.agents.find(GLOBEX, FLIGHT) is None


async def test_a_policy_is_published_on_top_of_the_version_in_force_only(stores: Stores) -> None:
    """Design section 7: publish with the version it was based on, else conflict, and nothing is published."""
    store = stores.policies
    assert await store.current(ACME) is None
    first, epoch = await store.publish(ACME, "one", base_version=0, comment="c", author=ALICE, now=NOW)
    with pytest.raises(Conflict) as caught:
        await store.publish(ACME, "lost", base_version=0, comment="", author=BOB, now=NOW)
    assert caught.value.facts == {"version": 1}
    assert await store.current(ACME) == (first, epoch)
    second, _ = await store.publish(ACME, "one", base_version=1, comment="", author=ALICE, now=NOW, rolled_back_to=1)
    assert (second.version, second.rolled_back_to, await stores.epoch()) == (2, 1, epoch + 1)
    page = await store.history(ACME, limit=1, cursor=None)
    rest = await store.history(ACME, limit=1, cursor=page.next_cursor)
    assert (page.items, rest.items, rest.next_cursor) == ((second,), (first,), None)
    assert await store.version(ACME, 1) == first
    assert await store.version(ACME, 3) is None
    assert await store.current(GLOBEX) is None


@pytest.mark.parametrize(
    "cursor", ["", "x", "%%%", "cG9saWN5Og", "cG9saWN5Oi0x", "cGVvcGxlOjE", "cG9saWN5OjE=", "ü" * 300]
)
async def test_what_is_no_cursor_of_a_list_is_refused(stores: Stores, cursor: str) -> None:
    """interface.md, lists: a cursor is opaque, and only one that this list gave out is taken."""
    with pytest.raises(Invalid) as caught:
        await stores.policies.history(ACME, limit=1, cursor=cursor)
    assert caught.value.faults[0].field == "cursor"


async def test_notes_of_a_file_come_oldest_first(stores: Stores) -> None:
    """ports.Notes: where each note came from, kept outside its text."""
    made = [
        NoteRecord(
            id=f"not_{number}",
            tenant=ACME,
            agent=FLIGHT,
            path="memory/2026-12-01.md",
            sha256="00",
            provenance="person",
            author=ALICE,
            session=SessionId("ses_1") if number else None,
            created_at=NOW + timedelta(seconds=number),
        )
        for number in (1, 0)
    ]
    for note in made:
        await stores.notes.add(note)
    assert await stores.notes.of_path(ACME, FLIGHT, "memory/2026-12-01.md") == made[::-1]
    assert await stores.notes.of_path(GLOBEX, FLIGHT, "memory/2026-12-01.md") == []


async def test_who_has_a_way_in_as_which_service_is_told_from_tokens_and_links(stores: Stores) -> None:
    """Design section 5, "nobody raises themselves": for all identities that somebody holds."""
    store = stores.identities
    for name in ("robot", "gone", "plain"):
        await store.add_profile(a_profile(ProfileId(f"prf_{name}"), kind="service"))
    await store.merge(ACME, ProfileId("prf_gone"), ProfileId("prf_plain"), NOW)
    later, over = NOW + timedelta(hours=1), NOW
    for number, (profile, maker, end) in enumerate(
        [("robot", ALICE, later), ("robot", None, later), ("robot", BOB, over), ("plain", BOB, later)]
    ):
        token = AccessToken(
            id=f"tok_{number}",
            tenant=ACME,
            profile=ProfileId(f"prf_{profile}"),
            name="ci",
            scopes=frozenset({"*"}),
            created_at=NOW,
            expires_at=end,
            made_by=maker,
        )
        await store.add_token(token, f"digest {number}".encode())
        assert token in await store.tokens(ACME, token.profile)
    await store.revoke_token(ACME, ProfileId("prf_plain"), "tok_3", NOW)
    for subject, by in (("robot", BOB), ("unasked", None)):
        identity = Identity(issuer=ISSUER, subject=subject, profile=ProfileId("prf_robot"))
        await store.link(ACME, identity, NOW, by=by)
        await store.link(ACME, identity, NOW, by=CAROL)  # it is there already
    await store.link(ACME, Identity(issuer=ISSUER, subject="alice", profile=ALICE), NOW, by=BOB)  # no service

    found = await store.service_credentials(ACME, NOW)

    assert {(one.service, one.made_by) for one in found} == {("prf_robot", by) for by in (ALICE, BOB, None)}
    assert await store.service_credentials(GLOBEX, NOW) == []


async def test_those_who_hold_a_role_are_found_on_whatever_agent(stores: Stores) -> None:
    """Ours: whoever is told what concerns owners and admins."""
    store = stores.identities
    held = {"prf_a": ("admin", ANY_AGENT), "prf_b": ("owner", FLIGHT), "prf_c": ("member", ANY_AGENT)}
    for name, (role, agent) in held.items():
        await store.add_profile(a_profile(ProfileId(name), roles=(RoleAssignment(role=role, agent=agent),)))
    await store.add_profile(a_profile(ProfileId("prf_d"), roles=(RoleAssignment(role="admin", agent=ANY_AGENT),)))
    await store.merge(ACME, ProfileId("prf_d"), ProfileId("prf_c"), NOW)

    assert await store.holding(ACME, ["admin", "owner"]) == {"prf_a", "prf_b"}
    assert await store.holding(ACME, ["supervisor"]) == frozenset()
    assert await store.holding(GLOBEX, ["admin", "owner"]) == frozenset()
