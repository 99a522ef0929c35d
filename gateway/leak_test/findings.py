"""What a run found, put together while it runs: who saw what, what came back that should not have, and what did not."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field

from gateway.leak_test.markers import Mark
from gateway.leak_test.world import Caller


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that is wrong: `who` was shown (or not shown) `what`, by `route`, asking from `origin`."""

    who: str
    whose: str
    what: str
    route: str
    origin: str
    how: str

    def __str__(self) -> str:
        return f"{self.who}: {self.what}, by {self.route}, asked from {self.origin}: {self.how}"


@dataclass(slots=True)
class Findings:
    """Everything that a report is made of."""

    leaks: dict[Finding, None] = field(default_factory=dict)  # in order, each once
    lost: dict[Finding, None] = field(default_factory=dict)
    not_driven: list[str] = field(default_factory=list)
    requests: Counter[str] = field(default_factory=Counter)  # by route
    statuses: Counter[int] = field(default_factory=Counter)
    seen: defaultdict[str, set[Mark]] = field(default_factory=lambda: defaultdict(set))  # by caller
    leaked: defaultdict[str, set[Mark]] = field(default_factory=lambda: defaultdict(set))
    compared: int = 0  # refusals that were held against what a missing thing gets

    def leak(self, who: Caller, mark: Mark, route: str, origin: str, how: str) -> None:
        """Somebody was shown what the policy keeps from them."""
        self.leaked[who.label].add(mark)
        found = Finding(who=who.label, whose=mark.whose, what=mark.label, route=route, origin=origin, how=how)
        self.leaks.setdefault(found)

    def told(self, who: Caller, whose: str, what: str, route: str, origin: str, how: str) -> None:
        """Somebody can tell from an answer that there is something, though no word of it is in it."""
        self.leaks.setdefault(Finding(who=who.label, whose=whose, what=what, route=route, origin=origin, how=how))

    def miss(self, who: Caller, mark: Mark, route: str, origin: str) -> None:
        """Somebody was not shown what they may see: an answer that is always empty proves nothing."""
        how = "not shown, though the policy allows it"
        found = Finding(who=who.label, whose=mark.whose, what=mark.label, route=route, origin=origin, how=how)
        self.lost.setdefault(found)
