"""A permit is made by the authorize stage alone (design section 3)."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import gateway
from gateway.model import OUTSIDE, Action, Decision, Verdict
from gateway.policy import permit
from gateway.policy.permit import Permit, issue
from gateway.policy.targets import SessionTarget
from tests.cast import person, requester, root

PACKAGE = Path(gateway.__file__).parent
TARGET = SessionTarget(root("mine", "alice"))
ALICE = requester(person("alice", "member"))


def _decision(allowed: bool) -> Decision:
    return Decision(
        id="dec_1",
        question=TARGET.question(ALICE, OUTSIDE, Action.HISTORY),
        verdict=Verdict(allowed, "allowed" if allowed else "no_matching_row", None),
        subjects=frozenset({"*"}),
        target=TARGET.name,
        epoch=1,
        policy_version=1,
    )


def test_only_an_allow_becomes_a_permit() -> None:
    """A refused decision gives none, whoever asks."""
    assert issue(_decision(True), ALICE, OUTSIDE, TARGET).target is TARGET
    with pytest.raises(ValueError, match="no permit"):
        issue(_decision(False), ALICE, OUTSIDE, TARGET)


def test_a_permit_made_anywhere_else_is_a_type_error() -> None:
    """The seal is not a secret, but nobody comes by it by accident; the type checker names its private class."""
    with pytest.raises(TypeError, match="only the authorize stage"):
        Permit(
            decision=_decision(True),
            requester=ALICE,
            origin=OUTSIDE,
            target=TARGET,
            scope=None,
            seal=object(),  # type: ignore[arg-type]  # what this test is about
        )


def test_one_module_alone_issues_permits() -> None:
    """Whoever imports `issue` could let anything through, so it is the authorize stage and no other."""
    issuers = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and node.module == permit.__name__
        for name in node.names
        if name.name != "Permit"
    }

    assert issuers == {"stages/authorize.py"}
