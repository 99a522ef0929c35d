"""Turns what happens into counters, and the counters into `/metrics` for this machine alone (design section 10)."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator
from itertools import accumulate
from typing import Literal

from prometheus_client import CollectorRegistry, Gauge, Histogram, generate_latest
from prometheus_client import Counter as PlainCounter
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from starlette.requests import Request
from starlette.responses import Response

from gateway.errors import NotFound
from gateway.model import Verdict
from gateway.settings import is_loopback

# Anything that a proxy adds: such a request comes from elsewhere, whatever its peer is (ASVS 5.0, V4.1.3).
FORWARDED = frozenset({"forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip"})

UNNAMED = "unnamed"
IN_FORCE_SECONDS = (0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 30)
SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class Metrics:
    """The counters of one gateway, in a registry of their own.

    Labels are closed lists (operations, statuses, effects, codes): no person, session or tenant is one, so that neither
    names nor their number are shown, and memory does not grow with them.
    """

    def __init__(self, operations: Iterable[str]) -> None:
        self.registry = CollectorRegistry()
        self._tallies = _Tallies((*operations, UNNAMED))
        self.registry.register(self._tallies)
        self.audit = AuditMetrics(self.registry)
        self._deliveries = PlainCounter(
            "gateway_deliveries", "Messages of channels told to runtimes.", ["outcome"], registry=self.registry
        )
        self._epoch_age = Gauge(
            "gateway_epoch_age_seconds", "Seconds since the store last confirmed the epochs.", registry=self.registry
        )

        self._in_force = Histogram(
            "gateway_policy_in_force_seconds",
            "From the publishing of a policy until nothing is decided by an older one in this process.",
            buckets=IN_FORCE_SECONDS,
            registry=self.registry,
        )

    @property
    def request(self) -> Callable[[str, int, float], None]:
        """See `_Tallies.request`."""
        return self._tallies.request

    def decision(self, verdict: Verdict) -> None:
        """Counts one answer of the policy; its words are from closed lists."""
        self._tallies.decisions[verdict.allowed, verdict.code] += 1

    def in_force(self, seconds: float) -> None:
        """Notes how long a newly published policy took to decide here."""
        self._in_force.observe(max(0.0, seconds))

    def delivery(self, outcome: str) -> None:
        """Counts one message that an agent's runtime was to be told of: sent, failed or dropped."""
        self._deliveries.labels(outcome).inc()

    def watch_epoch_age(self, age_s: Callable[[], float]) -> None:
        """Where the age of the epochs is asked for whenever somebody reads the metrics."""
        self._epoch_age.set_function(age_s)

    def text(self) -> bytes:
        """Everything in Prometheus' text format."""
        return generate_latest(self.registry)


class _Tallies(Collector):
    """What every request counts: plain numbers here, made into metrics when somebody reads them.

    The library's own counters take a lock for each count, which costs more than a decision does.
    """

    def __init__(self, operations: Iterable[str]) -> None:
        self.requests: Counter[tuple[str, int]] = Counter()
        self.decisions: Counter[tuple[bool, str]] = Counter()
        self._seconds = {name: ([0] * (len(SECONDS) + 1), [0.0]) for name in operations}

    def request(self, operation: str, status: int, seconds: float) -> None:
        """Counts one answered request, and its time in the bucket of its operation; an operation that is not in the
        route table is `unnamed`."""
        if operation not in self._seconds:
            operation = UNNAMED
        self.requests[operation, status] += 1
        buckets, total = self._seconds[operation]
        buckets[bisect_left(SECONDS, seconds)] += 1
        total[0] += seconds

    def collect(self) -> Iterator[Metric]:
        """The metrics as they are now."""
        requests = CounterMetricFamily(
            "gateway_requests", "Requests by operation and status.", labels=["operation", "status"]
        )
        for (operation, status), count in self.requests.items():
            requests.add_metric([operation, str(status)], count)
        decisions = CounterMetricFamily(
            "gateway_decisions", "Answers of the policy by effect and code.", labels=["effect", "code"]
        )
        for (allowed, code), count in self.decisions.items():
            decisions.add_metric(["allow" if allowed else "deny", code], count)
        yield from (requests, decisions, self._times())

    def _times(self) -> Metric:
        family = HistogramMetricFamily(
            "gateway_request_seconds", "Time until the whole answer was handed over.", labels=["operation"]
        )
        edges = [*map(str, map(float, SECONDS)), "+Inf"]
        for operation, (buckets, total) in self._seconds.items():
            family.add_metric([operation], list(zip(edges, accumulate(buckets), strict=True)), total[0])
        return family


class AuditMetrics:
    """How the audit's buffer fares: what waits, how long a write took, and how many failed."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._depth = Gauge("gateway_audit_buffer_records", "Records that wait to be written.", registry=registry)
        self._flushes = Histogram(
            "gateway_audit_flush_seconds", "Time to write one batch.", buckets=SECONDS, registry=registry
        )
        self._records = PlainCounter("gateway_audit_records", "Records written.", registry=registry)
        self._failures = PlainCounter("gateway_audit_failures", "Batches that could not be written.", registry=registry)

    def watch_depth(self, depth: Callable[[], float]) -> None:
        """Where the number of waiting records is asked for whenever somebody reads the metrics."""
        self._depth.set_function(depth)

    def flushed(self, records: int, seconds: float) -> None:
        """Counts a batch that is on the disk."""
        self._records.inc(records)
        self._flushes.observe(seconds)

    def failed(self) -> None:
        """Counts a batch that could not be written."""
        self._failures.inc()


def metrics_endpoint(metrics: Metrics, who: Literal["loopback", "off"]) -> Callable[[Request], Awaitable[Response]]:
    """The route behind `/metrics`.

    It answers callers on this machine whose request came through no proxy; to everybody else it is not there.
    The server must not rewrite the peer's address (`proxy_headers=False` with uvicorn).
    """

    async def endpoint(request: Request) -> Response:
        if who == "off" or not _is_from_here(request):
            raise NotFound
        return Response(metrics.text(), media_type=CONTENT_TYPE_PLAIN_0_0_4)

    return endpoint


def _is_from_here(request: Request) -> bool:
    if request.client is None or not is_loopback(request.client.host):
        return False
    return FORWARDED.isdisjoint(request.headers.keys())
