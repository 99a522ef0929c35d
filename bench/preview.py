"""Turns a week of recorded decisions into how long a preview of a draft takes (design section 7, "preview").

`python -m bench.preview` records 200,000 decisions of several hundred people in a real store, through the audit's own
append, and replays them with drafts of a few and of 100,000 rows, while a task watches the event loop.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import uvloop

from bench.report import show
from bench.swap import document
from gateway.backends.sql.audit import SqlAudit
from gateway.backends.sql.database import Database
from gateway.backends.sql.tenants import SqlTenants
from gateway.keys import new_id
from gateway.model import Action, AuditRecord, Chat, Relation, Resource, TenantId, Whose
from gateway.policy.documents import parse
from gateway.policy.replay import replay
from gateway.policy.rights import Rights
from gateway.policy.shipped import shipped

TENANT = TenantId("bench")
PEOPLE = 500
AGENTS = ("flight", "hotel", "payroll")
OPERATIONS = ("messages.list", "memory_get", "sessions.show", "context.assemble", "sessions_history", "memory_append")
_BATCH = 2_000
_ACTIONS = (Action.HISTORY, Action.LIST, Action.ENTER, Action.GET, Action.LOAD, Action.STATUS)


def records(count: int, now: datetime) -> Iterator[AuditRecord]:
    """So many decisions, over the week before `now`."""
    dice = random.Random("preview")
    roles = ("member", "supervisor", "auditor", "contractor")
    people = [(f"prf_{number:026d}", (f"role:{dice.choice(roles)}", "role:member")) for number in range(PEOPLE)]
    for number in range(count):
        profile, held = dice.choice(people)
        agent, at = dice.choice(AGENTS), now - timedelta(days=7) * (1 - number / count) + timedelta(minutes=1)
        yield AuditRecord(
            at,
            "decision",
            TENANT,
            new_id("req", at),
            "rest",
            dice.choice(OPERATIONS),
            "allow",
            "allowed" if dice.random() < 0.9 else "no_matching_row",
            7,
            profile,
            "access_token:tok_x",
            agent,
            f"agent:{agent}:direct:prf_{dice.randrange(PEOPLE):026d}",
            dice.choice(_ACTIONS),
            dice.choice((Resource.SESSION_PRIVATE, Resource.SESSION_SHARED, Resource.MEMORY_LONGTERM)),
            dice.choice(tuple(Relation)),
            dice.choice(tuple(Whose)),
            dice.choice(tuple(Chat)),
            tuple(sorted({f"user:{profile}", "*", *held})),
            "target",
            "line 7: p, role:member, *, session/*, agent, shared, private, *, allow",
            new_id("dec", at),
        )


async def _late(done: asyncio.Event) -> list[float]:
    late = []
    while not done.is_set():
        began = time.perf_counter()
        await asyncio.sleep(0.001)
        late.append(time.perf_counter() - began - 0.001)
    return sorted(late)


async def _previewed(audit: SqlAudit, now: datetime, draft: str, count: int) -> dict[str, float]:
    in_force = parse(shipped("default.csv"))
    done = asyncio.Event()
    watching = asyncio.create_task(_late(done))
    began = time.perf_counter()
    recorded = await audit.decisions(TENANT, now - timedelta(days=7), most=200_000)
    read = time.perf_counter()

    def compare() -> int:
        return len(replay(recorded.counts, Rights(in_force, now), Rights(parse(draft), now)).flips)

    flips = await asyncio.to_thread(compare)
    ended = time.perf_counter()
    done.set()
    late = await watching
    return {
        "seconds": ended - began,
        "seconds_reading": read - began,
        "decisions": recorded.seen,
        "different": len(recorded.counts),
        "flips": flips,
        "decisions_a_second": count / (ended - began),
        "loop_late_p99_ms": late[int(len(late) * 0.99)] * 1000,
        "loop_late_worst_ms": late[-1] * 1000,
    }


async def measure(folder: Path, count: int) -> dict[str, float]:
    """The figures for a short and a long draft."""
    now = datetime.now(UTC)
    figures: dict[str, float] = {}
    async with Database(folder / "preview.db") as database:
        await SqlTenants(database).add(TENANT, demo=False, now=now)
        audit = SqlAudit(database, folder / "checkpoints", b"k" * 32)
        batch: list[AuditRecord] = []
        for record in records(count, now):
            batch.append(record)
            if len(batch) == _BATCH:
                await audit.append(batch)
                batch.clear()
        short = shipped("default.csv") + "\np, role:contractor, *, memory/longterm, all, any, *, *, deny\n"
        for name, draft in (("short", short), ("long", shipped("default.csv") + "\n" + document(100_000, 2))):
            found = await _previewed(audit, now, draft, count)
            figures |= {f"{name}.{key}": value for key, value in found.items()}
    return figures


def main() -> None:
    """Reads the options, measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--decisions", type=int, default=200_000)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        figures = uvloop.run(measure(Path(folder), options.decisions))
    show("preview", figures, as_json=options.json)


if __name__ == "__main__":
    main()
