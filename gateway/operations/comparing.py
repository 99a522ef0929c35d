"""Turns two documents and what was recorded into what would come out otherwise: all that takes long, in one thread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime

from gateway.model import ProfileId
from gateway.policy.ahead import RowsBySubject
from gateway.policy.collector import let_go
from gateway.policy.comparison import Change
from gateway.policy.documents import Document
from gateway.policy.drafts import Draft, draft
from gateway.policy.endings import ending
from gateway.policy.flips import Summary, summarised
from gateway.policy.population import named_in
from gateway.policy.replay import RightsThen, look_back, replay
from gateway.policy.rights import Rights
from gateway.policy.rows import Row
from gateway.ports import MadeBy, RecordedDecisions


@dataclass(frozen=True, slots=True, kw_only=True)
class LookedBackOn:
    """A version: its number, its time in force, and when rows of the one before it would have ended."""

    number: int
    since: datetime
    until: datetime | None
    begins: Sequence[datetime]

    def made(self) -> MadeBy:
        """The decisions that are its own."""
        return MadeBy(version=self.number, until=self.until, moments=self.begins[1:])


@dataclass(frozen=True, slots=True, kw_only=True)
class Documents:
    """Two documents that are compared; a `version` is the later one's, where it is published."""

    before: Document
    after: Document
    base: int
    since: datetime
    version: LookedBackOn | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Decisions:
    """How many decisions were looked at, and what became of those that were not replayed."""

    seen: int
    share: float
    replayed: int
    lists: int
    refused_anyway: Mapping[str, int]  # by code
    unreadable: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """What came out."""

    change: Change
    draft: Draft
    decisions: Decisions
    summary: Summary
    subjects: Set[str]  # of the rows of both
    named: Sequence[ProfileId]  # the people among them, first those whose rows are other ones
    ends: Sequence[Row]


def compare(
    documents: Documents, in_force: Rights | None, agents: Sequence[str], recorded: RecordedDecisions, now: datetime
) -> Compared:
    """Everything about two documents but who is there. `recorded` is used up: hundreds of thousands of decisions are
    let go here, since whoever drops them all at once holds up everybody."""
    before, after = documents.before, documents.after
    changed = draft(documents.base, before, after)
    change = Change(in_force or Rights(before, now), Rights(after, now), agents)
    if documents.version is None:
        found = replay(recorded.counts, change.before, change.after)
    else:
        found = look_back(recorded.counts, RightsThen(RowsBySubject(before), documents.version.begins))
    summary = summarised(found.flips)
    let_go(found.flips)
    let_go(recorded.counts)
    subjects = change.before.named | change.after.named
    ids = named_in(changed.subjects)
    return Compared(
        change=change,
        draft=changed,
        decisions=Decisions(
            seen=recorded.seen,
            share=recorded.share,
            replayed=found.replayed,
            lists=found.lists,
            refused_anyway=found.by_code,
            unreadable=recorded.unreadable + found.unreadable,
        ),
        summary=summary,
        subjects=subjects,
        named=[ProfileId(one) for one in (*ids, *sorted(set(named_in(subjects)).difference(ids)))],
        ends=ending(after, now),
    )
