"""Tests that people are changed as asked, whole or not at all, and that nobody raises themselves."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from gateway.errors import Conflict, Invalid, NotFound, ToolNotAllowed
from gateway.identity.people import People, add_first_owner
from gateway.model import ANY_AGENT, AgentName, Identity, Profile, ProfileId, Requester, RoleAssignment
from tests.identity.conftest import ACME, GLOBEX, Store

FLIGHT = AgentName("flight")
OKTA = "https://okta.example"


def role(name: str, agent: AgentName = ANY_AGENT) -> RoleAssignment:
    """A role on an agent, or on all."""
    return RoleAssignment(role=name, agent=agent)


async def as_stored(store: Store, profile: Profile) -> tuple[Profile | None, tuple[Identity, ...]]:
    """The profile with its links, to be compared before and after."""
    identities = await store.identities.identities(profile.tenant, profile.id)
    return await store.identities.profile(profile.tenant, profile.id), tuple(identities)


class Cast:
    """People of acme, and erin and olivia as requesters."""

    def __init__(
        self, alice: Profile, erin: Profile, olivia: Profile, as_erin: Requester, as_olivia: Requester
    ) -> None:
        self.alice = alice
        self.erin = erin
        self.olivia = olivia
        self.as_erin = as_erin
        self.as_olivia = as_olivia


@pytest.fixture
async def cast(store: Store) -> Cast:
    """alice is a member, erin an admin, olivia the owner."""
    alice = await store.person("Alice", "member", emails=("alice@acme.example",))
    erin = await store.person("Erin", "admin")
    olivia = await store.person("Olivia", "owner")
    return Cast(alice, erin, olivia, await store.requester(erin), await store.requester(olivia))


async def test_a_new_person_is_stored_with_one_spelling_of_everything(people: People, cast: Cast, store: Store) -> None:
    """Design section 5: emails are trimmed and case-folded; the same role or email twice is once."""
    made = await people.add(
        cast.as_erin,
        name="  Bob ",
        emails=[" Bob@Acme.Example", "bob@acme.example"],
        roles=[role("member"), role("guest", FLIGHT), role("member")],
    )

    assert (made.name, made.kind, made.emails) == ("Bob", "person", ("bob@acme.example",))
    assert made.roles == (role("member"), role("guest", FLIGHT))
    assert await store.identities.profile(ACME, made.id) == made
    service = await people.add(cast.as_olivia, name="LINE", kind="service", roles=[role("connector")])
    assert service.kind == "service"


FAULTY: dict[str, tuple[dict[str, Any], list[tuple[str, str]]]] = {
    "no name": ({"name": ""}, [("name", "text")]),
    "blank name": ({"name": " \t"}, [("name", "text")]),
    "name of two lines": ({"name": "Bob\nAdmin"}, [("name", "text")]),
    "name over its limit": ({"name": "b" * 201}, [("name", "text")]),
    "email that is none": ({"emails": ["bob@acme.example", "bob"]}, [("emails[1]", "email")]),
    "email of two readings": ({"emails": ["mi\u212ae@acme.example"]}, [("emails[0]", "ambiguous")]),
    "too many emails": ({"emails": ["x"] * 21}, [("emails", "count")]),
    "role in capitals": ({"roles": [role("Admin")]}, [("roles[0].role", "name")]),
    "role spelled like a subject": ({"roles": [role("role:admin")]}, [("roles[0].role", "name")]),
    "role with a line end": ({"roles": [role("member\n")]}, [("roles[0].role", "name")]),
    "empty role": ({"roles": [role("")]}, [("roles[0].role", "name")]),
    "role over its limit": ({"roles": [role("r" * 33)]}, [("roles[0].role", "name")]),
    "agent that is a path": ({"roles": [role("member", AgentName("../x"))]}, [("roles[0].agent", "name")]),
    "too many roles": ({"roles": [role("member")] * 101}, [("roles", "count")]),
    "kind that is none": ({"kind": "robot"}, [("kind", "one_of")]),
    "everything at once": (
        {"name": "", "emails": ["x"], "roles": [role("X", AgentName("Y"))], "kind": ""},
        [
            ("name", "text"),
            ("emails[0]", "email"),
            ("roles[0].role", "name"),
            ("roles[0].agent", "name"),
            ("kind", "one_of"),
        ],
    ),
}


@pytest.mark.parametrize(("changes", "faults"), FAULTY.values(), ids=FAULTY)
async def test_a_new_person_with_faults_is_told_all_of_them_and_is_not_made(
    people: People, cast: Cast, store: Store, changes: dict[str, Any], faults: list[tuple[str, str]]
) -> None:
    """Design section 12: bad input names the field and the rule, and changes nothing."""
    with pytest.raises(Invalid) as caught:
        await people.add(cast.as_olivia, **({"name": "Bob"} | changes))

    assert [(fault.field, fault.rule) for fault in caught.value.faults] == faults
    assert await store.identities.count_people(ACME) == 3


async def test_an_email_belongs_to_one_person(people: People, cast: Cast, store: Store) -> None:
    """Ports: Conflict for an email that another profile holds, in whatever case, by adding and by changing."""
    with pytest.raises(Conflict):
        await people.add(cast.as_erin, name="Alice 2", emails=["ALICE@acme.example"])
    bob = await people.add(cast.as_erin, name="Bob", emails=["bob@acme.example"])
    before = await as_stored(store, bob)
    with pytest.raises(Conflict):
        await people.change(cast.as_olivia, bob.id, name="Robert", emails=["alice@acme.example"])

    assert await as_stored(store, bob) == before


async def test_a_person_is_changed_where_it_was_asked_for_only(people: People, cast: Cast, store: Store) -> None:
    """Interface: PATCH of a person."""
    renamed = await people.change(cast.as_erin, cast.alice.id, name=" Alicia ")
    assert (renamed.name, renamed.emails, renamed.disabled) == ("Alicia", ("alice@acme.example",), False)
    moved = await people.change(cast.as_olivia, cast.alice.id, emails=["A@x.example", "a@x.example"])
    assert (moved.name, moved.emails) == ("Alicia", ("a@x.example",))
    off = await people.change(cast.as_erin, cast.alice.id, disabled=True)
    assert (off.name, off.disabled) == ("Alicia", True)
    on = await people.change(cast.as_erin, cast.alice.id, disabled=False)
    assert on.disabled is False
    with pytest.raises(Invalid):
        await people.change(cast.as_erin, cast.alice.id, name="", emails=["x"])
    assert await store.identities.profile(ACME, cast.alice.id) == on


Change = Callable[[People, Requester, ProfileId], Awaitable[object]]

CHANGES: dict[str, Change] = {
    "change": lambda people, actor, profile: people.change(actor, profile, name="X"),
    "set_roles": lambda people, actor, profile: people.set_roles(actor, profile, [role("member")]),
    "link": lambda people, actor, profile: people.link(actor, profile, issuer=OKTA, subject="x"),
    "unlink": lambda people, actor, profile: people.unlink(actor, profile, issuer=OKTA, subject="alice"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
async def test_another_tenants_person_and_a_missing_one_are_equally_not_there(
    people: People, store: Store, cast: Cast, change: Change
) -> None:
    """ASVS V8.4.1: and nothing of the other tenant's changes."""
    other = await store.person("Zoe", "member", tenant=GLOBEX)
    identity = Identity(issuer=OKTA, subject="alice", profile=other.id)
    await store.identities.link(GLOBEX, identity, store.clock.now())
    before = await as_stored(store, other)
    for profile in (other.id, ProfileId("prf_missing")):
        with pytest.raises(NotFound):
            await change(people, cast.as_olivia, profile)

    assert await as_stored(store, other) == before


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
async def test_a_merged_person_is_not_changed_and_the_survivor_is_named(
    people: People, store: Store, cast: Cast, change: Change
) -> None:
    """Design section 5, "merge": what is retired stays as it was."""
    bob = await store.person("Bob", "member")
    await store.merge(bob, cast.alice)
    before = await as_stored(store, bob)
    with pytest.raises(Conflict) as caught:
        await change(people, cast.as_olivia, bob.id)

    assert caught.value.facts == {"merged_into": cast.alice.id}
    assert await as_stored(store, bob) == before


@pytest.mark.parametrize(
    "change",
    [
        *CHANGES.values(),
        lambda people, actor, profile: people.change(actor, profile, emails=["x@acme.example"]),
        lambda people, actor, profile: people.change(actor, profile, disabled=True),
    ],
)
@pytest.mark.parametrize("above", ["admin", "owner"])
async def test_only_an_owner_changes_an_admin_or_an_owner(
    people: People, store: Store, cast: Cast, change: Change, above: str
) -> None:
    """Design section 5: nobody acts on a person with more rights; a link or an email would be those rights."""
    frank = await store.person("Frank", above)
    identity = Identity(issuer=OKTA, subject="alice", profile=frank.id)
    await store.identities.link(ACME, identity, store.clock.now())
    before = await as_stored(store, frank)
    with pytest.raises(ToolNotAllowed):
        await change(people, cast.as_erin, frank.id)
    assert await as_stored(store, frank) == before

    await change(people, cast.as_olivia, frank.id)
    assert await as_stored(store, frank) != before


async def test_an_admin_may_change_their_own_name_and_nothing_else_of_themselves(
    people: People, store: Store, cast: Cast
) -> None:
    """Nobody raises themselves: an email or a link could bring somebody else's sign-in to one's own profile."""
    assert (await people.change(cast.as_erin, cast.erin.id, name="Erin E.")).name == "Erin E."
    before = await as_stored(store, cast.erin)
    for attempt in (
        lambda: people.change(cast.as_erin, cast.erin.id, name="E", emails=["ceo@acme.example"]),
        lambda: people.change(cast.as_erin, cast.erin.id, disabled=False),
        lambda: people.link(cast.as_erin, cast.erin.id, issuer=OKTA, subject="ceo"),
        lambda: people.set_roles(cast.as_erin, cast.erin.id, [role("admin"), role("supervisor")]),
        lambda: people.set_roles(cast.as_erin, cast.erin.id, []),
    ):
        with pytest.raises(ToolNotAllowed):
            await attempt()

    assert await as_stored(store, cast.erin) == before


@pytest.mark.parametrize("raised", ["admin", "owner"])
@pytest.mark.parametrize("agent", [ANY_AGENT, FLIGHT])
async def test_only_an_owner_gives_or_takes_admin_and_owner(
    people: People, store: Store, cast: Cast, raised: str, agent: AgentName
) -> None:
    """The minimal rule, on every agent; `member` and `guest` are an admin's to give."""
    given_by_admin = [role("member"), role("guest", FLIGHT)]
    assert (await people.set_roles(cast.as_erin, cast.alice.id, given_by_admin)).roles == tuple(given_by_admin)
    with pytest.raises(ToolNotAllowed):
        await people.set_roles(cast.as_erin, cast.alice.id, [role("member"), role(raised, agent)])
    with pytest.raises(ToolNotAllowed):
        await people.add(cast.as_erin, name="Frank", roles=[role(raised, agent)])
    assert (await as_stored(store, cast.alice))[0].roles == tuple(given_by_admin)  # type: ignore[union-attr] # it is there
    assert await store.identities.count_people(ACME) == 3

    await people.set_roles(cast.as_olivia, cast.alice.id, [role(raised, agent)])
    with pytest.raises(ToolNotAllowed):
        await people.set_roles(cast.as_erin, cast.alice.id, [role("member")])
    assert (await people.set_roles(cast.as_olivia, cast.alice.id, [role("member")])).roles == (role("member"),)


@pytest.mark.parametrize("given", [role("supervisor"), role("auditor"), role("connector", FLIGHT), role("cfo")])
async def test_an_admin_gives_and_takes_no_role_that_they_do_not_hold(
    people: People, store: Store, cast: Cast, given: RoleAssignment
) -> None:
    """Design section 5: or they would read as their own service, or through a friend, what no admin may."""
    dana = await store.person("Dana", "member", roles=(role("member"), given))
    refused = f"don't hold {given.role} .* an owner can"
    with pytest.raises(ToolNotAllowed, match=refused):
        await people.add(cast.as_erin, name="robot", kind="service", roles=[given])
    with pytest.raises(ToolNotAllowed, match=refused):
        await people.set_roles(cast.as_erin, cast.alice.id, [role("member"), given])
    with pytest.raises(ToolNotAllowed, match=refused):
        await people.set_roles(cast.as_erin, dana.id, [role("member")])
    assert (await as_stored(store, cast.alice))[0] == cast.alice
    assert (await as_stored(store, dana))[0] == dana
    assert await store.identities.count_people(ACME) == 4

    both = await store.person("Eve", roles=(role("admin"), given))
    as_both = await store.requester(both)
    assert given in (await people.set_roles(as_both, cast.alice.id, [role("member"), given])).roles
    assert given in (await people.add(cast.as_olivia, name="robot", kind="service", roles=[given])).roles


async def test_a_role_held_on_one_agent_is_not_given_on_another(people: People, store: Store, cast: Cast) -> None:
    """What is held on all agents is held on each, and not the other way round."""
    one = await store.requester(await store.person("One", roles=(role("admin"), role("supervisor", FLIGHT))))
    every = await store.requester(await store.person("All", roles=(role("admin"), role("supervisor"))))
    for wider in (role("supervisor"), role("supervisor", AgentName("hotel"))):
        with pytest.raises(ToolNotAllowed):
            await people.set_roles(one, cast.alice.id, [wider])
    assert (await as_stored(store, cast.alice))[0] == cast.alice

    for actor in (one, every):
        assert (await people.set_roles(actor, cast.alice.id, [role("supervisor", FLIGHT)])).roles
        await people.set_roles(actor, cast.alice.id, [])


async def test_only_an_owner_opens_a_way_to_sign_in_as_somebody(people: People, store: Store, cast: Cast) -> None:
    """A linked sign-in, or an email that an issuer vouches for, is that person from then on: also the admin's own."""
    reader = await store.person("Reader", "supervisor", kind="service")
    plain = await store.person("Plain", kind="service")
    for target in (cast.alice, reader):
        before = await as_stored(store, target)
        with pytest.raises(ToolNotAllowed, match="owner can"):
            await people.link(cast.as_erin, target.id, issuer=OKTA, subject="erin-2")
        with pytest.raises(ToolNotAllowed, match="owner can"):
            await people.change(cast.as_erin, target.id, name="X", emails=["erin2@acme.example"])
        assert await as_stored(store, target) == before

    await people.link(cast.as_erin, plain.id, issuer=OKTA, subject="robot")
    await people.link(cast.as_olivia, cast.alice.id, issuer=OKTA, subject="alice-2")
    assert (await people.change(cast.as_olivia, cast.alice.id, emails=["a@acme.example"])).emails
    assert [len((await as_stored(store, one))[1]) for one in (plain, cast.alice, reader)] == [1, 1, 0]


async def test_an_owner_of_one_agent_is_no_owner_of_the_tenant(people: People, store: Store, cast: Cast) -> None:
    """A role on one agent gives no right over people, who belong to all."""
    fred = await store.person("Fred", roles=(role("owner", FLIGHT),))
    as_fred = await store.requester(fred)

    with pytest.raises(ToolNotAllowed):
        await people.set_roles(as_fred, cast.alice.id, [role("admin")])
    with pytest.raises(ToolNotAllowed):
        await people.set_roles(as_fred, fred.id, [role("owner")])


async def test_roles_with_faults_are_told_and_not_given(people: People, cast: Cast, store: Store) -> None:
    """All faults at once, and the roles of before stay."""
    with pytest.raises(Invalid) as caught:
        await people.set_roles(cast.as_olivia, cast.alice.id, [role("A"), role("member"), role("b", AgentName(""))])

    assert [fault.field for fault in caught.value.faults] == ["roles[0].role", "roles[2].agent"]
    assert await store.identities.profile(ACME, cast.alice.id) == cast.alice


async def test_the_last_owner_keeps_the_role_and_stays_on(people: People, store: Store, cast: Cast) -> None:
    """A tenant without an owner could never change its admins again. Neither a service, nor one on an agent, nor a
    disabled owner counts as another."""
    await store.person("Local operator", "owner", kind="service")
    await store.person("Fred", roles=(role("owner", FLIGHT),))
    await store.person("Gone", "owner", disabled=True)
    with pytest.raises(Conflict):
        await people.set_roles(cast.as_olivia, cast.olivia.id, [role("member")])
    with pytest.raises(Conflict):
        await people.change(cast.as_olivia, cast.olivia.id, disabled=True)
    assert await store.identities.profile(ACME, cast.olivia.id) == cast.olivia
    still = await people.set_roles(cast.as_olivia, cast.olivia.id, [role("owner"), role("auditor")])
    assert still.roles == (role("owner"), role("auditor"))

    await people.set_roles(cast.as_olivia, cast.alice.id, [role("owner")])
    assert (await people.change(cast.as_olivia, cast.olivia.id, disabled=True)).disabled


async def test_another_owner_is_found_among_many_people(people: People, store: Store, cast: Cast) -> None:
    """The search goes on past the first page, and ends."""
    for number in range(201):
        await store.person(f"Person {number}", "member", id=ProfileId(f"prf_{number:026}"))
    with pytest.raises(Conflict):
        await people.set_roles(cast.as_olivia, cast.olivia.id, [])
    last = await store.person("Zed", "owner", id=ProfileId("prf_" + "Z" * 26))

    assert (await people.set_roles(cast.as_olivia, cast.olivia.id, [])).roles == ()
    assert await store.identities.profile(ACME, last.id) == last


async def test_two_owners_who_dismiss_each_other_at_once_leave_one(people: People, store: Store, cast: Cast) -> None:
    """The look for another owner and the change are one step within a process."""
    frank = await store.person("Frank", "owner")
    as_frank = await store.requester(frank)

    answers = await asyncio.gather(
        people.set_roles(as_frank, cast.olivia.id, []),
        people.set_roles(cast.as_olivia, frank.id, []),
        return_exceptions=True,
    )

    assert sorted(type(answer).__name__ for answer in answers) == ["Conflict", "Profile"]


async def test_an_identity_is_linked_once_and_unlinked_exactly(people: People, store: Store, cast: Cast) -> None:
    """Identity links move exactly the linked ids and nothing else."""
    bob = await store.person("Bob", "member")
    linked = await people.link(cast.as_olivia, cast.alice.id, issuer=OKTA, subject="Alice")
    assert await people.link(cast.as_olivia, cast.alice.id, issuer=OKTA, subject="Alice") == linked
    with pytest.raises(Conflict):
        await people.link(cast.as_olivia, bob.id, issuer=OKTA, subject="Alice")
    for issuer, subject, profile in (
        (OKTA, "alice", cast.alice),
        (OKTA + "/", "Alice", cast.alice),
        (OKTA, "Alice", bob),
    ):
        with pytest.raises(NotFound):
            await people.unlink(cast.as_erin, profile.id, issuer=issuer, subject=subject)
    assert (await as_stored(store, cast.alice))[1] == (linked,)

    await people.unlink(cast.as_erin, cast.alice.id, issuer=OKTA, subject="Alice")
    assert (await as_stored(store, cast.alice))[1] == ()


@pytest.mark.parametrize(
    ("issuer", "subject", "faults"),
    [
        ("", "", [("issuer", "text"), ("subject", "text")]),
        (OKTA, " ", [("subject", "text")]),
        (OKTA, "a\x00b", [("subject", "text")]),
        (OKTA, "a" * 256, [("subject", "text")]),
        ("gateway", "alice", [("issuer", "reserved")]),
        ("operator", "local", [("issuer", "reserved")]),
        (" Gateway", "alice", [("issuer", "reserved")]),
        ("channel:line:staff", "U1", [("issuer", "reserved")]),
    ],
)
async def test_an_identity_with_faults_is_not_linked(
    people: People, store: Store, cast: Cast, issuer: str, subject: str, faults: list[tuple[str, str]]
) -> None:
    """The gateway's own issuers are not to be had: their principals are not signed in from outside."""
    with pytest.raises(Invalid) as caught:
        await people.link(cast.as_olivia, cast.alice.id, issuer=issuer, subject=subject)

    assert [(fault.field, fault.rule) for fault in caught.value.faults] == faults
    assert (await as_stored(store, cast.alice))[1] == ()


async def test_a_new_tenant_gets_its_first_owner_and_only_the_first(store: Store) -> None:
    """Design section 5: `gateway tenants add NAME --owner EMAIL`."""
    with pytest.raises(Invalid) as caught:
        await add_first_owner(store.identities, store.clock, GLOBEX, name="", email="x")
    assert [fault.field for fault in caught.value.faults] == ["name", "emails[0]"]
    owner = await add_first_owner(store.identities, store.clock, GLOBEX, name="Zoe", email="Zoe@globex.example")

    assert owner.roles == (role("owner"),)
    assert await store.identities.profile_with_email(GLOBEX, "zoe@globex.example") == owner
    with pytest.raises(Conflict):
        await add_first_owner(store.identities, store.clock, GLOBEX, name="Mallory", email="m@globex.example")
    assert await store.identities.count_people(GLOBEX) == 1
