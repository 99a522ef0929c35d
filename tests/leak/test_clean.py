"""Under the shipped documents nothing reaches anybody whom they keep it from (issue 4, proof 3)."""

from __future__ import annotations

import os
from typing import Final

import pytest

from gateway.backends.local.clock import SystemClock
from gateway.leak_test.run import leak_test
from gateway.policy.shipped import shipped

LONG: Final = os.environ.get("GATEWAY_LONG") == "1"


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", ["demo/visibility.csv", "default.csv"])
async def test_nothing_leaks_under_a_shipped_document(name: str) -> None:
    """Every caller, route, tool and kind of session; and everybody is shown what is theirs."""
    if not LONG:
        pytest.skip("the whole of it runs with GATEWAY_LONG=1")
    report = await leak_test(shipped(name), SystemClock())

    assert [str(one) for one in (*report.leaks, *report.lost)] == []
    assert (report.not_driven, report.blind) == ((), ())
    assert report.people >= 10
    assert report.shown > report.marks // 2
