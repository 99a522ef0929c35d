"""Turns a policy document into a report: plant, put it in force, ask for everything as everybody."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from gateway.leak_test.callers import callers_of
from gateway.leak_test.cast import FEWEST
from gateway.leak_test.driver import OUTSIDE, Driver
from gateway.leak_test.driving import outside, table
from gateway.leak_test.driving.toolbox import TOOL_ROUTE
from gateway.leak_test.expectation import Expectation
from gateway.leak_test.findings import Findings
from gateway.leak_test.markers import Sort
from gateway.leak_test.planting import plant
from gateway.leak_test.report import Report
from gateway.leak_test.scratch import Scratch, put_in_force, scratch
from gateway.leak_test.world import Caller
from gateway.ports import Clock

_LOG = Caller(label="whoever reads the log", person=None)
_CONTENT = (Sort.TITLE, Sort.MESSAGE, Sort.FILE, Sort.EMAIL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part of the whole, for a test that is about one filter: some callers and some rows of the table."""

    caller: Callable[[str], bool] = lambda _label: True
    row: Callable[[str], bool] = lambda _row: True
    last: bool = False  # whether what was planted may be changed at the end


async def leak_test(document: str, clock: Clock, *, people: int = FEWEST, part: Part | None = None) -> Report:
    """What came of it. Raises Invalid for a document that has faults, CouldNotPlant, and Unanswered."""
    begun = clock.monotonic()
    async with scratch(document, people, clock) as made:
        await plant(made)
        made.world.callers = await callers_of(made)
        made.log.truncate(0)
        return await examine(made, clock, begun, part)


async def examine(made: Scratch, clock: Clock, begun: float, part: Part | None = None) -> Report:
    """Puts the world's documents in force where all is planted, and asks. Raises Unanswered."""
    await put_in_force(made)
    driver = _driver(made, part)
    await _everybody(made, part, lambda caller: _everything(made, driver, caller))
    if part is None or part.last:
        await _everybody(made, part, lambda caller: _last(driver, caller))
    _log(made, driver)
    if part is None:
        driver.findings.not_driven = [
            *table.not_driven(made.app, made.gateway.catalogue),
            *table.arguments_not_driven(made.app, made.gateway.catalogue, driver.words),
        ]
    return Report.of(made.world, driver.findings, driver.expectation, clock.monotonic() - begun)


def _driver(made: Scratch, part: Part | None) -> Driver:
    world = made.world
    expectation = Expectation(world.documents, world.now, world.agents)
    return Driver(made.app, world, expectation, Findings(), *([] if part is None else [part.row]))


async def _last(driver: Driver, caller: Caller) -> None:
    for ask in table.LAST:
        await ask(driver, caller)


async def _everything(made: Scratch, driver: Driver, caller: Caller) -> None:
    if caller.label != "guest":  # who has no credential of their own
        for row, ask in table.ROUTES.items():
            if row == TOOL_ROUTE or driver.wanted(row):
                await ask(driver, caller)
        for row in table.public_rows(made.app):
            await outside.public(driver, caller, row)
        await outside.webhook(driver, caller, made.line_secret)
    for besides in table.BESIDES:
        await besides(driver, caller)


async def _everybody(made: Scratch, part: Part | None, ask: Callable[[Caller], Awaitable[None]]) -> None:
    """All at once, but each person's credentials one after another: a person has one search at a time."""
    by_person: dict[object, list[Caller]] = {}
    for caller in made.world.callers:
        if part is None or part.caller(caller.label):
            by_person.setdefault(caller.person or caller.label, []).append(caller)

    async def in_turn(callers: Sequence[Caller]) -> None:
        for caller in callers:
            await ask(caller)

    tasks = [asyncio.create_task(in_turn(callers)) for callers in by_person.values()]
    try:
        await asyncio.gather(*tasks)  # the first failure as it is, and not one of a group
    finally:
        for task in tasks:
            task.cancel()


def _log(made: Scratch, driver: Driver) -> None:
    """The log holds nobody's words (docs/settings.md)."""
    for hit in made.world.marks.find(made.log.getvalue()):
        if hit.mark.sort in _CONTENT:
            driver.findings.leak(_LOG, hit.mark, "the log", OUTSIDE, f"written ({hit.form})")
