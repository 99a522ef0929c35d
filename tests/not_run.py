"""Turns skipped tests into a list at the end of the run, and into a failure where `--all` asks for everything."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--all` for CI; `--not-run-list` for scripts/test, which shows the list after everything else."""
    parser.addoption("--all", action="store_true", default=False, help="fail when anything could not run here")
    parser.addoption("--not-run-list", type=Path, default=None, help="write what could not run here to this file")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Says what did not run here and why, also when that is nothing."""
    lines = list(_lines(terminalreporter, config))
    path: Path | None = config.getoption("--not-run-list")
    if path is not None:
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        return
    terminalreporter.section("not run here")
    for line in lines:
        terminalreporter.write_line(line)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fails the run under `--all`; only the process that reports to a person knows of every skip."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or hasattr(session.config, "workerinput"):
        return
    if session.config.getoption("--all") and any(_not_run(reporter)) and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _lines(reporter: pytest.TerminalReporter, config: pytest.Config) -> Iterator[str]:
    missing = sorted(_not_run(reporter))
    yield from (f"not run here: {name}: {reason}" for name, reason in missing)
    if not missing:
        yield "not run here: nothing; every test of this run could run on this machine"
    elif config.getoption("--all"):
        yield "--all was given, so this run fails"


def _not_run(reporter: pytest.TerminalReporter) -> Iterator[tuple[str, str]]:
    for report in reporter.stats.get("skipped", ()):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        yield report.nodeid, reason.removeprefix("Skipped: ")
    for report in reporter.stats.get("xfailed", ()):
        yield report.nodeid, f"expected to fail: {report.wasxfail}"
