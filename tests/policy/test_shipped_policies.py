"""The policies that come with the gateway: every suite passes, and every row of them matters."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from gateway.errors import Invalid
from gateway.model import Action
from gateway.policy.documents import Document, lint, parse
from gateway.policy.inheritance import Inheritance
from gateway.policy.lockout import publishable
from gateway.policy.plain import PlainEnforcer
from gateway.policy.rows import ACTION_WORDS, Link, Row
from gateway.policy.shipped import shipped
from gateway.policy.snapshot import Snapshot
from gateway.policy.suites import Suite, check_suite, checks_of, read_suite, run_suite, subjects_of

POLICIES = Path(__file__).parents[2] / "policies"
SUITES = sorted((POLICIES / "tests").glob("*.yaml"))
WORKED = Path(__file__).parent / "worked_questions.yaml"
NOW = datetime(2030, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize("path", [*SUITES, WORKED], ids=lambda path: path.stem)
def test_every_suite_passes(path: Path) -> None:
    """Design section 7, "Documents": what a policy should answer is data beside it."""
    report = run_suite(path)

    assert report.failures == ()
    assert report.checks >= 2


def test_the_shipped_default_and_a_plain_enforcer_give_the_worked_answers() -> None:
    """Design section 7: the rows of the worked questions are a sketch; the answers are what people must get."""
    suite = read_suite(WORKED)
    assert check_suite(suite, WORKED, shipped("default.csv")).failures == ()
    for text in (str(suite.rows), shipped("default.csv")):
        plain = PlainEnforcer(parse(text), NOW)
        for check in checks_of(suite):
            assert plain.decide(subjects_of(suite, check.who), check.question).allowed == check.allowed, check


@pytest.mark.parametrize("name", ["default.csv", "demo/visibility.csv"])
def test_the_shipped_documents_hold_no_fault_and_can_be_published(name: str) -> None:
    """Ours: what we ship is what we would accept."""
    faults, warnings = lint(shipped(name), NOW)

    assert faults == ()
    assert publishable(parse(shipped(name))) == ()
    assert [warning.rule for warning in warnings] == ["inherited_deny"] * (name != "default.csv")


def test_no_shipped_role_may_read_as_somebody_else() -> None:
    """Design section 5: impersonation is a right that no shipped role has."""
    for name in ("default.csv", "demo/visibility.csv"):
        rows = parse(shipped(name)).rows
        assert not any(row.effect == "allow" and row.action in ACTION_WORDS[Action.IMPERSONATE] for row in rows)


@pytest.mark.parametrize("name", ["default.csv", "demo/visibility.csv"])
def test_every_row_matters_to_some_suite(name: str) -> None:
    """Style guide, tests, rule 7: drop each row in turn, flip each effect; some expected answer must change."""
    suites = [(read_suite(path), path) for path in SUITES]
    about = [suite for suite, path in suites if (path.parent / str(suite.policy)).resolve() == POLICIES / name]
    document = parse(shipped(name))
    lines = shipped(name).split("\n")
    unnoticed = []
    written: tuple[Row | Link, ...] = (*document.rows, *document.links)
    for row in written:
        subject = row.subject if isinstance(row, Row) else row.child
        for changed in _mutants(lines[row.line - 1]):
            mutant = parse("\n".join([*lines[: row.line - 1], changed, *lines[row.line :]]))
            if not any(_notices(suite, mutant, subject, Inheritance(document.links)) for suite in about):
                unnoticed.append(f"line {row.line}: {lines[row.line - 1]} -> {changed}")
    assert unnoticed == []
    assert len(document.rows) > 30


def _notices(suite: Suite, mutant: Document, subject: str, roles: Inheritance) -> bool:
    """Whether an expected answer for somebody who holds the row's subject comes out otherwise."""
    now = suite.now or NOW
    snapshot = Snapshot(mutant, 1, now)
    concerned = {who for who in suite.people if subject in roles.closed(subjects_of(suite, who))}
    return any(
        snapshot.decide(subjects_of(suite, check.who), check.question, now).allowed != check.allowed
        for check in checks_of(suite)
        if check.who in concerned
    )


def _mutants(line: str) -> list[str]:
    flipped = line.replace(", allow", ", deny") if ", allow" in line else line.replace(", deny", ", allow")
    return ["#", flipped] if line.startswith("p,") else ["#"]


def test_the_shipped_texts_come_from_the_wheel_or_from_the_clone(tmp_path: Path) -> None:
    """pyproject: a wheel carries the folder inside the package; a clone has it beside the package."""
    package = tmp_path / "gateway"
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "default.csv").write_text("# clone\n", encoding="utf-8")
    assert shipped("default.csv", package) == "# clone\n"

    (package / "_shipped" / "policies").mkdir(parents=True)
    (package / "_shipped" / "policies" / "default.csv").write_text("# wheel\n", encoding="utf-8")
    assert shipped("default.csv", package) == "# wheel\n"


def test_a_document_that_locks_everybody_out_is_named_before_it_is_published() -> None:
    """Ours: somebody with role:owner or role:admin must be able to publish the next version, and go on being able."""
    keep = "p, role:admin, *, admin/policy, self, own, private, publish, allow"
    locked = [
        "",
        "p, role:member, *, *, all, any, *, *, allow",
        keep.replace("private", "group"),
        keep.replace(", *, admin", ", flight, admin"),
        f"{keep}\np, *, *, admin/*, all, any, *, *, deny",
        f"{keep}, 2099-01-01T00:00:00Z",
        f"{keep}\np, role:admin, *, admin/policy, all, any, *, *, deny, 2099-01-01T00:00:00Z",
    ]
    open_ones = [
        keep,
        keep.replace("admin,", "owner,", 1),
        "p, *, *, *, all, any, *, *, allow",
        "g, role:owner, role:keeper\np, role:keeper, *, admin/*, self, own, *, *, allow",
        f"{keep}\np, role:member, *, *, all, any, *, *, deny",
    ]

    assert [[fault.rule for fault in publishable(parse(text))] for text in locked] == [["lockout"]] * len(locked)
    assert [publishable(parse(text)) for text in open_ones] == [()] * len(open_ones)
    with pytest.raises(Invalid):
        parse("p, nobody")
