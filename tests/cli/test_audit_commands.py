"""`gateway audit`: the same records as the REST interface, whole exports, and a changed record that is found."""

from __future__ import annotations

import sqlite3
import stat
from pathlib import Path

import orjson

from tests.terminal import Terminal


def _tamper(terminal: Terminal) -> None:
    """What somebody with the database in hand could do: rewrite one answer."""
    with sqlite3.connect(terminal.state / "gateway.sqlite") as database:
        tables = [row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE name LIKE 'audit%'")]
        holding = [
            table for table in tables if "effect" in [c[1] for c in database.execute(f"PRAGMA table_info({table})")]
        ]
        changed = database.execute(f"UPDATE {holding[0]} SET effect = 'deny' WHERE sequence = 3").rowcount
    database.close()
    assert changed == 1


def test_the_newest_records_are_printed_and_narrowed(terminal: Terminal) -> None:
    """Interface: audit tail with the filters of the REST interface."""
    terminal.run("sessions", "show", terminal.demo.private, who="bob")
    path = f"/v1/admin/audit?limit=20&to=2100-01-01T00:00:00Z&person={terminal.ids['bob']}&effect=deny"

    denied = terminal.run(
        "audit", "tail", "--person", terminal.ids["bob"], "--effect", "deny", "--to", "2100-01-01T00:00:00Z",
        "--json", who="audrey",
    )  # fmt: skip
    printed = terminal.run("audit", "tail", "--person", "bob@example.com", "--effect", "deny", who="erin")

    assert denied.code == 0, denied.err
    assert {one["operation"] for one in denied.json["items"]} == {"sessions.show"}
    assert denied.json == terminal.rest("GET", path, who="audrey")
    lines = printed.out.splitlines()
    assert terminal.demo.private in printed.out  # in a pipe nothing is cut
    assert [line.split()[0] for line in lines[1:]] == sorted(line.split()[0] for line in lines[1:])


def test_who_may_not_read_the_audit_reads_nothing_of_it(terminal: Terminal) -> None:
    """`admin/audit` is an auditor's and an admin's; wrong words are wrong use, each named."""
    target = Path("audit.jsonl")
    for words in (("tail",), ("verify",), ("export",), ("export", "--output", str(target))):
        answer = terminal.run("audit", *words, who="alice")
        assert (answer.code, answer.out) == (3, ""), words
    assert not target.exists()

    faulty = terminal.run("audit", "tail", "--kind", "gossip", "--from", "yesterday")

    assert faulty.code == 2
    assert "  kind: " in faulty.err
    assert "  from: " in faulty.err


def test_an_export_holds_every_record_once_in_order(terminal: Terminal) -> None:
    """All pages, oldest first, one JSON object a line, up to the moment it began."""
    for _ in range(3):
        terminal.run("context", terminal.demo.private, who="alice")
    target = Path("audit.jsonl")

    written = terminal.run("audit", "export", "--output", str(target), who="audrey")
    records = [orjson.loads(line) for line in target.read_bytes().splitlines()]
    again = terminal.run("audit", "export", "--output", str(target), who="audrey")
    narrowed = terminal.run("audit", "export", "--kind", "access", "--json", who="audrey")

    assert written.code == 0, written.err
    assert [one["id"] for one in records] == [str(number) for number in range(1, len(records) + 1)]
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert again.code == 2
    assert "can't be made" in again.err
    assert [orjson.loads(line) for line in target.read_bytes().splitlines()] == records
    assert {orjson.loads(line)["kind"] for line in narrowed.out.splitlines()} == {"access"}


def test_an_export_goes_on_over_pages(terminal: Terminal) -> None:
    """More records than one page holds, none twice and none left out."""
    for _ in range(16):
        terminal.run("context", terminal.demo.private, who="alice")

    lines = terminal.run("audit", "export").out.splitlines()

    assert len(lines) > 200
    assert [orjson.loads(line)["id"] for line in lines] == [str(number) for number in range(1, len(lines) + 1)]


def test_a_changed_record_is_found(terminal: Terminal) -> None:
    """Design section 12: the chain is keyed. Exit code 1, also of the doctor."""
    sound = terminal.run("audit", "verify", "--json", who="audrey")
    assert sound.code == 0
    assert sound.json["sound"] is True
    _tamper(terminal)

    broken = terminal.run("audit", "verify")
    as_json = terminal.run("audit", "verify", "--json")
    doctor = terminal.run("doctor")

    assert (broken.code, as_json.code, doctor.code) == (1, 1, 1)
    assert as_json.json["sound"] is False
    assert as_json.json["faults"][0] in broken.out
    assert "fault   audit of demo: " in doctor.out
