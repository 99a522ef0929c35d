"""Turns a scope into disjoint queries of session ids, each of which walks one index from the newest down.

The queries hold no tenant, person or session: these are the parameters `tenant`, `me` and `here` (see `parameters`), so
that one compiled statement serves everybody with the same rights.

The facts are those of design section 7. A target falls into a class (agent, private or shared, whose); for each class
a scope allows its descendants of the origin, the rest, or both. Where both are allowed they are one walk.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Select, Text, and_, bindparam, exists, false, literal, or_, select, true

from gateway.backends.sql.tables import lineage, memberships, participants, sessions
from gateway.model import AgentName, Relation, Resource, Scope, TenantId, Whose
from gateway.ports import SessionFilter

MAX_WALKS = 32  # agents; past that, agents with the same rights share a walk, which then skips the others' sessions

_PERSONAL = (Whose.OWN, Whose.SHARED)
_RESOURCES = {Resource.SESSION_PRIVATE: True, Resource.SESSION_SHARED: False}

Class = tuple[bool, Whose]  # private?, whose


TENANT = bindparam("tenant", type_=Text())
ME = bindparam("me", type_=Text())
HERE = bindparam("here", type_=Text())


@dataclass(frozen=True, slots=True)
class Rights:
    """All of a scope that its queries are made from."""

    cells: frozenset[tuple[AgentName, Resource, Relation, Whose]]
    inside: bool
    agent: AgentName | None  # of the session that the request is made from
    root_agent: AgentName | None

    @classmethod
    def of(cls, scope: Scope) -> Rights:
        """The rights of a scope."""
        here = scope.origin.session
        if here is None:
            return cls(scope.cells, inside=False, agent=None, root_agent=None)
        return cls(scope.cells, inside=True, agent=here.agent, root_agent=here.root_agent)


def parameters(tenant: TenantId, scope: Scope) -> dict[str, str]:
    """What the queries of this scope are run with."""
    here = scope.origin.session
    return {"tenant": tenant, "me": scope.requester, "here": "" if here is None else here.id}


@dataclass(frozen=True, slots=True)
class Walk:
    """One query of session ids; `session` is the column to order by. It joins `sessions` only where it says so."""

    query: Select[Any]
    session: ColumnElement[str]
    joined: bool
    whole_tenant: bool = False  # its sessions grow with the tenant, not with the person

    def with_sessions(self) -> Select[Any]:
        """The query with `sessions` joined, for conditions on its columns."""
        if self.joined:
            return self.query
        return self.query.join(sessions, and_(sessions.c.tenant == TENANT, sessions.c.id == self.session))


def walks(rights: Rights, narrow: SessionFilter) -> list[Walk]:
    """The queries that together give each session in scope once. An empty list: nothing can be in scope."""
    return list(_Planner(rights, narrow).walks())


class _Planner:
    def __init__(self, rights: Rights, narrow: SessionFilter) -> None:
        self._rights = rights
        self._agent = narrow.agent
        self._cells = {
            (agent, _RESOURCES[resource], relation, whose)
            for agent, resource, relation, whose in rights.cells
            if resource in _RESOURCES and (narrow.relations is None or relation in narrow.relations)
        }
        self._agents = sorted({cell[0] for cell in self._cells if narrow.agent in (None, cell[0])})

    def walks(self) -> Iterator[Walk]:
        for agents, allowed in self._rest_by_agents():
            yield from self._walks_of_agents(agents, allowed)
        if self._rights.inside:
            yield from self._self_walk()
            yield from self._descendants_walk()

    # ── which classes ────────────────────────────────────────────────────────────────────────────────────────────────

    def _rest(self, agent: AgentName) -> frozenset[Class]:
        """The classes of this agent whose sessions are in scope, the origin's descendants left out of account."""
        return frozenset(
            (private, whose)
            for cell_agent, private, relation, whose in self._cells
            if cell_agent == agent and relation is self._relation_of_rest(agent, whose)
        )

    def _relation_of_rest(self, agent: AgentName, whose: Whose) -> Relation:
        if not self._rights.inside:
            return Relation.SAME_AGENT if whose is Whose.OTHER else Relation.SELF
        return Relation.SAME_AGENT if agent == self._rights.agent else Relation.OTHER_AGENT

    def _of_descendants(self, agent: AgentName | None) -> frozenset[Class]:
        """The classes in scope of the origin's descendants on its own agent, or on others (None, or another)."""
        same = agent == self._rights.agent
        answering = self._rights.agent if same else self._rights.root_agent
        relation = Relation.CHILD if same else Relation.CHILD_CROSS
        return frozenset((p, whose) for cell, p, found, whose in self._cells if (cell, found) == (answering, relation))

    def _without_descendants(self, agent: AgentName, allowed: frozenset[Class]) -> frozenset[Class]:
        if not self._rights.inside:
            return frozenset()
        return allowed - self._of_descendants(agent)

    def _rest_by_agents(self) -> Iterator[tuple[list[AgentName], tuple[frozenset[Class], frozenset[Class]]]]:
        grouped: defaultdict[tuple[frozenset[Class], frozenset[Class]], list[AgentName]] = defaultdict(list)
        for agent in self._agents:
            allowed = self._rest(agent)
            if allowed:
                grouped[allowed, self._without_descendants(agent, allowed)].append(agent)
        apart = sum(map(len, grouped.values())) <= MAX_WALKS
        for rights, agents in grouped.items():
            for together in [[agent] for agent in agents] if apart else [agents]:
                yield together, rights

    # ── which walks ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _walks_of_agents(
        self, agents: list[AgentName], rights: tuple[frozenset[Class], frozenset[Class]]
    ) -> Iterator[Walk]:
        allowed, without_descendants = rights
        personal: set[Class] = set()
        for private in (True, False):
            classes = {(private, whose) for whose in Whose} & allowed
            excluded = classes & without_descendants
            if len(classes) == len(Whose) and len(excluded) in (0, len(classes)):
                yield self._tenant_walk(agents, private, everybody=True, excluded=bool(excluded))
                continue
            if (private, Whose.OTHER) in classes:
                other = (private, Whose.OTHER) in excluded
                yield self._tenant_walk(agents, private, everybody=False, excluded=other)
            personal |= {one for one in classes if one[1] in _PERSONAL}
        if personal:
            yield self._personal_walk(agents, personal, without_descendants)

    def _tenant_walk(self, agents: list[AgentName], private: bool, *, everybody: bool, excluded: bool) -> Walk:
        conditions = [
            sessions.c.tenant == TENANT,
            _is(sessions.c.private, private),
            sessions.c.incognito == false(),
            # The empty text keeps many agents from being looked up one by one and then sorted, a million rows or not.
            _one_of(sessions.c.agent if len(agents) == 1 else sessions.c.agent.concat(""), agents),
            *self._not_here(sessions.c.id, excluded=excluded),
        ]
        if not everybody:
            conditions.append(~self._is_mine(sessions.c.id, sessions.c.agent))
        return Walk(select(sessions.c.id).where(*conditions), sessions.c.id, joined=True, whole_tenant=True)

    def _personal_walk(self, agents: list[AgentName], classes: set[Class], excluded: frozenset[Class]) -> Walk:
        conditions = [
            memberships.c.tenant == TENANT,
            memberships.c.profile == ME,
            _one_of(memberships.c.agent, agents),
            *self._not_here(memberships.c.session, excluded=False),
        ]
        if len(classes) < len(_PERSONAL) * 2 or classes & excluded:
            conditions.append(or_(*(self._membership_in(one, one in excluded) for one in sorted(classes))))
        return Walk(select(memberships.c.session.label("id")).where(*conditions), memberships.c.session, joined=False)

    def _self_walk(self) -> Iterator[Walk]:
        classes = {
            (private, whose)
            for agent, private, relation, whose in self._cells
            if relation is Relation.SELF and agent == self._rights.agent and self._agent in (None, agent)
        }
        if classes:
            conditions = [sessions.c.tenant == TENANT, sessions.c.id == HERE, self._session_in(classes)]
            yield Walk(select(sessions.c.id).where(*conditions), sessions.c.id, joined=True)

    def _descendants_walk(self) -> Iterator[Walk]:
        alternatives = [*self._same_agent_descendants(), *self._cross_agent_descendants()]
        if not alternatives:
            return
        conditions = [
            lineage.c.tenant == TENANT,
            lineage.c.ancestor == HERE,
            lineage.c.session != HERE,
            sessions.c.incognito == false(),
            or_(*alternatives),
        ]
        if self._agent is not None:
            conditions.append(sessions.c.agent == self._agent)
        beneath = lineage.join(sessions, _same_session(lineage.c.tenant, lineage.c.session))
        query = select(lineage.c.session.label("id")).select_from(beneath).where(*conditions)
        yield Walk(query, lineage.c.session, joined=True)

    def _same_agent_descendants(self) -> Iterator[ColumnElement[bool]]:
        agent = self._rights.agent
        if agent is not None and self._agent in (None, agent):
            classes = self._of_descendants(agent) - self._rest(agent)
            if classes:
                yield and_(sessions.c.agent == agent, self._session_in(classes))

    def _cross_agent_descendants(self) -> Iterator[ColumnElement[bool]]:
        for one in sorted(self._of_descendants(None)):
            # Agents whose rest is in scope too have these rows in their own walk already.
            elsewhere = [agent for agent in self._agents if agent != self._rights.agent and one in self._rest(agent)]
            here = [] if self._rights.agent is None else [self._rights.agent]
            yield and_(~_one_of(sessions.c.agent, [*here, *elsewhere]), self._session_in({one}))

    # ── conditions ───────────────────────────────────────────────────────────────────────────────────────────────────

    def _not_here(self, session: ColumnElement[str], *, excluded: bool) -> list[ColumnElement[bool]]:
        if not self._rights.inside:
            return []
        return [session != HERE, *([~self._descends(session)] if excluded else [])]

    def _descends(self, session: ColumnElement[str]) -> ColumnElement[bool]:
        return exists().where(lineage.c.tenant == TENANT, lineage.c.ancestor == HERE, lineage.c.session == session)

    def _is_mine(self, session: ColumnElement[str], agent: ColumnElement[str]) -> ColumnElement[bool]:
        return exists().where(
            memberships.c.tenant == TENANT,
            memberships.c.profile == ME,
            memberships.c.agent == agent,
            memberships.c.session == session,
        )

    def _membership_in(self, one: Class, excluded: bool) -> ColumnElement[bool]:
        private, whose = one
        conditions = [_is(memberships.c.private, private), _is(memberships.c.own, whose is Whose.OWN)]
        return and_(*conditions, *([~self._descends(memberships.c.session)] if excluded else []))

    def _session_in(self, classes: Iterable[Class]) -> ColumnElement[bool]:
        """Whether a row of `sessions` falls into one of these classes for the requester."""
        by_private: defaultdict[bool, set[Whose]] = defaultdict(set)
        for private, whose in classes:
            by_private[private].add(whose)
        return or_(
            *(and_(_is(sessions.c.private, private), *_whose_in(by_private[private])) for private in sorted(by_private))
        )


def _whose_in(allowed: set[Whose]) -> list[ColumnElement[bool]]:
    if len(allowed) == len(Whose):
        return []
    takes_part = exists().where(
        participants.c.tenant == TENANT, participants.c.root == sessions.c.root, participants.c.profile == ME
    )
    terms = {
        Whose.OWN: sessions.c.owner == ME,
        Whose.SHARED: and_(sessions.c.owner != ME, takes_part),
        Whose.OTHER: and_(sessions.c.owner != ME, ~takes_part),
    }
    return [or_(*(terms[whose] for whose in sorted(allowed)))]


def _same_session(tenant: ColumnElement[str], session: ColumnElement[str]) -> ColumnElement[bool]:
    return and_(sessions.c.tenant == TENANT, sessions.c.id == session)


def _is(column: ColumnElement[bool], value: bool) -> ColumnElement[bool]:
    return column == (true() if value else false())


def _one_of(column: ColumnElement[str], agents: Sequence[AgentName]) -> ColumnElement[bool]:
    return column == agents[0] if len(agents) == 1 else column.in_([literal(agent) for agent in agents])
