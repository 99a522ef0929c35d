"""A hole that is put in on purpose makes the command fail, and is named (issue 4, proof 3)."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.leak.holes import HOLES, Hole, document
from tests.leak.planted import Planted, planted

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.xdist_group("leak"), pytest.mark.timeout(300)]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def garden(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Planted]:
    """Planted once; each test opens it with a gateway of its own."""
    yield await planted(tmp_path_factory.mktemp("leak"))


@pytest.mark.parametrize("hole", HOLES, ids=[hole.name for hole in HOLES])
async def test_a_filter_that_is_taken_out_is_found_and_named(
    garden: Planted, monkeypatch: pytest.MonkeyPatch, hole: Hole
) -> None:
    """With the filter the same part is clean; without it a leak says who was shown whose what, by which route."""
    whole = await garden.untouched(callers=hole.callers, rows=hole.rows, document=document(hole))
    assert [str(one) for one in whole.leaks] == []
    assert whole.requests

    with monkeypatch.context() as patch:
        hole.patch(patch, garden.world)
        broken = await garden.examine(callers=hole.callers, rows=hole.rows, document=document(hole))

    assert not broken.clean
    told = [str(one) for one in broken.leaks]
    assert any(all(word in one for word in hole.finds) for one in told), told[:20]
