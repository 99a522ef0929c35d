"""Turns the publishing of a long policy into what it does to everybody who is asked for meanwhile (design section 7).

`python -m bench.swap` decides 1,000 times a second by the state of a tenant while documents of 100,000 rows are
published one after the other in a real store. Each answer has to be that of the version before or after, and the event
loop is watched: how late does a task run that only wants to run each millisecond?
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

import uvloop

from bench.report import show
from gateway.backends.sql.agents import SqlAgents
from gateway.backends.sql.database import Database
from gateway.backends.sql.identities import SqlIdentities
from gateway.backends.sql.policies import SqlPolicies
from gateway.backends.sql.tenants import SqlTenants
from gateway.model import Action, AgentName, Chat, Question, Relation, Resource, TenantId, Whose
from gateway.policy.states import TenantStates

TENANT = TenantId("bench")
ASKED = Question(
    AgentName("flight"), Resource.SESSION_PRIVATE, Relation.SAME_AGENT, Whose.OTHER, Chat.PRIVATE, Action.HISTORY
)
SUBJECTS = frozenset({"*", "role:member"})
EVERY_S = 0.001


class RunningClock:
    """The time of this machine."""

    def now(self) -> datetime:
        """Now, in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Seconds that only rise."""
        return time.monotonic()


def document(rows: int, version: int) -> str:
    """So many rows of other people, and one that says whether it is an odd version."""
    lines = [
        f"p, user:prf_{number:026d}, flight, session/private, agent, any, private, read, allow"
        for number in range(rows)
    ]
    effect = "allow" if version % 2 else "deny"
    lines.append(f"p, role:member, flight, session/private, agent, any, private, history, {effect}")
    return "\n".join(lines)


class Swapping:
    """One tenant whose policy is published again and again while it decides."""

    def __init__(self, database: Database) -> None:
        clock = RunningClock()
        self.epoch = 0
        self.policies = SqlPolicies(database)
        database.when_epoch_rises(self._risen)
        self.states = TenantStates(
            policies=self.policies,
            agents=SqlAgents(database),
            identities=SqlIdentities(database),
            epoch_of=lambda _tenant: self.epoch,
            clock=clock,
        )
        self.late: list[float] = []
        self.waited: list[float] = []
        self.decided = self.wrong = 0
        self.done = False

    def _risen(self, tenant: TenantId, epoch: int) -> None:
        self.epoch = epoch

    async def publish(self, rows: int, version: int) -> None:
        """One more version on top of the last."""
        text = await asyncio.to_thread(document, rows, version)
        await self.policies.publish(
            TENANT, text, base_version=version - 1, comment="", author="bench", now=datetime.now(UTC)
        )

    async def decide(self) -> None:
        """One decision by the current state; it has to be what its version says."""
        began = time.perf_counter()
        state = await self.states.current(TENANT)
        verdict = state.snapshot.decide(SUBJECTS, ASKED, datetime.now(UTC))
        self.waited.append(time.perf_counter() - began)
        self.decided += 1
        self.wrong += verdict.allowed != bool(state.snapshot.version % 2)

    async def deciding(self) -> None:
        """Begins one each millisecond, whether or not the last is done."""
        running: set[asyncio.Task[None]] = set()
        due = time.perf_counter()
        while not self.done:
            due += EVERY_S
            task = asyncio.create_task(self.decide())
            running.add(task)
            task.add_done_callback(running.discard)
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
        await asyncio.gather(*running)

    async def ticking(self) -> None:
        """How late each millisecond comes."""
        while not self.done:
            began = time.perf_counter()
            await asyncio.sleep(EVERY_S)
            self.late.append(time.perf_counter() - began - EVERY_S)


async def measure(folder: Path, rows: int, swaps: int, pause_s: float) -> dict[str, float]:
    """The figures: milliseconds, and counts."""
    async with Database(folder / "swap.db") as database:
        await SqlTenants(database).add(TENANT, demo=False, now=datetime.now(UTC))
        one = Swapping(database)
        await one.publish(rows, 1)
        await one.decide()
        idle = await _idle()
        one.waited.clear()
        one.decided = 0
        tasks = [asyncio.create_task(one.deciding()), asyncio.create_task(one.ticking())]
        for version in range(2, 2 + swaps):
            await one.publish(rows, version)
            await one.states.current(TENANT)  # waits until it is in force
            await asyncio.sleep(pause_s)
        one.done = True
        await asyncio.gather(*tasks)
    late = sorted(one.late)
    return {
        "swaps": swaps,
        "decisions": one.decided,
        "neither_old_nor_new": one.wrong,
        "idle_late_p99_ms": round(idle * 1000, 2),
        "late_p50_ms": round(statistics.median(late) * 1000, 2),
        "late_p99_ms": round(late[int(len(late) * 0.99)] * 1000, 2),
        "late_worst_ms": round(late[-1] * 1000, 2),
        "longest_wait_for_a_decision_ms": round(max(one.waited) * 1000, 1),
    }


async def _idle() -> float:
    """The same lateness while nothing else runs: what this machine does by itself."""
    late = []
    for _ in range(1_000):
        began = time.perf_counter()
        await asyncio.sleep(EVERY_S)
        late.append(time.perf_counter() - began - EVERY_S)
    return sorted(late)[990]


def main() -> None:
    """Reads the options, measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--swaps", type=int, default=5)
    parser.add_argument("--pause", type=float, default=1.0)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        figures = uvloop.run(measure(Path(folder), options.rows, options.swaps, options.pause))
    show("swap", figures, as_json=options.json)


if __name__ == "__main__":
    main()
