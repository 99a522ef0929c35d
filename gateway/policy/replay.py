"""Turns recorded decisions and two documents into those that would come out otherwise (design section 7, "preview").

A record holds all the facts that Casbin was asked with, so the question can be put again: to the document in force and
to the draft. What an invariant refused stays refused whatever the rows say, so it is not asked again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from gateway.model import ANY_AGENT, Action, AgentName, Chat, Question, Relation, Resource, Whose
from gateway.policy.rights import Rights
from gateway.ports import Recorded

# Only these are the rows' own answers. Every other code is an invariant's, or of what was not there.
OF_ROWS: Final = frozenset({"allowed", "denied_by_row", "no_matching_row", "empty_policy"})


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
            could, can = before.allow(recorded.subjects, question), after.allow(recorded.subjects, question)
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
