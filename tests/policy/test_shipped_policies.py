"""The policies that come with the gateway: every suite passes, and every row of them matters."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from gateway.errors import Invalid
from gateway.model import ANY_AGENT, Action, Chat, Question, Relation, Resource, Whose
from gateway.policy.documents import Document, lint, parse
from gateway.policy.inheritance import Inheritance
from gateway.policy.lockout import publishable
from gateway.policy.plain import PlainEnforcer
from gateway.policy.rows import ACTION_WORDS, Link, Row
from gateway.policy.shipped import shipped
from gateway.policy.snapshot import Snapshot
from gateway.policy.suites import Suite, check_suite, checks_of, read_suite, run_suite, subjects_of

POLICIES = Path(__file__).parents[2] / "policies"
SUITES = sorted(POLICIES.rglob("*.yaml"))
# Whatever lies there and is no list of action groups is a document: a new one is held to all of this by being there.
DOCUMENTS = sorted(str(path.relative_to(POLICIES)) for path in POLICIES.rglob("*.csv") if path.name != "actions.csv")
WARNED = {"demo/visibility.csv": ["inherited_deny"]}  # what a document shows on purpose
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


@pytest.mark.parametrize("name", DOCUMENTS)
def test_the_shipped_documents_hold_no_fault_and_can_be_published(name: str) -> None:
    """Ours: what we ship is what we would accept."""
    faults, warnings = lint(shipped(name), NOW)

    assert faults == ()
    assert publishable(parse(shipped(name))) == ()
    assert [warning.rule for warning in warnings] == WARNED.get(name, [])


@pytest.mark.parametrize("name", DOCUMENTS)
def test_no_shipped_role_may_read_as_somebody_else(name: str) -> None:
    """Design section 5: impersonation is a right that no shipped role has."""
    rows = parse(shipped(name)).rows
    assert not any(row.effect == "allow" and row.action in ACTION_WORDS[Action.IMPERSONATE] for row in rows)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_owners_run_the_place_by_every_shipped_document(name: str) -> None:
    """Ours: the local operator is an owner. With a document that forgets them nobody could look after people."""
    snapshot = Snapshot(parse(shipped(name)), 0, NOW)
    for resource, action in (
        (Resource.ADMIN_POLICY, Action.PUBLISH),
        (Resource.ADMIN_PEOPLE, Action.EDIT),
        (Resource.ADMIN_AUDIT, Action.READ),
    ):
        question = Question(ANY_AGENT, resource, Relation.SELF, Whose.OWN, Chat.PRIVATE, action)
        assert snapshot.decide(frozenset({"*", "role:owner"}), question, NOW).allowed, (resource, action)
        assert not snapshot.decide(frozenset({"*", "role:member"}), question, NOW).allowed, (resource, action)


def test_all_shipped_documents_are_found() -> None:
    """Ours: or the tests above and below would be about nothing."""
    assert {"default.csv", "demo/visibility.csv", "examples/clinic.csv", "examples/agent-leads.csv"} <= set(DOCUMENTS)
    assert set(WARNED) <= set(DOCUMENTS)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_row_matters_to_some_suite(name: str) -> None:
    """Issue 4, proof 1: dropping or flipping any row of any shipped document fails at least one shipped case. So does
    letting a row that ends go on for ever, and turning a `g` row round."""
    suites = [suite for path in SUITES if _names(suite := read_suite(path), path, POLICIES / name)]
    document = parse(shipped(name))
    written: tuple[Row | Link, ...] = (*document.rows, *document.links)

    assert document.rows
    assert [
        f"line {row.line}: {row.text} -> {changed or 'nothing'}"
        for row in written
        for changed in _mutants(row)
        if not any(_notices(suite, document, row, changed) for suite in suites)
    ] == []


def _names(suite: Suite, path: Path, document: Path) -> bool:
    return suite.policy is not None and (path.parent / suite.policy).resolve() == document


def _mutants(row: Row | Link) -> list[str]:
    """What the row becomes, one after the other; empty where it is gone."""
    if isinstance(row, Link):
        return ["", f"g, {row.parent}, {row.child}"]
    flipped = replace(row, effect="deny" if row.effect == "allow" else "allow")
    endless = [] if row.until is None else [replace(row, until=None).text]
    return ["", flipped.text, *endless]


def _notices(suite: Suite, document: Document, row: Row | Link, changed: str) -> bool:
    """Whether an expected answer for somebody whom the row is for comes out otherwise."""
    lines = document.text.split("\n")
    mutant = parse("\n".join([*lines[: row.line - 1], changed, *lines[row.line :]]))
    now = suite.now or NOW
    snapshot, roles = Snapshot(mutant, 1, now), Inheritance(document.links)
    subjects = {row.subject} if isinstance(row, Row) else {row.child, row.parent}
    concerned = {who for who in suite.people if subjects & roles.closed(subjects_of(suite, who))}
    return any(
        snapshot.decide(subjects_of(suite, check.who), check.question, now).allowed != check.allowed
        for check in checks_of(suite)
        if check.who in concerned
    )


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
