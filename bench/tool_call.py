"""A whole authenticated `memory_get` over HTTP, against a bare Starlette app that returns the same bytes.

    python -m bench.tool_call [--json]

Both run one uvicorn worker with uvloop and httptools; rounds alternate, so that a busy machine slows both.
"""

from __future__ import annotations

import statistics
import tempfile
import urllib.request
from pathlib import Path

import orjson

from bench.load import drive, http_request
from bench.premises import bare_server, gateway_server, premises, run
from bench.report import show, wants_json

ROUNDS = 5
SECONDS = 3.0
CONNECTIONS = 32


async def main() -> None:
    """Prints requests a second of both and their ratio."""
    as_json = wants_json()
    with tempfile.TemporaryDirectory() as folder:
        state = Path(folder, "state")
        async with premises(state) as made:
            secret, session = made.secrets["alice"], made.session
        path = f"/v1/sessions/{session}/tools/memory_get"
        headers = {"Authorization": f"Bearer {secret}", "Content-Type": "application/json"}
        request = http_request("POST", path, headers, orjson.dumps({"path": "MEMORY.md"}))
        with gateway_server(state) as port:
            body = Path(folder, "body.json")
            _once(port, path, headers, body)
            with bare_server(body) as bare_port:
                figures = await _rounds(port, bare_port, request)
    show("tool_call", figures, as_json=as_json)


def _once(port: int, path: str, headers: dict[str, str], to: Path) -> None:
    """Keeps one real answer, for the bare app to return."""
    url = f"http://127.0.0.1:{port}{path}"
    request = urllib.request.Request(url, orjson.dumps({"path": "MEMORY.md"}), headers)
    with urllib.request.urlopen(request, timeout=10) as answer:
        body = bytes(answer.read())
    assert orjson.loads(body)["result"]["status"] == "ok", body
    to.write_bytes(body)


async def _rounds(gateway: int, bare: int, request: bytes) -> dict[str, float]:
    rates: dict[str, list[float]] = {"gateway": [], "bare": []}
    latencies: list[float] = []
    for number in range(ROUNDS + 1):
        for name, port in (("bare", bare), ("gateway", gateway)):
            found = await drive(port, request, seconds=SECONDS, connections=CONNECTIONS)
            assert found.bad == 0, f"{name}: {found.bad} of {found.answers} answers were not 200"
            if number:  # the first round warms both
                rates[name].append(found.per_second)
                latencies += found.latencies_ms if name == "gateway" else []
    ratios = [one / other for one, other in zip(rates["gateway"], rates["bare"], strict=True)]
    return {
        "gateway_requests_per_second": statistics.median(rates["gateway"]),
        "bare_starlette_requests_per_second": statistics.median(rates["bare"]),
        "ratio": statistics.median(ratios),
        "gateway_latency_ms_p50": statistics.median(latencies),
        "gateway_latency_ms_p99": statistics.quantiles(latencies, n=100)[98],
    }


if __name__ == "__main__":
    run(main())
