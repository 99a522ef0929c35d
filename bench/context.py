"""How long it takes to assemble a turn's context, warm: ten decisions, one hop to a thread, the files, the text.

    python -m bench.context [--json]

Beside it, in the same run: reading the same files with plain `open`, which nothing that reads them can beat.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from time import perf_counter

from bench.premises import Premises, premises, run
from bench.report import percentiles, show, wants_json
from gateway.founding import DEMO
from gateway.model import OUTSIDE, Principal
from gateway.stages.open_session import Entry
from gateway.stages.record_audit import Trail
from gateway.turn import Turn

CALLS = 2_000


async def main() -> None:
    """Prints milliseconds."""
    as_json = wants_json()
    with tempfile.TemporaryDirectory() as folder:
        async with premises(Path(folder)) as made:
            turn = await _turn(made)
            assembled = await _assembled(made, turn)
            plain = _plain(made, turn)
    figures = {**percentiles("context_ms", assembled), **percentiles("plain_open_ms", plain)}
    figures["ratio_to_plain_open"] = figures["context_ms_p50"] / figures["plain_open_ms_p50"]
    show("context", figures, as_json=as_json)


async def _turn(made: Premises) -> Turn:
    """Alice's turn inside her private session, up to the stage that is measured."""
    pipeline, alice = made.gateway.pipeline, made.people["alice"]
    principal = Principal(
        tenant=DEMO, issuer="gateway", subject=alice.id, credential="access_token", scopes=frozenset({"*"})
    )
    trail = Trail("req_bench", "bench", "context.assemble")

    async def renew() -> Turn:
        raise AssertionError("reading asks once")

    turn = await pipeline.resolve_profile(principal, trail, renew, None)
    assert turn.origin is OUTSIDE
    return await pipeline.open_session(turn, Entry(made.session))


async def _assembled(made: Premises, turn: Turn) -> list[float]:
    samples = []
    for number in range(CALLS + 100):
        trail = Trail("req_bench", "bench", "context.assemble")
        fresh = replace(turn, trail=trail)
        begun = perf_counter()
        done = await made.gateway.pipeline.assemble_context(fresh)
        if number >= 100:
            samples.append((perf_counter() - begun) * 1_000)
        assert done.context is not None
    return samples


def _plain(made: Premises, turn: Turn) -> list[float]:
    root = made.gateway.folders.root / DEMO / "flight"
    names = [name for name in ("AGENTS.md", "SOUL.md", "IDENTITY.md", "USER.md", "MEMORY.md") if (root / name).exists()]
    samples = []
    for _ in range(CALLS):
        begun = perf_counter()
        for name in names:
            (root / name).read_bytes()
        samples.append((perf_counter() - begun) * 1_000)
    return samples


if __name__ == "__main__":
    run(main())
