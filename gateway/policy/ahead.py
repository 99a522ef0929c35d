"""Turns what several holders may do, now and at every later moment, into the first moment at which one may do more.

Rows end by themselves, so a change may give nothing today and something next week: a deny that ends is a gain that was
planted (design section 5, "nobody raises themselves"). Rows only end, so the moments are walked from the last one back,
and each row is looked at once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import datetime
from itertools import groupby
from typing import NamedTuple

from gateway.policy.comparison import POSSIBLE, SubjectsOn
from gateway.policy.documents import Document
from gateway.policy.inheritance import Inheritance
from gateway.policy.rights import FactSet, facts_of_row
from gateway.policy.rows import ALLOW, ANY, Row


class RowsBySubject:
    """The rows of one document by whom they are for."""

    def __init__(self, document: Document) -> None:
        """Reads each row once, which takes a while for a long document. May run on any thread."""
        self.document = document
        self.agents = frozenset(row.agent for row in document.rows) - {ANY}
        self._rows: dict[str, list[Row]] = {}
        for row in document.rows:
            self._rows.setdefault(row.subject, []).append(row)
        self._roles = Inheritance(document.links)
        self.subjects = frozenset(self._rows) | {link.child for link in document.links}

    def named(self, subjects: Iterable[str]) -> frozenset[str]:
        """Those of the subjects, and of the roles they hold through `g`, that some row is for."""
        return frozenset(one for one in self._roles.closed(subjects) if one in self._rows)

    def of(self, named: Iterable[str]) -> Iterator[Row]:
        """Every row for one of these."""
        for subject in named:
            yield from self._rows[subject]


def _as_it_is(facts: FactSet) -> FactSet:
    return facts


class Holder(NamedTuple):
    """Somebody under a document: by agent the subjects that they are.

    `seen` turns the facts that a row speaks of into those that are compared, each by itself: how two people stand to
    one session can differ.
    """

    rows: RowsBySubject
    subjects_on: SubjectsOn
    seen: Callable[[FactSet], FactSet] = _as_it_is


class Gain(NamedTuple):
    """By agent what somebody may do more, and the moment from which on."""

    since: datetime
    facts: dict[str, FactSet]


def everywhere(agents: Iterable[str], *documents: RowsBySubject) -> frozenset[str]:
    """All agents that there is a difference between: `agents` are the tenant's; those that the documents name may be
    added; and whoever is on none of them is answered as on `*`."""
    return frozenset({ANY, *agents}).union(*(one.agents for one in documents))


def first_gain(
    was: Sequence[Holder],
    becomes: Holder,
    agents: Iterable[str],
    now: datetime,
    within: FactSet = POSSIBLE,
) -> Gain | None:
    """The first moment from `now` on at which `becomes` may do on one of these agents, within these facts, what none of
    `was` may then; None where there is none."""
    holders = (*was, becomes)
    alike: dict[tuple[frozenset[str], ...], list[str]] = {}
    for agent in sorted(set(agents)):
        alike.setdefault(tuple(one.rows.named(one.subjects_on(agent)) for one in holders), []).append(agent)
    found = [_Sweep(list(zip(holders, named, strict=True)), place, within).first(now) for named, place in alike.items()]
    return _earliest([gain for gain in found if gain is not None])


def _earliest(found: Sequence[Gain]) -> Gain | None:
    if not found:
        return None
    since = min(gain.since for gain in found)
    facts = {agent: more for gain in found if gain.since == since for agent, more in gain.facts.items()}
    return Gain(since, facts)


class _Side:
    """What the rows of one holder say at the moment that the sweep is at."""

    def __init__(self, seen: Callable[[FactSet], FactSet], within: FactSet) -> None:
        self._seen = seen
        self._within = within
        self._allowed: dict[str, FactSet] = {}
        self._denied: dict[str, FactSet] = {}

    def add(self, row: Row) -> bool:
        """Counts one row more; whether that says anything new."""
        side = self._allowed if row.effect == ALLOW else self._denied
        known = side.get(row.agent, 0)
        side[row.agent] = known | (self._seen(facts_of_row(row)) & self._within)
        return side[row.agent] != known

    def on(self, agent: str) -> FactSet:
        """What some row allows there and none denies."""
        allowed = self._allowed.get(agent, 0) | self._allowed.get(ANY, 0)
        return allowed & ~(self._denied.get(agent, 0) | self._denied.get(ANY, 0))


class _Sweep:
    """Walks back in time over the rows of a few holders, on agents where each of them is the same subjects."""

    def __init__(
        self,
        holders: Sequence[tuple[Holder, frozenset[str]]],
        agents: Collection[str],
        within: FactSet,
    ) -> None:
        self._holders = holders
        self._agents = frozenset(agents)
        self._sides = [_Side(holder.seen, within) for holder, _ in holders]

    def first(self, now: datetime) -> Gain | None:
        """The earliest moment at which the last holder may do more than the others together."""
        ending = sorted(self._begin(now), key=lambda found: found[0], reverse=True)
        gained = self._gained(self._agents)
        earliest: Gain | None = None
        for moment, rows in groupby(ending, key=lambda found: found[0]):
            touched = {row.agent for _, side, row in rows if side.add(row)}
            if touched:
                # What was found so far holds from this moment on; before it, these rows count too.
                earliest = _at(moment, gained) or earliest
                places = self._agents if ANY in touched else touched
                gained = {agent: more for agent, more in gained.items() if agent not in places} | self._gained(places)
        return _at(now, gained) or earliest

    def _begin(self, now: datetime) -> Iterator[tuple[datetime, _Side, Row]]:
        """Counts the rows that never end, and yields those that do and have not."""
        for side, (holder, named) in zip(self._sides, self._holders, strict=True):
            for row in holder.rows.of(named):
                if row.agent != ANY and row.agent not in self._agents:
                    continue
                if row.until is None:
                    side.add(row)
                elif row.live(now):
                    yield row.until, side, row

    def _gained(self, agents: Iterable[str]) -> dict[str, FactSet]:
        *others, last = self._sides
        found = {}
        for agent in agents:
            more = last.on(agent)
            for other in others:
                more &= ~other.on(agent)
            if more:
                found[agent] = more
        return found


def _at(moment: datetime, gained: dict[str, FactSet]) -> Gain | None:
    return Gain(moment, gained) if gained else None
