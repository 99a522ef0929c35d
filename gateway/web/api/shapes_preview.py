"""What an admin sees of a draft before it is published, and of a version after."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, Final

from typing_extensions import TypedDict

from gateway.model import ProfileId
from gateway.operations.preview import Preview
from gateway.policy.population import Affected
from gateway.policy.replay import Flip
from gateway.policy.rows import written
from gateway.web.api.shapes import RoleShape, roles, time
from gateway.web.api.shapes_reach import WordsShape, words

MOST: Final = 50  # of each list; the counts are of everything
MOST_EXAMPLES: Final = 20


class DecisionsShape(TypedDict):
    """What was replayed: of `seen`, one in `every` decisions of the time."""

    since: str | None
    until: str | None
    seen: int
    every: int
    replayed: int
    lists: int
    refused_anyway: dict[str, int]
    unreadable: int


class CountShape(TypedDict):
    """How many decisions of one kind would come out otherwise."""

    name: str
    gains: int
    losses: int


class PersonShape(TypedDict):
    """The same for one person."""

    profile: str
    name: str
    gains: int
    losses: int


class AffectedShape(TypedDict):
    """What somebody gains and loses: a person whom a row names, or everybody with the same roles. No `people` are those
    who are stored nowhere: guests, and whoever has a role by their credential alone."""

    profile: str | None
    name: str | None
    kind: str
    roles: list[RoleShape]
    people: int
    gains: list[WordsShape]
    losses: list[WordsShape]


class ExampleShape(TypedDict):
    """A decision that was made, and would come out otherwise."""

    change: str
    times: int
    profile: str | None
    name: str | None
    operation: str
    action: str
    agent: str
    resource: str
    relation: str
    whose: str
    chat: str
    session: str | None


class EndShape(TypedDict):
    """A row that ends soon."""

    line: int
    text: str
    until: str


class PreviewShape(TypedDict):
    """Who gains and who loses what; nothing is published."""

    base_version: int
    version: int | None
    epoch: int
    decisions: DecisionsShape
    gains: int
    losses: int
    by_person: list[PersonShape]
    by_tool: list[CountShape]
    by_agent: list[CountShape]
    by_resource: list[CountShape]
    people_gaining: int
    people_losing: int
    population: list[AffectedShape]
    not_looked_at: int
    examples: list[ExampleShape]
    ends: list[EndShape]
    refused: list[str]
    only_an_owner: list[str]


def preview(found: Preview) -> PreviewShape:
    """The whole, with each list cut to its largest."""
    flips = found.replay.flips
    return {
        "base_version": found.base,
        "version": found.version,
        "epoch": found.epoch,
        "decisions": _decisions(found),
        "gains": sum(one.times for one in flips if one.gained),
        "losses": sum(one.times for one in flips if not one.gained),
        "by_person": _by_person(found),
        "by_tool": _by(flips, lambda one: one.recorded.operation),
        "by_agent": _by(flips, lambda one: one.question.agent),
        "by_resource": _by(flips, lambda one: one.question.resource),
        "people_gaining": sum(one.people for one in found.affected if one.gains),
        "people_losing": sum(one.people for one in found.affected if one.losses),
        "population": [_affected(one) for one in found.affected[:MOST]],
        "not_looked_at": found.left_out,
        "examples": [_example(found, one) for one in sorted(flips, key=_most_often)[:MOST_EXAMPLES]],
        "ends": [
            {"line": row.line, "text": row.text, "until": written(row.until)} for row in found.ends[:MOST] if row.until
        ],
        "refused": list(found.faults),
        "only_an_owner": list(found.raises),
    }


def _decisions(found: Preview) -> DecisionsShape:
    recorded, replayed = found.recorded, found.replay
    return {
        "since": time(found.since),
        "until": time(found.until),
        "seen": recorded.seen,
        "every": recorded.every,
        "replayed": replayed.replayed,
        "lists": replayed.lists,
        "refused_anyway": dict(replayed.by_code),
        "unreadable": recorded.unreadable + replayed.unreadable,
    }


def _by_person(found: Preview) -> list[PersonShape]:
    counted = _by(found.replay.flips, lambda one: one.recorded.profile or "")
    return [
        {
            "profile": one["name"],
            "name": _name(found, one["name"]) or "",
            "gains": one["gains"],
            "losses": one["losses"],
        }
        for one in counted
    ]


def _by(flips: Iterable[Flip], key: Callable[[Flip], str]) -> list[CountShape]:
    gains: Counter[str] = Counter()
    losses: Counter[str] = Counter()
    for one in flips:
        (gains if one.gained else losses)[key(one)] += one.times
    largest = sorted(gains.keys() | losses.keys(), key=lambda name: (-(gains[name] + losses[name]), name))
    return [{"name": name, "gains": gains[name], "losses": losses[name]} for name in largest[:MOST]]


def _affected(one: Affected) -> AffectedShape:
    named = bool(one.holder.name)
    return {
        "profile": one.holder.id if named else None,
        "name": one.holder.name if named else None,
        "kind": one.holder.kind,
        "roles": roles(one.holder.roles),
        "people": one.people,
        "gains": [words(each) for each in one.gains[:MOST]],
        "losses": [words(each) for each in one.losses[:MOST]],
    }


def _example(found: Preview, one: Flip) -> ExampleShape:
    question, recorded = one.question, one.recorded
    return {
        "change": "gain" if one.gained else "loss",
        "times": one.times,
        "profile": recorded.profile,
        "name": _name(found, recorded.profile),
        "operation": recorded.operation,
        "action": question.action,
        "agent": question.agent,
        "resource": question.resource,
        "relation": question.relation,
        "whose": question.whose,
        "chat": question.chat,
        "session": recorded.session,
    }


def _name(found: Preview, profile: str | None) -> str | None:
    known: Any = found.names.get(ProfileId(profile or ""))
    return known.name if known is not None else None


def _most_often(one: Flip) -> tuple[int, str]:
    return -one.times, one.recorded.profile or ""
