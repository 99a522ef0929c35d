"""Random worlds: the gateway on its real stores answers as the oracle does, and lists what it lets people read.

The short form is a part of every run. `GATEWAY_LONG=1` runs 20,000 worlds; `GATEWAY_SEED` picks others than the usual.
"""

from __future__ import annotations

import os
from pathlib import Path
from random import Random

import pytest

from tests.oracle.worlds import make_world
from tests.properties.comparison import differences
from tests.properties.embedded import open_embedded

LONG = os.environ.get("GATEWAY_LONG") == "1"
SEED = os.environ.get("GATEWAY_SEED", "1")
BATCH = 25  # worlds in one set of stores
BATCHES = 20_000 // BATCH if LONG else 300 // BATCH


async def compare(worlds: range, folder: Path) -> None:
    """Fails at the first world in which the gateway and the oracle differ, with all that it takes to see why."""
    async with open_embedded(folder) as gateway:
        for number in worlds:
            rng = Random(f"{SEED}:{number}")
            world = make_world(rng)
            found = await differences(world, rng, gateway)
            story = f"world {number} of GATEWAY_SEED={SEED}: " + "\n".join(found[:5])
            assert not found, "\n".join([story, *map(str, (*world.tenants, *world.people, *world.sessions))])


@pytest.mark.parametrize("batch", range(BATCHES))
async def test_the_gateway_answers_as_the_oracle_does(batch: int, tmp_path: Path) -> None:
    """Design sections 6 and 7, read a second time by somebody who did not write the gateway. Sessions
    and rows also name merged profiles, which count for their survivors (section 5, "merge")."""
    await compare(range(batch * BATCH, (batch + 1) * BATCH), tmp_path)
