"""The questions that are asked about sessions, files and functions (design section 7)."""

from __future__ import annotations

import pytest

from gateway.model import OUTSIDE, Action, Chat, Kind, Origin, Question, Relation, Resource, Whose
from gateway.policy.targets import (
    FunctionTarget,
    MemoryTarget,
    MissingTarget,
    NewSessionTarget,
    SessionsTarget,
    SessionTarget,
    SingleTarget,
    Target,
)
from tests.cast import ACME, FLIGHT, HOTEL, child, person, profile_id, requester, root

ALICE = requester(person("alice", "member"))
MINE = root("mine", "alice")
TEAM = root("team", "alice", "bob", kind=Kind.GROUP)
INSIDE = Origin(session=MINE.session, chat=Chat.PRIVATE, kind=Kind.DIRECT)
AT_HOTEL = Origin(session=root("hotel", "alice", agent=HOTEL).session, chat=Chat.PRIVATE, kind=Kind.DIRECT)


def _file(resource: Resource, owner: str | None = None) -> MemoryTarget:
    return MemoryTarget(ACME, FLIGHT, resource, profile_id(owner) if owner else None, "a/file.md")


@pytest.mark.parametrize(
    ("target", "origin", "action", "asked"),
    [
        (
            SessionTarget(TEAM),
            OUTSIDE,
            Action.HISTORY,
            Question(FLIGHT, Resource.SESSION_SHARED, Relation.SELF, Whose.OWN, Chat.PRIVATE, Action.HISTORY),
        ),
        (
            SessionTarget(child("abroad", MINE, agent=HOTEL)),
            INSIDE,
            Action.SEND,
            Question(FLIGHT, Resource.SESSION_PRIVATE, Relation.CHILD_CROSS, Whose.OWN, Chat.PRIVATE, Action.SEND),
        ),
        (
            NewSessionTarget(ACME, FLIGHT, Kind.GROUP, False, None),
            OUTSIDE,
            Action.CREATE,
            Question(FLIGHT, Resource.SESSION_SHARED, Relation.SELF, Whose.OWN, Chat.PRIVATE, Action.CREATE),
        ),
        (
            NewSessionTarget(ACME, FLIGHT, Kind.SUBAGENT, True, MINE),
            INSIDE,
            Action.SPAWN,
            Question(FLIGHT, Resource.SESSION_PRIVATE, Relation.CHILD, Whose.OWN, Chat.PRIVATE, Action.SPAWN),
        ),
        (
            NewSessionTarget(ACME, HOTEL, Kind.SUBAGENT, True, MINE),
            INSIDE,
            Action.SPAWN,
            Question(FLIGHT, Resource.SESSION_PRIVATE, Relation.CHILD_CROSS, Whose.OWN, Chat.PRIVATE, Action.SPAWN),
        ),
        (
            NewSessionTarget(ACME, HOTEL, Kind.SUBAGENT, True, MINE),
            INSIDE,
            Action.CREATE,
            Question(HOTEL, Resource.SESSION_PRIVATE, Relation.SELF, Whose.OWN, Chat.PRIVATE, Action.CREATE),
        ),
        (
            _file(Resource.MEMORY_LONGTERM),
            INSIDE,
            Action.LOAD,
            Question(FLIGHT, Resource.MEMORY_LONGTERM, Relation.SAME_AGENT, Whose.SHARED, Chat.PRIVATE, Action.LOAD),
        ),
        (
            _file(Resource.MEMORY_LONGTERM),
            OUTSIDE,
            Action.GET,
            Question(FLIGHT, Resource.MEMORY_LONGTERM, Relation.SAME_AGENT, Whose.SHARED, Chat.PRIVATE, Action.GET),
        ),
        (
            _file(Resource.MEMORY_DAILY),
            AT_HOTEL,
            Action.GET,
            Question(FLIGHT, Resource.MEMORY_DAILY, Relation.OTHER_AGENT, Whose.SHARED, Chat.PRIVATE, Action.GET),
        ),
        (
            _file(Resource.PERSONAL_DAILY, "alice"),
            INSIDE,
            Action.GET,
            Question(FLIGHT, Resource.PERSONAL_DAILY, Relation.SELF, Whose.OWN, Chat.PRIVATE, Action.GET),
        ),
        (
            _file(Resource.PERSONAL_DAILY, "bob"),
            INSIDE,
            Action.GET,
            Question(FLIGHT, Resource.PERSONAL_DAILY, Relation.SAME_AGENT, Whose.OTHER, Chat.PRIVATE, Action.GET),
        ),
        (
            _file(Resource.PERSONAL_DAILY),
            INSIDE,
            Action.GET,
            Question(FLIGHT, Resource.PERSONAL_DAILY, Relation.SAME_AGENT, Whose.OTHER, Chat.PRIVATE, Action.GET),
        ),
        (
            FunctionTarget(ACME, Resource.ADMIN_POLICY, "policy.show"),
            OUTSIDE,
            Action.READ,
            Question(
                FunctionTarget(ACME, Resource.GATEWAY, "").agent,
                Resource.ADMIN_POLICY,
                Relation.SELF,
                Whose.OWN,
                Chat.PRIVATE,
                Action.READ,
            ),
        ),
        (
            MissingTarget(ACME, Resource.SESSION_PRIVATE, "agent:flight:nothing"),
            OUTSIDE,
            Action.HISTORY,
            Question(
                FunctionTarget(ACME, Resource.GATEWAY, "").agent,
                Resource.SESSION_PRIVATE,
                Relation.SAME_AGENT,
                Whose.OTHER,
                Chat.PRIVATE,
                Action.HISTORY,
            ),
        ),
    ],
)
def test_each_target_is_asked_about_by_its_facts(
    target: SingleTarget, origin: Origin, action: Action, asked: Question
) -> None:
    """The paragraph on `relation` and `whose` of design section 7, line by line."""
    assert target.question(ALICE, origin, action) == asked


def test_the_audit_has_a_name_for_each_target() -> None:
    """An admin who explains a refusal needs to know what was asked for."""
    targets: list[Target] = [
        SessionTarget(MINE),
        NewSessionTarget(ACME, FLIGHT, Kind.GROUP, False, None),
        _file(Resource.MEMORY_DAILY),
        FunctionTarget(ACME, Resource.ADMIN_POLICY, "policy.show"),
        MissingTarget(ACME, Resource.SESSION_PRIVATE, "agent:flight:nothing"),
        SessionsTarget(ACME, (FLIGHT,)),
    ]

    assert [target.name for target in targets] == [
        "agent:flight:test:mine",
        "new group on flight",
        "flight/a/file.md",
        "policy.show",
        "agent:flight:nothing",
        "sessions",
    ]
