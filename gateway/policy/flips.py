"""Turns decisions that would come out otherwise into what an admin reads of them: counts and examples.

There may be hundreds of thousands: made in a thread, and what is kept of it is bounded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from heapq import nsmallest
from typing import Final

from gateway.policy.replay import Flip

MOST: Final = 50  # of each list; the counts are of everything
MOST_EXAMPLES: Final = 20


@dataclass(frozen=True, slots=True)
class Count:
    """How many decisions of one person, tool, agent, resource or session."""

    name: str
    gains: int
    losses: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What is said of all of them."""

    gains: int
    losses: int
    by_person: Sequence[Count]
    by_tool: Sequence[Count]
    by_agent: Sequence[Count]
    by_resource: Sequence[Count]
    by_session: Sequence[Count]  # without what is about no session
    examples: Sequence[Flip]  # those that were made most often


def summarised(flips: Sequence[Flip]) -> Summary:
    """The summary. Takes microseconds for each."""
    gains, losses = (sum(one.times for one in flips if one.gained is gained) for gained in (True, False))
    return Summary(
        gains=gains,
        losses=losses,
        by_person=_by(flips, lambda one: one.recorded.profile),
        by_tool=_by(flips, lambda one: one.recorded.operation),
        by_agent=_by(flips, lambda one: one.question.agent),
        by_resource=_by(flips, lambda one: one.question.resource),
        by_session=_by(flips, lambda one: one.recorded.session),
        examples=nsmallest(MOST_EXAMPLES, flips, key=_most_often),
    )


def _by(flips: Iterable[Flip], name_of: Callable[[Flip], str | None]) -> list[Count]:
    gains: Counter[str] = Counter()
    losses: Counter[str] = Counter()
    for one in flips:
        name = name_of(one)
        if name is not None:
            (gains if one.gained else losses)[name] += one.times
    names = nsmallest(MOST, gains.keys() | losses.keys(), key=lambda name: (-(gains[name] + losses[name]), name))
    return [Count(name, gains[name], losses[name]) for name in names]


def _most_often(one: Flip) -> tuple[int, str, str]:
    return -one.times, one.recorded.profile or "", one.recorded.session or ""
