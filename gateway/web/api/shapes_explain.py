"""What an explained decision looks like in JSON."""

from __future__ import annotations

from typing_extensions import TypedDict

from gateway.model import Question
from gateway.operations.explaining import Explained, Reading
from gateway.operations.my_decisions import MyDecision
from gateway.policy.explain import Matched, Near
from gateway.policy.in_words import near_in_words
from gateway.web.api.shapes import AuditShape, record, time


class MatchedShape(TypedDict):
    """A row that matched."""

    line: int
    row: str
    effect: str
    through: list[str]


class NearShape(TypedDict):
    """A row that nearly matched: `field` says `says` where the question has `asked`."""

    line: int
    row: str
    effect: str
    field: str
    says: str
    asked: str
    in_words: str


class ReadingShape(TypedDict):
    """What one version of the document says; `matched` and `near` are null where there are no rows to show."""

    version: int
    known_by: str
    allowed: bool
    code: str
    rule: str | None
    matched: list[MatchedShape] | None
    near: list[NearShape] | None
    more: int
    says: str


class QuestionShape(TypedDict):
    """The facts that a policy row speaks of."""

    agent: str
    resource: str
    relation: str
    whose: str
    chat: str
    action: str


# `from` is a word of Python, so this one can't be written as a class.
ExplainShape = TypedDict(
    "ExplainShape",
    {
        "decision": str | None,
        "allowed": bool,
        "code": str,
        "person": str | None,
        "from": str | None,
        "target": str | None,
        "question": QuestionShape | None,
        "subjects": list[str],
        "subjects_now": list[str] | None,
        "epoch": int,
        "says": str,
        "then": ReadingShape | None,
        "now": ReadingShape,
        "answers_otherwise_now": bool | None,
        "record": AuditShape | None,
    },
)


class MyDecisionShape(TypedDict):
    """What a person is told of a decision about themselves."""

    decision: str
    at: str | None
    operation: str
    action: str
    allowed: bool
    reason: str
    says: str


def explained(one: Explained) -> ExplainShape:
    """An explanation, for who may read the policy or the audit."""
    verdict = one.verdict
    return {
        "decision": one.decision,
        "allowed": verdict.allowed,
        "code": verdict.code,
        "person": one.about,
        "from": one.source,
        "target": one.target,
        "question": None if one.question is None else _question(one.question),
        "subjects": sorted(one.subjects),
        "subjects_now": None if one.roles_now is None else sorted(one.roles_now),
        "epoch": one.epoch,
        "says": (one.then or one.now).says,
        "then": None if one.then is None else _reading(one.then),
        "now": _reading(one.now),
        "answers_otherwise_now": one.otherwise,
        "record": None if one.record is None else record(one.record),
    }


def my_decision(one: MyDecision) -> MyDecisionShape:
    """An explanation, for the person themselves."""
    return {
        "decision": one.decision,
        "at": time(one.at),
        "operation": one.operation,
        "action": one.action,
        "allowed": one.allowed,
        "reason": one.reason,
        "says": one.says,
    }


def _question(one: Question) -> QuestionShape:
    return {
        "agent": one.agent,
        "resource": str(one.resource),
        "relation": str(one.relation),
        "whose": str(one.whose),
        "chat": str(one.chat),
        "action": str(one.action),
    }


def _reading(one: Reading) -> ReadingShape:
    rows = one.rows
    return {
        "version": one.version,
        "known_by": one.known_by,
        "allowed": one.verdict.allowed,
        "code": one.verdict.code,
        "rule": one.verdict.rule,
        "matched": None if rows is None else [_matched(row) for row in rows.matched],
        "near": None if rows is None else [_near(row) for row in rows.near],
        "more": 0 if rows is None else rows.more,
        "says": one.says,
    }


def _matched(one: Matched) -> MatchedShape:
    return {"line": one.row.line, "row": one.row.text, "effect": one.row.effect, "through": list(one.through)}


def _near(one: Near) -> NearShape:
    return {
        "line": one.row.line,
        "row": one.row.text,
        "effect": one.row.effect,
        "field": one.field,
        "says": one.says,
        "asked": one.asked,
        "in_words": near_in_words(one),
    }
