"""What admins see of who can and what can."""

from __future__ import annotations

from typing import Any

from typing_extensions import TypedDict

from gateway.operations.reach import Reach
from gateway.operations.what_can import Reachable
from gateway.operations.who_can import Able
from gateway.policy.population import Words
from gateway.ports import Page
from gateway.web.api.shapes import page


class NameShape(TypedDict):
    """Somebody, by id and name."""

    id: str
    name: str
    kind: str


class AbleShape(TypedDict):
    """Somebody who may."""

    profile: NameShape
    relation: str
    whose: str
    rule: str | None
    reads_after: int


class WordsShape(TypedDict):
    """What somebody may do with one kind of thing of an agent."""

    agent: str
    resource: str
    relation: str
    whose: str
    chat: str
    actions: list[str]


class ReachableShape(TypedDict):
    """A session that somebody reaches: which one, and never what is said in it."""

    key: str
    id: str
    agent: str
    kind: str
    private: bool
    owner: str
    whose: str
    rule: str | None
    reads_after: int


class ReachShape(TypedDict):
    """What somebody may do, and a page of the sessions that they may do `action` to."""

    profile: NameShape
    action: str
    abilities: list[WordsShape]
    items: list[ReachableShape]
    next_cursor: str | None


def who_can(found: Page[Able]) -> dict[str, Any]:
    """A page of people."""
    return page(found, _able)


def what_can(found: Reach) -> ReachShape:
    """A person's reach."""
    sessions = page(found.sessions, _reachable)
    return {
        "profile": {"id": found.profile.id, "name": found.profile.name, "kind": found.profile.kind},
        "action": found.action,
        "abilities": [words(one) for one in found.abilities],
        "items": sessions["items"],
        "next_cursor": sessions["next_cursor"],
    }


def _able(one: Able) -> AbleShape:
    return {
        "profile": {"id": one.profile.id, "name": one.profile.name, "kind": one.profile.kind},
        "relation": one.relation,
        "whose": one.whose,
        "rule": one.rule,
        "reads_after": one.reads_after,
    }


def words(one: Words) -> WordsShape:
    """What may be done with one kind of thing."""
    return {
        "agent": one.agent,
        "resource": one.resource,
        "relation": one.relation,
        "whose": one.whose,
        "chat": one.chat,
        "actions": [str(action) for action in one.actions],
    }


def _reachable(one: Reachable) -> ReachableShape:
    session = one.session
    return {
        "key": session.key,
        "id": session.id,
        "agent": session.agent,
        "kind": session.kind,
        "private": session.private,
        "owner": session.owner,
        "whose": one.whose,
        "rule": one.rule,
        "reads_after": one.reads_after,
    }
