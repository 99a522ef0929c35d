"""Turns the demo document into a planted state folder, and that into a fresh gateway over it for each test."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

from gateway.backends.local.clock import SystemClock
from gateway.keys import new_id
from gateway.leak_test.callers import callers_of
from gateway.leak_test.cast import OTHERS, OURS, agents_of, cast_of
from gateway.leak_test.planting import plant
from gateway.leak_test.report import Report
from gateway.leak_test.run import Part, examine
from gateway.leak_test.scratch import furnish, opened
from gateway.leak_test.world import World
from gateway.policy.documents import parse
from gateway.policy.shipped import shipped

CLOCK = SystemClock()
SECRET = "a secret of LINE's, for tests"
DEMO = shipped("demo/visibility.csv")


@dataclass(frozen=True)
class Planted:
    """A state folder in which everything is planted, and what is in it."""

    folder: Path
    world: World
    _untouched: dict[tuple[object, ...], Report] = field(default_factory=dict)

    async def untouched(self, *, callers: tuple[str, ...], rows: str | tuple[str, ...], document: str) -> Report:
        """What it shows as it is; the same for every hole that is looked for in the same part."""
        key = (callers, rows, document)
        if key not in self._untouched:
            self._untouched[key] = await self.examine(callers=callers, rows=rows, document=document)
        return self._untouched[key]

    async def examine(
        self, *, callers: Collection[str], rows: str | Collection[str], document: str = DEMO, last: bool = False
    ) -> Report:
        """What a fresh gateway shows under a document, to some callers by some rows of the table."""
        wanted = {rows} if isinstance(rows, str) else set(rows)
        part = Part(caller=lambda label: label in callers, row=lambda row: row in wanted, last=last)
        self.world.documents = {OURS: document, OTHERS: document}
        async with opened(self.folder, self.world, CLOCK, SECRET) as made:
            return await examine(made, CLOCK, CLOCK.monotonic(), part)


async def planted(folder: Path) -> Planted:
    """Everybody of the demo document, with all that is theirs."""
    parsed, now = parse(DEMO), CLOCK.now()
    world = World(now=now, documents={OURS: DEMO, OTHERS: DEMO}, agents=agents_of(parsed))
    world.people = cast_of(parsed, 10)
    for person in world.people:
        person.id = person.id or new_id("prf", now)
    async with opened(folder, world, CLOCK, SECRET) as made:
        await furnish(made)
        await plant(made)
        world.callers = await callers_of(made)
    return Planted(folder, world)
