"""Tests that a role from a claim is used while its credential lasts, and is never turned into one that stays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from gateway.errors import ToolNotAllowed
from gateway.identity.roles import by_hand, held_by_all, is_owner, role_of, with_claimed
from gateway.identity.tokens import AccessTokens
from gateway.model import ANY_AGENT, Profile, Requester, RoleAssignment
from tests.clock import SettableClock
from tests.identity.conftest import Store, people_of, weighing


def roles(*texts: str) -> tuple[RoleAssignment, ...]:
    """Roles as the settings write them."""
    return tuple(map(role_of, texts))


def claiming(requester: Requester, *claimed: str) -> Requester:
    """The same person, with a credential whose groups give these roles."""
    principal = replace(requester.principal, roles=roles(*claimed))
    return replace(requester, principal=principal, profile=with_claimed(requester.profile, principal.roles))


async def test_a_profile_with_claimed_roles_says_which_were_given_by_hand(store: Store) -> None:
    """Issue 3: rights given by hand are kept apart from rights that came from a claim."""
    alice = await store.person("Alice", "member")

    both = with_claimed(alice, roles("member", "supervisor@flight", "supervisor@flight", "owner", "owner@flight"))

    assert both.roles == roles("member", "supervisor@flight")
    assert both.claimed == roles("supervisor@flight")
    assert by_hand(both) == alice.roles
    assert with_claimed(alice, roles("member")) is alice
    assert both.subjects_on(role_of("x@flight").agent) >= {"role:member", "role:supervisor"}
    assert "role:supervisor" not in alice.subjects_on(role_of("x@flight").agent)
    assert "role:supervisor" not in both.subjects_on(ANY_AGENT)


async def test_nobody_is_an_owner_by_a_claim(store: Store) -> None:
    """Ours: an owner is made by hand, even where a credential should come to say something else."""
    erin = await store.person("Erin", "admin")
    olga = await store.person("Olga", "owner")
    forged = replace(erin, roles=erin.roles + roles("owner"), claimed=roles("owner"))

    assert is_owner(olga)
    assert is_owner(with_claimed(olga, roles("admin", "owner")))
    assert not is_owner(with_claimed(erin, roles("owner")))
    assert not is_owner(forged)


@pytest.mark.parametrize(
    ("held", "common"),
    [
        ([["member", "supervisor"], ["supervisor", "admin"]], ["supervisor"]),
        ([["supervisor"], ["supervisor@flight"]], ["supervisor@flight"]),
        ([["supervisor@train"], ["supervisor@flight"]], []),
        ([["admin"], []], []),
        ([[], ["admin"]], []),
    ],
)
def test_several_credentials_carry_the_roles_that_each_of_them_does(held: list[list[str]], common: list[str]) -> None:
    """Design section 5: two credentials of one person reach what both reach."""
    assert held_by_all([roles(*one) for one in held]) == roles(*common)


class Claimed:
    """dana, who has `member` by hand and claims; what admins do; and others to do it to."""

    def __init__(self, store: Store, clock: SettableClock) -> None:
        self.store = store
        self.people = people_of(store)
        self.tokens = AccessTokens(store.identities, weighing(store), clock)

    async def everybody(self) -> list[Profile]:
        """The people, to be compared before and after."""
        return list((await self.store.identities.people(self.dana.tenant, limit=100, cursor=None)).items)

    async def settle(self, *by_hand_too: str) -> None:
        """Makes them."""
        self.dana = await self.store.person("Dana", "member", *by_hand_too)
        self.alice = await self.store.person("Alice", "member")
        self.erin = await self.store.person("Erin", "admin")
        self.robot = await self.store.person("Robot", "supervisor", kind="service")


@pytest.fixture
async def claimed(store: Store, clock: SettableClock) -> Claimed:
    """The house of these tests."""
    made = Claimed(store, clock)
    await made.settle()
    return made


REFUSED: dict[str, Callable[[Claimed, Requester], object]] = {
    "gives a friend the role of a claim": lambda c, dana: c.people.set_roles(dana, c.alice.id, roles("supervisor")),
    "adds a friend with it": lambda c, dana: c.people.add(dana, name="Bob", roles=roles("supervisor")),
    "adds a service with it": lambda c, dana: c.people.add(dana, name="R", roles=roles("supervisor"), kind="service"),
    "takes it from somebody": lambda c, dana: c.people.set_roles(dana, c.robot.id, roles()),
    "keeps it for themselves": lambda c, dana: c.people.set_roles(dana, c.dana.id, roles("member", "supervisor")),
    "keeps admin for themselves": lambda c, dana: c.people.set_roles(dana, c.dana.id, roles("member", "admin")),
    "gives admin": lambda c, dana: c.people.set_roles(dana, c.alice.id, roles("admin")),
    "gives owner": lambda c, dana: c.people.set_roles(dana, c.alice.id, roles("owner")),
    "changes an admin": lambda c, dana: c.people.change(dana, c.erin.id, disabled=True),
    "gives a person's emails": lambda c, dana: c.people.change(dana, c.alice.id, emails=["d@acme.example"]),
    "links a person": lambda c, dana: c.people.link(dana, c.alice.id, issuer="https://x.example", subject="d"),
    "links a service that has it": lambda c, dana: c.people.link(
        dana, c.robot.id, issuer="https://x.example", subject="d"
    ),
    "makes a token for a service that has it": lambda c, dana: c.tokens.create(
        dana, c.robot.id, name="r", expires_in_days=1
    ),
    "makes a token for a person": lambda c, dana: c.tokens.create(dana, c.alice.id, name="a", expires_in_days=1),
    "revokes an admin's token": lambda c, dana: c.tokens.revoke(dana, c.erin.id, "tok_1"),
    "lists an admin's tokens": lambda c, dana: c.tokens.list(dana, c.erin.id),
}


@pytest.mark.parametrize("attempt", REFUSED.values(), ids=REFUSED)
async def test_a_claimed_role_is_not_turned_into_one_that_stays(
    claimed: Claimed, attempt: Callable[[Claimed, Requester], object]
) -> None:
    """Design section 5, "nobody raises themselves": a claim of an hour must not be worth a role for good.

    An owner is let do each of them in tests/identity/test_people.py and test_tokens.py; here nothing changes.
    """
    dana = claiming(await claimed.store.requester(claimed.dana), "admin", "supervisor")
    before = await claimed.everybody()

    with pytest.raises(ToolNotAllowed):
        await attempt(claimed, dana)  # type: ignore[misc]  # each returns what it would have done

    assert await claimed.everybody() == before
    for one in before:
        assert await claimed.store.identities.tokens(one.tenant, one.id) == []
        assert await claimed.store.identities.identities(one.tenant, one.id) == []


async def test_a_claimed_admin_does_what_an_admin_may(claimed: Claimed) -> None:
    """Issue 3: while the credential lasts; whether they may ask at all is the policy's, which sees `role:admin`."""
    dana = claiming(await claimed.store.requester(claimed.dana), "admin", "supervisor")

    added = await claimed.people.add(dana, name="Bob", roles=roles("member"))
    guest = await claimed.people.set_roles(dana, claimed.alice.id, roles("guest"))
    off = await claimed.people.change(dana, claimed.alice.id, disabled=True)
    named = await claimed.people.change(dana, claimed.dana.id, name="Dana D.")

    assert "role:admin" in dana.subjects_on(ANY_AGENT)
    assert (added.roles, guest.roles, off.disabled) == (roles("member"), roles("guest"), True)
    assert (named.roles, named.claimed) == (roles("member"), ())


async def test_what_is_held_by_hand_can_be_given_on_as_before(store: Store, clock: SettableClock) -> None:
    """The same wishes as above, of somebody who was given the role: it is the claim that they are refused for."""
    made = Claimed(store, clock)
    await made.settle("supervisor")
    dana = claiming(await store.requester(made.dana), "admin", "supervisor")

    assert dana.profile.claimed == roles("admin")
    assert (await made.people.set_roles(dana, made.alice.id, roles("supervisor"))).roles == roles("supervisor")
    _, token = await made.tokens.create(dana, made.robot.id, name="r", expires_in_days=1)
    assert token.profile == made.robot.id
