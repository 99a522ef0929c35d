"""Who can do this, and what can this person do.

Whoever may read the policy learns which sessions there are, and no word of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlencode

from gateway.leak_test.driver import Driver, Probe
from gateway.leak_test.driving.targets import few_sessions, victims
from gateway.leak_test.markers import Sort
from gateway.leak_test.world import Caller
from gateway.model import Action, Resource

_NAMED = {Sort.SESSION: (Action.READ, Resource.ADMIN_POLICY)}


async def who_can(driver: Driver, caller: Caller) -> None:
    """`GET /v1/admin/policy/who-can`: of everybody's session, of a file of theirs, of the team's."""
    await _ask(driver, caller, "who-can", _about_what(driver))


async def what_can(driver: Driver, caller: Caller) -> None:
    """`GET /v1/admin/policy/what-can` of everybody, in pages."""
    questions = (
        {"person": one.id, "action": action, "limit": "200"}
        for one in victims(driver.world)
        for action in ("history", "list")
    )
    await _ask(driver, caller, "what-can", questions)
    person = driver.world.people[0]
    narrowed = ({"person": person.id, "agent": "flight"}, {"person": person.id, "cursor": "nonsense"})
    await _ask(driver, caller, "what-can", iter(narrowed))


def _about_what(driver: Driver) -> Iterator[dict[str, str]]:
    for session in few_sessions(driver.world):
        yield {"session": session.key, "action": "history", "limit": "200"}
    first = few_sessions(driver.world)[0]
    yield {"session": first.key, "action": "search", "inside": first.key}
    yield {"session": first.key, "action": "search", "cursor": "nonsense"}
    for victim in victims(driver.world):
        yield {"resource": "memory/personal/instructions", "person": victim.id, "agent": victim.home, "action": "get"}
    yield {"resource": "memory/longterm", "agent": "flight", "action": "get", "chat": "group"}


async def _ask(driver: Driver, caller: Caller, which: str, questions: Iterator[dict[str, str]]) -> None:
    row, path = f"GET /v1/admin/policy/{which}", f"/v1/admin/policy/{which}"
    allowed = driver.expectation.function(caller, Action.READ, Resource.ADMIN_POLICY)
    for number, question in enumerate(questions):
        if allowed or number < 2:  # a function that the role lacks is refused before anything is looked at
            target = f"{path}?{urlencode(question)}"
            await driver.send(Probe(caller=caller, row=row, method="GET", target=target, by_function=_NAMED))
