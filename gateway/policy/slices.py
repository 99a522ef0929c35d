"""Turns the few rows that can match for one subject set, agent and resource into memoised answers of Casbin."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import product
from typing import Final

from gateway.model import Action, Chat, Relation, Resource, Verdict, Whose
from gateway.policy.casbin_model import CompiledModel, HeldSubjects, SliceEnforcer
from gateway.policy.rows import ACTION_WORDS, ALLOW, Row

Facts = tuple[Relation, Whose, Chat, Action]  # a question within a slice: all but the agent and the resource

MOST_ANSWERS: Final = 256
EMPTY_POLICY: Final = Verdict(allowed=False, code="empty_policy", rule=None)
NO_MATCHING_ROW: Final = Verdict(allowed=False, code="no_matching_row", rule=None)


class LoopThread:
    """The one thread that asks Casbin. simpleeval's expression holds the row it is at, so two would mix them up."""

    __slots__ = ("_ident",)

    def __init__(self) -> None:
        self._ident: int | None = None

    def check(self) -> None:
        """The first caller's thread is the one; raises RuntimeError on any other."""
        here = threading.get_ident()
        if self._ident is None:
            self._ident = here
        if self._ident != here:
            raise RuntimeError("a policy snapshot was asked from a second thread; ask it on the event loop's alone")


class Slice:
    """The rows for one subject set, agent and resource, as they stand from `since` until before `ends`."""

    __slots__ = (
        "_agent",
        "_enforcer",
        "_nothing",
        "_resource",
        "_rows",
        "_rules",
        "_subjects",
        "_thread",
        "answers",
        "ends",
        "since",
        "timeless",
    )

    def __init__(
        self,
        rows: Sequence[Row],
        now: datetime,
        *,
        subjects: frozenset[str],
        agent: str,
        resource: Resource,
        model: CompiledModel,
        nothing: Verdict,
        thread: LoopThread,
    ) -> None:
        ends = [row.until for row in rows if row.until is not None]
        self.since = max((end for end in ends if end <= now), default=None)
        self.ends = min((end for end in ends if end > now), default=None)
        self.timeless = not ends
        self.answers: dict[Facts, Verdict] = {}
        self._rows = tuple(sorted((row for row in rows if row.live(now)), key=lambda row: row.line))
        self._rules = {row.values: row.rule for row in reversed(self._rows)}
        self._subjects = HeldSubjects(subjects)
        self._agent = agent
        self._resource = str(resource)
        self._nothing = nothing
        self._thread = thread
        # Casbin runs its matcher once over empty fields when it has no rows; a slice without rows never asks it.
        self._enforcer: SliceEnforcer | None = model.enforcer(self._rows) if self._rows else None

    def holds_at(self, now: datetime) -> bool:
        """Whether the same rows are live at `now` as when the slice was made."""
        return (self.since is None or self.since <= now) and (self.ends is None or now < self.ends)

    def ask(self, facts: Facts) -> Verdict:
        """What Casbin says, kept for the next time. Raises RuntimeError on a thread that is not the loop's."""
        if self._enforcer is None:
            return self._nothing
        self._thread.check()
        allowed, row = self._enforcer.enforce_ex(self._subjects, self._agent, self._resource, *map(str, facts))
        verdict = self._verdict(allowed, tuple(row))
        if len(self.answers) >= MOST_ANSWERS:
            del self.answers[next(iter(self.answers))]
        self.answers[facts] = verdict
        return verdict

    def _verdict(self, allowed: bool, row: tuple[str, ...]) -> Verdict:
        if not row:
            return NO_MATCHING_ROW
        return Verdict(allowed, "allowed" if allowed else "denied_by_row", self._rules[row])

    def could_ever(self, action: Action) -> bool:
        """Whether some row allows this action under any relation, ownership or place."""
        words = ACTION_WORDS[action]
        return any(row.effect == ALLOW and row.action in words for row in self._rows)

    def cells(self, chat: Chat, action: Action) -> Iterator[tuple[Relation, Whose]]:
        """The (relation, whose) on which `action` is allowed, each asked like a single read (design section 7)."""
        for relation, whose in product(Relation, Whose):
            facts = (relation, whose, chat, action)
            if (self.answers.get(facts) or self.ask(facts)).allowed:
                yield relation, whose
