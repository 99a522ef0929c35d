"""What the doctor found: one line each, with what to do."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum

from gateway.cli import output


class State(StrEnum):
    """How bad a finding is; only a fault makes the command fail."""

    OK = "ok"
    WARNING = "warning"
    FAULT = "fault"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that was looked at."""

    check: str  # "state", "policy"
    state: State
    message: str
    todo: str | None = None
    tenant: str | None = None


def fine(check: str, message: str, tenant: str | None = None) -> Finding:
    """Nothing to do."""
    return Finding(check=check, state=State.OK, message=message, tenant=tenant)


def fault(check: str, message: str, todo: str, tenant: str | None = None) -> Finding:
    """Something is wrong."""
    return Finding(check=check, state=State.FAULT, message=message, todo=todo, tenant=tenant)


def warning(check: str, message: str, todo: str, tenant: str | None = None) -> Finding:
    """Something is perhaps not meant."""
    return Finding(check=check, state=State.WARNING, message=message, todo=todo, tenant=tenant)


def shape(finding: Finding) -> dict[str, object]:
    """The finding as `--json` prints it."""
    return asdict(finding)


def tell(finding: Finding) -> None:
    """Prints the finding for people, in one line."""
    where = f"{finding.check} of {finding.tenant}" if finding.tenant else finding.check
    todo = f" {finding.todo}" if finding.todo else ""
    output.say(f"{finding.state:<8}{where}: {finding.message}{todo}")
