"""`gateway leak-test`: what it prints, how it exits, and that it leaves the machine's own state alone."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

import pytest

from gateway.leak_test import run
from gateway.leak_test.run import Part, leak_test
from tests.leak.holes import LISTS, list_without_scope
from tests.terminal import Terminal

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def in_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command over lists alone, as two people: the whole is tests/leak/test_clean.py's."""
    part = Part(caller=lambda label: label in ("alice", "bob"), row=lambda row: row == LISTS)
    monkeypatch.setattr(run, "leak_test", partial(leak_test, part=part))


@pytest.mark.usefixtures("in_part")
def test_it_tries_the_document_in_force_and_prints_a_matrix(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit code 0 where nothing leaks and 1 where something does, named; nothing of it stays."""
    before = _files(terminal.state)
    clean = terminal.run("leak-test")

    assert clean.code == 0, clean.out
    assert clean.out.startswith("Under version 1, which is in force: ")
    assert clean.out.rstrip().endswith("Nothing leaked.")
    assert re.search(r"^caller +alice +bob ", clean.out, re.MULTILINE)
    assert re.search(r"^bob +[1-9]\d*/\d+ +[1-9]\d*/\d+ ", clean.out, re.MULTILINE)
    assert _files(terminal.state) == before

    with monkeypatch.context() as patch:
        list_without_scope(patch, None)  # type: ignore[arg-type]  # it needs no world
        told = terminal.run("leak-test")

    assert told.code == 1
    line = r"^LEAK: bob: \S+'s .+ \((title|session id)\), by GET /v1/sessions, asked from outside: shown$"
    assert re.search(line, told.out, re.MULTILINE)
    assert re.search(r"^bob +LEAK \d+ ", told.out, re.MULTILINE)
    assert "Nothing leaked" not in told.out


@pytest.mark.usefixtures("in_part")
def test_a_document_of_ones_own_is_tried_without_any_state(terminal: Terminal, tmp_path: Path) -> None:
    """`--policy FILE`: a draft, or what a team keeps in Git; without a state folder, the demo's. Nothing is made."""
    nowhere = {"GATEWAY_STATE__FOLDER": str(tmp_path / "none")}
    closed = tmp_path / "closed.csv"
    closed.write_text("p, role:owner, *, admin/*, self, own, private, *, allow\n")

    demo = terminal.run("leak-test", "--json", env=nowhere)
    assert demo.code == 0
    shown = demo.json
    assert (shown["policy"], shown["clean"], shown["leaks"], shown["lost"]) == ("the demo's document", True, [], [])
    assert shown["matrix"]["bob"]["bob"]["seen"] > 0
    assert shown["matrix"]["bob"]["carol"] == {
        "seen": 0,
        "hidden": shown["matrix"]["bob"]["carol"]["hidden"],
        "leaked": 0,
    }
    assert shown["requests"] == sum(shown["requests_by_route"].values()) == shown["requests_by_route"][LISTS]
    nothing = terminal.run("leak-test", "--policy", str(closed), env=nowhere)
    assert nothing.code == 1
    assert "NOTHING SHOWN: nothing at all was shown to anybody, so nothing was proved" in nothing.out
    assert not (tmp_path / "none").exists()


def test_wrong_use_is_told_before_anything_is_planted(terminal: Terminal, tmp_path: Path) -> None:
    """A document with faults, a file that is not there, too few people, and somebody with a token."""
    faulty = tmp_path / "faulty.csv"
    faulty.write_text("p, nobody\n")

    bad = terminal.run("leak-test", "--policy", str(faulty))
    assert bad.code == 2
    assert "policy, line 1" in bad.err
    assert terminal.run("leak-test", "--policy", str(tmp_path / "none.csv")).code == 2
    assert terminal.run("leak-test", "--people", "3").code == 2
    refused = terminal.run("leak-test", who="alice")
    assert refused.code == 3
    assert "Only the operator of this machine" in refused.err


def _files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}
