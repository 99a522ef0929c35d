"""`gateway keys rotate`, and what the doctor says of the keys."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from gateway.cli.doctor.findings import State
from gateway.cli.doctor.keys import OLD, keys
from gateway.identity.turn_keys import KeyFolder
from tests.clock import SettableClock
from tests.terminal import Terminal


def test_a_rotation_says_what_signs_and_how_long_older_keys_verify(terminal: Terminal) -> None:
    """With `--at-once` none of them does."""
    first = KeyFolder(terminal.state)
    (old,) = (one.kid for one in first.read(first.names()))

    turned = terminal.run("keys", "rotate")
    made = turned.out.split()[0]

    assert (turned.code, made.startswith("key_")) == (0, True)
    assert f"{old} verifies until " in turned.out
    ended = terminal.run("keys", "rotate", "--at-once", "--json")
    assert ended.json["kept"] == []
    assert set(ended.json["dropped"]) == {old, made}
    again = terminal.run("keys", "rotate", "--at-once")
    assert f"{ended.json['made']} is gone." in again.out
    assert [one.kid for one in first.read(first.names())] == [again.out.split()[0]]


def test_only_the_operator_rotates(terminal: Terminal) -> None:
    """The keys are those of every tenant."""
    folder = KeyFolder(terminal.state)
    before = folder.names()

    answer = terminal.run("keys", "rotate", who="erin")

    assert (answer.code, answer.out) == (3, "")
    assert folder.names() == before


def test_what_can_not_be_rotated_says_why(terminal: Terminal, tmp_path: Path) -> None:
    """A folder that is not there is not made, and a damaged key is named with what helps."""
    nowhere = terminal.run("keys", "rotate", env={"GATEWAY_STATE__FOLDER": str(tmp_path / "nowhere")})
    assert nowhere.code == 4
    assert not (tmp_path / "nowhere").exists()

    damaged = KeyFolder(terminal.state).path / "key_01ZZZZZZZZZZZZZZZZZZZZZZZZ.json"
    damaged.write_text("{", encoding="utf-8")
    refused = terminal.run("keys", "rotate")
    assert refused.code == 4
    assert damaged.name in refused.err
    assert "--at-once" in refused.err

    assert terminal.run("keys", "rotate", "--at-once").code == 0
    assert terminal.run("keys", "rotate").code == 0

    folder = KeyFolder(tmp_path / "file")
    folder.path.parent.parent.mkdir()
    folder.path.parent.write_text("not a folder", encoding="utf-8")
    blocked = terminal.run("keys", "rotate", env={"GATEWAY_STATE__FOLDER": str(tmp_path / "file")})
    assert blocked.code == 4
    assert "can't be used" in blocked.err


def test_the_doctor_finds_a_damaged_key_and_one_that_others_can_read(terminal: Terminal) -> None:
    """Each with what to do; the gateway itself still starts, and refuses turn tokens alone."""
    folder = KeyFolder(terminal.state)
    (name,) = folder.names()
    assert _of(terminal) == [("ok", "Turn tokens are signed with a key that is 0 days old.")]

    (folder.path / name).chmod(0o644)
    ((state, message),) = _of(terminal)
    assert (state, name in message, "0644" in message) == ("fault", True, True)
    (folder.path / name).chmod(0o600)
    (folder.path / name).write_text("{}", encoding="utf-8")
    ((state, message),) = _of(terminal)
    assert (state, name in message) == ("fault", True)


def _of(terminal: Terminal) -> list[tuple[str, str]]:
    found = terminal.run("doctor", "--json").json["findings"]
    return [(one["state"], one["message"]) for one in found if one["check"] == "keys"]


def test_the_doctor_says_how_old_the_key_is(tmp_path: Path, clock: SettableClock) -> None:
    """A very old one is a warning; none at all, or an empty folder, says what to do."""
    assert [one.state for one in keys(tmp_path, clock.now())] == [State.OK]
    folder = KeyFolder(tmp_path)
    folder.ensure(clock.now())
    (young,) = keys(tmp_path, clock.now() + OLD)
    (old,) = keys(tmp_path, clock.now() + OLD + timedelta(seconds=1))
    assert (young.state, "365 days" in young.message) == (State.OK, True)
    assert (old.state, old.todo) == (State.WARNING, "Make one: gateway keys rotate")

    (folder.path / next(iter(folder.names()))).unlink()
    (empty,) = keys(tmp_path, clock.now())
    assert (empty.state, empty.todo) == (State.FAULT, "Make one: gateway keys rotate")

    (folder.path / ".lock").unlink()
    folder.path.rmdir()
    folder.path.write_text("not a folder", encoding="utf-8")
    (blocked,) = keys(tmp_path, clock.now())
    assert blocked.state is State.FAULT
    assert str(folder.path) in blocked.message
