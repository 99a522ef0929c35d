"""Turns the installed distributions into a refusal to start where another Casbin than ours would decide."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import distributions
from typing import Final

from gateway.errors import ConfigurationFaults, Fault

_OLD: Final = "casbin"
# simpleeval before 1.0.5 lets an expression out of its sandbox (CVE-2026-32640); pycasbin asks for less.
_AT_LEAST: Final[Mapping[str, tuple[int, ...]]] = {"pycasbin": (2, 8), "simpleeval": (1, 0, 5)}


def refuse_old_casbin(path: Sequence[str] | None = None) -> None:
    """Checks what is installed on `path` (that of this process by default).

    The old distribution `casbin` writes over `pycasbin` in the same import package and no tool complains, so that the
    running code is silently another one (design section 13).
    Raises ConfigurationFaults with everything that is wrong.
    """
    installed = dict(_versions(list(sys.path if path is None else path)))
    faults = tuple(_faults(installed))
    if faults:
        raise ConfigurationFaults(faults)


def _versions(path: list[str]) -> Iterator[tuple[str, str]]:
    """Name and version of those that matter; the metadata of all the others would cost each command half a second."""
    for name in (_OLD, *_AT_LEAST):
        for one in distributions(name=name, path=path):
            if one.metadata["Name"]:  # what an uninstall left behind has none
                yield name, one.version
                break  # the first on the path is the one that is imported


def _faults(installed: Mapping[str, str]) -> Iterator[Fault]:
    if _OLD in installed:
        message = "The old distribution casbin is installed and overwrites pycasbin; uninstall both, install pycasbin."
        yield Fault(field=_OLD, rule="not_installed", message=message)
    for name, least in _AT_LEAST.items():
        wanted = ".".join(map(str, least))
        if name not in installed:
            yield Fault(field=name, rule="installed", message=f"{name} is missing; install {name} {wanted} or newer.")
        elif _numbers(installed[name]) < least:
            message = f"{name} {installed[name]} is too old; install {wanted} or newer."
            yield Fault(field=name, rule="version", message=message)


def _numbers(version: str) -> tuple[int, ...]:
    """The release numbers of a version; what can't be read as a number ends it, and counts as older."""
    numbers: list[int] = []
    for part in version.split("."):
        if not part.isdigit():
            break
        numbers.append(int(part))
    return tuple(numbers)
