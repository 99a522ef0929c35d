"""`gateway policy lint`, `test`, `schema`: what helps with a document that nobody has published; needs no gateway."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from gateway.cli import endings, output
from gateway.cli.failures import FOUND, fault_line, refusals
from gateway.cli.options import AsJson
from gateway.errors import Fault, Invalid
from gateway.policy.document_files import read_document
from gateway.policy.documents import lint, parse
from gateway.policy.endings import ending
from gateway.policy.suite_schema import suite_schema
from gateway.policy.suites import SuiteReport, check_suite, read_suite, run_suite
from gateway.policy.tokens import FIELD
from gateway.web.api.shapes_ends import EndShape, ends

SUITES: Final = (".yaml", ".yml")


def lint_path(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A policy document.", exists=True, dir_okay=False)],
    as_json: AsJson = False,
) -> None:
    """Names every fault of a document with its place, and warns of what is perhaps not meant."""
    with refusals(finding=FIELD):
        text, now = read_document(file), datetime.now(UTC)
        faults, warnings = lint(text, now)
        ending_soon = ends(ending(parse(text), now)) if not faults else []
    found = {"faults": [_entry(one) for one in faults], "warnings": [_entry(one) for one in warnings]}
    output.show(as_json, found | {"ends": ending_soon}, lambda _found: _print_lint(file, faults, warnings, ending_soon))
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
        reports = [_report(path) for path in _named(paths)]
    output.show(as_json, {"suites": [report_shape(one) for one in reports]}, lambda _shown: tell(reports))
    if any(report.failures for report in reports):
        raise typer.Exit(FOUND)


def schema(
    as_json: Annotated[bool, typer.Option("--json", help="The same: the schema is JSON anyway.")] = False,
) -> None:
    """Prints the JSON schema of suites, for editors: keep it beside them as suite.schema.json."""
    output.show(as_json, suite_schema(), output.show_json)


def reports_about(document: Path, folder: Path, text: str) -> list[SuiteReport]:
    """What the suites in a folder that name this document say of `text`, which it holds.

    A suite that can't be read may be one of them, so it fails.
    """
    reports = []
    for path in _suites_in(folder):
        try:
            suite = read_suite(path)
            if suite.policy is not None and (path.parent / suite.policy).resolve() == document.resolve():
                reports.append(check_suite(suite, path, text))
        except Invalid as error:
            reports.append(_failed(path, error))
    return reports


def _named(paths: Iterable[Path]) -> list[Path]:
    found = [suite for path in paths for suite in (_suites_in(path) if path.is_dir() else [path])]
    if not found:
        raise Invalid.of("PATH", "suites", "There is no suite (*.yaml) there, so nothing was proved.")
    return found


def _suites_in(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.suffix in SUITES)


def _report(path: Path) -> SuiteReport:
    """A suite that can't be run is a failure of its own, and does not keep the others from running."""
    try:
        return run_suite(path)
    except Invalid as error:
        return _failed(path, error)


def _failed(path: Path, error: Invalid) -> SuiteReport:
    return SuiteReport(path=path, checks=0, failures=tuple(fault_line(fault) for fault in error.faults))


def _entry(fault: Fault) -> dict[str, Any]:
    """A fault as problem documents show it."""
    place = (("line", fault.line), ("column", fault.column))
    known = {name: value for name, value in place if value is not None}
    return {"field": fault.field, "rule": fault.rule, "message": fault.message, **known}


def report_shape(report: SuiteReport) -> dict[str, Any]:
    """The object that `--json` prints of a suite."""
    return {"path": str(report.path), "checks": report.checks, "failures": list(report.failures)}


def _print_lint(
    file: Path, faults: tuple[Fault, ...], warnings: tuple[Fault, ...], ending_soon: list[EndShape]
) -> None:
    for line in (*placed(file, faults, "fault"), *placed(file, warnings, "warning"), *endings.sentences(ending_soon)):
        output.say(line)
    output.say(f"{file}: {output.counted(len(faults), 'fault')}, {output.counted(len(warnings), 'warning')}")


def complain_of(file: Path, faults: Iterable[Fault], word: str) -> None:
    """Tells faults or warnings of a file on standard error, where something else is the command's answer."""
    for line in placed(file, faults, word):
        output.complain(line)


def placed(file: Path, found: Iterable[Fault], word: str) -> Iterator[str]:
    """Each fault or warning with its place, as editors and CI know such lines."""
    for fault in found:
        place = ":".join(str(part) for part in (file, fault.line, fault.column) if part is not None)
        yield f"{place}: {word}: {fault.message} ({fault.rule})"


def tell(reports: Iterable[SuiteReport]) -> None:
    """Prints how many answers each suite looked at, and what came out otherwise."""
    for report in reports:
        output.say(f"{report.path}: {output.counted(report.checks, 'check')}, {len(report.failures)} failed")
        for failure in report.failures:
            output.say(f"  {failure}")
