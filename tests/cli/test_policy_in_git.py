"""`gateway policy pull`, `diff`, `push`: the document as a file that a team reviews (issue 4, "for Git")."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest

from gateway.cli import policy_push
from gateway.cli.policy_in_git import in_force
from gateway.cli.running import Desk
from gateway.operations.policy import InForce, OfVersion
from gateway.policy.documents import MOST_BYTES
from gateway.policy.shipped import shipped
from tests.terminal import Answer, Terminal

FIRST = shipped("demo/visibility.csv")
NEXT = FIRST.count("\n") + 1  # the line of a row that is added at the end
ROW = "p, role:member, *, memory/daily, agent, shared, group, load, allow\n"
OTHER = "p, role:guest, flight, memory/dreams, all, any, *, get, deny\n"
DOCUMENT, BASE = Path("policies/visibility.csv"), Path("policies/visibility.base.json")
SUITE = """\
policy: ../visibility.csv
people: {alice: [role:member]}
cases:
  - [alice, flight, memory/daily, same_agent, shared, group, load, ANSWER]
"""


def pull(terminal: Terminal, *words: str, who: str | None = "erin") -> Answer:
    """`gateway policy pull`."""
    return terminal.run("policy", "pull", *words, who=who)


def diff(terminal: Terminal, *words: str, who: str | None = "erin") -> Answer:
    """`gateway policy diff`."""
    return terminal.run("policy", "diff", *words, who=who)


def push(terminal: Terminal, *words: str, who: str | None = "erin") -> Answer:
    """`gateway policy push` with a comment."""
    return terminal.run("policy", "push", "--comment", "Try it.", *words, who=who)


def publish(terminal: Terminal, text: str, base: int, tenant: str = "demo") -> None:
    """Somebody else publishes."""
    file = Path("theirs.csv")
    file.write_text(text, encoding="utf-8")
    words = ("--base", str(base), "--comment", "Theirs.", "--tenant", tenant)
    assert terminal.run("policy", "publish", str(file), *words).code == 0


def versions(terminal: Terminal) -> list[int]:
    """Every published version, newest first."""
    listed = terminal.run("policy", "history", "--json", "--tenant", "demo").json["items"]
    return [one["version"] for one in listed]


def base() -> dict[str, object]:
    """What the file beside the document says."""
    read: dict[str, object] = orjson.loads(BASE.read_bytes())
    return read


def suite(answer: str, name: str = "ours.yaml") -> None:
    """A suite beside the document."""
    folder = Path("policies/tests")
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(SUITE.replace("ANSWER", answer), encoding="utf-8")


def _fails_in_policies(number: int, text: str) -> Callable[[Path, Path], Path]:
    """A `Path.replace` that fails for the files of the team, and leaves the gateway its own."""
    works = Path.replace

    def replace(path: Path, target: Path) -> Path:
        if target.parent.name == "policies":
            raise OSError(number, text)
        return works(path, target)

    return replace


def line(begins: str) -> int:
    """Where the row of the demo stands that begins so."""
    return next(number for number, text in enumerate(FIRST.splitlines(), start=1) if text.startswith(begins))


# ── pull ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_pull_writes_what_is_in_force_byte_for_byte_and_which_version_it_is(terminal: Terminal) -> None:
    """The document holds nothing of ours; the file beside it says tenant, version, epoch and hash."""
    exact = f"{FIRST}# ends without a line end, and a letter: \u00e9 \u6f22\r\n#"
    publish(terminal, FIRST, 1)
    terminal.rest("PUT", "/v1/admin/policy", who="erin", body={"text": exact, "base_version": 2, "comment": "Windows."})
    shown = terminal.run("policy", "show", "--json").json

    first = pull(terminal)
    again = pull(terminal)

    assert (first.code, again.code) == (0, 0), first.err + again.err
    assert DOCUMENT.read_bytes() == exact.encode()
    assert base() == {
        "tenant": "demo",
        "version": 3,
        "epoch": shown["epoch"],
        "sha256": hashlib.sha256(exact.encode()).hexdigest(),
    }
    assert first.out == f"policies/visibility.csv holds version 3 of demo, epoch {shown['epoch']}.\n"
    assert again.out == "Nothing new: version 3 is in force, and policies/visibility.csv holds it.\n"
    assert sorted(path.name for path in Path("policies").iterdir()) == ["visibility.base.json", "visibility.csv"]


def test_a_pull_says_what_changed_since_the_last_one(terminal: Terminal) -> None:
    """Rows with their lines, for people and for programs; a file of another name, or in another folder, works alike."""
    pull(terminal, "elsewhere/acme.csv")
    publish(terminal, FIRST.replace("2099-01-31", "2099-02-28") + ROW, 1)

    pulled = pull(terminal, "elsewhere/acme.csv", "--json")
    nothing = pull(terminal, "elsewhere/acme.csv", "--json")

    found = pulled.json
    assert (found["file"], found["version"], found["written"]) == ("elsewhere/acme.csv", 2, True)
    assert [row["text"] for row in found["differences"]["added"]] == [ROW.strip()]
    assert [(one["field"], one["to"]) for one in found["differences"]["changed"]] == [("until", "2099-02-28T18:00:00Z")]
    assert (nothing.json["written"], nothing.json["differences"]) == (False, None)
    assert Path("elsewhere/acme.base.json").is_file()
    publish(terminal, f"# Only a comment.\n{FIRST.replace('2099-01-31', '2099-02-28')}{ROW}", 2)
    assert "\nOnly comments or order differ.\n" in pull(terminal, "elsewhere/acme.csv").out


def test_an_epoch_that_rose_by_itself_changes_no_file(terminal: Terminal) -> None:
    """Epochs rise with every change of roles: a file that is reviewed must not change with each of them."""
    pull(terminal)
    before = BASE.read_bytes()
    terminal.run("people", "roles", terminal.ids["bob"], "--set", "member")

    assert pull(terminal).out.startswith("Nothing new")
    assert BASE.read_bytes() == before


def test_no_pull_writes_over_what_nobody_published(terminal: Terminal) -> None:
    """Changes of one's own, a file that was never pulled, and one of another organisation: each stays, with what to do,
    until --force says otherwise. What is not in the way of anything is not refused."""
    pull(terminal)
    own = f"{FIRST}{ROW}"
    DOCUMENT.write_text(own, encoding="utf-8")

    nothing_new = pull(terminal)
    assert (nothing_new.code, DOCUMENT.read_text(encoding="utf-8")) == (0, own)
    assert "has changes that are not pushed" in nothing_new.out
    assert pull(terminal, "--json").json["own_changes"] is True

    publish(terminal, f"{FIRST}{OTHER}", 1)
    kept = BASE.read_bytes()
    behind = pull(terminal)
    assert (behind.code, behind.out) == (1, "")
    assert "It stands on version 1, and version 2 is in force." in behind.err
    assert "gateway policy diff policies/visibility.csv --version 1" in behind.err
    assert (DOCUMENT.read_text(encoding="utf-8"), BASE.read_bytes()) == (own, kept)

    BASE.unlink()
    never = pull(terminal)
    assert (never.code, DOCUMENT.read_text(encoding="utf-8"), BASE.exists()) == (1, own, False)
    assert "was not pulled" in never.err

    forced = pull(terminal, "--force")
    assert (forced.code, DOCUMENT.read_text(encoding="utf-8"), base()["version"]) == (0, f"{FIRST}{OTHER}", 2)
    assert f"-  {NEXT}: {ROW}" in forced.out


def test_two_organisations_are_not_mixed_up_in_one_folder(terminal: Terminal) -> None:
    """Pulling another one over it is refused, pushing it there too, also where the version's number is the same."""
    assert terminal.run("tenants", "add", "acme", "--owner", "alice@example.com").code == 0
    pull(terminal)

    over = pull(terminal, "--tenant", "acme", who=None)
    away = push(terminal, "--tenant", "acme", who=None)
    compared = diff(terminal, "--tenant", "acme", who=None)

    assert (over.code, away.code, compared.code) == (1, 1, 1)
    assert "was pulled from demo, and this is acme" in over.err
    assert "was pulled from demo, and this is acme" in away.err
    assert "was pulled from demo, and this is acme" in compared.err
    assert DOCUMENT.read_text(encoding="utf-8") == FIRST
    assert base()["tenant"] == "demo"

    meant = push(terminal, "--tenant", "acme", "--base", "1", who=None)
    assert (meant.code, base()["tenant"], base()["version"]) == (0, "demo", 1), meant.err
    assert terminal.run("policy", "show", "--tenant", "acme").out == FIRST


def test_a_pull_that_was_stopped_half_way_is_taken_up_again(terminal: Terminal) -> None:
    """The document is written first: with the base first, the old text would pass for a change of the new version."""
    pull(terminal)
    publish(terminal, f"{FIRST}{ROW}", 1)
    DOCUMENT.write_text(f"{FIRST}{ROW}", encoding="utf-8")  # and killed here

    again = pull(terminal)

    assert (again.code, base()["version"]) == (0, 2)
    assert again.out.startswith("policies/visibility.csv holds version 2 of demo")


def test_a_file_is_written_whole_or_not_at_all(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk, a folder that may not be written: the old file stays, and no piece of the new one."""
    pull(terminal)
    publish(terminal, f"{FIRST}{ROW}", 1)

    with monkeypatch.context() as broken:
        broken.setattr(Path, "replace", _fails_in_policies(28, "No space left on device"))
        stopped = pull(terminal)

    assert stopped.code == 2
    assert "policies/visibility.csv can't be written: No space left on device." in stopped.err
    assert (DOCUMENT.read_text(encoding="utf-8"), base()["version"]) == (FIRST, 1)
    assert sorted(path.name for path in Path("policies").iterdir()) == ["visibility.base.json", "visibility.csv"]


def test_a_link_stays_one_and_a_file_keeps_its_permissions(terminal: Terminal) -> None:
    """What a team made of its folder is theirs."""
    Path("real").mkdir()
    Path("policies").mkdir()
    pull(terminal, "real")
    Path("real/visibility.csv").chmod(0o640)
    DOCUMENT.symlink_to("../real/visibility.csv")
    BASE.symlink_to("../real/visibility.base.json")
    publish(terminal, f"{FIRST}{ROW}", 1)

    assert pull(terminal).code == 0
    assert DOCUMENT.is_symlink()
    assert Path("real/visibility.csv").read_text(encoding="utf-8") == f"{FIRST}{ROW}"
    assert Path("real/visibility.csv").stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize(
    "broken",
    [
        b"",
        b"[]",
        b'{"tenant": "demo"}',
        b'<<<<<<< HEAD\n{"tenant": "demo"}\n',
        b'{"tenant": "demo", "version": "one", "epoch": 1, "sha256": "00"}',
        b"\xff",
    ],
)
def test_a_base_that_says_nothing_is_no_base(terminal: Terminal, broken: bytes) -> None:
    """Left by a merge, or written by hand: named, with what to do, and nothing is published or written on its word."""
    pull(terminal)
    DOCUMENT.write_text(f"{FIRST}{ROW}", encoding="utf-8")
    BASE.write_bytes(broken)

    for answer in (pull(terminal), push(terminal), diff(terminal)):
        assert (answer.code, answer.out) == (2, "")
        assert "keep the side with the higher version" in answer.err
    assert (versions(terminal), BASE.read_bytes()) == ([1], broken)
    assert pull(terminal, "--force").code == 0
    assert base()["version"] == 1


def test_what_is_no_document_is_wrong_use(terminal: Terminal) -> None:
    """A name that is no folder and no document; one that is not there; one that can't be one."""
    Path("notes.txt").write_text("x", encoding="utf-8")
    Path("large.csv").write_bytes(b"#" * (MOST_BYTES + 1))
    Path("bytes.csv").write_bytes(b"\xff")
    Path("folder.csv").mkdir()

    assert pull(terminal, "notes.txt").code == 2
    assert diff(terminal).code == push(terminal).code == 2
    assert "Get what is in force: gateway policy pull policies/visibility.csv" in diff(terminal).err
    for name, word in (("large.csv", "larger than"), ("bytes.csv", "not UTF-8")):
        assert diff(terminal, name).code == 2
        assert push(terminal, name, "--base", "1").code == 1
        assert word in push(terminal, name, "--base", "1").err
        assert word in diff(terminal, name).err
    assert pull(terminal, "folder.csv").code == 0
    assert Path("folder.csv/visibility.csv").is_file()
    assert versions(terminal) == [1]


# ── diff ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_diff_is_about_rows(terminal: Terminal) -> None:
    """0 where there is none, 1 where there is, as diff says it; comments and order are none, and said to be none."""
    pull(terminal)
    same = diff(terminal)
    DOCUMENT.write_text(f"# Reviewed by bob.\r\n{FIRST}".replace("\n", "\r\n").replace("\r\r", "\r"), encoding="utf-8")
    comments = diff(terminal)
    changed = FIRST.replace("2099-01-31", "2099-02-28").replace("g, role:contractor, role:member\n", "") + ROW
    DOCUMENT.write_text(changed, encoding="utf-8")
    rows = diff(terminal)
    found = diff(terminal, "--json")

    assert (same.code, comments.code, rows.code, found.code) == (0, 0, 1, 1)
    assert same.out == "policies/visibility.csv is version 1, which is in force.\n"
    assert comments.out.startswith("Only comments or order differ")
    cover = "p, user:prf_01JCAR00000000000000000000, flight, session/private, agent, any, private, read, allow, 2099-"
    assert rows.out.splitlines() == [
        "policies/visibility.csv against version 1, which is in force:",
        f"-{line('g, role:contractor'):>5}: g, role:contractor, role:member",
        f"-{line(cover):>5}: {cover}01-31T18:00:00Z",
        f"+{line(cover) - 1:>5}: {cover}02-28T18:00:00Z",
        "        until: 2099-01-31T18:00:00Z -> 2099-02-28T18:00:00Z",
        f"+  {NEXT - 1}: {ROW.strip()}",
        "1 row added, 1 removed, 1 changed.",
    ]
    assert found.json["added"] == [{"line": NEXT - 1, "text": ROW.strip()}]
    assert [one["text"] for one in found.json["removed"]] == ["g, role:contractor, role:member"]
    assert found.json["changed"][0]["field"] == "until"
    assert (found.json["version"], found.json["in_force"], found.json["base"]) == (1, 1, 1)
    assert rows.err == found.err == ""


def test_a_diff_warns_where_the_base_is_not_in_force_any_more(terminal: Terminal) -> None:
    """Else what a colleague published meanwhile looks as if it were taken back; against the base it does not."""
    pull(terminal)
    publish(terminal, f"{FIRST}{OTHER}", 1)
    DOCUMENT.write_text(f"{FIRST}{ROW}", encoding="utf-8")

    now = diff(terminal)
    mine = diff(terminal, "--version", "1")
    missing = diff(terminal, "--version", "9")
    member = diff(terminal, who="alice")

    assert "stands on version 1, and version 2 is in force" in now.err
    assert now.out.count("\n+") == now.out.count("\n-") == 1
    assert (mine.code, mine.err) == (1, "")
    assert mine.out.splitlines()[1:] == [f"+  {NEXT}: {ROW.strip()}", "1 row added."]
    assert diff(terminal, "--version", "1", "--json").json["in_force"] == 2
    assert (missing.code, missing.out, member.code, member.out) == (3, "", 3, "")
    assert "gateway policy history" in missing.err


def test_faults_are_trouble_and_no_difference(terminal: Terminal) -> None:
    """Exit code 2, as diff has it, each fault with its place."""
    pull(terminal)
    DOCUMENT.write_text("p, role:member\ng, a\n", encoding="utf-8")

    answer = diff(terminal)

    assert (answer.code, answer.out) == (2, "")
    assert "policies/visibility.csv:1:1: fault: " in answer.err
    assert "policies/visibility.csv:2:1: fault: " in answer.err


# ── push ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_push_publishes_on_top_of_what_was_pulled(terminal: Terminal) -> None:
    """In force at once; the base says so; the same push again has nothing to do."""
    pull(terminal)
    DOCUMENT.write_text(f"{FIRST}{ROW}", encoding="utf-8")
    suite("allow")

    pushed = push(terminal)
    again = push(terminal, "--json")

    assert (pushed.code, again.code) == (0, 0), pushed.err + again.err
    assert (
        f"policies/tests/ours.yaml: 1 check, 0 failed\n+  {NEXT}: {ROW}1 row added.\nVersion 2 is in force"
        in pushed.out
    )
    assert (again.json["published"], again.json["version"], versions(terminal)) == (False, 2, [2, 1])
    assert terminal.run("policy", "show").out == f"{FIRST}{ROW}"
    assert (base()["version"], base()["sha256"]) == (2, hashlib.sha256(f"{FIRST}{ROW}".encode()).hexdigest())
    assert push(terminal).out.endswith("Nothing to push: policies/visibility.csv is version 2, which is in force.\n")
    assert diff(terminal).code == 0
    history = terminal.run("policy", "history", "--json").json["items"][0]
    assert (history["comment"], history["author"]) == ("Try it.", f"erin ({terminal.ids['erin']})")


def test_a_checkout_on_windows_is_the_same_document(terminal: Terminal) -> None:
    """Git may turn line ends: that is no change of one's own, and what is pushed has those of everywhere else."""
    pull(terminal)
    DOCUMENT.write_bytes(FIRST.replace("\n", "\r\n").encode())
    assert push(terminal).out.startswith("Nothing to push")
    assert pull(terminal).out.startswith("Nothing new: version 1 is in force, and")
    assert DOCUMENT.read_bytes() == FIRST.replace("\n", "\r\n").encode()

    publish(terminal, f"{FIRST}{OTHER}", 1)
    assert pull(terminal).code == 0  # not refused: nothing of it is one's own
    DOCUMENT.write_bytes(f"{FIRST}{OTHER}{ROW}".replace("\n", "\r\n").encode())
    assert push(terminal).code == 0
    assert terminal.run("policy", "show").out == f"{FIRST}{OTHER}{ROW}"
    assert pull(terminal).out.startswith("Nothing new: version 3 is in force, and")


def test_nothing_is_published_that_its_suites_do_not_expect(terminal: Terminal) -> None:
    """Those beside the file that name it, at any depth; one that can't be read may be one of them."""
    pull(terminal)
    DOCUMENT.write_text(f"{FIRST}{ROW}", encoding="utf-8")
    before = BASE.read_bytes()
    suite("deny")

    failed = push(terminal)
    as_json = push(terminal, "--json")
    assert (failed.code, as_json.code) == (1, 1)
    assert "alice should be denied load on memory/daily" in failed.out
    assert "Nothing was published" in failed.err
    assert as_json.json["published"] is False
    assert len(as_json.json["suites"][0]["failures"]) == 1

    suite("allow")
    (Path("policies/tests") / "broken.yml").write_text("people: [\n", encoding="utf-8")
    broken = push(terminal)
    assert (broken.code, "not a YAML file" in broken.out) == (1, True)
    assert (versions(terminal), BASE.read_bytes()) == ([1], before)

    Path("policies/tests/broken.yml").write_text(SUITE.replace("ANSWER", "allow"), encoding="utf-8")
    others = "people: {a: []}\ncases:\n  - [a, '*', gateway, self, own, private, read, allow]\n"
    Path("policies/tests/others.yaml").write_text(f"policy: ../other.csv\n{others}", encoding="utf-8")
    Path("policies/tests/rows.yaml").write_text(f"rows: ''\n{others}", encoding="utf-8")
    passed = push(terminal, "--json")
    assert passed.code == 0, passed.err
    assert [one["path"] for one in passed.json["suites"]] == ["policies/tests/broken.yml", "policies/tests/ours.yaml"]


def test_without_a_suite_a_push_says_that_nothing_was_asked(terminal: Terminal) -> None:
    """It is no fault, and it should not pass for a proof."""
    pull(terminal)
    DOCUMENT.write_text(f"{FIRST}{ROW}", encoding="utf-8")

    assert "No suite in policies/tests names visibility.csv" in push(terminal).err


def test_a_document_with_faults_is_not_pushed(terminal: Terminal) -> None:
    """Before anything is asked of the gateway; one that locks everybody out is a fault, and a warning is none."""
    pull(terminal)
    for text, word in (("p, role:member\n", ":1:1: fault: "), (ROW, "nobody who is owner or admin could publish")):
        DOCUMENT.write_text(text, encoding="utf-8")
        for answer in (push(terminal), push(terminal, "--dry-run")):
            assert (answer.code, answer.out) == (1, "")
            assert word in answer.err
    DOCUMENT.write_text(f"{FIRST}{ROW}", encoding="utf-8")
    assert ":1: warning: This deny also holds for" in push(terminal, "--dry-run").err
    assert versions(terminal) == [1]


def test_a_push_needs_to_know_its_base_and_its_reason(terminal: Terminal) -> None:
    """Wrong use without; `--base` says it where nothing was pulled."""
    Path("policies").mkdir()
    DOCUMENT.write_text(f"{FIRST}{ROW}", encoding="utf-8")

    without = push(terminal)
    silent = terminal.run("policy", "push", "--base", "1", who="erin")
    empty = terminal.run("policy", "push", "--base", "1", "--comment", "", who="erin")
    assert (without.code, silent.code, empty.code) == (2, 2, 2)
    assert "--base: " in without.err
    assert "--comment: " in silent.err
    assert (versions(terminal), BASE.exists()) == ([1], False)

    assert push(terminal, "--base", "1").code == 0
    assert base()["version"] == 2


def test_a_push_on_top_of_what_is_not_in_force_is_refused_with_what_to_do(terminal: Terminal) -> None:
    """Also by `--base`, in a dry run, and where somebody is quicker between our look and our writing."""
    pull(terminal)
    publish(terminal, f"{FIRST}{OTHER}", 1)
    DOCUMENT.write_text(f"{FIRST}{ROW}", encoding="utf-8")
    before = BASE.read_bytes()

    for words in ((), ("--base", "1"), ("--dry-run",)):
        answer = push(terminal, *words)
        assert (answer.code, answer.out) == (1, "")
        assert "stands on version 1, and version 2 is in force" in answer.err
        assert "merge the two in Git, and push again" in answer.err
        assert "gateway policy diff policies/visibility.csv --version 1" in answer.err
    assert (versions(terminal), BASE.read_bytes()) == ([2, 1], before)


def test_somebody_who_is_quicker_while_we_look_loses_nothing(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store decides, in the transaction that writes; what it says is told in the same words."""
    pull(terminal)
    DOCUMENT.write_text(f"{FIRST}{ROW}", encoding="utf-8")

    async def overtaken(desk: Desk) -> InForce:
        found = await in_force(desk)
        await desk.ask(desk.catalogue.policy.rollback, lambda: OfVersion(1))
        return found

    monkeypatch.setattr(policy_push, "in_force", overtaken)
    answer = push(terminal)

    assert (answer.code, answer.out, versions(terminal)) == (1, "", [2, 1])
    assert "stands on version 1, and version 2 is in force" in answer.err
    assert base()["version"] == 1


def test_the_same_version_with_another_text_is_another_gateways(terminal: Terminal) -> None:
    """A store that was restored, or a test gateway beside the real one, counts its versions too."""
    pull(terminal)
    BASE.write_bytes(orjson.dumps(base() | {"sha256": "0" * 64}))
    DOCUMENT.write_text(f"{FIRST}{ROW}", encoding="utf-8")

    answer = push(terminal)

    assert (answer.code, versions(terminal)) == (1, [1])
    assert "Is this the gateway that you pulled from?" in answer.err
    assert pull(terminal).code == 1


def test_a_dry_run_changes_nothing_anywhere(terminal: Terminal) -> None:
    """For the review: who may only read the policy can run it, and needs no comment."""
    pull(terminal)
    DOCUMENT.write_text(f"{FIRST}{ROW}", encoding="utf-8")
    before = BASE.read_bytes()
    suite("allow")

    tried = terminal.run("policy", "push", "--dry-run", who="erin")

    assert tried.code == 0, tried.err
    assert tried.out.endswith(f"+  {NEXT}: {ROW}1 row added.\nNothing was published. It would be version 2.\n")
    assert (versions(terminal), BASE.read_bytes()) == ([1], before)
    asked = [name for name, _ in terminal.operations()]
    assert "policy.publish" not in asked


def test_who_may_not_publish_pushes_nothing(terminal: Terminal) -> None:
    """`GATEWAY_TOKEN` says who pushes: a member, a bad token, an admin who would gain. The base stays what it was."""
    pull(terminal)
    before = BASE.read_bytes()
    DOCUMENT.write_text(
        f"{FIRST}p, role:admin, *, session/private, agent, any, private, history, allow\n", encoding="utf-8"
    )

    member = push(terminal, who="alice")
    nobody = terminal.run("policy", "push", "--comment", "x", env={"GATEWAY_TOKEN": "gwp_x"})
    raising = push(terminal)

    assert (member.code, nobody.code, raising.code) == (3, 3, 3)
    assert "You would gain `history` on session/private" in raising.err
    assert (versions(terminal), BASE.read_bytes()) == ([1], before)


def test_what_is_published_stays_so_where_the_base_cant_be_written(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A read-only checkout: the push succeeded, and says what is left to do; the next pull knows the document again."""
    pull(terminal)
    DOCUMENT.write_text(f"{FIRST}{ROW}", encoding="utf-8")

    with monkeypatch.context() as broken:
        broken.setattr(Path, "replace", _fails_in_policies(30, "Read-only file system"))
        pushed = push(terminal)

    assert (pushed.code, versions(terminal), base()["version"]) == (0, [2, 1], 1)
    assert "visibility.base.json can't be written: Read-only file system. Version 2 is in force" in pushed.err
    assert (pull(terminal).code, base()["version"]) == (0, 2)


# ── Git ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def git(*words: str) -> str:
    """What Git prints."""
    who = ("-c", "user.name=erin", "-c", "user.email=erin@example.com", "-c", "commit.gpgsign=false")
    return subprocess.run(["git", *who, *words], capture_output=True, text=True, timeout=60, check=True).stdout


@pytest.mark.skipif(shutil.which("git") is None, reason="the way through Git needs git")
def test_two_changes_meet_in_git_and_are_both_in_force(terminal: Terminal) -> None:
    """docs/policy-in-git.md: somebody was quicker. Main is pulled, the branch merged, and the push goes on top."""
    git("init", "--quiet", "--initial-branch=main")
    pull(terminal)
    git("add", "policies")
    git("commit", "--quiet", "-m", "Version 1.")
    git("switch", "--quiet", "-c", "notes-in-groups")
    DOCUMENT.write_text(f"{FIRST}{ROW}", encoding="utf-8")
    git("commit", "--quiet", "-am", "Groups get the daily notes.")
    top = f"# Theirs.\n{OTHER}{FIRST}"
    publish(terminal, top, 1)
    assert push(terminal).code == 1

    git("switch", "--quiet", "main")
    assert pull(terminal).code == 0
    git("commit", "--quiet", "-am", "Version 2.")
    git("switch", "--quiet", "notes-in-groups")
    git("merge", "--quiet", "main", "-m", "On top of version 2.")
    assert diff(terminal).out.splitlines()[1:] == [f"+  {NEXT + 2}: {ROW.strip()}", "1 row added."]
    pushed = push(terminal)

    assert pushed.code == 0, pushed.err
    assert terminal.run("policy", "show").out == f"{top}{ROW}"
    assert git("status", "--porcelain") == " M policies/visibility.base.json\n?? .gateway/\n?? theirs.csv\n"
