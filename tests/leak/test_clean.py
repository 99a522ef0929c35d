"""Under the shipped documents nothing reaches anybody whom they keep it from (issue 4, proof 3)."""

from __future__ import annotations

import os
from typing import Final

import pytest

from gateway.backends.local.clock import SystemClock
from gateway.leak_test.run import Part, leak_test
from gateway.policy.shipped import shipped

LONG: Final = os.environ.get("GATEWAY_LONG") == "1"
FEW: Final = {
    "demo/visibility.csv": ("bob", "audrey", "guest", "nobody", "the runtime of alice's turn"),
    "default.csv": ("bob", "guest", "nobody"),
}


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", ["demo/visibility.csv", "default.csv"])
async def test_nothing_leaks_under_a_shipped_document(name: str) -> None:
    """Every route, tool and kind of session, as a few callers; as all of them with GATEWAY_LONG=1. Everybody is shown
    what is theirs, or an empty answer would be a good one."""
    few = None if LONG else Part(caller=lambda label: label in FEW[name], last=True)
    report = await leak_test(shipped(name), SystemClock(), part=few)

    assert [str(one) for one in (*report.leaks, *report.lost)] == []
    assert (report.not_driven, report.blind) == ((), ())
    assert report.people >= 10
    assert report.matrix["bob"]["bob"].seen >= 30
    assert all(cell.leaked == 0 for cells in report.matrix.values() for cell in cells.values())
    assert not any(cell.seen for cell in report.matrix["nobody"].values())
    if LONG:
        assert report.shown > report.marks // 2
