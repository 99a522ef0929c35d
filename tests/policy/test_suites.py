"""Policy test suites in YAML: what they check, and how they are refused (design section 7, "Documents")."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.errors import Invalid
from gateway.policy.suites import SuiteReport, run_suite

GOOD = """\
rows: |
  p, role:member, *, session/*, agent, shared, private, *, allow
  p, *, *, memory/rules, all, any, *, load, deny
people:
  alice: [role:member]
  bob: []
"""
ALLOWS = "line 1: p, role:member, *, session/*, agent, shared, private, *, allow"
DENIES = "line 2: p, *, *, memory/rules, all, any, *, load, deny"
MATRIX = """\
matrices:
  - name: x
    what: {a: [f, gateway, self, own, private]}
    actions: [read]
    expected: {a: {bob: [edit]}}
"""


def run(tmp_path: Path, text: str) -> SuiteReport:
    """Writes a suite and runs it."""
    path = tmp_path / "suite.yaml"
    path.write_text(text, encoding="utf-8")
    return run_suite(path)


def refused(tmp_path: Path, text: str) -> list[tuple[str, str]]:
    """Field and message of every fault of a suite."""
    with pytest.raises(Invalid) as found:
        run(tmp_path, text)
    return [(fault.field, fault.message) for fault in found.value.faults]


def test_a_case_that_comes_out_otherwise_is_told_in_a_sentence(tmp_path: Path) -> None:
    """Ours: a failure says who, what, what was expected and the row that decided."""
    report = run(
        tmp_path,
        GOOD
        + """\
cases:
  - [alice, flight, session/private, self, own, private, history, allow]
  - [alice, flight, session/private, self, own, private, history, deny]
  - [bob, flight, session/private, self, own, private, history, allow]
  - [alice, flight, memory/rules, self, own, private, load, allow]
""",
    )

    assert report.checks == 4
    question = "history on session/private of flight (self, own, from private)"
    assert report.failures == (
        f"alice should be denied {question}, but is allowed by {ALLOWS}.",
        f"bob should be allowed {question}, but is denied because no row allows it.",
        f"alice should be allowed load on memory/rules of flight (self, own, from private), but is denied by {DENIES}.",
    )


def test_a_pair_that_a_matrix_leaves_out_must_be_denied(tmp_path: Path) -> None:
    """Design section 7: a pair left out must be denied."""
    matrix = """\
matrices:
  - name: sessions
    what:
      hers: [flight, session/private, self, own, private]
      hers, from a group: [flight, session/private, self, own, group]
    actions: [list, send]
    expected:
      hers: {alice: [list, send]}
"""

    complete = run(tmp_path, GOOD + matrix)
    left_out = run(tmp_path, GOOD + matrix.replace("[list, send]}", "[list]}"))
    none = run(tmp_path, GOOD + matrix[: matrix.index("    expected")])

    assert (complete.checks, complete.failures) == (8, ())
    assert [failure.split(",")[0] for failure in left_out.failures] == [
        "alice should be denied send on session/private of flight (self"
    ]
    assert len(none.failures) == 2


def test_a_policy_beside_the_suite_is_read_at_the_moment_the_suite_names(tmp_path: Path) -> None:
    """Ours: `policy` is relative to the suite; `now` fixes the moment for rows that end."""
    row = "p, *, *, session/*, all, any, *, *, allow, 2030-01-01T00:00:00Z\n"
    (tmp_path / "visibility.csv").write_text(row, encoding="utf-8")
    suite = "policy: visibility.csv\nnow: {}\npeople: {{alice: []}}\ncases:\n  - [alice, flight, session/private, {}]\n"

    before = run(tmp_path, suite.format("2029-12-31T23:59:59Z", "self, own, private, list, allow"))
    after = run(tmp_path, suite.format('"2030-01-01T00:00:00Z"', "self, own, private, list, deny"))

    assert before.failures == after.failures == ()


def test_every_fault_of_a_suite_is_named_at_once(tmp_path: Path) -> None:
    """Ours: as for documents."""
    found = refused(
        tmp_path,
        "people: {alice: [member], bob: [role:a]}\ncolour: red\ncases:\n  - [alice, flight, session]\n"
        "matrices:\n  - {name: x, what: {a: [f, gateway, self, own, private]}, actions: [list], expected: {b: {}}}\n",
    )

    fields = [field for field, _ in found]
    assert "people.alice.0" in fields
    assert "colour" in fields
    assert any(field.startswith("cases.0") for field in fields)
    assert any("matrix does not hold: b" in message for _, message in found)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (GOOD, "a suite without any proves nothing"),
        ("people: {}\n", "write either policy"),
        (f"policy: x.csv\n{GOOD}", "write either policy"),
        (f"{GOOD}cases: [[carol, flight, gateway, self, own, private, read, deny]]\n", "not among the people: carol"),
        (f"{GOOD}cases: [[bob, f, gateway, self, own, private, read, perhaps]]\n", "'allow' or 'deny'"),
        (
            "policy: none.csv\npeople: {a: []}\ncases: [[a, f, gateway, self, own, private, read, deny]]\n",
            "none.csv can't",
        ),
        (f"{GOOD}{MATRIX}", "does not hold: edit"),
        (f"{GOOD}people: {{}}\n", "people stands here twice"),
        ("people: [\n", "not a YAML file"),
        ("just words\n", "valid dictionary"),
    ],
)
def test_a_suite_that_does_not_hold_together_is_refused(tmp_path: Path, text: str, message: str) -> None:
    """Ours: a suite that proves less than it seems to is worse than none."""
    assert message in " ".join(found for _, found in refused(tmp_path, text))


def test_a_suite_or_policy_that_is_no_text_and_a_policy_with_faults_are_refused(tmp_path: Path) -> None:
    """Ours: files are UTF-8; a document with faults is never asked."""
    case = "cases: [[a, f, gateway, self, own, private, read, deny]]\n"
    (tmp_path / "suite.yaml").write_bytes(b"\xff\xfe")
    with pytest.raises(Invalid, match="not a YAML file"):
        run_suite(tmp_path / "suite.yaml")
    with pytest.raises(Invalid, match=r"missing\.yaml can't be read: No such file"):
        run_suite(tmp_path / "missing.yaml")
    (tmp_path / "bad.csv").write_bytes(b"\xff\xfe")
    assert "can't be read" in refused(tmp_path, f"policy: bad.csv\npeople: {{a: []}}\n{case}")[0][1]
    assert refused(tmp_path, f"rows: p, nobody\npeople: {{a: []}}\n{case}")[0][0] == "text"
