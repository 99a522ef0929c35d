"""Turns skipped tests into a list at the end of the run, and into a failure where `--all` asks for everything."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--all`: what this machine can't run is a failure; CI says so."""
    parser.addoption("--all", action="store_true", default=False, help="fail when anything could not run here")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Says what did not run here and why, also when that is nothing."""
    missing = list(_not_run(terminalreporter))
    terminalreporter.section("not run here")
    for name, reason in sorted(missing):
        terminalreporter.write_line(f"not run here: {name}: {reason}")
    if not missing:
        terminalreporter.write_line("nothing: every test of this run could run on this machine")
    elif config.getoption("--all"):
        terminalreporter.write_line("--all was given, so this run fails", red=True)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fails the run under `--all`; only the process that reports to a person knows of every skip."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or hasattr(session.config, "workerinput"):
        return
    if session.config.getoption("--all") and any(_not_run(reporter)) and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _not_run(reporter: pytest.TerminalReporter) -> Iterator[tuple[str, str]]:
    for report in reporter.stats.get("skipped", ()):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        yield report.nodeid, reason.removeprefix("Skipped: ")
    for report in reporter.stats.get("xfailed", ()):
        yield report.nodeid, f"expected to fail: {report.wasxfail}"
