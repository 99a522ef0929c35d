"""Turns what happened into numbers that only this machine can read (design section 10)."""

from __future__ import annotations

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.routing import Route
from starlette.types import ASGIApp

from gateway.model import Verdict
from gateway.settings import Settings
from gateway.web.metrics import Metrics, metrics_endpoint
from gateway.web.middleware import with_edge
from tests.clock import SettableClock
from tests.conftest import LogCapture


def served(metrics: Metrics, settings: Settings, clock: SettableClock, logs: LogCapture) -> ASGIApp:
    routes = [Route("/metrics", metrics_endpoint(metrics, settings.server.metrics))]
    return with_edge(Starlette(routes=routes), settings.server, clock, logs.loggers)


async def asked(app: ASGIApp, peer: str | None, path: str = "/metrics", **headers: str) -> httpx2.Response:
    client = (peer, 4000) if peer else None
    transport = httpx2.ASGITransport(app, client=client)  # type: ignore[arg-type] # ASGI: a Unix socket has no peer
    async with httpx2.AsyncClient(transport=transport, base_url="http://gateway") as browser:
        return await browser.get(path, headers={name.replace("_", "-"): value for name, value in headers.items()})


def test_requests_decisions_and_the_audit_are_counted() -> None:
    """Issue 2: `/metrics`."""
    metrics = Metrics(["sessions.list", "sessions.history"])

    metrics.request("sessions.list", 200, 0.002)
    metrics.request("sessions.list", 200, 0.2)
    metrics.request("sessions.list", 404, 0.002)
    metrics.decision(Verdict(True, "rule", "line 1"))
    metrics.decision(Verdict(False, "no_rule", None))
    metrics.decision(Verdict(False, "no_rule", None))
    metrics.audit.flushed(40, 0.01)
    metrics.audit.failed()
    metrics.audit.watch_depth(lambda: 7)
    metrics.watch_epoch_age(lambda: 1.5)

    sample = metrics.registry.get_sample_value
    assert sample("gateway_requests_total", {"operation": "sessions.list", "status": "200"}) == 2
    assert sample("gateway_requests_total", {"operation": "sessions.list", "status": "404"}) == 1
    assert sample("gateway_request_seconds_bucket", {"operation": "sessions.list", "le": "0.0025"}) == 2
    assert sample("gateway_decisions_total", {"effect": "deny", "code": "no_rule"}) == 2
    assert sample("gateway_decisions_total", {"effect": "allow", "code": "rule"}) == 1
    assert sample("gateway_audit_records_total") == 40
    assert sample("gateway_audit_failures_total") == 1
    assert sample("gateway_audit_buffer_records") == 7
    assert sample("gateway_epoch_age_seconds") == 1.5


def test_what_callers_choose_never_becomes_a_label() -> None:
    """Conventions: no person ids as metric labels; and a flood of paths can't fill the memory."""
    metrics = Metrics(["sessions.list"])

    for number in range(100):
        metrics.request(f"agent:flight:direct:prf_{number}", 404, 0.001)

    assert metrics.registry.get_sample_value("gateway_requests_total", {"operation": "unnamed", "status": "404"}) == 100
    assert b"prf_" not in metrics.text()


def test_two_gateways_in_one_process_count_apart() -> None:
    """Style 5: no global registry."""
    one, other = Metrics([]), Metrics([])

    one.decision(Verdict(True, "rule", "line 1"))

    assert other.registry.get_sample_value("gateway_decisions_total", {"effect": "allow", "code": "rule"}) is None


@pytest.mark.parametrize("peer", ["127.0.0.1", "::1"])
async def test_this_machine_reads_them(peer: str, settings: Settings, clock: SettableClock, logs: LogCapture) -> None:
    """Settings: `server.metrics = "loopback"`."""
    answer = await asked(served(Metrics(["x"]), settings, clock, logs), peer)

    assert answer.status_code == 200
    assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    assert "# TYPE gateway_requests_total counter" in answer.text


async def test_to_everybody_else_they_are_not_there(settings: Settings, clock: SettableClock, logs: LogCapture) -> None:
    """Design section 7, denied looks like missing; ASVS 5.0 V4.1.3, a proxy on this machine is not this machine."""
    app = served(Metrics([]), settings, clock, logs)
    off = settings.model_copy(update={"server": settings.server.model_copy(update={"metrics": "off"})})

    missing = await asked(app, "127.0.0.1", "/nothing")
    refused = [
        await asked(app, "10.0.0.7"),
        await asked(app, None),
        await asked(app, "127.0.0.1", X_Forwarded_For="127.0.0.1"),
        await asked(app, "127.0.0.1", Forwarded="for=127.0.0.1"),
        await asked(app, "127.0.0.1", X_Real_IP="127.0.0.1"),
        await asked(served(Metrics([]), off, clock, logs), "127.0.0.1"),
    ]

    assert (await asked(app, "127.0.0.1")).status_code == 200
    for answer in refused:
        assert answer.status_code == 404
        assert len(answer.content) == len(missing.content)
        assert answer.json() | {"request_id": ""} == missing.json() | {"request_id": ""}
