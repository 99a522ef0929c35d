"""What all commands share: who asks, for which tenant, by which settings; exit codes; and what a terminal is shown."""

from __future__ import annotations

import inspect
import io
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from gateway.cli import build, output
from tests.terminal import Terminal, environment

LOCAL = {"policy lint", "policy test", "policy schema"}  # a file is all they read, or nothing
LISTENS = {"serve"}


def commands(app: typer.Typer, before: str = "") -> Iterator[tuple[str, Any]]:
    for command in app.registered_commands:
        yield f"{before}{command.name}", command.callback
    for group in app.registered_groups:
        inner = group.typer_instance
        assert inner is not None
        yield from commands(inner, f"{inner.info.name} ")


def test_every_command_has_the_options_that_all_share() -> None:
    """Interface, "Command line": `--json` for the objects, `--tenant`, on every command."""
    wanting = []
    for name, callback in commands(build()):
        given = set(inspect.signature(callback).parameters)
        wanted = {"as_json"} if name in LOCAL else {"config"} if name in LISTENS else {"as_json", "config", "tenant"}
        if name.startswith(("tenants ", "keys ")):  # organisations themselves, and what no organisation owns
            wanted -= {"tenant"}
        if not wanted <= given:
            wanting.append(name)

    assert wanting == []


def test_every_command_that_reads_a_tenant_leaves_a_record_of_it(terminal: Terminal) -> None:
    """Design section 3: there is no second way to run anything; each command is one of the operations, audited."""
    demo = terminal.demo
    token = terminal.run("token", "list", "bob", "--json").json["items"][0]["id"]
    sign_in = ("--issuer", "https://id.example.com", "--subject", "00u1")
    new = Path("new.csv")
    new.write_text(terminal.run("policy", "show").out, encoding="utf-8")
    other = Path("other.csv")
    other.write_text(f"# More.\n{new.read_text(encoding='utf-8')}", encoding="utf-8")
    expected: list[tuple[str | None, tuple[str, ...], str]] = [
        (None, ("agents", "list"), "agents.list"),
        (None, ("agents", "add", "hotel"), "agents.add"),
        (None, ("agents", "show", "hotel"), "agents.show"),
        (None, ("people", "list"), "people.list"),
        (None, ("people", "add", "frank"), "people.add"),
        (None, ("people", "link", terminal.ids["bob"], *sign_in), "people.link"),
        (None, ("people", "unlink", terminal.ids["bob"], *sign_in), "people.unlink"),
        (None, ("people", "roles", terminal.ids["bob"]), "people.show"),
        (None, ("people", "roles", terminal.ids["bob"], "--set", "member"), "people.roles"),
        (None, ("token", "create", terminal.ids["bob"]), "people.tokens.create"),
        (None, ("token", "list", terminal.ids["bob"]), "people.tokens.list"),
        ("alice", ("token", "create"), "me.tokens.create"),
        ("alice", ("token", "list"), "me.tokens.list"),
        ("alice", ("agents", "list", "--mine"), "agents.mine"),
        ("alice", ("sessions", "list"), "sessions.list"),
        ("alice", ("sessions", "show", demo.private), "sessions.show"),
        ("alice", ("sessions", "tree", demo.private), "sessions.list"),
        ("alice", ("context", demo.private), "context.assemble"),
        (None, ("policy", "show"), "policy.show"),
        (None, ("policy", "publish", str(new), "--base", "1", "--comment", "Again."), "policy.publish"),
        (None, ("policy", "history"), "policy.history"),
        (None, ("policy", "pull"), "policy.show"),
        (None, ("policy", "diff", "--version", "1"), "policy.version"),
        (None, ("policy", "push", str(other), "--base", "2", "--comment", "More."), "policy.publish"),
        (None, ("policy", "rollback", "1"), "policy.rollback"),
        (None, ("audit", "tail"), "audit.read"),
        (None, ("audit", "verify"), "audit.verify"),
        (None, ("doctor",), "audit.verify"),
        (None, ("token", "revoke", token, "--person", terminal.ids["bob"]), "people.tokens.revoke"),
    ]
    for who, words, _ in expected:
        answer = terminal.run(*words, who=who)
        assert answer.code == 0, (words, answer.err)

    done = iter(terminal.operations())
    for _, words, operation in expected:
        assert (operation, "allow") in done, words  # `in` goes on from where the last one was found


def test_a_token_decides_who_asks_and_where(terminal: Terminal) -> None:
    """Design section 5: the tenant comes from the credential; naming another is refused, and recorded."""
    assert terminal.run("tenants", "add", "acme", "--owner", "alice@example.com").code == 0
    assert terminal.run("people", "list", "--tenant", "demo", who="erin").code == 0

    other = terminal.run("people", "list", "--tenant", "acme", who="erin")
    changing = terminal.run("people", "add", "frank", "--tenant", "acme", who="erin")

    assert (other.code, other.out, changing.code) == (3, "", 3)
    assert "frank" not in terminal.run("people", "list", "--tenant", "acme").out
    assert "frank" not in terminal.run("people", "list", "--tenant", "demo").out


@pytest.mark.parametrize("token", ["", "gwp_nonsense", "Bearer x", "gwt_0", "eyJhbGciOiJub25lIn0.e30."])
def test_a_bad_token_never_makes_the_operator_of_anybody(terminal: Terminal, token: str) -> None:
    """A token that is there and not good refuses; an empty one is one that somebody forgot to fill."""
    answer = terminal.run("people", "list", env={"GATEWAY_TOKEN": token})

    assert (answer.code, answer.out) == (3, "")
    assert "Set it to one, or unset it" in answer.err
    assert not token or token not in answer.err


def test_the_operator_names_the_tenant_where_there_are_several(terminal: Terminal) -> None:
    """Without `--tenant` it is the only one there is; else exit code 2, with the list."""
    assert terminal.run("people", "list").code == 0
    assert terminal.run("tenants", "add", "acme", "--owner", "alice@example.com").code == 0

    several = terminal.run("people", "list")
    unknown = terminal.run("people", "list", "--tenant", "nobody")

    for answer in (several, unknown):
        assert (answer.code, answer.out) == (2, "")
        assert "acme, demo" in answer.err
    assert terminal.run("people", "list", "--tenant", "acme").code == 0


def test_without_any_tenant_the_operator_is_told_how_to_make_one(terminal: Terminal, tmp_path: Path) -> None:
    """Exit code 2."""
    answer = terminal.run("people", "list", env={"GATEWAY_STATE__FOLDER": str(tmp_path / "empty")})

    assert answer.code == 2
    assert "gateway tenants add NAME --owner EMAIL" in answer.err


def test_every_fault_of_the_settings_is_told_at_once(terminal: Terminal) -> None:
    """Exit code 2, each with its name, and nothing is opened."""
    config = Path("faulty.toml")
    config.write_text("[server]\nprot = 1\n[log]\nlevel = 'loud'\n", encoding="utf-8")

    answer = terminal.run("people", "list", "--config", str(config), env={"GATEWAY_AUDIT__FLUSH_MS": "0"})

    assert (answer.code, answer.out) == (2, "")
    for name in ("server.prot", "log.level", "GATEWAY_AUDIT__FLUSH_MS"):
        assert f"  {name}: " in answer.err


def test_a_state_folder_that_cant_be_made_is_unavailable(terminal: Terminal, tmp_path: Path) -> None:
    """Exit code 4."""
    file = tmp_path / "file"
    file.touch()

    answer = terminal.run("people", "list", env={"GATEWAY_STATE__FOLDER": str(file / "state")})

    assert (answer.code, answer.out) == (4, "")
    assert "Name another: state.folder" in answer.err


def test_wrong_words_are_wrong_use(terminal: Terminal) -> None:
    """Exit code 2, before anything is opened."""
    for words in (
        ("people", "dance"),
        ("people", "list", "--limit", "0"),
        ("policy", "rollback", "last"),
        ("nonsense",),
    ):
        assert terminal.run(*words).code == 2, words
    assert terminal.run("people", "roles", "bob", "--set", "member", "--none").code == 2


def test_a_pipe_gets_plain_columns_without_an_id_cut_short(terminal: Terminal) -> None:
    """Human output stays readable when piped: no colours, no boxes, no truncated ids."""
    run = subprocess.run(
        [sys.executable, "-m", "gateway", "people", "list"],
        env={**environment(terminal.state), "COLUMNS": "20"},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )

    assert all(one in run.stdout for one in terminal.ids.values())
    assert run.stdout.isascii()
    assert "\x1b" not in run.stdout
    assert not any(line.endswith(" ") for line in run.stdout.splitlines())


class _Screen(io.StringIO):
    """Standard output that says it is a terminal of forty columns."""

    def isatty(self) -> bool:
        return True


def test_a_terminal_gets_folded_columns_and_nothing_it_would_obey(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Names and titles are written by other people; what is long is folded, not cut."""
    monkeypatch.setenv("COLUMNS", "40")
    screen = _Screen()
    monkeypatch.setattr(sys, "stdout", screen)
    long = "prf_" + "ABCDEFGHJK" * 4

    output.table(("id", "name"), [(long, "\x1b[2Jeve[bold]\u202e\n")])
    output.say("\x1b]0;title\x07")

    shown = screen.getvalue()
    assert "".join(shown.split()).replace("─", "").count("ABCDEFGHJK") >= 2
    assert long in "".join(line[1:21].strip() for line in shown.splitlines())
    assert "\x1b[2J" not in shown
    assert "\x1b]" not in shown
    assert "\u202e" not in shown
    assert "eve[bold" in shown
    assert "\\u001b]0;title\\u0007" in shown
