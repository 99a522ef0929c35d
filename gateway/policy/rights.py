"""Turns the rows of a document into all that a set of subjects may do on an agent, as one number with a bit a fact.

A slice answers one question; this answers every question at once, so that two documents, or two people, can be compared
exactly: what somebody gains is `after & ~before` (design section 5, "nobody raises themselves"; section 7, preview). It
says what the rows say. Casbin decides requests; a differential test holds the two together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from functools import lru_cache
from itertools import product
from typing import Final, NamedTuple

from gateway.bounded import keep
from gateway.model import Action, Chat, Question, Relation, Resource, Whose
from gateway.policy.documents import Document
from gateway.policy.inheritance import Inheritance
from gateway.policy.rows import ACTION_WORDS, ALLOW, ANY, MODES, WHOSE, Row, covers_resource

MOST_HOLDERS: Final = 4_096  # pairs of (subjects that the document names, agent) whose rights are remembered

_RESOURCES: Final = tuple(Resource)
_RELATIONS: Final = tuple(Relation)
_WHOSE: Final = tuple(Whose)
_CHATS: Final = tuple(Chat)
_ACTIONS: Final = tuple(Action)

# How many bits one value of each spans. A fact's place is read like a number: resource, relation, whose, chat, action.
_OF_CHAT: Final = len(_ACTIONS)
_OF_WHOSE: Final = _OF_CHAT * len(_CHATS)
_OF_RELATION: Final = _OF_WHOSE * len(_WHOSE)
_OF_RESOURCE: Final = _OF_RELATION * len(_RELATIONS)

_RESOURCE_AT: Final = {resource: place * _OF_RESOURCE for place, resource in enumerate(_RESOURCES)}
_RELATION_AT: Final = {relation: place * _OF_RELATION for place, relation in enumerate(_RELATIONS)}
_WHOSE_AT: Final = {whose: place * _OF_WHOSE for place, whose in enumerate(_WHOSE)}
_CHAT_AT: Final = {chat: place * _OF_CHAT for place, chat in enumerate(_CHATS)}
_ACTION_AT: Final = {action: place for place, action in enumerate(_ACTIONS)}

FactSet = int  # each fact has its bit


class Fact(NamedTuple):
    """A question without its agent."""

    resource: Resource
    relation: Relation
    whose: Whose
    chat: Chat
    action: Action

    @classmethod
    def of(cls, question: Question) -> Fact:
        """The facts of a question; its agent says whose rights they are looked up in."""
        return cls(question.resource, question.relation, question.whose, question.chat, question.action)


def place_of(fact: Fact) -> int:
    """The number of the bit that a fact has in a set."""
    return (
        _RESOURCE_AT[fact.resource]
        + _RELATION_AT[fact.relation]
        + _WHOSE_AT[fact.whose]
        + _CHAT_AT[fact.chat]
        + _ACTION_AT[fact.action]
    )


def holds(facts: FactSet, fact: Fact) -> bool:
    """Whether a fact is in the set."""
    return bool(facts >> place_of(fact) & 1)


def facts_in(facts: FactSet) -> Iterator[Fact]:
    """The facts of a set, in the order of the words in `model.py`."""
    while facts:
        lowest = facts & -facts
        yield _fact_at(lowest.bit_length() - 1)
        facts ^= lowest


def set_of(facts: Iterable[Fact]) -> FactSet:
    """The set that holds these facts."""
    found = 0
    for fact in facts:
        found |= 1 << place_of(fact)
    return found


def _fact_at(place: int) -> Fact:
    resource, rest = divmod(place, _OF_RESOURCE)
    relation, rest = divmod(rest, _OF_RELATION)
    whose, rest = divmod(rest, _OF_WHOSE)
    chat, action = divmod(rest, _OF_CHAT)
    return Fact(_RESOURCES[resource], _RELATIONS[relation], _WHOSE[whose], _CHATS[chat], _ACTIONS[action])


class Rights:
    """All that the rows of one document allow, as they stand at one moment."""

    def __init__(self, document: Document, now: datetime) -> None:
        """Reads each row once, which takes a while for a long document. May run on any thread."""
        self.since = now
        self.ends = min((row.until for row in document.rows if row.until is not None and row.live(now)), default=None)
        self._allowed: dict[tuple[str, str], FactSet] = {}
        self._denied: dict[tuple[str, str], FactSet] = {}
        for row in document.rows:
            if row.live(now):
                side = self._allowed if row.effect == ALLOW else self._denied
                place = (row.subject, row.agent)
                side[place] = side.get(place, 0) | facts_of_row(row)
        self._roles = Inheritance(document.links)
        self.named = frozenset({row.subject for row in document.rows} | {link.child for link in document.links})
        self.agents = frozenset(row.agent for row in document.rows) - {ANY}
        self._known: dict[tuple[frozenset[str], str], FactSet] = {}

    def hold_at(self, now: datetime) -> bool:
        """Whether the same rows are live at `now`."""
        return self.since <= now and (self.ends is None or now < self.ends)

    def of(self, subjects: frozenset[str], agent: str) -> FactSet:
        """Every fact on which some row allows and none denies, for the subjects and every role they hold through `g`.

        An agent that no row names, or `*`, is answered by the rows for every agent.
        """
        named, place = subjects & self.named, agent if agent in self.agents else ANY
        known = self._known.get((named, place))
        if known is None:
            known = self._work_out(named, place)
            keep(self._known, (named, place), known, MOST_HOLDERS)
        return known

    def _work_out(self, named: frozenset[str], agent: str) -> FactSet:
        allowed = denied = 0
        for place in product(self._roles.closed(named), {agent, ANY}):
            allowed |= self._allowed.get(place, 0)
            denied |= self._denied.get(place, 0)
        return allowed & ~denied

    def allow(self, subjects: frozenset[str], question: Question) -> bool:
        """What a snapshot of the same document would decide."""
        return holds(self.of(subjects, question.agent), Fact.of(question))


def facts_of_row(row: Row) -> FactSet:
    """Every fact that the row speaks of."""
    return _facts(row.resource, row.visibility, row.whose, row.chat, row.action)


@lru_cache(maxsize=8_192)
def _facts(resource: str, visibility: str, whose: str, chat: str, action: str) -> FactSet:
    """The facts of the five words: every combination of what each of them means."""
    facts = sum(1 << at for word, at in _ACTION_AT.items() if action in ACTION_WORDS[word])
    facts = _at_each(facts, (at for word, at in _CHAT_AT.items() if chat in (word, ANY)))
    facts = _at_each(facts, (at for word, at in _WHOSE_AT.items() if word in WHOSE[whose]))
    facts = _at_each(facts, (at for word, at in _RELATION_AT.items() if word in MODES[visibility]))
    return _at_each(facts, (at for word, at in _RESOURCE_AT.items() if covers_resource(resource, word)))


def _at_each(facts: FactSet, places: Iterable[int]) -> FactSet:
    found = 0
    for place in places:
        found |= facts << place
    return found
