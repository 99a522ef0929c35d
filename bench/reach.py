"""Turns a tenant of a thousand and of a million people into how long "who can?" and "what can?" take (design 7).

`python -m bench.reach` fills two stores with people in many classes and as many sessions, publishes a policy, and asks
for the first page: where everybody may, where only supervisors may, where ten of a million may, where all but ten may,
and what a member and a supervisor reach. `--folder` keeps the stores.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import uvloop
from sqlalchemy import Connection

from bench.population import AGENTS, ALICE, DANA, TENANT, populate
from bench.report import show
from gateway.backends.sql.classes import key_of
from gateway.backends.sql.database import Database
from gateway.backends.sql.identities import SqlIdentities
from gateway.backends.sql.sessions import SqlSessions
from gateway.model import (
    ANY_AGENT,
    OUTSIDE,
    Action,
    Principal,
    Profile,
    ProfileId,
    Requester,
    Resource,
    RoleAssignment,
)
from gateway.operations.what_can import WhatCan
from gateway.operations.who_can import Wanted, WhoCan
from gateway.policy.documents import parse
from gateway.policy.in_force import RightsInForce
from gateway.policy.shipped import shipped
from gateway.policy.snapshot import Snapshot
from gateway.policy.states import TenantState
from gateway.policy.targets import MemoryTarget, SessionTarget
from gateway.stages.authorize import AuthorizeStage
from gateway.stages.record_audit import Trail
from gateway.turn import Turn

NOW = datetime(2026, 12, 1, tzinfo=UTC)
ROWS = """
p, role:few, agent0, memory/dreams, agent, shared, private, promote, allow
p, role:member, agent0, memory/dreams, agent, shared, private, vouch, allow
p, role:many, agent0, memory/dreams, agent, shared, private, vouch, deny
"""
MEMBER = RoleAssignment(role="member", agent=ANY_AGENT)


def _hold(connection: Connection) -> None:
    """Gives everybody roles: 40 kinds of members; dana and every thousandth are supervisors; ten hold `few`, and all
    but those ten hold `many`."""
    people = [row[0] for row in connection.exec_driver_sql("SELECT id FROM profiles ORDER BY id")]
    few = set(people[:: max(1, len(people) // 10)][:10])
    rows: list[tuple[str, ...]] = []
    roles: list[tuple[object, ...]] = []
    for number, person in enumerate(people):
        held = [MEMBER, RoleAssignment(role="few" if person in few else "many", agent=ANY_AGENT)]
        if person == DANA or number % 1_000 == 5:
            held.append(RoleAssignment(role="supervisor", agent=ANY_AGENT))
        held.append(RoleAssignment(role=f"team{number % 40}", agent=ANY_AGENT))
        rows.append((TENANT, key_of("person", held), person))
        roles.extend((TENANT, person, one.role, one.agent, place) for place, one in enumerate(held))
    connection.exec_driver_sql("DELETE FROM people_classes")
    connection.exec_driver_sql("INSERT INTO people_classes (tenant, role_set, profile) VALUES (?, ?, ?)", rows)
    connection.exec_driver_sql(
        "INSERT INTO roles (tenant, profile, role, agent, position) VALUES (?, ?, ?, ?, ?)", roles
    )


@dataclass(frozen=True, slots=True)
class Place:
    """One store and the questions that are put to it."""

    questions: dict[str, Callable[[], Awaitable[Any]]]


async def open_place(stack: AsyncExitStack, file: Path, count: int) -> Place:
    """Fills a store where there is none yet; as many people as sessions."""
    kept = await asyncio.to_thread(file.exists)
    database = await stack.enter_async_context(Database(file))
    if not kept:
        await populate(database, count, people=count)
        await database.write(_hold)
    return Place(await questions(database))


async def questions(database: Database) -> dict[str, Callable[[], Awaitable[Any]]]:
    """Each first page, by name."""
    identities, sessions = SqlIdentities(database), SqlSessions(database)
    snapshot = Snapshot(parse(shipped("default.csv") + ROWS), 1, NOW)
    state = TenantState(tenant=TENANT, epoch=1, snapshot=snapshot, agents=dict.fromkeys(AGENTS), people=2)  # type: ignore[arg-type] # names only
    asking = Profile(id=ProfileId("prf_admin"), tenant=TENANT, name="erin", kind="person")
    principal = Principal(tenant=TENANT, issuer="", subject="", credential="", scopes=frozenset({"*"}))
    stage = AuthorizeStage(lambda _verdict: None)

    async def never() -> Turn:
        raise NotImplementedError  # a benchmark is never verified again

    turn = Turn(
        request="req",
        at=NOW,
        surface="bench",
        operation="bench",
        requester=Requester(tenant=TENANT, profile=asking, principal=principal, epoch=1),
        state=state,
        origin=OUTSIDE,
        trail=Trail("req", "bench", "bench"),
        authorize=stage,
        renew=never,
    )
    who, what = WhoCan(identities), WhatCan(sessions, RightsInForce())
    alice, dana = await identities.profile(TENANT, ALICE), await identities.profile(TENANT, DANA)
    assert alice is not None
    assert dana is not None
    page = await what.sessions(turn, alice, Action.HISTORY, None, limit=1, cursor=None)
    facts = await sessions.find(TENANT, page.items[0].session.id)
    assert facts is not None
    dreams = MemoryTarget(TENANT, AGENTS[0], Resource.MEMORY_DREAMS, None, "dreams")

    def asked(action: Action, target: MemoryTarget | SessionTarget) -> Callable[[], Awaitable[Any]]:
        wanted = Wanted(action=action, target=target, origin=OUTSIDE)
        return lambda: who.page(turn, wanted, limit=50, after=None)

    def reached(profile: Profile) -> Callable[[], Awaitable[Any]]:
        async def both() -> None:
            await what.abilities(turn, profile, None)
            await what.sessions(turn, profile, Action.HISTORY, None, limit=50, cursor=None)

        return both

    return {
        "who.everybody": asked(Action.GET, dreams),
        "who.supervisors": asked(Action.HISTORY, SessionTarget(facts)),
        "who.ten": asked(Action.PROMOTE, dreams),
        "who.all_but_ten_denied": asked(Action.VOUCH, dreams),
        "what.member": reached(alice),
        "what.supervisor": reached(dana),
    }


async def measure(folder: Path, small: int, large: int, repeats: int) -> dict[str, float]:
    """Median and worst milliseconds of each question in both, taking turns, and the ratio of the medians."""
    async with AsyncExitStack() as stack:
        places = {size: await open_place(stack, folder / f"reach{size}.db", size) for size in (small, large)}
        times: dict[tuple[str, int], list[float]] = {}
        for name in places[small].questions:
            for turn in range(repeats + 2):
                for size, place in places.items():
                    began = time.perf_counter()
                    await place.questions[name]()
                    if turn >= 2:
                        times.setdefault((name, size), []).append((time.perf_counter() - began) * 1000)
    figures: dict[str, float] = {}
    for name in dict.fromkeys(name for name, _ in times):
        figures[f"{name}.{large}.p50_ms"] = statistics.median(times[name, large])
        figures[f"{name}.{large}.worst_ms"] = max(times[name, large])
        figures[f"{name}.ratio"] = statistics.median(times[name, large]) / statistics.median(times[name, small])
    return figures


def main() -> None:
    """Reads the options, measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", type=int, default=1_000)
    parser.add_argument("--large", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        figures = uvloop.run(measure(folder, options.small, options.large, options.repeats))
    show("reach", figures, as_json=options.json)


if __name__ == "__main__":
    main()
