"""Turns figures into a table for people, or into one JSON object (interface, "Benchmarks")."""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
from collections.abc import Mapping, Sequence


def machine() -> dict[str, object]:
    """What the figures were taken on."""
    return {"python": platform.python_version(), "system": platform.system(), "cores": os.cpu_count()}


def show(bench: str, figures: Mapping[str, float], *, as_json: bool) -> None:
    """Prints one line a figure, or `{"bench", "machine", "figures"}`."""
    if as_json:
        print(json.dumps({"bench": bench, "machine": machine(), "figures": dict(figures)}))
        return
    width = max(map(len, figures))
    for name, figure in figures.items():
        print(f"{name:<{width}}  {figure:12,.3f}")


def wants_json() -> bool:
    """Reads the one option that every benchmark has."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    return bool(parser.parse_args().json)


def percentiles(name: str, samples: Sequence[float]) -> dict[str, float]:
    """Median and 99th percentile, as `name_p50` and `name_p99`."""
    return {f"{name}_p50": statistics.median(samples), f"{name}_p99": statistics.quantiles(samples, n=100)[98]}
