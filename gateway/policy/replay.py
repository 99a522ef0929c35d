"""Turns recorded decisions and two documents into those that would come out otherwise (design section 7, "preview").

A record holds all the facts that Casbin was asked with, so the question can be put again: to the document in force and
to the draft. What an invariant refused stays refused whatever the rows say, so it is not asked again. Looking back on a
version, what it answered is in the record, and only the one before it is asked: as its rows stood at that moment.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from gateway.model import ANY_AGENT, Action, AgentName, Chat, Question, Relation, Resource, Whose
from gateway.policy.ahead import RowsBySubject
from gateway.policy.documents import Document
from gateway.policy.rights import Fact, FactSet, Rights, facts_of_row, holds
from gateway.policy.rows import ALLOW, ANY
from gateway.ports import Recorded

# Only these are the rows' own answers. Every other code is an invariant's, or of what was not there.
ALLOWED: Final = "allowed"
OF_ROWS: Final = frozenset({ALLOWED, "denied_by_row", "no_matching_row", "empty_policy"})

Answer = Callable[[Recorded, Question], bool]


@dataclass(frozen=True, slots=True)
class Flip:
    """A decision that would come out otherwise, and how often it was made."""

    recorded: Recorded
    question: Question
    gained: bool
    times: int


@dataclass(slots=True)
class Replay:
    """What became of the decisions."""

    flips: list[Flip] = field(default_factory=list)
    replayed: int = 0
    lists: int = 0  # a list is decided cell by cell and recorded as one; its rows are decided when they are read
    by_code: Counter[str] = field(default_factory=Counter)  # left out: refused by an invariant, or there was nothing
    unreadable: int = 0


def replay(counts: Mapping[Recorded, int], before: Rights, after: Rights) -> Replay:
    """Puts each decision to both documents. Takes microseconds for each that is different: run many in a thread."""
    return _replayed(
        counts,
        lambda recorded, question: before.allow(recorded.subjects, question),
        lambda recorded, question: after.allow(recorded.subjects, question),
    )


def look_back(counts: Mapping[Recorded, int], before: RightsThen) -> Replay:
    """Puts each decision that a version made to the document before it."""
    return _replayed(counts, before.allow, lambda recorded, _question: recorded.code == ALLOWED)


class RightsThen:
    """What the rows of a document allowed in each of several periods, by what was asked: rows end by themselves."""

    def __init__(self, rows: RowsBySubject, begins: Sequence[datetime]) -> None:
        """`begins` are the moments at which the periods begin; no row ends within one."""
        self._rows = rows
        self._begins = begins
        self._named: dict[frozenset[str], frozenset[str]] = {}
        self._known: dict[tuple[frozenset[str], str, int], FactSet] = {}

    def allow(self, recorded: Recorded, question: Question) -> bool:
        """What the document would have answered then."""
        named = self._named.get(recorded.subjects)
        if named is None:
            named = self._named[recorded.subjects] = self._rows.named(recorded.subjects)
        place = (named, question.agent, recorded.period)
        facts = self._known.get(place)
        if facts is None:
            facts = self._known[place] = self._work_out(*place)
        return holds(facts, Fact.of(question))

    def _work_out(self, named: frozenset[str], agent: str, period: int) -> FactSet:
        allowed = denied = 0
        for row in self._rows.of(named):
            if row.agent in (agent, ANY) and row.live(self._begins[period]):
                if row.effect == ALLOW:
                    allowed |= facts_of_row(row)
                else:
                    denied |= facts_of_row(row)
        return allowed & ~denied


def periods(document: Document, since: datetime, until: datetime) -> list[datetime]:
    """`since`, and each moment from then to `until` at which a row of the document ended by itself."""
    ends = {row.until for row in document.rows if row.until is not None and since < row.until <= until}
    return [since, *sorted(ends)]


def _replayed(counts: Mapping[Recorded, int], before: Answer, after: Answer) -> Replay:
    found = Replay()
    for recorded, times in counts.items():
        if recorded.code not in OF_ROWS:
            found.by_code[recorded.code] += times
            continue
        question = _question(recorded)
        if question is None:
            found.unreadable += times
        elif question.agent == ANY_AGENT and question.resource.startswith("session/"):
            found.lists += times
        else:
            found.replayed += times
            could, can = before(recorded, question), after(recorded, question)
            if could != can:
                found.flips.append(Flip(recorded, question, can, times))
    return found


def _question(recorded: Recorded) -> Question | None:
    """The question again; None where a word of it is none that there is."""
    try:
        return Question(
            AgentName(recorded.agent or ANY_AGENT),
            Resource(recorded.resource or ""),
            Relation(recorded.relation or ""),
            Whose(recorded.whose or ""),
            Chat(recorded.chat or ""),
            Action(recorded.action or ""),
        )
    except ValueError:
        return None
