"""What an admin sees of a draft before it is published, and of a version after."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from typing_extensions import TypedDict

from gateway.model import ProfileId
from gateway.operations.preview import Preview
from gateway.policy.flips import Count
from gateway.policy.population import Affected, SessionsChanged
from gateway.policy.replay import Flip
from gateway.ports import SessionTally
from gateway.web.api.shapes import RoleShape, roles, time
from gateway.web.api.shapes_ends import EndShape, ends
from gateway.web.api.shapes_reach import WordsShape, words

MOST: Final = 50  # of each list; the counts are of everything


class DecisionsShape(TypedDict):
    """What was looked at: `seen` decisions of the time, which are this share of all; and what of them was replayed."""

    since: str | None
    until: str | None
    seen: int
    share: float
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


class SessionsShape(TypedDict):
    """A kind of sessions that somebody gains or loses something on; `sessions` are all that there are of it, counted up
    to 10,000, and nobody gains or loses more than those."""

    agent: str
    resource: str
    whose: str
    sessions: int
    newest: list[str]
    people_gaining: int
    people_losing: int


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
    by_session: list[CountShape]
    people_gaining: int
    people_losing: int
    population: list[AffectedShape]
    not_looked_at: int
    sessions: list[SessionsShape]
    examples: list[ExampleShape]
    ends: list[EndShape]
    refused: list[str]
    only_an_owner: list[str]


def preview(found: Preview) -> PreviewShape:
    """The whole, with each list cut to its largest."""
    summary = found.summary
    return {
        "base_version": found.base,
        "version": found.version,
        "epoch": found.epoch,
        "decisions": _decisions(found),
        "gains": summary.gains,
        "losses": summary.losses,
        "by_person": [_person(found, one) for one in summary.by_person],
        "by_tool": _counts(summary.by_tool),
        "by_agent": _counts(summary.by_agent),
        "by_resource": _counts(summary.by_resource),
        "by_session": _counts(summary.by_session),
        "people_gaining": sum(one.people for one in found.affected if one.gains),
        "people_losing": sum(one.people for one in found.affected if one.losses),
        "population": [_affected(one) for one in found.affected[:MOST]],
        "not_looked_at": found.left_out,
        "sessions": [_sessions(*one) for one in found.sessions],
        "examples": [_example(found, one) for one in summary.examples],
        "ends": ends(found.ends),
        "refused": list(found.faults),
        "only_an_owner": list(found.raises),
    }


def _decisions(found: Preview) -> DecisionsShape:
    decisions = found.decisions
    return {
        "since": time(found.since),
        "until": time(found.until),
        "seen": decisions.seen,
        "share": decisions.share,
        "replayed": decisions.replayed,
        "lists": decisions.lists,
        "refused_anyway": dict(decisions.refused_anyway),
        "unreadable": decisions.unreadable,
    }


def _counts(counts: Sequence[Count]) -> list[CountShape]:
    return [{"name": one.name, "gains": one.gains, "losses": one.losses} for one in counts]


def _person(found: Preview, one: Count) -> PersonShape:
    return {"profile": one.name, "name": _name(found, one.name) or "", "gains": one.gains, "losses": one.losses}


def _sessions(changed: SessionsChanged, counted: SessionTally) -> SessionsShape:
    return {
        "agent": changed.agent,
        "resource": changed.resource,
        "whose": changed.whose,
        "sessions": counted.sessions,
        "newest": list(counted.newest),
        "people_gaining": changed.gaining,
        "people_losing": changed.losing,
    }


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
