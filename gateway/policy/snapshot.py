"""Turns one policy version into decisions: an immutable index of rows, asked slice by slice (design section 7)."""

from __future__ import annotations

import bisect
import copy
from collections.abc import Iterator
from datetime import datetime
from itertools import product
from typing import Final

from gateway.bounded import keep
from gateway.model import Action, Chat, Question, Relation, Resource, Verdict, Whose
from gateway.policy.casbin_model import CompiledModel
from gateway.policy.documents import Document
from gateway.policy.inheritance import Inheritance
from gateway.policy.rows import ANY, Row, covers_resource
from gateway.policy.slices import EMPTY_POLICY, NO_MATCHING_ROW, LoopThread, Slice

SliceKey = tuple[frozenset[str], str, Resource]  # subjects that the document names, agent (or *), resource

MOST_SLICES: Final = 2048
_SESSIONS: Final = (Resource.SESSION_PRIVATE, Resource.SESSION_SHARED)


class Snapshot:
    """One version of a tenant's policy. What it answers never changes but by the `until` of its rows.

    Publishing makes a new one and swaps it in by one assignment; none is ever reloaded. The tables inside only
    remember answers: their sizes are bounded, and nobody the document does not name takes a place in them.
    """

    def __init__(self, document: Document, version: int, now: datetime) -> None:
        """Indexes the rows. May run on any thread; from the first decision on only the event loop's may ask."""
        self.version = version
        self.document = document
        self._ends = tuple(sorted({row.until for row in document.rows if row.until is not None}))
        self.expires_at = self._next_end(now)  # when the next row ends, seen from when this was made (or from `live`)
        self._index: dict[tuple[str, str], list[Row]] = {}
        for row in document.rows:
            self._index.setdefault((row.subject, row.agent), []).append(row)
        self._roles = Inheritance(document.links)
        named = {row.subject for row in document.rows} | {link.child for link in document.links}
        self._named = frozenset(named)
        self._agents = frozenset(row.agent for row in document.rows)
        self._nothing = NO_MATCHING_ROW if document.rows else EMPTY_POLICY
        self._model = CompiledModel()
        self._thread = LoopThread()
        self._slices: dict[SliceKey, Slice] = {}

    def _next_end(self, now: datetime) -> datetime | None:
        after = bisect.bisect_right(self._ends, now)
        return self._ends[after] if after < len(self._ends) else None

    def live(self, now: datetime) -> Snapshot:
        """The same version seen from `now`, with the next `expires_at`; it shares the answers it already has."""
        seen = copy.copy(self)
        seen.expires_at = self._next_end(now)
        return seen

    @property
    def remembered(self) -> tuple[int, int]:
        """How many slices, and answers in all of them, are kept in memory; both are bounded."""
        return len(self._slices), sum(len(part.answers) for part in self._slices.values())

    def decide(self, subjects: frozenset[str], question: Question, now: datetime) -> Verdict:
        """Allow if some live row allows and none denies, for the subjects and every role they hold through `g`.

        Codes: `allowed`, `denied_by_row`, `no_matching_row`, `empty_policy`.
        Raises RuntimeError when asked from a second thread.
        """
        # `_key`, `_slice` written out: this is the path of every decision.
        agent = question.agent if question.agent in self._agents else ANY
        part = self._slices.get((subjects & self._named, agent, question.resource))
        if part is None or not (part.timeless or part.holds_at(now)):
            part = self._cut(subjects, question.agent, question.resource, now)
        facts = (question.relation, question.whose, question.chat, question.action)
        return part.answers.get(facts) or part.ask(facts)

    def could_ever(
        self, subjects: frozenset[str], agent: str, resource: Resource, action: Action, now: datetime
    ) -> bool:
        """Whether a live row could ever allow this; where none could, the function may be named as lacking."""
        return self._slice(subjects, agent, resource, now).could_ever(action)

    def cells(
        self, subjects: frozenset[str], agent: str, chat: Chat, action: Action, now: datetime
    ) -> frozenset[tuple[Resource, Relation, Whose]]:
        """The (resource, relation, whose) of sessions on which `action` is allowed, for a list or a search."""
        return frozenset(
            (resource, relation, whose)
            for resource in _SESSIONS
            for relation, whose in self._slice(subjects, agent, resource, now).cells(chat, action)
        )

    def _slice(self, subjects: frozenset[str], agent: str, resource: Resource, now: datetime) -> Slice:
        part = self._slices.get(self._key(subjects, agent, resource))
        return part if part is not None and part.holds_at(now) else self._cut(subjects, agent, resource, now)

    def _key(self, subjects: frozenset[str], agent: str, resource: Resource) -> SliceKey:
        """Who and what the document does not name falls out, so a million plain members share one slice."""
        return subjects & self._named, agent if agent in self._agents else ANY, resource

    def _cut(self, subjects: frozenset[str], agent: str, resource: Resource, now: datetime) -> Slice:
        """Makes the slice, in place of one whose rows have ended, or of the oldest where there are too many."""
        key = self._key(subjects, agent, resource)
        named, place, _ = key
        held = self._roles.closed(named)
        part = Slice(
            [row for row in self._rows_of(held, place) if covers_resource(row.resource, resource)],
            now,
            subjects=held,
            agent=place,
            resource=resource,
            model=self._model,
            nothing=self._nothing,
            thread=self._thread,
        )
        keep(self._slices, key, part, MOST_SLICES)
        return part

    def _rows_of(self, subjects: frozenset[str], agent: str) -> Iterator[Row]:
        for subject, place in product(subjects, {agent, ANY}):
            yield from self._index.get((subject, place), ())
