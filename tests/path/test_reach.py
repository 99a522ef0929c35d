"""Who can do this, and what can they do: exactly those whom a single decision would allow (design section 7)."""

from __future__ import annotations

import random
from collections.abc import Iterable
from urllib.parse import quote

import pytest

from gateway.model import OUTSIDE, Action, Chat, Origin, Profile, ProfileId, Resource, SessionFacts
from gateway.operations.somebody import as_requester
from gateway.policy.relations import origin_of
from gateway.policy.shipped import shipped
from gateway.policy.targets import MemoryTarget, SessionTarget, SingleTarget
from gateway.turn import Turn
from tests.house import House, turn_of

WHO, WHAT = "/v1/admin/policy/who-can", "/v1/admin/policy/what-can"
ACTIONS = (Action.HISTORY, Action.LIST, Action.ENTER, Action.POST, Action.DELETE, Action.SEND)


async def everybody(home: House) -> list[Profile]:
    """Every profile of the tenant, retired ones too."""
    ids = await home.gateway.stores.identities.people(home.tenant, limit=200, cursor=None)
    retired = [alias for one in ids.items for alias in one.aliases]
    return [*ids.items, *await home.gateway.stores.identities.profiles(home.tenant, retired)]


async def pages(home: House, path: str, words: str, limit: int = 2) -> list[dict[str, object]]:
    """All items, over pages of `limit`."""
    found: list[dict[str, object]] = []
    cursor = ""
    while True:
        answer = await home.get("erin", f"{path}?{words}&limit={limit}{cursor}")
        assert answer.status_code == 200, answer.text
        found.extend(answer.json()["items"])
        if answer.json()["next_cursor"] is None:
            return found
        cursor = f"&cursor={quote(answer.json()['next_cursor'])}"


def able(
    turn: Turn,
    people: Iterable[Profile],
    action: Action,
    target: SingleTarget,
    origin: Origin,
    here: SessionFacts | None = None,
) -> list[ProfileId]:
    """By asking each of them: the slow answer."""
    found = []
    for one in people:
        asked = as_requester(turn, one)
        inside = (
            here is None
            or turn.authorize.answer(
                turn, asked, origin_of(here.session, None, tainted=False), Action.ENTER, SessionTarget(here)
            ).verdict.allowed
        )
        if inside and turn.authorize.answer(turn, asked, origin, action, target).verdict.allowed:
            found.append(one.id)
    return sorted(found)


async def furnish(home: House, dice: random.Random) -> list[SessionFacts]:
    """More people with all kinds of roles, rows that name some of them, some gone; and sessions of all kinds."""
    await home.add_agent("hotel")
    for number in range(8):
        roles = dice.sample(("member", "supervisor", "auditor", "lead"), dice.randrange(3))
        kind = dice.choice(("person", "person", "service"))
        await home.add(f"p{number}", *roles, kind=kind, agent=dice.choice(("*", "flight", "hotel")))
    for name in ("retired", "survivor"):
        await home.add(name, "member")
    identities, now = home.gateway.stores.identities, home.gateway.clock.now()
    names = dice.sample([f"p{number}" for number in range(8)], 4)
    rows = [
        f"p, user:{home.id('retired')}, *, session/*, all, any, *, *, allow",
        f"p, user:{home.id(names[1])}, flight, session/*, all, any, *, history, deny",
        f"p, user:{home.id(names[2])}, flight, session/shared, agent, any, private, read, allow",
        f"p, user:{home.id('dana')}, hotel, session/private, agent, any, private, history, deny",
        "p, role:lead, flight, session/*, agent, any, private, list, allow",
        "p, role:lead, hotel, memory/longterm, agent, shared, private, get, allow",
    ]
    keys = []
    for who, other in (("alice", "bob"), ("carol", "dana"), ("bob", "alice")):
        agent = dice.choice(("flight", "hotel"))
        keys.append(await home.open(who, agent=agent))
        keys.append(await home.open(who, "group", agent=agent, participants=[home.id(other)]))
        keys.append(await home.open(who, incognito=True, agent=agent))
        child = await home.tool(who, keys[-3], "sessions_spawn", task="Look it up.")
        keys.append(child.json()["result"]["childSessionKey"])
    await home.publish("\n".join([shipped("default.csv"), *rows]))
    await identities.change_profile(home.tenant, home.id(names[3]), name=None, emails=None, disabled=True)
    await identities.merge(home.tenant, home.id("retired"), home.id("survivor"), now)
    facts = [await home.gateway.stores.sessions.find(home.tenant, key) for key in keys]
    return [one for one in facts if one is not None]


@pytest.mark.parametrize("seed", range(3))
async def test_who_can_lists_exactly_those_whom_a_decision_would_allow(home: House, seed: int) -> None:
    """Issue of the admin: who can read this? Outside any session, and from inside one that they have to enter."""
    dice = random.Random(f"who/{seed}")
    sessions = await furnish(home, dice)
    people, turn = await everybody(home), await turn_of(home, "erin")
    seen: set[tuple[ProfileId, ...]] = set()
    for target in sessions:
        here = dice.choice([None, None, dice.choice(sessions)])
        for action in dice.sample(ACTIONS, 3):
            words = f"action={action}&session={quote(target.session.key)}"
            origin = OUTSIDE
            if here is not None:
                words += f"&inside={here.session.id}"
                origin = origin_of(here.session, None, tainted=False)
            expected = able(turn, people, action, SessionTarget(target), origin, here)
            found = await pages(home, WHO, words)
            assert [one["profile"]["id"] for one in found] == expected, words  # type: ignore[index]  # JSON
            assert all(one["rule"] for one in found)
            seen.add(tuple(expected))
    for resource, chat in (
        (Resource.MEMORY_LONGTERM, Chat.PRIVATE),
        (Resource.MEMORY_LONGTERM, Chat.GROUP),
        (Resource.MEMORY_RULES, Chat.GROUP),
    ):
        origin = OUTSIDE._replace(chat=chat)
        memory = MemoryTarget(turn.tenant, sessions[0].session.agent, resource, None, str(resource))
        found = await pages(home, WHO, f"action=get&agent={memory.agent}&resource={resource}&chat={chat}")
        assert [one["profile"]["id"] for one in found] == able(turn, people, Action.GET, memory, origin)  # type: ignore[index]  # JSON
    assert len(seen) > 4  # not always the same answer


@pytest.mark.parametrize("seed", range(3))
async def test_what_can_lists_exactly_the_sessions_on_which_a_decision_would_allow_it(home: House, seed: int) -> None:
    """Issue of the admin: what can this person read?"""
    dice = random.Random(f"what/{seed}")
    sessions = await furnish(home, dice)
    turn = await turn_of(home, "erin")
    some = 0
    for person in await everybody(home):
        asked = as_requester(turn, person)
        for action in (Action.HISTORY, dice.choice(ACTIONS)):
            expected = {
                one.session.id
                for one in sessions
                if turn.authorize.answer(turn, asked, OUTSIDE, action, SessionTarget(one)).verdict.allowed
            }
            survivor = person.merged_into or person.id
            found = await pages(home, WHAT, f"person={survivor}&action={action}")
            if person.merged_into is None:
                assert {one["id"] for one in found} == expected
                assert all(one["rule"] for one in found)
                some += len(expected)
    assert some > 10


async def test_personal_files_are_their_owners_alone_and_functions_are_who_the_rows_say(home: House) -> None:
    """Design section 7, invariants: no row can lift them, so nobody else is listed."""
    await home.publish(shipped("default.csv") + "\np, role:member, *, memory/personal/*, all, any, *, *, allow\n")
    words = f"action=get&agent=flight&resource=memory/personal/longterm&person={home.id('alice')}"
    assert [one["profile"]["name"] for one in await pages(home, WHO, words)] == ["alice"]  # type: ignore[index]  # JSON
    words = "action=publish&resource=admin/policy"
    names = {one["profile"]["name"] for one in await pages(home, WHO, words)}  # type: ignore[index]  # JSON
    assert names == {"erin", "olga", "local operator"}
    reach = (await home.get("erin", f"{WHAT}?person={home.id('audrey')}")).json()
    assert (reach["profile"]["name"], reach["items"]) == ("audrey", [])
    assert {(one["resource"], *one["actions"]) for one in reach["abilities"]} >= {("admin/audit", "read", "export")}


@pytest.mark.parametrize(
    ("query", "status"),
    [
        (f"{WHO}?action=history", 422),
        (f"{WHO}?action=fly&session=x", 422),
        (f"{WHO}?action=history&session=x&resource=memory/longterm&agent=flight", 422),
        (f"{WHO}?action=history&resource=session/private&agent=flight", 422),
        (f"{WHO}?action=get&resource=memory/longterm", 422),
        (f"{WHO}?action=get&resource=memory/personal/daily&agent=flight", 422),
        (f"{WHO}?action=get&resource=memory/longterm&agent=flight&person=prf_x", 422),
        (f"{WHO}?action=history&session=x&agent=flight", 422),
        (f"{WHO}?action=history&session=x&chat=group", 422),
        (f"{WHO}?action=history&session=ses_none", 404),
        (f"{WHO}?action=get&resource=memory/longterm&agent=nowhere", 404),
        (f"{WHO}?action=get&resource=memory/longterm&agent=flight&inside=ses_none", 404),
        (f"{WHO}?action=get&resource=memory/longterm&agent=flight&cursor=nonsense", 422),
        (f"{WHAT}?person=prf_none", 404),
        (f"{WHAT}", 422),
        (f"{WHAT}?person=ERIN&agent=nowhere", 404),
        (f"{WHAT}?person=ERIN&cursor=nonsense", 422),
    ],
)
async def test_what_can_not_be_asked_is_said(home: House, query: str, status: int) -> None:
    """Style: a fault names the field and the rule. And nobody asks who may not read the policy."""
    query = query.replace("ERIN", home.id("erin"))

    answer = await home.get("erin", query)

    assert answer.status_code == status, answer.text
    for who in ("alice", "dana", "audrey"):
        assert (await home.get(who, query)).status_code in (403, 422)
        assert "items" not in (await home.get(who, query)).json()
