"""Shows that the comparison finds faults: each is planted in a copy of the oracle that plays the implementation."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from random import Random

import pytest

from tests.oracle import decide as deciding
from tests.oracle import facts, reading, rows
from tests.oracle.world import OnSession, Request, Session, World
from tests.oracle.worlds import NOW, make_world
from tests.properties.comparison import differences
from tests.properties.implementation import Given, Turn

ENOUGH = 1_000  # worlds, within which every planted fault shows


class Playing:
    """The oracle in the role of an implementation, with a fault that holds while it answers and never else."""

    def __init__(self, plant: Callable[[pytest.MonkeyPatch], None]) -> None:
        self._plant = plant
        self._world: World | None = None

    def _there(self) -> World:
        assert self._world is not None
        return self._world

    def _may_enter(self, tenant: str, person: str, origin: str | None) -> bool:
        if origin is None:
            return True
        request = Request(tenant=tenant, who=person, action="enter", target=OnSession(origin), origin=origin)
        return deciding.decide(self._there(), request).allowed

    async def put(self, world: World) -> None:
        self._world = world

    async def decide(self, request: Request) -> bool | None:
        with pytest.MonkeyPatch.context() as patch:
            self._plant(patch)
            return deciding.decide(self._there(), request).allowed

    async def visible(self, tenant: str, person: str, origin: str | None) -> set[str] | None:
        with pytest.MonkeyPatch.context() as patch:
            self._plant(patch)
            if not self._may_enter(tenant, person, origin):
                return None
            return deciding.visible(self._there(), tenant, person, origin, "list")

    async def messages(self, tenant: str, person: str, origin: str | None, session: str) -> list[str] | None:
        with pytest.MonkeyPatch.context() as patch:
            self._plant(patch)
            if not self._may_enter(tenant, person, origin):
                return None
            found = reading.readable_messages(self._there(), tenant, person, origin, session)
            return None if found is None else [message.text for message in found]

    async def context(self, tenant: str, person: str, session: str) -> Turn | None:
        with pytest.MonkeyPatch.context() as patch:
            self._plant(patch)
            entries = reading.context(self._there(), tenant, person, session, NOW.date())
            if entries is None:
                return None
            manifest = (
                Given(entry.path, entry.kind, entry.included, min(entry.reasons, default=None)) for entry in entries
            )
            return Turn(tuple(manifest), "\n".join(entry.text for entry in entries if entry.text is not None))

    async def memory_get(self, tenant: str, person: str, session: str, path: str) -> str | None:
        with pytest.MonkeyPatch.context() as patch:
            self._plant(patch)
            return reading.memory_get(self._there(), tenant, person, session, path)


def ignores_denies(patch: pytest.MonkeyPatch) -> None:
    whole = rows.read_rows

    def without(text: str) -> tuple[list[rows.Row], list[tuple[str, str]]]:
        found, links = whole(text)
        return [row for row in found if row.effect == "allow"], links

    patch.setattr(rows, "read_rows", without)


def ignores_until(patch: pytest.MonkeyPatch) -> None:
    whole = rows.row_matches
    early = datetime(2020, 1, 1, tzinfo=UTC)
    patch.setattr(rows, "row_matches", lambda row, subjects, question, _: whole(row, subjects, question, early))


def ignores_g(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(rows, "closed", lambda subjects, _: set(subjects))


def lets_star_impersonate(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(rows, "ONLY_BY_NAME", set())


def takes_one_hop_for_the_tree(patch: pytest.MonkeyPatch) -> None:
    whole = facts.relation_of

    def one_hop(world: World, origin: Session | None, target: Session, who: str) -> str:
        relation = whole(world, origin, target, who)
        below = origin is not None and relation in ("child", "child_cross")
        return "same_agent" if below and target.parent != (origin and origin.id) else relation

    patch.setattr(deciding, "relation_of", one_hop)


def asks_the_targets_agent_for_child_cross(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(deciding, "root_of", lambda _, session: session)


def forgets_who_left(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(facts, "participants_of", lambda world, session: list(facts.root_of(world, session).participants))


def forgets_when_they_joined(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(reading, "takes_part", lambda *_: [])


def forgets_resets(patch: pytest.MonkeyPatch) -> None:
    whole = reading.readable_messages

    def all_incarnations(world: World, *arguments: str) -> object:
        found = whole(world, *arguments)
        if found is None:
            return None
        return [message for message in world.messages if message.session == arguments[3]]

    patch.setattr(reading, "readable_messages", all_incarnations)


def forgets_merges(patch: pytest.MonkeyPatch) -> None:
    for module in (facts, reading):
        patch.setattr(module, "head", lambda _world, _tenant, who: who)


def lets_the_retired_in(patch: pytest.MonkeyPatch) -> None:
    whole = deciding.before_facts
    patch.setattr(
        deciding,
        "before_facts",
        lambda world, request: None if (why := whole(world, request)) == "retired profile" else why,
    )


def lifts(rule: str) -> Callable[[pytest.MonkeyPatch], None]:
    """A fault that leaves out one invariant."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        whole = deciding.invariant
        patch.setattr(deciding, "invariant", lambda *question: None if (why := whole(*question)) == rule else why)

    return plant


def opens_the_sandbox(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(deciding, "outside_sandbox", lambda *_: False)


def takes_every_direct_for_private(patch: pytest.MonkeyPatch) -> None:
    for module in (facts, deciding, reading):
        patch.setattr(module, "is_private", lambda _, session: session.kind == "direct")


def takes_children_of_groups_for_private(patch: pytest.MonkeyPatch) -> None:
    whole = facts.is_private
    for module in (facts, deciding, reading):
        patch.setattr(module, "is_private", lambda world, session: session.kind == "subagent" or whole(world, session))


def loads_everything_for_subagents(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(reading, "kind_bars", lambda *_: set())


def loads_personal_files_for_one_person(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(reading, "people_count", lambda *_: 2)


def loads_the_requesters_own_for_everybody(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(reading, "person_of_path", lambda _: None)


def takes_the_creator_for_the_owner(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(reading, "personal_owner_of", lambda world, session: facts.root_of(world, session).creator)


def lets_people_in_everywhere(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(reading, "decide_inside", deciding.decide)


FAULTS = [
    ignores_denies,
    ignores_until,
    ignores_g,
    lets_star_impersonate,
    takes_one_hop_for_the_tree,
    asks_the_targets_agent_for_child_cross,
    forgets_who_left,
    forgets_when_they_joined,
    forgets_resets,
    forgets_merges,
    lets_the_retired_in,
    lifts("root MEMORY.md from a shared session"),
    lifts("another person's personal files"),
    lifts("an incognito session to anybody but itself"),
    lifts("a write to a MEMORY.md that is not Deep's"),
    lifts("a tainted turn"),
    opens_the_sandbox,
    takes_every_direct_for_private,
    takes_children_of_groups_for_private,
    loads_everything_for_subagents,
    loads_personal_files_for_one_person,
    loads_the_requesters_own_for_everybody,
    takes_the_creator_for_the_owner,
    lets_people_in_everywhere,
]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__qualname__)
async def test_a_planted_fault_is_found(fault: Callable[[pytest.MonkeyPatch], None]) -> None:
    """A comparison that finds nothing proves something only if it finds what is there."""
    for number in range(ENOUGH):
        rng = Random(f"planted:{number}")
        if await differences(make_world(rng), rng, Playing(fault)):
            return
    pytest.fail(f"not found within {ENOUGH} worlds")


async def test_without_a_fault_nothing_is_found() -> None:
    """The other half: the comparison itself makes no differences."""
    for number in range(100):
        rng = Random(f"planted:{number}")
        assert await differences(make_world(rng), rng, Playing(lambda _: None)) == []
