"""A decision point for others (AuthZEN): its service may ask about everybody, and so learns which sessions there are.

It never learns a word of them, and nobody else is answered.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from gateway.leak_test.driver import Driver, Probe
from gateway.leak_test.driving.targets import few_sessions, victims
from gateway.leak_test.markers import Sort
from gateway.leak_test.world import Caller, Person, PlantedSession
from gateway.model import Action, Resource

_NAMED = {Sort.SESSION: (Action.DECIDE, Resource.GATEWAY)}
Body = dict[str, object]


async def evaluation(driver: Driver, caller: Caller) -> None:
    """`POST /access/v1/evaluation`: may this person do that, to everybody's sessions, files and tools."""
    await _ask(driver, caller, "evaluation", _questions(driver))


async def evaluations(driver: Driver, caller: Caller) -> None:
    """`POST /access/v1/evaluations`: all of that at once."""
    common = {"subject": _user(next(victims(driver.world))), "action": {"name": "history"}, "context": {}}
    resources = [_session(session) for session in few_sessions(driver.world)]
    asked = {
        **common,
        "resource": resources[0],
        "evaluations": [{"resource": one} for one in resources],
        "options": {"evaluations_semantic": "execute_all"},
    }
    await _ask(driver, caller, "evaluations", iter([asked]))


async def subjects(driver: Driver, caller: Caller) -> None:
    """`POST /access/v1/search/subject`: who may read everybody's sessions."""
    bodies: Iterator[Body] = (
        {"subject": {"type": "user"}, "action": {"name": "history"}, "resource": _session(one), **_PAGED}
        for one in few_sessions(driver.world)
    )
    await _ask(driver, caller, "search/subject", bodies)


async def resources(driver: Driver, caller: Caller) -> None:
    """`POST /access/v1/search/resource`: which sessions somebody may read."""
    bodies: Iterator[Body] = (
        {"subject": _user(one), "action": {"name": name}, "resource": {"type": "session"}, **_PAGED}
        for one in victims(driver.world)
        for name in ("history", "list")
    )
    await _ask(driver, caller, "search/resource", bodies)


async def actions(driver: Driver, caller: Caller) -> None:
    """`POST /access/v1/search/action`: what somebody may do to a session."""
    first = next(victims(driver.world))
    bodies: Iterator[Body] = (
        {"subject": _user(first), "resource": _session(one), **_PAGED} for one in few_sessions(driver.world)
    )
    await _ask(driver, caller, "search/action", bodies)


_PAGED: Body = {"context": {}, "page": {"limit": 200}}


def _questions(driver: Driver) -> Iterator[Body]:
    first, *others = victims(driver.world)
    for session in few_sessions(driver.world):
        inside = {"context": {"session": session.id, "kind": "group"}}
        yield {"subject": _user(first), "action": {"name": "history"}, "resource": _session(session), "context": {}}
        yield {"subject": _user(first), "action": {"name": "search"}, "resource": _session(session), **inside}
    for other in others:
        file = {"type": "memory", "id": f"{other.home}/users/{other.id}/USER.md"}
        yield {"subject": _user(first), "action": {"name": "get"}, "resource": file}
    yield {"subject": _user(first), "action": {"name": "run"}, "resource": {"type": "tool", "id": "memory_get"}}


def _user(person: Person) -> Body:
    return {"type": "user", "id": person.id}


def _session(session: PlantedSession) -> Body:
    return {"type": "session", "id": session.id if session.private else session.key}


async def _ask(driver: Driver, caller: Caller, where: str, bodies: Iterator[Body]) -> None:
    row, path = f"POST /access/v1/{where}", f"/access/v1/{where}"
    allowed = driver.expectation.function(caller, Action.DECIDE, Resource.GATEWAY)
    for body in bodies if allowed else islice(bodies, 2):  # others are refused before anything is looked at
        probe = Probe(caller=caller, row=row, method="POST", target=path, body=body, by_function=_NAMED)
        await driver.send(probe)
