"""A list is, for each requester, { x | `list` is allowed on x } (design section 7), on random populations."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from gateway.backends.sql import scopes
from gateway.model import (
    OUTSIDE,
    AgentName,
    Chat,
    Kind,
    Origin,
    ProfileId,
    Relation,
    Resource,
    Scope,
    Session,
    SessionId,
    TenantId,
    Whose,
)
from gateway.ports import SessionFilter
from tests.backends.stores import ACME, ALICE, BOB, CAROL, DANA, FLIGHT, HOTEL, NOW, Stores, a_draft, a_session

PEOPLE = (ALICE, BOB, CAROL, DANA)
AGENTS = (FLIGHT, HOTEL, AgentName("car"))
CELLS = list(product(AGENTS, (Resource.SESSION_PRIVATE, Resource.SESSION_SHARED), Relation, Whose))


class World:
    """Random trees, and the rules of design section 7 spelled out one session at a time."""

    def __init__(self, dice: random.Random) -> None:
        self.dice = dice
        self.sessions: list[Session] = []
        self.people: dict[SessionId, set[ProfileId]] = {}

    async def fill(self, stores: Stores, count: int) -> None:
        """Stores `count` sessions, a third of them children, and reassigns, regroups and archives a few."""
        for number in range(count):
            await self._add(stores, f"{number:04d}")
        for root in [one for one in self.sessions if one.parent is None and not one.private]:
            if self.dice.random() < 0.5:
                await self._regroup(stores, root)
        for one in self.sessions:
            if self.dice.random() < 0.2:
                await stores.sessions.archive(ACME, one.id, NOW, expected=None)
        found = [await stores.sessions.find(ACME, one.id) for one in self.sessions]
        self.sessions = [one.session for one in found if one is not None]

    async def _add(self, stores: Stores, name: str) -> None:
        dice = self.dice
        fields: dict[str, Any] = {
            "agent": dice.choice(AGENTS),
            "incognito": dice.random() < 0.1,
            "title": dice.choice([None, "Ångström"]),
        }
        if self.sessions and dice.random() < 0.35:
            made = a_session(name, parent=dice.choice(self.sessions), **fields)
            await stores.sessions.create(made, ())
        else:
            private = dice.random() < 0.6
            kind = Kind.DIRECT if private else dice.choice([Kind.GROUP, Kind.CHANNEL, Kind.CRON])
            made = a_session(name, dice.choice(PEOPLE), private=private, kind=kind, **fields)
            people = {made.owner} if private else {made.owner, *dice.sample(PEOPLE, dice.randint(0, 3))}
            await stores.sessions.create(made, sorted(people))
            self.people[made.id] = people
        self.sessions.append(made)

    async def _regroup(self, stores: Stores, root: Session) -> None:
        people = set(self.dice.sample(PEOPLE, self.dice.randint(1, 3)))
        owner = self.dice.choice(sorted(people))
        await stores.sessions.set_owner(ACME, root.id, owner, NOW, expected=None)
        await stores.sessions.set_participants(ACME, root.id, sorted(people), NOW, expected=None)
        self.people[root.id] = people

    def merged(self, retired: ProfileId, survivor: ProfileId) -> None:
        """The survivor stands where the retired one stood."""
        self.sessions = [replace(one, owner=survivor) if one.owner == retired else one for one in self.sessions]
        for people in self.people.values():
            if retired in people:
                people.remove(retired)
                people.add(survivor)

    def expected(self, scope: Scope, narrow: SessionFilter) -> list[SessionId]:
        """The ids in scope, newest first."""
        return [one.id for one in reversed(self.sessions) if self._in_scope(scope, one, narrow)]

    def _in_scope(self, scope: Scope, target: Session, narrow: SessionFilter) -> bool:
        whose = self._whose(scope.requester, target)
        relation = self._relation(scope.origin.session, target, whose)
        if target.incognito and (scope.origin.session is None or scope.origin.session.id != target.id):
            return False
        if narrow.relations is not None and relation not in narrow.relations:
            return False
        if narrow.agent not in (None, target.agent):
            return False
        if narrow.kinds is not None and target.kind not in narrow.kinds:
            return False
        if narrow.archived is not None and narrow.archived != (target.archived_at is not None):
            return False
        if narrow.title is not None and target.title is None:
            return False
        agent = target.root_agent if relation is Relation.CHILD_CROSS else target.agent
        resource = Resource.SESSION_PRIVATE if target.private else Resource.SESSION_SHARED
        return (agent, resource, relation, whose) in scope.cells

    def _whose(self, requester: ProfileId, target: Session) -> Whose:
        if target.owner == requester:
            return Whose.OWN
        return Whose.SHARED if requester in self.people[target.root] else Whose.OTHER

    def _relation(self, here: Session | None, target: Session, whose: Whose) -> Relation:
        if here is None:
            return Relation.SAME_AGENT if whose is Whose.OTHER else Relation.SELF
        if here.id == target.id:
            return Relation.SELF
        if f"{here.id}/" in target.path:
            return Relation.CHILD if target.agent == here.agent else Relation.CHILD_CROSS
        return Relation.SAME_AGENT if target.agent == here.agent else Relation.OTHER_AGENT

    def scope(self) -> Scope:
        """A random scope: from modes as a policy has them, or from cells that no policy would ever name together."""
        here = self.dice.choice([None, *self.sessions])
        origin = OUTSIDE if here is None else Origin(session=here, chat=Chat.PRIVATE, kind=here.kind)
        share = self.dice.choice([0.0, 0.2, 0.5, 0.9, 1.0])
        cells = frozenset(cell for cell in CELLS if self.dice.random() < share)
        return Scope(self.dice.choice(PEOPLE), origin, cells)

    def narrow(self) -> SessionFilter:
        """A random filter, most often none."""
        dice = self.dice
        return SessionFilter(
            agent=dice.choice([None, None, *AGENTS]),
            kinds=dice.choice([None, None, frozenset({Kind.SUBAGENT, Kind.GROUP})]),
            relations=dice.choice([None, None, frozenset({Relation.CHILD, Relation.SELF, Relation.CHILD_CROSS})]),
            archived=dice.choice([None, None, True, False]),
            title=dice.choice([None, None, None, "ÅNGSTRÖM"]),
        )


async def listed(stores: Stores, scope: Scope, narrow: SessionFilter, dice: random.Random) -> list[SessionId]:
    """The ids that a list shows, by pages of any size."""
    found: list[SessionId] = []
    cursor = None
    while True:
        limit = dice.randint(1, 25)
        page = await stores.sessions.list(ACME, scope, narrow, limit=limit, cursor=cursor)
        assert len(page.items) <= limit
        found += [one.id for one in page.items]
        if page.next_cursor is None:
            return found
        cursor = page.next_cursor


@pytest.mark.parametrize("seed", range(4))
async def test_a_list_holds_exactly_what_the_rules_allow_in_pages_of_any_size(stores: Stores, seed: int) -> None:
    """Design section 7: relation, whose and incognito, for random cells, origins, filters and page sizes."""
    world = World(random.Random(seed))
    await world.fill(stores, 50)
    for _ in range(40):
        scope, narrow = world.scope(), world.narrow()
        assert await listed(stores, scope, narrow, world.dice) == world.expected(scope, narrow)


async def test_agents_that_share_a_walk_are_listed_alike(stores: Stores, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: past `MAX_WALKS` agents with the same rights are walked together; what is listed does not change."""
    monkeypatch.setattr(scopes, "MAX_WALKS", 1)
    world = World(random.Random(99))
    await world.fill(stores, 50)
    for _ in range(40):
        scope, narrow = world.scope(), world.narrow()
        assert await listed(stores, scope, narrow, world.dice) == world.expected(scope, narrow)


@pytest.mark.parametrize("seed", range(4))
async def test_a_search_finds_the_messages_of_the_sessions_that_a_list_would_show(stores: Stores, seed: int) -> None:
    """Design section 7: list and search share one scope; nothing outside it is found, and nothing inside missed."""
    world = World(random.Random(seed))
    await world.fill(stores, 40)
    for one in world.sessions:
        if one.archived_at is None:
            await stores.transcripts.append(ACME, a_draft(one, f"Flug nach Köln {one.id}"))
    for _ in range(40):
        scope = world.scope()
        hits = await stores.transcripts.search(ACME, scope, "KÖLN flug", session=None, limit=100)
        found = [session.id for session, _ in hits]
        assert found == world.expected(scope, SessionFilter(archived=False))


async def test_another_tenants_sessions_are_in_no_list(stores: Stores) -> None:
    """Design section 11: every row carries the tenant."""
    await stores.sessions.create(a_session("0001"), [ALICE])
    everything = Scope(ALICE, OUTSIDE, frozenset(CELLS))
    here = await stores.sessions.list(ACME, everything, SessionFilter(), limit=10, cursor=None)
    there = await stores.sessions.list(TenantId("globex"), everything, SessionFilter(), limit=10, cursor=None)
    assert ([one.id for one in here.items], there.items) == (["ses_0001"], ())
