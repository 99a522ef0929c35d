"""Turns the two lock files into claims: what is tested is what is served, and nothing comes in without a hash."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import orjson
import pytest

ROOT = Path(__file__).resolve().parents[2]


def pins(kind: str) -> dict[str, str]:
    text = (ROOT / "requirements" / f"{kind}.lock").read_text(encoding="utf-8")
    return dict(re.findall(r"^([a-z0-9][a-z0-9._-]*)==(\S+)", text, re.MULTILINE))


def test_tests_run_on_the_versions_that_are_served() -> None:
    """Ours: and so an installation to test is also one to serve, as scripts/install says."""
    served, tested = pins("run"), pins("dev")

    assert served
    assert {name: tested.get(name) for name in served} == served


@pytest.mark.parametrize("kind", ["run", "dev"])
def test_every_pin_has_a_hash_and_nothing_says_where_it_comes_from(kind: str) -> None:
    """pip's hash-checking mode, and a lock that works with any index."""
    text = (ROOT / "requirements" / f"{kind}.lock").read_text(encoding="utf-8")
    blocks = re.split(r"^(?=\w)", text, flags=re.MULTILINE)

    assert [block.splitlines()[0] for block in blocks if block and "--hash=sha256:" not in block] == []
    assert "index-url" not in text
    assert "://" not in text


def test_everything_that_is_asked_for_is_locked_and_the_old_casbin_never_is() -> None:
    """Design section 13: the distribution `casbin` overwrites pycasbin."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    asked = [re.split(r"[\[<>=]", one)[0].lower() for one in project["project"]["dependencies"]]
    asked_to_test = [re.split(r"[\[<>=]", one)[0].lower() for one in project["dependency-groups"]["dev"]]

    assert set(asked) <= set(pins("run"))
    assert set(asked_to_test) <= set(pins("dev"))
    assert "casbin" not in pins("dev")


def test_the_identity_provider_of_the_tests_is_locked_by_hash_and_by_no_registry() -> None:
    """As for Python's locks: `npm ci` takes these bytes or nothing, from whatever registry the machine is set to."""
    lock = orjson.loads((ROOT / "tests" / "provider" / "package-lock.json").read_bytes())
    packages = {name: entry for name, entry in lock["packages"].items() if name}

    assert "node_modules/oidc-provider" in packages
    assert [name for name, entry in packages.items() if not entry.get("integrity", "").startswith("sha512-")] == []
    assert [name for name, entry in packages.items() if "resolved" in entry] == []
