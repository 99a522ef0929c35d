"""Start-up refuses to run where another Casbin than ours would decide (design section 13)."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.errors import ConfigurationFaults
from gateway.policy.installed import refuse_old_casbin

GOOD = {"pycasbin": "2.8.0", "simpleeval": "1.0.5"}


def install(folder: Path, versions: dict[str, str]) -> list[str]:
    """A folder as pip leaves it: one metadata folder a distribution, two of them damaged, and one that no one can read:
    whoever reads the metadata of everything fails on it."""
    for name, version in versions.items():
        metadata = folder / f"{name}-{version}.dist-info"
        metadata.mkdir(parents=True)
        text = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        (metadata / "METADATA").write_text(text, encoding="utf-8")
    for name in ("damaged-1", "casbin-0"):
        (folder / f"{name}.dist-info").mkdir(parents=True)
    (folder / "unreadable-1.dist-info").mkdir()
    (folder / "unreadable-1.dist-info" / "METADATA").write_bytes(b"Name: \xff\n")
    return [str(folder)]


def test_what_is_installed_here_is_accepted() -> None:
    """The lock files hold pycasbin and a simpleeval that keeps its sandbox."""
    refuse_old_casbin()


@pytest.mark.parametrize(
    ("versions", "faults"),
    [
        (GOOD, []),
        (GOOD | {"pycasbin": "3.0", "simpleeval": "1.1rc1"}, ["simpleeval"]),
        (GOOD | {"casbin": "1.43.0"}, ["casbin"]),
        (GOOD | {"Casbin": "2.9.0"}, ["casbin"]),
        (GOOD | {"simpleeval": "1.0.4"}, ["simpleeval"]),
        (GOOD | {"pycasbin": "2.7.9"}, ["pycasbin"]),
        ({"casbin": "1.43.0", "simpleeval": "1.0.3"}, ["casbin", "pycasbin", "simpleeval"]),
    ],
)
def test_start_up_refuses_an_old_casbin_and_an_unsafe_simpleeval(
    tmp_path: Path, versions: dict[str, str], faults: list[str]
) -> None:
    """Reference, pycasbin, "Packaging" and trap 12: every fault at once, with what to do."""
    path = install(tmp_path, versions)
    if not faults:
        refuse_old_casbin(path)
        return
    with pytest.raises(ConfigurationFaults) as refused:
        refuse_old_casbin(path)
    assert [fault.field for fault in refused.value.faults] == faults
    assert all("install" in fault.message for fault in refused.value.faults)
