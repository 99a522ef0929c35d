"""`gateway policy lint` and `test`: what is wrong with a document that nobody has published; needs no gateway."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from gateway.cli import output
from gateway.cli.failures import FOUND, fault_line, refusals
from gateway.cli.options import AsJson
from gateway.errors import Fault, Invalid
from gateway.policy.documents import lint
from gateway.policy.suites import SuiteReport, run_suite
from gateway.policy.tokens import FIELD


def lint_path(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A policy document.", exists=True, dir_okay=False)],
    as_json: AsJson = False,
) -> None:
    """Names every fault of a document with its place, and warns of what is perhaps not meant."""
    with refusals(finding=FIELD):
        faults, warnings = lint(read(file), datetime.now(UTC))
    found = {"faults": [_entry(one) for one in faults], "warnings": [_entry(one) for one in warnings]}
    output.show(as_json, found, lambda _found: _print_lint(file, faults, warnings))
    if faults:
        raise typer.Exit(FOUND)


def run_suites(
    paths: Annotated[
        list[Path], typer.Argument(metavar="PATH...", help="Suites, or folders that hold some.", exists=True)
    ],
    as_json: AsJson = False,
) -> None:
    """Asks documents what their suites expect of them."""
    with refusals():
        reports = [_report(path) for path in _suites(paths)]
    output.show(as_json, {"suites": [_shape(one) for one in reports]}, lambda _shown: _print_reports(reports))
    if any(report.failures for report in reports):
        raise typer.Exit(FOUND)


def read(file: Path) -> str:
    """The text of a document. Raises Invalid for one that can't be read as UTF-8."""
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise Invalid.of("FILE", "readable", f"{file} can't be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise Invalid.of(FIELD, "utf-8", f"{file} is not UTF-8 text. Save it again as UTF-8.") from error


def _suites(paths: Iterable[Path]) -> list[Path]:
    found = [suite for path in paths for suite in (sorted(path.rglob("*.yaml")) if path.is_dir() else [path])]
    if not found:
        raise Invalid.of("PATH", "suites", "There is no suite (*.yaml) there, so nothing was proved.")
    return found


def _report(path: Path) -> SuiteReport:
    """A suite that can't be run is a failure of its own, and does not keep the others from running."""
    try:
        return run_suite(path)
    except Invalid as error:
        return SuiteReport(path=path, checks=0, failures=tuple(fault_line(fault) for fault in error.faults))


def _entry(fault: Fault) -> dict[str, Any]:
    """A fault as problem documents show it."""
    place = (("line", fault.line), ("column", fault.column))
    known = {name: value for name, value in place if value is not None}
    return {"field": fault.field, "rule": fault.rule, "message": fault.message, **known}


def _shape(report: SuiteReport) -> dict[str, Any]:
    return {"path": str(report.path), "checks": report.checks, "failures": list(report.failures)}


def _print_lint(file: Path, faults: tuple[Fault, ...], warnings: tuple[Fault, ...]) -> None:
    for line in (*_placed(file, faults, "fault"), *_placed(file, warnings, "warning")):
        output.say(line)
    output.say(f"{file}: {output.counted(len(faults), 'fault')}, {output.counted(len(warnings), 'warning')}")


def _placed(file: Path, found: Iterable[Fault], word: str) -> Iterator[str]:
    for fault in found:
        place = ":".join(str(part) for part in (file, fault.line, fault.column) if part is not None)
        yield f"{place}: {word}: {fault.message} ({fault.rule})"


def _print_reports(reports: Iterable[SuiteReport]) -> None:
    for report in reports:
        output.say(f"{report.path}: {output.counted(report.checks, 'check')}, {len(report.failures)} failed")
        for failure in report.failures:
            output.say(f"  {failure}")
