"""Classes of people, which a policy is asked of, are always what the profiles say (ports.py, `PeopleClass`)."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest
from sqlalchemy import Connection, event

from gateway.backends.sql import people
from gateway.backends.sql.classes import key_of, place_everybody, roles_in
from gateway.backends.sql.database import Database
from gateway.errors import Conflict
from gateway.model import ANY_AGENT, AgentName, Profile, ProfileId, RoleAssignment
from tests.backends.stores import (
    ACME,
    ALICE,
    BOB,
    FLIGHT,
    GLOBEX,
    HOTEL,
    NOW,
    Factory,
    Stores,
    a_profile,
    sqlite_stores,
)

ROLES = tuple(
    RoleAssignment(role=role, agent=AgentName(agent))
    for role in ("member", "supervisor")
    for agent in (ANY_AGENT, FLIGHT, HOTEL)
)


async def everybody(stores: Stores) -> list[Profile]:
    """All unmerged profiles."""
    return list((await stores.identities.people(ACME, limit=200, cursor=None)).items)


async def check(stores: Stores) -> None:
    """The classes against the profiles, one by one."""
    active = [one for one in await everybody(stores) if not one.disabled]
    expected = Counter(key_of(one.kind, one.roles) for one in active)
    found = await stores.identities.classes(ACME)
    assert {one.key: one.people for one in found} == dict(expected)
    assert sorted(one.key for one in await stores.identities.classes(ACME, counted=False)) == sorted(expected)
    for one in found:
        assert key_of(one.kind, one.roles) == one.key
        members = await stores.identities.of_classes(ACME, [one.key], after=None, limit=200)
        assert list(members) == sorted(
            (person for person in active if key_of(person.kind, person.roles) == one.key), key=lambda person: person.id
        )


@pytest.mark.parametrize("seed", range(4))
async def test_every_active_profile_is_in_the_one_class_of_its_roles_whatever_changes(
    stores: Stores, seed: int
) -> None:
    """Design section 7: who can is answered by classes, so a class that lags behind would be a wrong answer."""
    dice = random.Random(f"classes/{seed}")
    for number in range(60):
        people = await everybody(stores)
        one = dice.choice(people)
        held = tuple(dice.sample(ROLES, dice.randrange(4)))
        match dice.randrange(5):
            case 0 | 1:
                kind = dice.choice(("person", "service"))
                await stores.identities.add_profile(
                    a_profile(ProfileId(f"prf_{seed}{number:03d}"), roles=held, kind=kind)
                )
            case 2:
                await stores.identities.set_roles(ACME, one.id, held)
            case 3:
                await stores.identities.change_profile(ACME, one.id, name=None, emails=None, disabled=not one.disabled)
            case _:
                other = dice.choice(people)
                try:
                    await stores.identities.merge(ACME, one.id, other.id, NOW)
                except Conflict:
                    continue
        if number % 10 == 9:
            await check(stores)
    assert await stores.identities.classes(GLOBEX) == []


async def test_members_of_several_classes_come_by_id_page_by_page(stores: Stores) -> None:
    """Interface: lists are paged; nobody twice, nobody left out."""
    for number in range(25):
        held = (ROLES[number % 3],)
        await stores.identities.add_profile(a_profile(ProfileId(f"prf_{number:03d}"), roles=held))
    keys = [key_of("person", (ROLES[0],)), key_of("person", (ROLES[2],)), "person nobody@*"]
    wanted = [f"prf_{number:03d}" for number in range(25) if number % 3 != 1]

    found: list[ProfileId] = []
    while page := await stores.identities.of_classes(ACME, keys, after=found[-1] if found else None, limit=4):
        assert len(page) <= 4
        found.extend(one.id for one in page)

    assert found == wanted
    assert await stores.identities.of_classes(ACME, [], after=None, limit=4) == []
    some = await stores.identities.profiles(ACME, [ProfileId("prf_003"), ProfileId("prf_none")])
    assert [one.id for one in some] == ["prf_003"]


@pytest.mark.parametrize("at_once", [1, 7, 1_000])
async def test_people_of_a_store_without_classes_are_placed_as_they_would_have_been(
    factory: Factory, tmp_path: Path, at_once: int
) -> None:
    """Schema 3: a store of before is brought forward many at a time; each ends where writing them would put them."""
    dice = random.Random("placed")
    async with factory(tmp_path) as stores:
        for tenant in (ACME, GLOBEX):
            await stores.tenants.add(tenant, demo=False, now=NOW)
            for number in range(40):
                held = tuple(dice.sample(ROLES, dice.randrange(4)))
                one = a_profile(ProfileId(f"prf_{number:03d}"), tenant, roles=held, disabled=number % 9 == 4)
                await stores.identities.add_profile(one)
            await stores.identities.merge(tenant, ProfileId("prf_001"), ProfileId("prf_002"), NOW)
        before = {tenant: await stores.identities.classes(tenant) for tenant in (ACME, GLOBEX)}

        def again(connection: Connection) -> None:
            connection.exec_driver_sql("DELETE FROM people_classes")
            place_everybody(connection, at_once)

        await stores.database.write(again)
        assert {tenant: await stores.identities.classes(tenant) for tenant in (ACME, GLOBEX)} == before
        assert sum(one.people or 0 for one in before[ACME]) > 30


def test_a_class_reads_back_as_what_it_was_made_of() -> None:
    """Ours: the key is all that is stored of it."""
    for count in range(len(ROLES)):
        kind, held = roles_in(key_of("service", ROLES[:count]))
        assert (kind, set(held)) == ("service", set(ROLES[:count]))


async def test_reading_a_few_profiles_never_walks_everybody(tmp_path: Path) -> None:
    """Each profile that is read asks who was merged into it; with a million people that has to be an index."""
    async with sqlite_stores(tmp_path) as stores:
        await stores.tenants.add(ACME, demo=False, now=NOW)
        for one in (ALICE, BOB):
            await stores.identities.add_profile(a_profile(one))
    async with Database(tmp_path / "gateway.db") as database:

        def plans(connection: Connection) -> list[str]:
            asked: list[str] = []
            event.listen(connection, "before_cursor_execute", lambda *told: asked.append(told[2]))
            people.some(ACME, [ALICE, BOB], connection)
            people.find(ACME, ALICE, connection)
            found: list[str] = []
            for statement in tuple(asked):
                explained = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", ("x",) * statement.count("?"))
                found.extend(row[3] for row in explained)
            return found

        steps = [step for step in await database.read(plans) if step.startswith(("SEARCH", "SCAN"))]

    assert len(steps) >= 4
    for step in steps:
        assert step.startswith("SEARCH"), step
        assert not step.endswith("(tenant=?)"), step
