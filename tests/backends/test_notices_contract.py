"""What every store of notices must do: they come with the change, few are kept, and another reads none of them."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from gateway.backends.sql.notices import KEPT, MOST_NOTICES
from gateway.errors import Conflict
from gateway.keys import new_id
from gateway.model import ANY_AGENT, Identity, Notice, ProfileId, RoleAssignment, TenantId
from tests.backends.stores import ACME, ALICE, BOB, CAROL, DANA, GLOBEX, HOTEL, NOW, Stores, a_profile, a_session

ISSUER = "https://login.example"
MEMBER = (RoleAssignment(role="member", agent=ANY_AGENT),)


def told(profile: ProfileId = ALICE, at: datetime = NOW, about: str = "member", tenant: TenantId = ACME) -> Notice:
    """Something that somebody is told."""
    return Notice(id=new_id("ntc", at), tenant=tenant, profile=profile, at=at, code="roles", by=BOB, about=about)


async def test_a_notice_is_written_with_the_change_that_it_is_about(stores: Stores) -> None:
    """Design section 12: whole or not at all."""
    one, other = told(), told(about="never")
    await stores.identities.set_roles(ACME, ALICE, MEMBER, told=[one])
    with pytest.raises(Conflict):
        await stores.policies.publish(ACME, "p", base_version=7, comment="", author=BOB, now=NOW, told=[other])
    identity = Identity(issuer=ISSUER, subject="alice", profile=ALICE)
    await stores.identities.link(ACME, identity, NOW)
    await stores.identities.link(ACME, identity, NOW, told=[other])  # it is there already
    assert not await stores.identities.unlink(ACME, Identity(issuer=ISSUER, subject="x", profile=ALICE), told=[other])
    assert not await stores.identities.revoke_token(ACME, ALICE, "tok_none", NOW, told=[other])
    assert await stores.sessions.set_owner(ACME, a_session("gone").id, BOB, NOW, expected=None, told=[other]) is None

    assert await stores.notices.of_profile(ACME, ALICE) == [one]
    assert await stores.notices.count(ACME, ALICE) == 1
    assert await stores.notices.of_profile(ACME, BOB) == []
    assert await stores.notices.of_profile(GLOBEX, ALICE) == []
    assert await stores.notices.count(GLOBEX, ALICE) == 0


async def test_few_are_kept_and_not_for_long(stores: Stores) -> None:
    """Ours: what is kept for a person grows no further, and the newest come first."""
    old, late = NOW - KEPT, NOW - KEPT + timedelta(seconds=1)
    await stores.identities.set_roles(ACME, ALICE, MEMBER, told=[told(at=old), told(at=late), told(BOB, old)])
    await stores.identities.set_roles(ACME, ALICE, MEMBER, told=[told()])
    assert [one.at for one in await stores.notices.of_profile(ACME, ALICE)] == [NOW, late]
    assert await stores.notices.count(ACME, BOB) == 1

    many = [told(at=NOW + timedelta(seconds=second), about=str(second)) for second in range(1, MOST_NOTICES + 6)]
    await stores.identities.set_roles(ACME, ALICE, MEMBER, told=many)

    kept = await stores.notices.of_profile(ACME, ALICE)
    assert [one.about for one in kept] == [str(second) for second in range(MOST_NOTICES + 5, 5, -1)]
    assert await stores.notices.count(ACME, ALICE) == MOST_NOTICES


async def test_people_who_are_here_are_told_and_a_merged_one_as_the_survivor(stores: Stores) -> None:
    """Design section 5, "merge": alias resolution is one hop; a row may name somebody who never was here."""
    await stores.identities.add_profile(a_profile(ProfileId("prf_robot"), kind="service"))
    before = told(CAROL, about="before")
    await stores.identities.set_roles(ACME, ALICE, MEMBER, told=[before])
    await stores.identities.merge(ACME, CAROL, DANA, NOW, told=[told(DANA, about="merged")])
    await stores.identities.merge(ACME, CAROL, DANA, NOW, told=[told(DANA, about="again")])  # a no-op
    everybody = [told(one, about="after") for one in (CAROL, ProfileId("prf_robot"), ProfileId("prf_nobody"))]

    await stores.identities.set_roles(ACME, ALICE, MEMBER, told=everybody)

    assert sorted(one.about for one in await stores.notices.of_profile(ACME, DANA)) == ["after", "before", "merged"]
    for one in (CAROL, ProfileId("prf_robot"), ProfileId("prf_nobody")):
        assert await stores.notices.of_profile(ACME, one) == []


async def test_a_session_says_who_takes_part_and_on_which_agents_its_tree_is(stores: Stores) -> None:
    """Design section 6: a child is whose its tree's root is, on whatever agent."""
    root = a_session("1")
    child = a_session("2", parent=root, agent=HOTEL)
    for session in (root, child, a_session("3", BOB, agent=HOTEL)):
        await stores.sessions.create(session, [] if session.parent else [session.owner, CAROL])

    assert await stores.sessions.agents_of_tree(ACME, root.id) == sorted([root.agent, HOTEL])
    assert await stores.sessions.agents_of_tree(GLOBEX, root.id) == []
    assert [await stores.sessions.takes_part(ACME, one) for one in (ALICE, BOB, CAROL, DANA)] == [True] * 3 + [False]
    assert not await stores.sessions.takes_part(GLOBEX, ALICE)
