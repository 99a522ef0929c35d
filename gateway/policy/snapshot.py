"""Turns one policy version into decisions: an immutable index of rows, asked slice by slice (design section 7)."""

from __future__ import annotations

import bisect
import copy
from datetime import datetime
from typing import Final

from gateway.model import Action, Chat, Question, Resource, Verdict
from gateway.policy.casbin_model import CompiledModel
from gateway.policy.documents import Document
from gateway.policy.inheritance import Inheritance
from gateway.policy.rows import ANY, Row
from gateway.policy.slices import EMPTY_POLICY, NO_MATCHING_ROW, Cell, LoopThread, Slice, allowed_cells

MOST_SLICES: Final = 1024


class Snapshot:
    """One version of a tenant's policy. What it answers never changes but by the `until` of its rows.

    Publishing makes a new one and swaps it in by one assignment; none is ever reloaded. The tables inside only
    remember answers: their sizes are bounded, and nobody the document does not name takes a place in them.
    """

    def __init__(self, document: Document, version: int, now: datetime) -> None:
        """Indexes the rows. May run on any thread; from the first decision on only the event loop's may ask."""
        self.version = version
        self._as_of = now
        self._ends = tuple(sorted({row.until for row in document.rows if row.until is not None}))
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
        self._slices: dict[tuple[frozenset[str], str], Slice] = {}

    @property
    def expires_at(self) -> datetime | None:
        """When the next row ends, seen from when this snapshot was made (or from `live`)."""
        after = bisect.bisect_right(self._ends, self._as_of)
        return self._ends[after] if after < len(self._ends) else None

    def live(self, now: datetime) -> Snapshot:
        """The same version seen from `now`, with the next `expires_at`; it shares the answers it already has."""
        seen = copy.copy(self)
        seen._as_of = now
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
        part = self._slice(subjects, question.agent, now)
        facts = (question.resource, question.relation, question.whose, question.chat, question.action)
        return part.answers.get(facts) or part.ask(facts)

    def could_ever(
        self, subjects: frozenset[str], agent: str, resource: Resource, action: Action, now: datetime
    ) -> bool:
        """Whether a live row could ever allow this; where none could, the function may be named as lacking."""
        return self._slice(subjects, agent, now).could_ever(resource, action)

    def cells(self, subjects: frozenset[str], agent: str, chat: Chat, action: Action, now: datetime) -> frozenset[Cell]:
        """The (resource, relation, whose) of sessions on which `action` is allowed, for a list or a search."""
        part = self._slice(subjects, agent, now)
        return allowed_cells(lambda facts: part.answers.get(facts) or part.ask(facts), chat, action)

    def _slice(self, subjects: frozenset[str], agent: str, now: datetime) -> Slice:
        # Who the document does not name falls out here, so a million plain members share one slice.
        key = (subjects & self._named, agent if agent in self._agents else ANY)
        part = self._slices.get(key)
        if part is not None and ((part.ends is None and part.since is None) or part.holds_at(now)):
            return part
        return self._cut(key, now)

    def _cut(self, key: tuple[frozenset[str], str], now: datetime) -> Slice:
        named, agent = key
        held = self._roles.closed(named)
        rows = [row for subject in held for place in {agent, ANY} for row in self._index.get((subject, place), ())]
        part = Slice(
            rows, now, subjects=held, agent=agent, model=self._model, nothing=self._nothing, thread=self._thread
        )
        self._slices.pop(key, None)
        if len(self._slices) >= MOST_SLICES:
            del self._slices[next(iter(self._slices))]
        self._slices[key] = part
        return part
