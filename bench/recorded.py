"""Turns a number into that many recorded decisions of a few hundred people, the same for the same number."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from gateway.keys import new_id
from gateway.model import (
    ANY_AGENT,
    Action,
    AgentName,
    AuditRecord,
    Chat,
    Profile,
    ProfileId,
    Question,
    Relation,
    Resource,
    RoleAssignment,
    TenantId,
    Whose,
)
from gateway.policy.snapshot import Snapshot

PEOPLE: Final = 400
ROLES: Final = ("member",) * 17 + ("supervisor", "auditor", "admin")
AGENTS: Final = tuple(AgentName(name) for name in ("flight", "hotel", "desk"))
_SESSIONS: Final = 5  # of each person that are asked about


class _Asked(NamedTuple):
    operation: str
    action: Action
    resource: Resource
    often: int


_PRIVATE, _SHARED = Resource.SESSION_PRIVATE, Resource.SESSION_SHARED
_ASKED: Final = (
    _Asked("sessions_history", Action.HISTORY, _PRIVATE, 20),
    _Asked("messages.list", Action.HISTORY, _SHARED, 10),
    _Asked("messages.post", Action.POST, _PRIVATE, 15),
    _Asked("session_status", Action.STATUS, _PRIVATE, 5),
    _Asked("sessions_send", Action.SEND, _SHARED, 3),
    _Asked("sessions.context", Action.ENTER, _PRIVATE, 15),
    _Asked("sessions.context", Action.LOAD, Resource.MEMORY_RULES, 10),
    _Asked("sessions.context", Action.LOAD, Resource.MEMORY_LONGTERM, 10),
    _Asked("memory_get", Action.GET, Resource.MEMORY_DAILY, 15),
    _Asked("memory_append", Action.APPEND, Resource.MEMORY_DAILY, 5),
    _Asked("people.list", Action.READ, Resource.ADMIN_PEOPLE, 1),
)
_OFTEN: Final = [one.often for one in _ASKED]


def somebody(tenant: TenantId, number: int, now: datetime) -> Profile:
    """One of the people."""
    role = RoleAssignment(role=ROLES[number % len(ROLES)], agent=ANY_AGENT)
    name = f"person{number}"
    return Profile(id=ProfileId(new_id("prf", now)), tenant=tenant, name=name, kind="person", roles=(role,))


class Recorder:
    """What these people asked for, answered by a policy."""

    def __init__(self, tenant: TenantId, people: list[Profile], snapshot: Snapshot) -> None:
        self._tenant = tenant
        self._people = people
        self._snapshot = snapshot
        self._dice = random.Random(len(people))

    def records(self, count: int, begin: datetime, end: datetime) -> Iterator[AuditRecord]:
        """So many decisions, evenly from `begin` to `end`."""
        step = (end - begin) / count
        for number in range(count):
            yield self._record(begin + number * step)

    def _record(self, at: datetime) -> AuditRecord:
        dice = self._dice
        who = dice.choice(self._people)
        whose = dice.choices((Whose.OWN, Whose.SHARED, Whose.OTHER), (80, 12, 8))[0]
        asked = dice.choices(_ASKED, _OFTEN)[0]
        agent = dice.choices(AGENTS, (8, 3, 1))[0]
        owner = who if whose is Whose.OWN else dice.choice(self._people)
        relation = Relation.SAME_AGENT if whose is Whose.OTHER else dice.choice((Relation.SELF, Relation.CHILD))
        chat = Chat.GROUP if whose is Whose.SHARED and dice.random() < 0.5 else Chat.PRIVATE
        question = Question(agent, asked.resource, relation, whose, chat, asked.action)
        subjects = who.subjects_on(agent)
        verdict = self._snapshot.decide(subjects, question, at)
        session = f"agent:{agent}:explicit:{owner.id}:case{dice.randrange(_SESSIONS)}"
        return AuditRecord(
            at=at + timedelta(microseconds=dice.randrange(1_000)),
            kind="decision",
            tenant=self._tenant,
            request=new_id("req", at),
            surface="rest",
            operation=asked.operation,
            effect="allow" if verdict.allowed else "deny",
            code=verdict.code,
            epoch=1,
            profile=who.id,
            principal=f"local:{who.name}",
            agent=agent,
            session=session,
            action=asked.action,
            resource=asked.resource,
            relation=relation,
            whose=whose,
            chat=chat,
            subjects=tuple(sorted(subjects)),
            target=session,
            rule=verdict.rule,
            decision=new_id("dec", at),
            policy_version=self._snapshot.version,
        )
