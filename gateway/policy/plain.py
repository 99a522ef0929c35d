"""Turns a whole document into one stock Casbin enforcer: the slow oracle that slices are compared with.

`gateway doctor` and the differential test ask both. It shares the checked rows and `model.conf` with the snapshot and
nothing else: roles and groups of actions go through Casbin's own role managers, and the tables stand here once more,
turned around. Make one, ask it on one thread, throw it away: it grows with every subject it hears of.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

import casbin
from casbin.persist import Adapter

from gateway.model import Question, Verdict
from gateway.policy.documents import Document
from gateway.policy.shipped import shipped

# Design section 7, read by column: the modes in which a relation is seen, the words that cover an ownership.
_SEEN_IN: Final = {
    "self": {"self", "tree", "agent", "all"},
    "child": {"tree", "agent", "all"},
    "child_cross": {"tree", "all"},
    "same_agent": {"agent", "all"},
    "other_agent": {"all"},
}
_COVERED_BY: Final = {"own": {"own", "shared", "any"}, "shared": {"shared", "any"}, "other": {"any"}}


class _DocumentAdapter(Adapter):  # type: ignore[misc]  # casbin ships no types
    """Hands rows to Casbin as lists, never as text."""

    def __init__(self, document: Document, now: datetime) -> None:
        self._document = document
        self._now = now

    def load_policy(self, model: casbin.Model) -> None:
        """Fills an empty model."""
        model["p"]["p"].policy = [list(row.values) for row in self._document.rows if row.live(self._now)]
        model["g"]["g"].policy = [[link.child, link.parent] for link in self._document.links]
        groups = (line.split(", ") for line in shipped("actions.csv").splitlines() if line.startswith("g2, "))
        model["g"]["g2"].policy = [[member, group] for _, member, group in groups]


class PlainEnforcer:
    """The whole document as it stands at `now`, in one enforcer."""

    def __init__(self, document: Document, now: datetime) -> None:
        model = casbin.Model()
        model.load_model_from_text(shipped("model.conf"))
        self._enforcer = casbin.Enforcer(model, _DocumentAdapter(document, now))
        self._enforcer.add_function("sees", lambda mode, relation: mode in _SEEN_IN[relation])
        self._enforcer.add_function("covers", lambda asked, whose: asked in _COVERED_BY[whose])
        self._enforcer.add_function("holds", self._holds)
        self._empty = not document.rows

    def decide(self, subjects: frozenset[str], question: Question) -> Verdict:
        """What stock Casbin answers. An empty document is never asked: Casbin would run its matcher over nothing."""
        if self._empty:
            return Verdict(allowed=False, code="empty_policy", rule=None)
        facts = (question.relation, question.whose, question.chat, question.action)
        allowed, row = self._enforcer.enforce_ex(
            subjects, str(question.agent), str(question.resource), *(str(fact) for fact in facts)
        )
        matched = "denied_by_row" if row else "no_matching_row"
        return Verdict(allowed=allowed, code="allowed" if allowed else matched, rule=", ".join(row) or None)

    def _holds(self, subjects: frozenset[str], subject: str) -> bool:
        roles = self._enforcer.get_role_manager()
        return any(roles.has_link(held, subject) for held in subjects)
