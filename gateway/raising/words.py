"""Turns what somebody would gain into a few words for themselves."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from gateway.model import ANY_AGENT, Resource, Whose
from gateway.policy.ahead import Gain
from gateway.policy.rights import Fact, FactSet, facts_in

_MOST: Final = 3  # of each: nobody reads more in one sentence
_SESSIONS: Final = (Resource.SESSION_PRIVATE, Resource.SESSION_SHARED)
_OTHERS: Final = "of other people"  # said first: it is what a reader has to know


def gain_in_words(gain: Gain) -> tuple[str, ...]:
    """Like "`history` and `list` on session/private (of other people) of flight": a few, and how many more."""
    # The rows for every agent say it once; an agent is named where there is more than that.
    everywhere = gain.facts.get(ANY_AGENT, 0)
    phrases = list(_phrases(everywhere, "every agent"))
    for agent, facts in sorted(gain.facts.items()):
        if agent != ANY_AGENT:
            phrases.extend(_phrases(facts & ~everywhere, agent))
    more = len(phrases) - _MOST
    return tuple(phrases) if more <= 0 else (*phrases[:_MOST], f"{more} more")


def in_a_row(words: Iterable[str]) -> str:
    """`a, b and c`."""
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


def _phrases(facts: FactSet, agent: str) -> Iterable[str]:
    by_what: dict[str, dict[str, None]] = {}
    for fact in facts_in(facts):
        by_what.setdefault(_what(fact), {})[f"`{fact.action}`"] = None
    for what, actions in sorted(by_what.items(), key=lambda found: _OTHERS not in found[0]):
        named = list(actions)[:_MOST]
        rest = [f"{len(actions) - _MOST} more"] if len(actions) > _MOST else []
        yield f"{in_a_row([*named, *rest])} on {what} of {agent}"


def _what(fact: Fact) -> str:
    if fact.resource not in _SESSIONS:
        return fact.resource
    return f"{fact.resource} ({_OTHERS if fact.whose is Whose.OTHER else 'yours or shared with you'})"
