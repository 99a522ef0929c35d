"""Turns small suites with skips into the list at the end of a run, through the real workers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

SUITE = """
import pytest
pytestmark = pytest.mark.filterwarnings("default")
def test_that_runs(): pass
@pytest.mark.skipif(True, reason="no PostgreSQL on this machine")
def test_of_postgres(): pass
@pytest.mark.xfail(reason="not written", strict=True)
def test_to_come(): assert False
"""
NEVER_COLLECTED = 'import pytest\npytest.skip("no browser on this machine", allow_module_level=True)\n'


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """One run of pytest in a process of its own, with two workers and our plugin."""
    command = [sys.executable, "-m", "pytest", "-p", "tests.not_run", "-p", "no:cacheprovider", "-n", "2", *arguments]
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "COVERAGE", "COV_"))}
    environ["PYTHONPATH"] = str(ROOT)
    (folder / "pytest.ini").touch()
    return subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, timeout=60)


def test_what_could_not_run_is_listed_with_its_reason_and_fails_with_all(tmp_path: Path) -> None:
    """Issue 2: scripts/test ends with a list of what it could not run and why; `--all`, which CI uses, fails on it."""
    (tmp_path / "test_some.py").write_text(SUITE, encoding="utf-8")
    (tmp_path / "test_page.py").write_text(NEVER_COLLECTED, encoding="utf-8")
    path = tmp_path / "list"

    plain, strict = run(tmp_path), run(tmp_path, "--all", "--not-run-list", str(path))

    assert plain.returncode == pytest.ExitCode.OK
    assert strict.returncode == pytest.ExitCode.TESTS_FAILED
    expected = [
        "not run here: test_page.py: no browser on this machine",
        "not run here: test_some.py::test_of_postgres: no PostgreSQL on this machine",
        "not run here: test_some.py::test_to_come: expected to fail: not written",
    ]
    assert [line for line in plain.stdout.splitlines() if line.startswith("not run here: ")] == expected
    assert path.read_text(encoding="utf-8").splitlines() == [*expected, "--all was given, so this run fails"]


def test_a_run_of_everything_says_so_and_passes_with_all(tmp_path: Path) -> None:
    """Ours: an empty list is told too, so that a missing one is noticed."""
    (tmp_path / "test_some.py").write_text("def test_that_runs(): pass\n", encoding="utf-8")

    done = run(tmp_path, "--all")

    assert done.returncode == pytest.ExitCode.OK
    assert "not run here: nothing; every test of this run could run on this machine" in done.stdout
