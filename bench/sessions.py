"""Turns lists of sessions in a small and in a large store into a table of times, mode by mode (design section 7).

`python -m bench.sessions` fills a store with 1,000 and one with 1,000,000 sessions in a temporary folder (or reads
those that `--folder` keeps), and lists a page of 100 of each in every visibility mode, for a person with few sessions,
for one who takes part in hundreds of groups, and for a supervisor.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from bench.population import AGENTS, ALICE, BOB, DANA, TENANT, Populated, populate, reopened
from gateway.backends.sql.database import Database
from gateway.backends.sql.sessions import SqlSessions
from gateway.model import OUTSIDE, Chat, Origin, ProfileId, Relation, Resource, Scope, Session, Whose
from gateway.ports import SessionFilter

PAGE = 100
WARM_UP = 3
MODES = {
    "self": (Relation.SELF,),
    "tree": (Relation.SELF, Relation.CHILD, Relation.CHILD_CROSS),
    "agent": (Relation.SELF, Relation.CHILD, Relation.SAME_AGENT),
    "all": tuple(Relation),
}
WHOSE = {"own": (Whose.OWN,), "shared": (Whose.OWN, Whose.SHARED), "any": tuple(Whose)}
ALL = SessionFilter()


@dataclass(frozen=True, slots=True)
class Case:
    """One list, by name."""

    name: str
    scope: Scope


def cases(populated: Populated) -> Iterator[Case]:
    """Every mode and whose, for alice inside her session, bob inside a group, and dana outside any."""
    places: list[tuple[str, ProfileId, Session | None]] = [
        ("member", ALICE, populated.alice),
        ("groups", BOB, populated.group_of_bob),
        ("supervisor", DANA, None),
    ]
    for person, profile, session in places:
        for mode, relations in MODES.items():
            for reach, whose in WHOSE.items():
                yield Case(f"{person}.{mode}.{reach}", _scope(profile, session, relations, whose))
    yield Case("groups.outside.shared", _scope(BOB, None, MODES["all"], WHOSE["shared"]))
    yield Case("member.outside.shared", _scope(ALICE, None, MODES["all"], WHOSE["shared"]))


def _scope(
    profile: ProfileId, session: Session | None, relations: tuple[Relation, ...], whose: tuple[Whose, ...]
) -> Scope:
    resources = (Resource.SESSION_PRIVATE, Resource.SESSION_SHARED)
    cells = frozenset(
        (agent, res, rel, one) for agent in AGENTS for res in resources for rel in relations for one in whose
    )
    origin = OUTSIDE if session is None else Origin(session=session, chat=Chat.PRIVATE, kind=session.kind)
    return Scope(profile, origin, cells)


@dataclass(frozen=True, slots=True)
class Place:
    """One store that is measured."""

    store: SqlSessions
    scopes: dict[str, Scope]


async def open_place(stack: AsyncExitStack, file: Path, count: int, *, kept: bool) -> Place:
    """Opens the store in `file`, and makes its population where none is kept."""
    database = await stack.enter_async_context(Database(file))
    populated = await (reopened(database, count) if kept else populate(database, count))
    return Place(SqlSessions(database), {case.name: case.scope for case in cases(populated)})


async def measure(places: list[Place], repeats: int) -> list[dict[str, float]]:
    """The median time of each case in milliseconds, for each place.

    The places take turns, so that whatever else the machine does meanwhile weighs on all of them alike.
    """
    times: list[dict[str, list[float]]] = [{name: [] for name in place.scopes} for place in places]
    for name in places[0].scopes:
        for _ in range(repeats + WARM_UP):
            for place, taken in zip(places, times, strict=True):
                started = time.perf_counter()
                await place.store.list(TENANT, place.scopes[name], ALL, limit=PAGE, cursor=None)
                taken[name].append(time.perf_counter() - started)
    return [{name: statistics.median(one[WARM_UP:]) * 1000 for name, one in taken.items()} for taken in times]


def _report(sizes: list[int], measured: list[dict[str, float]], *, as_json: bool) -> str:
    small, large = measured
    ratios = {name: large[name] / small[name] for name in small}
    figures = {
        f"{name}.{size}.ms": round(times[name], 3)
        for size, times in zip(sizes, measured, strict=True)
        for name in times
    }
    figures |= {f"{name}.ratio": round(ratio, 2) for name, ratio in ratios.items()}
    figures["worst.ratio"] = round(max(ratios.values()), 2)
    if as_json:
        return json.dumps({"bench": "sessions", "machine": _machine(), "figures": figures})
    lines = [f"{'list of a page of 100':30} {sizes[0]:>12,} {sizes[1]:>12,}   ratio"]
    lines += [f"{name:30} {small[name]:9.2f} ms {large[name]:9.2f} ms {ratios[name]:7.2f}" for name in small]
    return "\n".join([*lines, f"{'worst':30} {'':12} {'':12} {figures['worst.ratio']:7.2f}"])


def _machine() -> dict[str, object]:
    return {
        "cpus": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
    }


async def _run(folder: Path, sizes: list[int], repeats: int) -> list[dict[str, float]]:
    files = {size: folder / f"{size}.db" for size in sizes}
    kept = {size: await asyncio.to_thread(file.exists) for size, file in files.items()}
    async with AsyncExitStack() as stack:
        places = [await open_place(stack, files[size], size, kept=kept[size]) for size in sizes]
        return await measure(places, repeats)


def main() -> None:
    """Reads the options, measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", type=int, default=1_000)
    parser.add_argument("--large", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=50)
    parser.add_argument("--folder", type=Path, help="keep the stores here and use them again")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    sizes = [options.small, options.large]
    with tempfile.TemporaryDirectory() as temporary:
        measured = asyncio.run(_run(options.folder or Path(temporary), sizes, options.repeats))
    print(_report(sizes, measured, as_json=options.json))


if __name__ == "__main__":
    main()
