"""`gateway policy`: lint and test without a gateway; publish, history, rollback, explain through the pipeline."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from gateway.policy.shipped import shipped
from tests.terminal import Terminal

POLICIES = Path(__file__).parents[2] / "policies"
FAULTY = "p, role:member, flight, session/private, everything, own, private, read, allow\np, role:member\n"


def _publish(terminal: Terminal, text: str, base: int, who: str | None = "erin") -> tuple[int, str]:
    file = Path("new.csv")
    file.write_text(text, encoding="utf-8")
    answer = terminal.run("policy", "publish", str(file), "--base", str(base), "--comment", "Try it.", who=who)
    return answer.code, answer.err


def test_lint_names_every_fault_with_its_place(terminal: Terminal) -> None:
    """Design section 7: every fault with its line, before Casbin sees it. Exit code 1; it needs no settings."""
    faulty = Path("faulty.csv")
    faulty.write_text(FAULTY, encoding="utf-8")

    found = terminal.run("policy", "lint", str(faulty), "--json")
    printed = terminal.run("policy", "lint", str(faulty), env={"GATEWAY_SERVER__PORT": "nonsense"})
    good = terminal.run("policy", "lint", str(POLICIES / "default.csv"))

    assert (found.code, printed.code, good.code) == (1, 1, 0), good.out
    assert [(one["line"], one["field"]) for one in found.json["faults"]] == [(1, "text"), (2, "text")]
    assert "faulty.csv:1:" in printed.out
    assert "faulty.csv:2:" in printed.out
    assert good.out.endswith("default.csv: 0 faults, 0 warnings\n")
    demo = terminal.run("policy", "lint", str(POLICIES / "demo" / "visibility.csv"))
    assert demo.code == 0
    assert "warning: This deny also holds for" in demo.out


def test_a_file_that_cant_be_read_is_named(terminal: Terminal) -> None:
    """Bytes that are not UTF-8 are a fault of the document; a file that is not there is wrong use."""
    Path("bytes.csv").write_bytes(b"p, role:member\xff")

    not_text = terminal.run("policy", "lint", "bytes.csv")

    assert not_text.code == 1
    assert "bytes.csv is not UTF-8" in not_text.err
    assert terminal.run("policy", "lint", "missing.csv").code == 2
    long = "a" * 300
    assert terminal.run("policy", "lint", long).code == 2


def test_suites_run_from_files_and_folders(terminal: Terminal, tmp_path: Path) -> None:
    """A pair left out must be denied; a suite that can't be read fails and does not stop the others."""
    good = terminal.run("policy", "test", str(POLICIES / "tests"))
    assert good.code == 0, good.out
    assert "default.yaml: " in good.out

    suites = tmp_path / "suites"
    suites.mkdir()
    (suites / "a.yaml").write_text("people: {alice: [role:nobody]}\n", encoding="utf-8")
    (suites / "b.yaml").write_text(
        "rows: ''\npeople:\n  alice: [role:member]\ncases:\n"
        "  - [alice, flight, session/private, self, own, private, history, allow]\n",
        encoding="utf-8",
    )
    failed = terminal.run("policy", "test", str(suites), "--json")
    (tmp_path / "empty").mkdir()
    empty = terminal.run("policy", "test", str(tmp_path / "empty"))

    assert failed.code == 1
    assert [(one["checks"], len(one["failures"])) for one in failed.json["suites"]] == [(0, 1), (1, 1)]
    assert "alice should be allowed history" in terminal.run("policy", "test", str(suites)).out
    assert (empty.code, empty.out) == (2, "")


def test_a_document_is_shown_changed_and_published(terminal: Terminal) -> None:
    """Publishing is in force at once, and only on the version that it was based on."""
    shown = terminal.run("policy", "show")
    assert shown.out == shipped("demo/visibility.csv")
    assert terminal.run("policy", "show", "--json", who="erin").json == terminal.rest(
        "GET", "/v1/admin/policy", who="erin"
    )
    row = "p, role:member, flight, session/shared, all, any, *, list, deny\n"
    assert terminal.demo.group in terminal.run("sessions", "list", who="bob").out

    published = _publish(terminal, shown.out + row, 1)
    stale = _publish(terminal, shown.out, 1)

    assert published == (0, "")
    assert stale[0] == 1
    assert stale[1].startswith("gateway: ")
    assert terminal.demo.group not in terminal.run("sessions", "list", who="bob").out
    history = terminal.run("policy", "history", "--json", who="erin")
    assert [one["version"] for one in history.json["items"]] == [2, 1]
    assert history.json == terminal.rest("GET", "/v1/admin/policy/versions", who="erin")
    assert "Try it." in terminal.run("policy", "history").out


def test_a_document_with_faults_is_not_published(terminal: Terminal) -> None:
    """Exit code 1 with every fault; wrong use of an option is 2; a member is refused."""
    faulty = _publish(terminal, FAULTY, 1)
    lockout = _publish(terminal, "p, role:member, *, session/*, agent, shared, private, *, allow\n", 1)
    no_comment = terminal.run("policy", "publish", str(POLICIES / "default.csv"), "--base", "1", "--comment", "")
    no_base = terminal.run("policy", "publish", str(POLICIES / "default.csv"), "--comment", "x")
    member = _publish(terminal, shipped("default.csv"), 1, who="alice")

    assert faulty[0] == lockout[0] == 1
    assert "  text, line 1, column " in faulty[1]
    assert "  text, line 2" in faulty[1]
    assert "nobody who is owner or admin could publish" in lockout[1]
    assert (no_comment.code, no_base.code, member[0]) == (2, 2, 3)
    assert "  comment: " in no_comment.err
    assert terminal.run("policy", "show", "--json").json["version"] == 1


def test_a_rollback_publishes_the_old_text_as_a_new_version(terminal: Terminal) -> None:
    """History is never rewritten; a version that is not there is refused, and so is one that raises who asks."""
    harmless = f"{shipped('demo/visibility.csv')}\np, role:helper, flight, memory/dreams, all, any, *, get, allow\n"
    raising = _publish(terminal, shipped("default.csv"), 1)
    assert raising[0] == 3
    assert "You would gain `export` on admin/people of every agent. An owner can publish it." in raising[1]
    assert _publish(terminal, harmless, 1)[0] == 0

    back = terminal.run("policy", "rollback", "1", "--json", who="erin")
    missing = terminal.run("policy", "rollback", "9")
    member = terminal.run("policy", "rollback", "2", who="alice")

    assert back.code == 0, back.err
    assert (back.json["version"], back.json["text"]) == (3, shipped("demo/visibility.csv"))
    assert (missing.code, member.code) == (3, 3)
    assert terminal.run("policy", "show", "--json").json["version"] == 3
    assert "Version 4 is in force" in terminal.run("policy", "rollback", "2").out


@pytest.mark.parametrize("who", ["erin", "audrey", None])
def test_a_refusal_can_be_looked_up_by_who_reads_the_audit(terminal: Terminal, who: str | None) -> None:
    """Design section 7: denied looks like missing; the reason is in the admin's view of the decision id."""
    refused = terminal.run("sessions", "show", terminal.demo.private, who="bob")
    decision = refused.err.split("gateway policy explain ")[1].strip()
    assert "no_matching_row" not in refused.err

    explained = terminal.run("policy", "explain", decision, who=who)
    shown = terminal.run("policy", "explain", decision, "--json", who=who)

    assert explained.out.startswith("Denied: no_matching_row\n")
    assert terminal.demo.private in explained.out
    record = shown.json["record"]
    assert (record["action"], record["whose"], record["profile"]) == ("status", "other", terminal.ids["bob"])
    rows_are_theirs = who != "audrey"  # an auditor reads the audit, and not the policy
    assert ("Rows that nearly did:" in explained.out) == rows_are_theirs
    assert ("role:supervisor" in explained.out) == rows_are_theirs
    listed = terminal.rest("GET", f"/v1/admin/audit?decision={decision}&kind=decision", who="audrey")
    assert listed["items"] == [record]


def test_a_decision_is_explained_to_nobody_else(terminal: Terminal) -> None:
    """The person who was refused does not learn the rule; a decision that is not there is refused too."""
    refused = terminal.run("sessions", "show", terminal.demo.private, who="bob")
    decision = refused.err.split("gateway policy explain ")[1].strip()

    asked = terminal.run("policy", "explain", decision, who="bob")
    missing = terminal.run("policy", "explain", decision[:-1] + "!", who="audrey")

    assert (asked.code, asked.out, missing.code, missing.out) == (3, "", 3, "")
    allowed = terminal.run("sessions", "list", who="bob")
    assert allowed.code == 0


def test_who_can_and_what_can_are_told_to_whoever_may_read_the_policy(terminal: Terminal) -> None:
    """Issue of the admin: people by name, sessions by key; a wrong question is told what is wrong with it."""
    session = terminal.run("sessions", "list", "--json", who="alice").json["items"][-1]["key"]

    found = terminal.run("policy", "who-can", "history", "--session", session, "--json", who="erin")
    printed = terminal.run("policy", "who-can", "history", "--session", session, who="erin")
    reach = terminal.run("policy", "what-can", "alice", "--agent", "flight", who="erin")
    nobody = terminal.run(
        "policy", "who-can", "get", "--agent", "flight", "--resource", "memory/longterm", "--chat", "group", who="erin"
    )

    assert "alice" in {one["profile"]["name"] for one in found.json["items"]}
    assert "alice" in printed.out
    assert session in reach.out
    assert "personal_instructions" not in reach.out
    assert nobody.out == "Nobody.\n"
    audrey = terminal.run("policy", "what-can", "audrey", who="erin").out
    assert "No session is open to audrey for 'history'." in audrey
    hers = terminal.run(
        "policy", "who-can", "get", "--agent", "flight", "--resource", "memory/personal/daily", "--person", "alice",
        "--json", who="erin",
    )  # fmt: skip
    assert [one["profile"]["name"] for one in hers.json["items"]] == ["alice"]
    assert terminal.run("policy", "who-can", "history", who="erin").code == 2
    assert terminal.run("policy", "what-can", "alice", who="alice").code == 3
    for who in ("dana", "audrey"):
        assert terminal.run("policy", "who-can", "history", "--session", session, who=who).code == 3


def test_a_question_is_answered_in_words(terminal: Terminal) -> None:
    """Issue 4: for a question too; a person by name, from a session and from outside any. REST says the same."""
    words = ("--person", "dana", "--action", "history", "--session", terminal.demo.private)
    outside = terminal.run("policy", "explain", *words, who="erin")
    inside = terminal.run("policy", "explain", *words, "--from", terminal.demo.group, "--json", who="erin")
    tool = terminal.run("policy", "explain", "--person", "dana", "--tool", "memory_get", who="erin")
    half = terminal.run("policy", "explain", "--person", "dana", who="erin")
    odd = terminal.run("policy", "explain", "--person", "dana", "--action", "peek", "--tool", "memory_get", who="erin")

    assert (outside.code, outside.out.splitlines()[0]) == (0, "Allowed: allowed")
    assert "Rows that matched:" in outside.out
    assert (inside.code, inside.json["allowed"], inside.json["from"]) == (0, False, terminal.demo.group)
    asked = {"person": terminal.ids["dana"], "action": "history", "session": terminal.demo.private}
    answered = terminal.rest(
        "POST", "/v1/admin/policy/explain", who="erin", body={**asked, "from": terminal.demo.group}
    )
    assert {**answered, "decision": ""} == {**inside.json, "decision": ""}
    assert (tool.code, tool.out.splitlines()[0]) == (0, "Allowed: allowed")
    assert (half.code, odd.code) == (2, 2)


def test_a_decision_that_would_be_another_today_says_so(terminal: Terminal) -> None:
    """Both versions are told, and that the roles are others by now."""
    refused = terminal.run("sessions", "show", terminal.demo.private, who="bob")
    decision = refused.err.split("gateway policy explain ")[1].strip()
    text = terminal.run("policy", "show", who=None).out
    rows = "".join(f"p, *, *, session/private, agent, any, *, {word}, allow\n" for word in ("status", "read"))
    assert _publish(terminal, f"{text}\n{rows}", 1, who=None)[0] == 0
    assert terminal.run("people", "roles", "bob", "--none").code == 0

    explained = terminal.run("policy", "explain", decision)

    assert "Version 1, by which it was decided: No row allows" in explained.out
    assert "Version 2, in force now: Lines " in explained.out
    assert explained.out.endswith("Today the same facts would be allowed.\n")
    assert "Their roles are others by now: *, user:prf_" in explained.out


def test_a_preview_names_who_gains_and_who_loses_and_publishes_nothing(terminal: Terminal) -> None:
    """Issue of the admin: before it is published, and what it did afterwards."""
    before = terminal.run("policy", "show", "--json", who="erin").json
    draft = Path("draft.csv")
    row = "p, role:member, flight, session/private, agent, any, private, history, allow\n"
    ends = "p, role:supervisor, flight, session/private, agent, any, private, history, deny, {until}\n"
    until = (datetime.now(UTC) + timedelta(days=3)).strftime("%Y-%m-%dT%H:%M:%SZ")
    draft.write_text(before["text"] + row + ends.format(until=until), encoding="utf-8")

    printed = terminal.run("policy", "preview", str(draft), who="erin")
    found = terminal.run("policy", "preview", str(draft), "--days", "3", "--json", who="erin")

    assert (printed.code, found.code) == (0, 0)
    assert "people gain something, 1 loses something." in printed.out
    assert "+ history on session/private (of other people) of flight" in printed.out
    assert f"ends by itself at {until}: p, role:supervisor, flight, " in printed.out
    assert printed.out.endswith("Nothing is published.\n")
    assert found.json["base_version"] == before["version"]
    assert terminal.run("policy", "show", "--json", who="erin").json == before
    draft.write_text(before["text"] + "# nothing\n", encoding="utf-8")
    assert "Nobody gains or loses anything." in terminal.run("policy", "preview", str(draft), who="erin").out
    mine = before["text"] + row.replace("role:member", f"user:{terminal.ids['erin']}")
    draft.write_text(mine, encoding="utf-8")
    assert "An owner has to publish this: " in terminal.run("policy", "preview", str(draft), who="erin").out
    draft.write_text(row, encoding="utf-8")
    assert "Can't be published: " in terminal.run("policy", "preview", str(draft), who="erin").out
    draft.write_text("p, nobody\n", encoding="utf-8")
    assert terminal.run("policy", "preview", str(draft), who="erin").code == 1
    assert terminal.run("policy", "preview", str(draft), "--days", "0", who="erin").code == 2
    assert terminal.run("policy", "watch", who="erin").code == 1  # there was no version before the first
    assert terminal.run("policy", "watch", who="alice").code == 3
    draft.write_text(before["text"] + row, encoding="utf-8")
    assert _publish(terminal, draft.read_text(encoding="utf-8"), before["version"])[0] == 0
    watched = terminal.run("policy", "watch", who="erin").out
    assert watched.startswith(f"Version {before['version'] + 1}, compared with version {before['version']}:")


def test_what_ends_by_itself_is_told_wherever_a_policy_is_shown(terminal: Terminal) -> None:
    """Issue, "scheduled expiry": by lint, publish, show and history; never in what `show` writes to a file."""
    shown = terminal.run("policy", "show", "--json", who="erin").json
    until = (datetime.now(UTC) + timedelta(days=3)).strftime("%Y-%m-%dT%H:%M:%SZ")
    row = f"p, role:supervisor, flight, session/private, agent, any, private, history, deny, {until}"
    draft = Path("week.csv")
    draft.write_text(f"{shown['text'].rstrip()}\n{row}\n", encoding="utf-8")
    line = shown["text"].rstrip().count("\n") + 2
    said = f"Line {line} ends by itself at {until}: {row}\n"

    linted = terminal.run("policy", "lint", str(draft))
    as_json = terminal.run("policy", "lint", str(draft), "--json").json
    published = terminal.run("policy", "publish", str(draft), "--base", "1", "--comment", "A week.", who="erin")
    again = terminal.run("policy", "show", who="erin")
    history = terminal.run("policy", "history", who="erin")

    assert (shown["ends"], as_json["ends"]) == ([], [{"line": line, "text": row, "until": until}])
    assert said in linted.out
    assert said in published.out
    assert said in again.err
    assert again.out == draft.read_text(encoding="utf-8")
    assert f"A row of version 2 ends by itself at {until}." in history.out
