"""Turns two documents and the people there are into who gains and who loses what (design section 7, "preview")."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Final

from gateway.model import (
    ANY_AGENT,
    Action,
    AgentName,
    Chat,
    Profile,
    ProfileId,
    Relation,
    Resource,
    RoleAssignment,
    TenantId,
    Whose,
)
from gateway.policy.comparison import Change, SubjectsOn
from gateway.policy.rights import FactSet, facts_in

SESSIONS: Final = frozenset({Resource.SESSION_PRIVATE, Resource.SESSION_SHARED})
GUEST: Final = "guest"  # the kind and the role of whoever is not known


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """Actions on one kind of thing of an agent (`*`: every agent), as it stands to somebody, from one kind of chat."""

    agent: AgentName
    resource: Resource
    relation: Relation
    whose: Whose
    chat: Chat
    actions: tuple[Action, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Affected:
    """Those who decide alike, one person or a class, and what changes for them."""

    holder: Profile
    people: int
    gains: tuple[Words, ...]
    losses: tuple[Words, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionsChanged:
    """A kind of sessions of an agent (`*`: every agent), and how many people gain or lose something on some of them."""

    agent: AgentName
    resource: Resource
    whose: Whose
    gaining: int
    losing: int


def affected(change: Change, holders: Iterable[tuple[Profile, int]]) -> list[Affected]:
    """Those of the holders for whom anything changes; each with how many people it stands for."""
    found = []
    for holder, people in holders:
        gains, losses = change.gains(_subjects(holder)), change.losses(_subjects(holder))
        if gains or losses:
            found.append(
                Affected(holder=holder, people=people, gains=in_words(gains, change), losses=in_words(losses, change))
            )
    return found


def in_words(by_agent: Mapping[str, FactSet], change: Change) -> tuple[Words, ...]:
    """The facts by agent; what is true of every agent is said once, as of `*`."""
    everywhere = by_agent.get(ANY_AGENT, 0)
    for agent in change.agents:
        everywhere &= by_agent.get(agent, 0)
    words = list(grouped(ANY_AGENT, everywhere))
    for agent, facts in by_agent.items():
        if agent != ANY_AGENT:
            words.extend(grouped(AgentName(agent), facts & ~everywhere))
    return tuple(words)


def grouped(agent: AgentName, facts: FactSet) -> Iterator[Words]:
    """The facts of one agent, those that differ in nothing but the action together."""
    found: dict[tuple[Resource, Relation, Whose, Chat], list[Action]] = {}
    for fact in facts_in(facts):
        found.setdefault((fact.resource, fact.relation, fact.whose, fact.chat), []).append(fact.action)
    for (resource, relation, whose, chat), actions in found.items():
        yield Words(agent=agent, resource=resource, relation=relation, whose=whose, chat=chat, actions=tuple(actions))


def named_in(subjects: Iterable[str]) -> Sequence[str]:
    """The ids of people among the subjects of rows."""
    return sorted(one.removeprefix("user:") for one in subjects if one.startswith("user:"))


def by_credential(tenant: TenantId, subjects: Iterable[str], stored: Set[str]) -> list[Profile]:
    """Those who are stored nowhere: a guest, whom nobody has to know, and somebody with each role of the documents that
    nobody has stored, for whom an issuer's groups give it."""
    roles = {one.removeprefix("role:") for one in subjects if one.startswith("role:")} - stored - {GUEST}
    return [_somebody(tenant, GUEST, GUEST), *(_somebody(tenant, "person", role) for role in sorted(roles))]


def _somebody(tenant: TenantId, kind: str, role: str) -> Profile:
    held = RoleAssignment(role=role, agent=ANY_AGENT)
    return Profile(id=ProfileId(f"{kind} {role}"), tenant=tenant, name="", kind=kind, roles=(held,))


def _subjects(holder: Profile) -> SubjectsOn:
    return lambda agent: holder.subjects_on(AgentName(agent))


def sessions_in(changed: Iterable[Affected]) -> list[SessionsChanged]:
    """The kinds of sessions that anybody gains or loses something on, those of most people first."""
    gaining: Counter[tuple[AgentName, Resource, Whose]] = Counter()
    losing: Counter[tuple[AgentName, Resource, Whose]] = Counter()
    for one in changed:
        for counter, words in ((gaining, one.gains), (losing, one.losses)):
            # `people` is 0 for those who are stored nowhere: what they gain is listed all the same.
            for kind in {(each.agent, each.resource, each.whose) for each in words if each.resource in SESSIONS}:
                counter[kind] += one.people
    kinds = sorted(gaining.keys() | losing.keys(), key=lambda kind: (-gaining[kind] - losing[kind], kind))
    return [
        SessionsChanged(agent=kind[0], resource=kind[1], whose=kind[2], gaining=gaining[kind], losing=losing[kind])
        for kind in kinds
    ]
