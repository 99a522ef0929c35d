"""A world, a random source and an implementation into the answers on which it and the oracle differ."""

from __future__ import annotations

from random import Random

from tests.oracle import reading
from tests.oracle.decide import decide, visible
from tests.oracle.generate import is_near, make_request
from tests.oracle.reading import Entry
from tests.oracle.world import OnFile, OnSession, Person, Request, Session, World
from tests.oracle.worlds import NOW, personal_paths, team_paths
from tests.properties.implementation import Implementation, Turn

QUESTIONS = 8  # of each world


async def differences(world: World, rng: Random, implementation: Implementation) -> list[str]:
    """Puts the world into the implementation and asks both; one sentence for each answer that differs."""
    await implementation.put(world)
    found = await differing_answers(world, rng, implementation)
    tenant = rng.choice(world.tenants).name
    people = [one for one in world.people if one.tenant == tenant and one.merged_into is None and not one.disabled]
    sessions = [session for session in world.sessions if session.tenant == tenant]
    if not people:
        return found
    person = rng.choice(people)
    near = [session for session in sessions if is_near(world, session, person.id)] or sessions
    origin = rng.choice((None, rng.choice(near).id))
    found += await differing_lists(world, person, origin, implementation)
    for session in {rng.choice(near).id, rng.choice(sessions).id}:
        found += await differing_messages(world, person, origin, session, implementation)
    found += await differing_context(world, person, rng.choice(near), implementation)
    found += await differing_memory(world, rng, person, rng.choice(near), implementation)
    return found


async def differing_answers(world: World, rng: Random, implementation: Implementation) -> list[str]:
    """Single questions of any kind."""
    found = []
    for _ in range(QUESTIONS):
        request = make_request(rng, world)
        expected = decide(world, request)
        given = await implementation.decide(request)
        if given is not None and given != expected.allowed:
            found.append(f"{request}: the oracle says {expected}, the implementation {given}")
    return found


async def differing_lists(
    world: World, person: Person, origin: str | None, implementation: Implementation
) -> list[str]:
    """The list against the oracle's, and against the implementation's own answer on each session of the world."""
    given = await implementation.visible(person.tenant, person.id, origin)
    entered = origin is None or decide(world, entering(person, origin)).allowed
    expected = visible(world, person.tenant, person.id, origin, "list") if entered else None
    found = []
    if given != expected:
        found.append(f"list of {person.id} from {origin}: the oracle lists {expected}, the implementation {given}")
    for session in world.sessions:
        single = Request(
            tenant=person.tenant, who=person.id, action="list", target=OnSession(session.id), origin=origin
        )
        allowed = await implementation.decide(single)
        if given is not None and allowed is not None and allowed != (session.id in given):
            found.append(f"{single}: the implementation says {allowed} and lists {given}")
    return found


def entering(person: Person, session: str) -> Request:
    """What is asked before anything is done inside a session."""
    return Request(tenant=person.tenant, who=person.id, action="enter", target=OnSession(session), origin=session)


async def differing_messages(
    world: World, person: Person, origin: str | None, session: str, implementation: Implementation
) -> list[str]:
    """The messages of one session."""
    expected: list[str] | None = None
    if origin is None or decide(world, entering(person, origin)).allowed:
        messages = reading.readable_messages(world, person.tenant, person.id, origin, session)
        expected = None if messages is None else [message.text for message in messages]
    given = await implementation.messages(person.tenant, person.id, origin, session)
    if given == expected:
        return []
    return [
        f"messages of {session} for {person.id} from {origin}: the oracle reads {expected}, the implementation {given}"
    ]


async def differing_context(
    world: World, person: Person, session: Session, implementation: Implementation
) -> list[str]:
    """The context of a turn: which files, in which order, why not the others, and that no text comes in besides."""
    if person.kind != "person":
        return []
    where = f"context of {session.id} for {person.id}"
    expected = reading.context(world, person.tenant, person.id, session.id, NOW.date())
    given = await implementation.context(person.tenant, person.id, session.id)
    if expected is None or given is None:
        return [] if expected is None and given is None else [f"{where}: {expected} and {given}"]
    found = differing_manifest(where, expected, given)
    inside = {entry.text for entry in expected if entry.included}
    for file in world.files:
        marker = file.text.partition("\n")[0]  # found in no other file
        if (marker in given.text) != (file.text in inside):
            found.append(f"{where}: the text of {file.path} of {file.agent} is where it should not be, or not there")
    return found


def differing_manifest(where: str, expected: list[Entry], given: Turn) -> list[str]:
    """Path, kind and order of what is in; path and reason of what is out."""
    found = []
    loaded = [(entry.path, entry.kind) for entry in expected if entry.included]
    given_loaded = [(entry.path, entry.kind) for entry in given.manifest if entry.included]
    if loaded != given_loaded:
        found.append(f"{where}: the oracle loads {loaded}, the implementation {given_loaded}")
    out = {entry.path: entry.reasons for entry in expected if not entry.included}
    given_out = {entry.path: entry.reason for entry in given.manifest if not entry.included}
    if out.keys() != given_out.keys():
        found.append(f"{where}: the oracle leaves out {sorted(out)}, the implementation {sorted(given_out)}")
    found += [
        f"{where}: {path} is out for {sorted(out[path])}, the implementation says {given_out[path]}"
        for path in out.keys() & given_out.keys()
        if given_out[path] not in out[path]
    ]
    return found


async def differing_memory(
    world: World, rng: Random, person: Person, session: Session, implementation: Implementation
) -> list[str]:
    """`memory_get` on a file of the team, one's own and somebody else's."""
    other = rng.choice([one.id for one in world.people if one.tenant == person.tenant])
    paths = [
        "MEMORY.md",
        rng.choice(team_paths()),
        rng.choice(personal_paths(person.id)),
        rng.choice(personal_paths(other)),
    ]
    found = []
    for path in dict.fromkeys(paths):
        expected = reading.memory_get(world, person.tenant, person.id, session.id, path)
        given = await implementation.memory_get(person.tenant, person.id, session.id, path)
        if given != expected:
            found.append(
                f"memory_get {OnFile(person.tenant, session.agent, path)} for {person.id} in {session.id}: "
                f"the oracle gives {expected!r}, the implementation {given!r}"
            )
    return found
