"""Turns recorded decisions and a draft into how long a preview takes, and whom it holds up (design section 7).

`python -m bench.preview` records 200,000 decisions of four hundred people through the audit's own append, then previews
drafts on top of documents of 1,000 and of 100,000 rows through the whole path, as `gateway policy preview` does,
publishes such a draft as an admin does (`publish`), and looks back on a version (`watch`). A task that only wants to
run each millisecond says how late it does meanwhile.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import statistics
import tempfile
import time
from collections.abc import Callable
from datetime import timedelta
from itertools import islice
from pathlib import Path
from typing import Any

import uvloop

from bench.premises import Premises, premises
from bench.recorded import AGENTS, PEOPLE, Recorder, somebody
from bench.report import show
from gateway.founding import DEMO
from gateway.identity.credentials import Credentials
from gateway.model import Agent, Profile
from gateway.operations.policy import PublishBody
from gateway.operations.preview import Preview, PreviewBody, Watching
from gateway.pipeline import Call
from gateway.policy.documents import parse
from gateway.policy.shipped import shipped
from gateway.policy.snapshot import Snapshot
from gateway.stages.record_audit import Trail
from gateway.tools.registry import AnyOperation

BATCH = 1_000
TICK_S = 0.001
# Each of them gives to some and takes from others.
CHANGE = (
    "p, role:member, flight, session/private, agent, any, private, history, allow",
    "p, role:supervisor, hotel, memory/longterm, all, any, *, *, deny",
)


def document(rows: int) -> str:
    """The shipped default and so many rows more: of teams, and of people of whom nobody is here."""
    words = "session/private, agent, any, private, history, allow"
    more = (
        f"p, role:team{number // 20}, agent{number % 20}, {words}"
        if number % 2
        else f"p, user:prf_{number:026d}, {AGENTS[number % len(AGENTS)]}, {words}"
        for number in range(rows)
    )
    return "\n".join((shipped("default.csv").rstrip("\n"), *more))


class Late:
    """How late each millisecond comes while something else runs."""

    def __init__(self) -> None:
        self.samples: list[float] = []
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Late:
        self._task = asyncio.create_task(self._run())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _run(self) -> None:
        while True:
            began = time.perf_counter()
            await asyncio.sleep(TICK_S)
            self.samples.append((time.perf_counter() - began - TICK_S) * 1_000)

    def figures(self, name: str) -> dict[str, float]:
        """Milliseconds."""
        late = sorted(self.samples)
        return {
            f"{name}_late_p50_ms": round(statistics.median(late), 2),
            f"{name}_late_p99_ms": round(late[int(len(late) * 0.99)], 2),
            f"{name}_late_worst_ms": round(late[-1], 2),
        }


class Bench:
    """One gateway with a past."""

    def __init__(self, made: Premises) -> None:
        self._gateway = made.gateway
        self._secret = made.secrets["erin"]
        self._people: list[Profile] = []
        self.figures: dict[str, float] = {}

    async def hire(self) -> None:
        """Puts the people and the agents in the store."""
        now = self._gateway.clock.now()
        self._people = [somebody(DEMO, number, now) for number in range(PEOPLE)]
        for one in self._people:
            await self._gateway.stores.identities.add_profile(one)
        for name in AGENTS[1:]:
            agent = Agent(tenant=DEMO, name=name, workspace=name, title=name, timezone="UTC")
            await self._gateway.stores.agents.add(agent, now)

    async def record(self, count: int, since: timedelta) -> None:
        """Their decisions by the policy in force, evenly over the time until now."""
        now = self._gateway.clock.now()
        version = (await self.ask(self._gateway.catalogue.policy.show, None)).version
        snapshot = await asyncio.to_thread(lambda: Snapshot(parse(version.text), version.version, now))
        records = Recorder(DEMO, self._people, snapshot).records(count, now - since, now)
        while batch := list(islice(records, BATCH)):
            await self._gateway.stores.audit.append(batch)

    async def publish(self, text: str) -> None:
        """On top of what is in force, past the path; it is read before anything is measured."""
        version = (await self.ask(self._gateway.catalogue.policy.show, None)).version
        await self._gateway.stores.policies.publish(
            DEMO, text, base_version=version.version, comment="", author="bench", now=self._gateway.clock.now()
        )
        await self.ask(self._gateway.catalogue.policy.show, None)

    async def preview(self, name: str, text: str) -> None:
        """Previews `text` and what it changes."""
        body = PreviewBody(text=text, days=7)
        await self._measured(name, lambda: self.ask(self._gateway.catalogue.preview.preview, body))

    async def watch(self, name: str) -> None:
        """Looks back on the version in force."""
        await self._measured(name, lambda: self.ask(self._gateway.catalogue.preview.watch, Watching(None)))

    async def publish_through(self, name: str, text: str) -> None:
        """Publishes `text` as an admin does, with all that is compared first, and asks for what is in force then."""
        version = (await self.ask(self._gateway.catalogue.policy.show, None)).version
        body = PublishBody(text=text, base_version=version.version, comment="bench")
        async with Late() as late:
            began = time.perf_counter()
            await self.ask(self._gateway.catalogue.policy.publish, body)
            await self.ask(self._gateway.catalogue.policy.show, None)
            took = time.perf_counter() - began
        self.figures |= {f"{name}_seconds": round(took, 2), **late.figures(name)}

    async def _measured(self, name: str, run: Callable[[], Any]) -> None:
        async with Late() as late:
            began = time.perf_counter()
            found: Preview = await run()
            took = time.perf_counter() - began
        self.figures |= {
            f"{name}_seconds": round(took, 2),
            f"{name}_decisions": found.decisions.seen,
            f"{name}_per_second": round(found.decisions.seen / took),
            f"{name}_flips": found.summary.gains + found.summary.losses,
            **late.figures(name),
        }

    async def idle(self) -> None:
        """The same lateness while nothing else runs: what this machine does by itself."""
        async with Late() as late:
            await asyncio.sleep(2)
        self.figures |= late.figures("idle")

    async def ask(self, operation: AnyOperation, arguments: object) -> Any:  # whatever the operation returns
        """One request of the admin, through the whole path."""
        call = Call.of(Credentials.bearer(self._secret), operation, arguments)
        return await self._gateway.pipeline.run(call, Trail("req_bench", "bench", operation.name))


async def measure(folder: Path, decisions: int, sizes: list[int]) -> dict[str, float]:
    """The figures: seconds, milliseconds and counts."""
    async with premises(folder) as made:
        bench = Bench(made)
        await bench.hire()
        await bench.record(decisions, timedelta(days=6))
        # What making a past left behind is not a gateway's: a served one never looks again through what it began with.
        gc.collect()
        gc.freeze()
        await bench.idle()
        for rows in sizes:
            text = document(rows)
            await bench.publish(text)
            await bench.preview(f"rows_{rows}", "\n".join((text, *CHANGE)))
            await bench.publish_through(f"publish_{rows}", "\n".join((text, CHANGE[1])))
        await bench.publish("\n".join((text, *CHANGE)))
        await bench.record(decisions, timedelta(0))
        await bench.watch("watch")
    return bench.figures


def main() -> None:
    """Reads the options, measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--decisions", type=int, default=200_000)
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000, 100_000])
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        figures = uvloop.run(measure(Path(folder), options.decisions, options.rows))
    show("preview", figures, as_json=options.json)


if __name__ == "__main__":
    main()
