"""What `/metrics` tells this machine moves with what happens (design section 10)."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from gateway.errors import Unavailable
from gateway.model import AuditRecord
from tests.clock import SettableClock
from tests.house import House


async def counted(home: House) -> dict[str, float]:
    """The lines of `/metrics`: a name with its labels, and its number."""
    answer = await home.get(None, "/metrics")
    assert answer.status_code == 200, answer.text
    lines = [line.rpartition(" ") for line in answer.text.splitlines() if not line.startswith("#")]
    return {name: float(number) for name, _, number in lines}


async def test_requests_decisions_and_the_audits_batches_are_counted(
    home: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue 2, `/metrics`; also what could not be written, and what then waits."""
    session = await home.open("alice")
    before = await counted(home)
    assert (await home.get("alice", f"/v1/sessions/{session}")).status_code == 200
    after = await counted(home)

    def risen(name: str) -> float:
        return after[name] - before.get(name, 0)

    assert risen('gateway_requests_total{operation="sessions.show",status="200"}') == 1
    assert risen("gateway_audit_records_total") == 2  # the access and the decision
    assert risen("gateway_audit_flush_seconds_count") >= 1
    assert risen('gateway_decisions_total{code="allowed",effect="allow"}') == 1
    assert (after["gateway_audit_buffer_records"], risen("gateway_audit_failures_total")) == (0, 0)

    async def away(_records: Sequence[AuditRecord]) -> None:
        raise Unavailable("away")

    with monkeypatch.context() as broken:
        broken.setattr(home.gateway.stores.audit, "append", away)
        assert (await home.get("alice", f"/v1/sessions/{session}")).status_code == 503
        now = await counted(home)
    assert now["gateway_audit_failures_total"] >= 1
    assert now["gateway_audit_buffer_records"] == 2
    assert now["gateway_audit_records_total"] == after["gateway_audit_records_total"]


async def test_the_age_of_the_epochs_is_told(home: House, clock: SettableClock) -> None:
    """Design section 7, freshness: an operator sees it grow before it refuses."""
    epochs = home.gateway.epochs
    await epochs.__aexit__(None, None, None)  # from here on it hears the store when the test says so
    await epochs.poll()
    clock.advance(2)
    assert (await counted(home))["gateway_epoch_age_seconds"] == 2
    await epochs.poll()
    assert (await counted(home))["gateway_epoch_age_seconds"] == 0
