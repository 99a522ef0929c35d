"""Turns the names of the policy files that come with the gateway into their texts."""

from __future__ import annotations

from pathlib import Path
from typing import Final

_PACKAGE: Final = Path(__file__).parents[1]


def shipped(name: str, package: Path = _PACKAGE) -> str:
    """The text of `policies/<name>`: from inside an installed wheel, else from the clone that holds the package."""
    wheel = package / "_shipped" / "policies"
    folder = wheel if wheel.is_dir() else package.parent / "policies"
    return (folder / name).read_text(encoding="utf-8")
