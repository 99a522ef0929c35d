"""Turns what went wrong into clear lines on standard error and an exit code (interface, "Command line")."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import typer

from gateway.cli.output import complain, counted
from gateway.errors import ConfigurationFaults, Fault, GatewayError, Invalid

FOUND = 1
USAGE = 2
REFUSED = 3
UNAVAILABLE = 4

_BY_STATUS = {401: REFUSED, 403: REFUSED, 404: REFUSED, 409: FOUND, 412: FOUND, 429: UNAVAILABLE, 503: UNAVAILABLE}


@contextmanager
def refusals(*, finding: str | None = None) -> Iterator[None]:
    """Ends the command with its exit code where it fails.

    Faults in the field `finding` are what the command was there to find; in any other they are wrong use.
    """
    try:
        yield
    except Invalid as error:
        _tell_faults("Nothing was changed", error.faults)
        raise typer.Exit(FOUND if any(fault.field == finding for fault in error.faults) else USAGE) from error
    except ConfigurationFaults as error:
        _tell_faults("The gateway can't start", error.faults)
        raise typer.Exit(USAGE) from error
    except GatewayError as error:
        complain(f"gateway: {error.detail}")
        _tell_notes(error)
        raise typer.Exit(_BY_STATUS.get(error.status, USAGE)) from error


def fault_line(fault: Fault) -> str:
    """A fault with its place: `text, line 3, column 5: what is wrong`."""
    place = fault.field
    if fault.line is not None:
        place += f", line {fault.line}"
    if fault.column is not None:
        place += f", column {fault.column}"
    return f"{place}: {fault.message}"


def _tell_faults(what: str, faults: tuple[Fault, ...]) -> None:
    complain(f"gateway: {what}; {counted(len(faults), 'fault')}:")
    for fault in faults:
        complain(f"  {fault_line(fault)}")


def _tell_notes(error: GatewayError) -> None:
    for note in getattr(error, "__notes__", ()):
        complain(f"  {note}")
