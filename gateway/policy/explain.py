"""Turns a document and a question into the rows that decided it, and those that nearly did: one field of them differs.

Pure: it reads the rows as they stand, of any version, and asks nobody. Casbin decides requests; a differential test
holds the two together.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from gateway.model import Action, Question, Resource, Verdict
from gateway.policy.documents import Document
from gateway.policy.rows import ACTION_WORDS, ALLOW, ANY, MODES, WHOSE, Link, Row, covers_resource
from gateway.policy.slices import EMPTY_POLICY, NO_MATCHING_ROW

MOST_NEAR: Final = 20  # nobody reads more; how many more there are is said
MOST_MATCHED: Final = 100

# The fields of a row in the order in which a near miss helps its reader most: what ended by itself, what a role would
# give, where one could ask from, and last what the request would have to be about.
SUBJECT: Final = "subject"
UNTIL: Final = "until"
_FIELDS: Final = (UNTIL, SUBJECT, "chat", "whose", "visibility", "action", "agent", "resource")

Ways = dict[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Matched:
    """A row that matched, and the way from what somebody holds to whom the row names: `g` rows are the steps."""

    row: Row
    through: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Near:
    """A row that would have matched but for one field, and what the question has in its place."""

    row: Row
    field: str
    asked: str

    @property
    def says(self) -> str:
        """The row's word in that field."""
        return self.row.text.rpartition(", ")[2] if self.field == UNTIL else str(getattr(self.row, self.field))


@dataclass(frozen=True, slots=True)
class Explanation:
    """What the rows answer, the rows that say so, and the nearest of the others; `more` are left out."""

    verdict: Verdict
    matched: tuple[Matched, ...]
    near: tuple[Near, ...]
    more: int = 0


def explain(document: Document, subjects: frozenset[str], question: Question, now: datetime) -> Explanation:
    """What the rows say of the question at `now`. It reads each row once: give a long document a thread of its own."""
    ways = _ways(subjects, document.links)
    matched: list[Matched] = []
    near: list[Near] = []
    for row in document.rows:
        differs = _differs(row, ways, question, now)
        field = next(differs, None)
        if field is None:
            matched.append(Matched(row, ways[row.subject]))
        elif next(differs, None) is None:
            near.append(Near(row, field, _asked(field, question, subjects, now)))
    verdict = _verdict(document, matched)
    return _explanation(verdict, matched, near)


def explain_function(
    document: Document, subjects: frozenset[str], resource: Resource, action: Action, now: datetime
) -> Explanation:
    """Which rows could ever allow `action` on `resource`, whoever it is and wherever they ask from; `near` are those of
    other subjects. What a denied function needs is one of these rows, or a role that has it."""
    ways = _ways(subjects, document.links)
    holding = " ".join(sorted(subjects))
    matched: list[Matched] = []
    near: list[Near] = []
    for row in document.rows:
        speaks = row.effect == ALLOW and row.action in ACTION_WORDS[action] and covers_resource(row.resource, resource)
        if not speaks:
            continue
        if row.subject not in ways:
            near.append(Near(row, SUBJECT, holding))
        elif not row.live(now):
            near.append(Near(row, UNTIL, now.isoformat()))
        else:
            matched.append(Matched(row, ways[row.subject]))
    return _explanation(_verdict(document, matched), matched, near)


def _explanation(verdict: Verdict, matched: list[Matched], near: list[Near]) -> Explanation:
    matched.sort(key=lambda one: one.row.line)
    near.sort(key=lambda one: _usefulness(one, allowed=verdict.allowed))
    left_out = max(0, len(matched) - MOST_MATCHED) + max(0, len(near) - MOST_NEAR)
    return Explanation(verdict, tuple(matched[:MOST_MATCHED]), tuple(near[:MOST_NEAR]), left_out)


def _differs(row: Row, ways: Ways, question: Question, now: datetime) -> Iterator[str]:
    """The fields by which the row does not match."""
    if row.action not in ACTION_WORDS[question.action]:
        yield "action"
    if not covers_resource(row.resource, question.resource):
        yield "resource"
    if row.subject not in ways:
        yield SUBJECT
    if row.agent not in (ANY, question.agent):
        yield "agent"
    if question.relation not in MODES[row.visibility]:
        yield "visibility"
    if question.whose not in WHOSE[row.whose]:
        yield "whose"
    if row.chat not in (ANY, question.chat):
        yield "chat"
    if not row.live(now):
        yield UNTIL


def _asked(field: str, question: Question, subjects: frozenset[str], now: datetime) -> str:
    if field == SUBJECT:
        return " ".join(sorted(subjects))
    if field == UNTIL:
        return now.isoformat()
    return str(question.relation if field == "visibility" else getattr(question, field))


def _verdict(document: Document, matched: list[Matched]) -> Verdict:
    """Some allow and no deny (design section 7)."""
    if not matched:
        return NO_MATCHING_ROW if document.rows else EMPTY_POLICY
    denying = [one.row for one in matched if one.row.effect != ALLOW]
    if denying:
        return Verdict(allowed=False, code="denied_by_row", rule=denying[0].rule)
    return Verdict(allowed=True, code="allowed", rule=matched[0].row.rule)


def _usefulness(near: Near, *, allowed: bool) -> tuple[bool, bool, int, int]:
    """First what would have turned the answer; rows of one person last, since they help nobody else."""
    turns = (near.row.effect == ALLOW) != allowed
    of_one_person = near.field == SUBJECT and near.row.subject.startswith("user:")
    return not turns, of_one_person, _FIELDS.index(near.field), near.row.line


def _ways(subjects: frozenset[str], links: tuple[Link, ...]) -> Ways:
    """All that the subjects hold through `g`, each with a shortest way to it from what was given."""
    above: dict[str, list[str]] = {}
    for link in links:
        above.setdefault(link.child, []).append(link.parent)
    ways: Ways = {subject: (subject,) for subject in sorted(subjects)}
    fresh = list(ways)
    while fresh:
        fresh = [parent for child in fresh for parent in _reached(child, above, ways)]
    return ways


def _reached(child: str, above: dict[str, list[str]], ways: Ways) -> Iterator[str]:
    for parent in above.get(child, ()):
        if parent not in ways:
            ways[parent] = (*ways[child], parent)
            yield parent
