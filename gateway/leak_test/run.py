"""Turns a policy document into a report: plant, put it in force, ask for everything as everybody."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gateway.leak_test.callers import callers_of
from gateway.leak_test.cast import FEWEST
from gateway.leak_test.driver import OUTSIDE, Driver
from gateway.leak_test.driving import outside, table
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


async def leak_test(document: str, clock: Clock, *, people: int = FEWEST, part: Part | None = None) -> Report:
    """What came of it. Raises Invalid for a document that has faults, CouldNotPlant, and Unanswered."""
    begun = clock.monotonic()
    async with scratch(document, people, clock) as made:
        await plant(made)
        made.world.callers = await callers_of(made)
        await put_in_force(made)
        made.log.truncate(0)
        driver = _driver(made, part)
        for step in (_drive, _last):
            await step(made, driver, part)
        _log(made, driver)
        findings = driver.findings
        if part is None:
            findings.not_driven = [
                *table.not_driven(made.app, made.gateway.catalogue),
                *table.arguments_not_driven(made.app, made.gateway.catalogue, driver.words),
            ]
        return Report.of(made.world, findings, driver.expectation, clock.monotonic() - begun)


def _driver(made: Scratch, part: Part | None) -> Driver:
    world = made.world
    expectation = Expectation(world.documents, world.now, world.agents)
    return Driver(made.app, world, expectation, Findings(), *([] if part is None else [part.row]))


async def _drive(made: Scratch, driver: Driver, part: Part | None) -> None:
    await _everybody(made, part, lambda caller: _everything(made, driver, caller))


async def _last(made: Scratch, driver: Driver, part: Part | None) -> None:
    async def ask(caller: Caller) -> None:
        for one in table.LAST:
            await one(driver, caller)

    await _everybody(made, part, ask)


async def _everything(made: Scratch, driver: Driver, caller: Caller) -> None:
    if caller.label != "guest":  # who has no credential of their own
        for row, ask in table.ROUTES.items():
            if row == table.TOOL_ROUTE or driver.wanted(row):
                await ask(driver, caller)
        for row in table.public_rows(made.app):
            await outside.public(driver, caller, row)
        await outside.webhook(driver, caller, made.line_secret)
    for besides in table.BESIDES:
        await besides(driver, caller)


async def _everybody(made: Scratch, part: Part | None, ask: Callable[[Caller], object]) -> None:
    """All at once, but each person's credentials one after another: a person has one search at a time."""
    by_person: dict[object, list[Caller]] = {}
    for caller in made.world.callers:
        if part is None or part.caller(caller.label):
            by_person.setdefault(caller.person or caller.label, []).append(caller)

    async def in_turn(callers: Sequence[Caller]) -> None:
        for caller in callers:
            await ask(caller)  # type: ignore[misc]  # a coroutine

    async with asyncio.TaskGroup() as group:
        for callers in by_person.values():
            group.create_task(in_turn(callers))


def _log(made: Scratch, driver: Driver) -> None:
    """The log holds nobody's words (docs/settings.md)."""
    for hit in made.world.marks.find(made.log.getvalue()):
        if hit.mark.sort in _CONTENT:
            driver.findings.leak(_LOG, hit.mark, "the log", OUTSIDE, f"written ({hit.form})")


