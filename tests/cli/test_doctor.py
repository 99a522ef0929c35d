"""`gateway doctor`: each thing it looks at, once right and once wrong, and what to do about it."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import pytest

from gateway.app import compose
from gateway.cli.doctor.decisions import Population, policy
from gateway.cli.doctor.findings import State
from gateway.cli.doctor.machine import state_folder
from gateway.cli.running import Desk
from gateway.founding import DEMO
from gateway.identity.credentials import Credentials
from gateway.model import ANY_AGENT, AgentName, Profile, ProfileId, RoleAssignment, TenantId, Verdict
from gateway.policy.shipped import shipped
from gateway.policy.snapshot import Snapshot
from gateway.settings import load
from tests.clock import SettableClock
from tests.conftest import LogCapture
from tests.terminal import Terminal, environment


def _faults(terminal: Terminal) -> dict[str, str]:
    """Check to message, of the faults alone."""
    answer = terminal.run("doctor", "--json")
    found = {one["check"]: one["message"] for one in answer.json["findings"] if one["state"] == "fault"}
    assert answer.code == (1 if found else 0), answer.out
    return found


def test_nothing_is_wrong_with_the_demo(terminal: Terminal) -> None:
    """Each thing in one line; warnings alone leave the exit code 0."""
    answer = terminal.run("doctor")

    assert answer.code == 0, answer.out
    checks = {line.split(":")[0].split(maxsplit=1)[1] for line in answer.out.splitlines() if ":" in line}
    assert {"settings", "versions", "state", "schema", "policy of demo", "decisions of demo"} <= checks
    assert {"workspace flight of demo", "audit of demo", "clock of demo"} <= checks
    assert answer.out.endswith("Nothing is wrong.\n")


def test_only_the_operator_asks_the_doctor(terminal: Terminal) -> None:
    """It looks at every tenant of the machine, so no token of one is enough."""
    answer = terminal.run("doctor", who="erin")

    assert (answer.code, answer.out) == (3, "")


def test_faults_of_settings_are_findings(terminal: Terminal) -> None:
    """All of them at once, and the rest is not looked at."""
    answer = terminal.run("doctor", env={"GATEWAY_SERVER__PORT": "no", "GATEWAY_NONSENSE": "1"})

    assert answer.code == 1
    assert "GATEWAY_SERVER__PORT" in answer.out
    assert "GATEWAY_NONSENSE" in answer.out
    assert "schema" not in answer.out


def test_another_casbin_than_ours_is_a_finding_and_nothing_starts(terminal: Terminal, tmp_path: Path) -> None:
    """Design section 13: the old distribution `casbin` overwrites `pycasbin` without anybody's complaint."""
    installed = tmp_path / "site" / "casbin-1.0.dist-info"
    installed.mkdir(parents=True)
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: casbin\nVersion: 1.0\n", encoding="utf-8")
    variables = environment(terminal.state)
    variables["PYTHONPATH"] += f"{os.pathsep}{installed.parent}"

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "gateway", *words]
        return subprocess.run(command, env=variables, capture_output=True, text=True, timeout=60, check=False)

    looked, listed = run("doctor"), run("people", "list")

    assert looked.returncode == 1
    assert "fault   versions: casbin: " in looked.stdout
    assert "schema" not in looked.stdout
    assert (listed.returncode, listed.stdout) == (2, "")
    assert "  casbin: " in listed.stderr


def test_a_state_folder_that_others_can_read_is_a_fault(terminal: Terminal) -> None:
    """Conversations and keys are in it."""
    terminal.state.chmod(0o755)
    (terminal.state / "audit.key").chmod(0o644)

    answer = terminal.run("doctor")

    assert answer.code == 1
    assert f"Run: chmod 700 {terminal.state}" in answer.out
    assert f"Run: chmod 600 {terminal.state / 'audit.key'}" in answer.out


def test_a_state_folder_that_is_none_is_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Missing, a file in its place, or another user's."""
    file = tmp_path / "file"
    file.touch()
    mine = tmp_path / "mine"
    mine.mkdir(mode=0o700)
    assert [one.state for one in state_folder(mine)] == [State.OK]

    for place in (tmp_path / "missing", file):
        assert [one.state for one in state_folder(place)] == [State.FAULT]
    monkeypatch.setattr(os, "getuid", lambda: mine.stat().st_uid + 1)
    assert "belongs to another user" in next(iter(state_folder(mine))).message


def test_a_machine_without_state_is_told_how_to_begin(terminal: Terminal, tmp_path: Path) -> None:
    """Looking makes nothing."""
    empty = tmp_path / "other"

    answer = terminal.run("doctor", env={"GATEWAY_STATE__FOLDER": str(empty)})

    assert answer.code == 1
    assert "gateway serve" in answer.out
    assert not empty.exists()
    empty.mkdir(mode=0o700)
    assert "gateway tenants add" in terminal.run("doctor", env={"GATEWAY_STATE__FOLDER": str(empty)}).out


def test_a_newer_schema_and_a_broken_store_are_findings(terminal: Terminal) -> None:
    """What can't be opened is said, and no command goes on."""
    file = terminal.state / "gateway.sqlite"
    with sqlite3.connect(file) as database:
        database.execute("UPDATE schema_version SET version = 99")
    database.close()
    assert "newer gateway" in _faults(terminal)["schema"]
    assert terminal.run("people", "list").code == 2

    file.write_bytes(b"this is no database, " * 400)
    for side in ("-wal", "-shm"):
        Path(f"{file}{side}").unlink(missing_ok=True)
    assert "store" in _faults(terminal)
    away = terminal.run("people", "list")
    assert (away.code, away.out) == (4, "")
    assert away.err.startswith("gateway: ")


def test_every_file_that_is_never_read_is_named(terminal: Terminal) -> None:
    """Links, second names, pipes and odd names (design section 6, confinement); nothing is changed by looking."""
    workspace = terminal.state / "workspaces" / "demo" / "flight"
    (workspace / "link.md").symlink_to("/etc/hostname")
    (workspace / "folder").symlink_to(workspace / "memory")
    os.link(workspace / "SOUL.md", workspace / "second.md")
    os.mkfifo(workspace / "memory" / "pipe")
    (workspace / "100%.md").write_text("x", encoding="utf-8")
    (workspace / "bytes.md").write_bytes(b"\xff")
    (workspace / "AGENTS.md").unlink()
    before = sorted(workspace.rglob("*"))

    out = terminal.run("doctor").out

    for told in ("link.md is a link", "folder is a link", "memory/pipe is not a regular file", "bytes.md: "):
        assert told in out
    for told in (
        "SOUL.md has a second name",
        "second.md has a second name",
        "100%.md has a name",
        "AGENTS.md is missing",
    ):
        assert told in out
    assert sorted(workspace.rglob("*")) == before


def test_a_workspace_that_is_away_is_a_fault(terminal: Terminal) -> None:
    """A volume that is not mounted must not look like an agent without memory."""
    shutil.rmtree(terminal.state / "workspaces" / "demo" / "flight")

    assert "workspace flight" in _faults(terminal)


def test_a_tenant_that_cant_be_looked_at_does_not_keep_the_others_from_it(terminal: Terminal) -> None:
    """Design section 12: one tenant's failure does not stop another's work."""
    assert terminal.run("tenants", "add", "acme", "--owner", "alice@example.com").code == 0
    with sqlite3.connect(terminal.state / "gateway.sqlite") as database:
        database.execute("DELETE FROM policy_versions WHERE tenant = 'acme'")
    database.close()

    answer = terminal.run("doctor")

    assert answer.code == 1
    assert "fault   tenant of acme: " in answer.out
    assert "ok      audit of demo: " in answer.out
    assert "acme" not in terminal.run("doctor", "--tenant", "demo").out


def test_a_clock_that_was_set_back_is_a_fault(terminal: Terminal, logs: LogCapture) -> None:
    """Ended rows and tokens would live again."""
    later = SettableClock(datetime.now(UTC) + timedelta(days=1))
    settings = load(None, {"GATEWAY_STATE__FOLDER": str(terminal.state)})

    async def work_tomorrow() -> None:
        async with compose(settings, logs.loggers, clock=later, local_operator=True).running() as gateway:
            await Desk(gateway, Credentials(operator_of=DEMO)).ask(gateway.catalogue.agents.list)

    asyncio.run(work_tomorrow())

    assert "clock" in _faults(terminal)


def _population(*roles: str) -> Population:
    held = tuple(RoleAssignment(role=role, agent=ANY_AGENT) for role in roles)
    alice = Profile(id=ProfileId("prf_" + "0" * 26), tenant=TenantId("acme"), name="alice", kind="person", roles=held)
    return Population(tenant=TenantId("acme"), people=[alice], agents=[AgentName("flight")])


def test_decisions_that_differ_from_plain_casbin_are_found(
    clock: SettableClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Design section 7: the whole document in one plain enforcer is the oracle, and the doctor runs it."""
    text = shipped("default.csv")
    agreed = policy(text, _population("member"), clock, Random(7))
    assert [one.state for one in agreed] == [State.OK]
    assert agreed[0].message.startswith("400 answers")

    # A slice that allows too much is what the check is there for; there is no real one to be had.
    monkeypatch.setattr(Snapshot, "decide", lambda *_: Verdict(allowed=True, code="allowed", rule=None))
    differ = policy(text, _population("member"), clock, Random(7))

    assert [one.state for one in differ] == [State.FAULT]
    assert "role:member" in differ[0].message


def test_the_comparison_ends_in_time_and_needs_people(clock: SettableClock, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plain enforcer reads every row for every question, so a large document gets fewer of them."""
    ticks = iter(range(0, 1000, 3))
    monkeypatch.setattr(clock, "monotonic", lambda: float(next(ticks)))
    assert policy(shipped("default.csv"), _population("member"), clock, Random(7))[0].message.startswith("1 answers")
    nobody = Population(tenant=TenantId("acme"), people=[], agents=[])
    assert policy("", nobody, clock, Random(7))[0].message.startswith("0 answers")


def test_a_document_with_faults_is_named_and_not_compared(clock: SettableClock) -> None:
    """A published document could only get faults past the gateway."""
    found = policy("p, role:member\n", _population("member"), clock, Random(7))

    assert [one.state for one in found] == [State.FAULT]
    assert "line 1" in found[0].message
