"""What the doctor looks at on the machine: settings, installed versions, the state folder."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

from gateway.cli.doctor.findings import Finding, fault, fine
from gateway.errors import ConfigurationFaults
from gateway.policy.installed import refuse_old_casbin

_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def configuration(check: str, faults: ConfigurationFaults) -> Iterator[Finding]:
    """A finding for each fault."""
    for one in faults.faults:
        yield fault(check, f"{one.field}: {one.message}.", "Nothing starts before this is put right.")


def versions() -> Iterator[Finding]:
    """Whether the Casbin that decides is ours (design section 13)."""
    try:
        refuse_old_casbin()
    except ConfigurationFaults as faults:
        yield from configuration("versions", faults)
    else:
        names = ("pycasbin", "simpleeval")
        yield fine("versions", ", ".join(_named(name) for name in names) + ".")


def state_folder(folder: Path) -> Iterator[Finding]:
    """Whether only the user of the gateway reaches its database and keys."""
    try:
        status = folder.stat()
    except OSError as error:
        yield fault("state", f"{folder} can't be used: {error.strerror}.", "The first `gateway serve` makes it.")
        return
    found = list(_exposed(folder, status))
    yield from found or [fine("state", f"{folder} is there for its owner alone.")]


def _exposed(folder: Path, status: os.stat_result) -> Iterator[Finding]:
    if not stat.S_ISDIR(status.st_mode):
        yield fault("state", f"{folder} is not a folder.", "Name another in state.folder.")
        return
    if status.st_uid != os.getuid():
        yield fault("state", f"{folder} belongs to another user.", f"Run: chown -R $(id -u) {folder}")
    if status.st_mode & _OTHERS:
        mode = stat.S_IMODE(status.st_mode)
        yield fault("state", f"Others on this machine can look into {folder} ({mode:04o}).", f"Run: chmod 700 {folder}")
    for path in sorted(folder.iterdir()):
        mode = path.lstat().st_mode
        if stat.S_ISREG(mode) and mode & _OTHERS:
            yield fault(
                "state", f"{path} is not for its owner alone ({stat.S_IMODE(mode):04o}).", f"Run: chmod 600 {path}"
            )


def _named(name: str) -> str:
    return f"{name} {version(name)}"
