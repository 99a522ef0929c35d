"""Turns a number of sessions into a store full of people, groups and trees, the same for the same number.

A hundred people for each thousand sessions, ten agents, one root in five a group of two to eight people, children up to
depth four. Three people are in every population alike, so that their lists can be compared between sizes: alice has
five sessions of her own, bob takes part in two hundred groups, and dana has none.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import islice
from typing import Any

from sqlalchemy import Connection, Table, func, select

from gateway.backends.sql.database import Database, driver
from gateway.backends.sql.sessions import SqlSessions
from gateway.backends.sql.tables import (
    lineage,
    memberships,
    messages,
    participants,
    people_classes,
    profiles,
    sessions,
    tenants,
    to_instant,
)
from gateway.backends.sql.trees import lineage_rows, membership_rows, session_row
from gateway.keys import new_id
from gateway.model import AgentName, Kind, ProfileId, Session, SessionId, TenantId

TENANT = TenantId("bench")
AGENTS = tuple(AgentName(f"agent{number}") for number in range(10))
ALICE, BOB, DANA = (ProfileId(f"prf_{name:X<26}") for name in ("ALICE", "BOB", "DANA"))
GROUPS_OF_BOB = 200
SESSIONS_OF_ALICE = 5
START = datetime(2026, 1, 1, tzinfo=UTC)
_BATCH = 20_000
_RECENT = 500
_MAX_DEPTH = 4


@dataclass(slots=True)
class Populated:
    """What a benchmark wants to know of a population: alice's newest root, one of bob's groups, a few of anybody's."""

    sessions: int
    people: int
    alice: Session
    group_of_bob: Session
    somebody: list[Session] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Made:
    session: Session
    people: tuple[ProfileId, ...]


async def populate(
    database: Database, count: int, *, tenant: TenantId = TENANT, people: int | None = None
) -> Populated:
    """Fills an empty store with `count` sessions, and a tenth as many people; a million take about two minutes."""
    people_there = people or max(100, count // 10)
    names = [ProfileId(f"prf_{number:026d}") for number in range(people_there)]
    everybody = [ALICE, BOB, DANA, *names]
    await database.write(lambda connection: _insert_people(connection, tenant, everybody))
    story = _Story(tenant, names, count)
    made = story.sessions()
    while batch := list(islice(made, _BATCH)):
        await database.write(partial(_insert_sessions, batch))
    return Populated(count, len(everybody), story.alice[-1], story.groups_of_bob[-1], story.recent[-20:])


class _Story:
    """Who opens what, one session after the other."""

    def __init__(self, tenant: TenantId, people: list[ProfileId], count: int) -> None:
        self._tenant = tenant
        self._people = people
        self._count = count
        self._random = random.Random(count)
        self._recent: list[_Made] = []
        self.alice: list[Session] = []
        self.groups_of_bob: list[Session] = []

    @property
    def recent(self) -> list[Session]:
        """The newest sessions."""
        return [one.session for one in self._recent]

    def sessions(self) -> Iterator[_Made]:
        for number in range(self._count):
            made = self._next(number, START + timedelta(seconds=number))
            self._recent.append(made)
            if len(self._recent) > 2 * _RECENT:
                del self._recent[:_RECENT]
            yield made

    def _next(self, number: int, now: datetime) -> _Made:
        if number % max(1, self._count // SESSIONS_OF_ALICE) == 0 and len(self.alice) < SESSIONS_OF_ALICE:
            made = self._root(now, (ALICE,))
            self.alice.append(made.session)
            return made
        if number % max(1, self._count // GROUPS_OF_BOB) == 1 and len(self.groups_of_bob) < GROUPS_OF_BOB:
            made = self._root(now, (self._somebody(), BOB))
            self.groups_of_bob.append(made.session)
            return made
        parent = self._random.choice(self._recent)
        if self._random.random() < 0.25 and parent.session.path.count("/") < _MAX_DEPTH:
            return self._child(now, parent)
        if self._random.random() < 0.2:
            return self._root(now, tuple({self._somebody() for _ in range(self._random.randint(2, 8))}))
        return self._root(now, (self._somebody(),))

    def _somebody(self) -> ProfileId:
        return self._random.choice(self._people)

    def _root(self, now: datetime, people: tuple[ProfileId, ...]) -> _Made:
        session_id = SessionId(new_id("ses", now))
        agent = self._random.choice(AGENTS)
        return _Made(self._session(session_id, now, agent, people, None), people)

    def _child(self, now: datetime, parent: _Made) -> _Made:
        session_id = SessionId(new_id("ses", now))
        agent = parent.session.agent if self._random.random() < 0.7 else self._random.choice(AGENTS)
        return _Made(self._session(session_id, now, agent, parent.people, parent.session), parent.people)

    def _session(
        self,
        session_id: SessionId,
        now: datetime,
        agent: AgentName,
        people: tuple[ProfileId, ...],
        parent: Session | None,
    ) -> Session:
        group = len(people) > 1
        root_kind = Kind.GROUP if group else Kind.DIRECT
        return Session(
            tenant=self._tenant,
            id=session_id,
            key=f"agent:{agent}:bench:{session_id}",
            agent=agent,
            kind=Kind.SUBAGENT if parent else root_kind,
            private=not group,
            title=f"Case {session_id[-6:]}",
            owner=people[0],
            creator=people[0],
            parent=parent.id if parent else None,
            parent_key=parent.key if parent else None,
            root=parent.root if parent else session_id,
            root_agent=parent.root_agent if parent else agent,
            path=f"{parent.path if parent else ''}{session_id}/",
            incarnation=1,
            incognito=False,
            sandboxed=False,
            created_at=now,
            last_message_at=None,
            archived_at=None,
        )


def _insert_people(connection: Connection, tenant: TenantId, people: list[ProfileId]) -> None:
    row = {"id": tenant, "epoch": 1, "demo": False, "last_message": 0, "created_at": START}
    connection.execute(tenants.insert(), row)
    fixed = {"tenant": tenant, "kind": "person", "merged_into": None, "disabled": False, "created_at": START}
    _many(connection, profiles, [fixed | {"id": person, "name": person} for person in people])
    classed = {"tenant": TENANT, "role_set": "person"}
    _many(connection, people_classes, [classed | {"profile": person} for person in people])


def _insert_sessions(batch: list[_Made], connection: Connection) -> None:
    _many(connection, sessions, [session_row(one.session) for one in batch])
    _many(connection, lineage, [row for one in batch for row in lineage_rows(one.session)])
    roots = [one for one in batch if one.session.parent is None]
    joined = {"joined_after": 0, "joined_at": START}
    _many(
        connection,
        participants,
        [
            {"tenant": one.session.tenant, "root": one.session.id, "profile": person} | joined
            for one in roots
            for person in one.people
        ],
    )
    _many(connection, memberships, [row for one in batch for row in membership_rows(one.session, one.people)])


def insert_messages(connection: Connection, rows: list[dict[str, Any]]) -> None:
    """Stores rows of `messages` as they are; the caller numbers them."""
    _many(connection, messages, rows)


def _many(connection: Connection, table: Table, rows: list[dict[str, Any]]) -> None:
    # Straight to the driver: five million rows through the toolkit would take longer than the benchmark.
    if rows:
        names = list(rows[0])
        marks = ", ".join(f":{name}" for name in names)
        statement = f"INSERT INTO {table.name} ({', '.join(names)}) VALUES ({marks})"
        driver(connection).executemany(statement, [_plain(row) for row in rows])


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    return {name: to_instant(value) if isinstance(value, datetime) else value for name, value in row.items()}


async def reopened(database: Database, count: int, *, tenant: TenantId = TENANT) -> Populated:
    """The same facts about a population that `populate` made before."""
    store = SqlSessions(database)

    async def newest(person: ProfileId) -> list[SessionId]:
        query = (
            select(memberships.c.session)
            .join(sessions, (sessions.c.tenant == tenant) & (sessions.c.id == memberships.c.session))
            .where(memberships.c.tenant == tenant, memberships.c.profile == person, sessions.c.parent.is_(None))
            .order_by(memberships.c.session.desc())
        )
        return await database.read(lambda connection: [SessionId(one) for one in connection.scalars(query)])

    async def session(reference: str) -> Session:
        facts = await store.find(tenant, reference)
        if facts is None:
            raise LookupError(f"no session {reference} in this population; was it made by an older version?")
        return facts.session

    people = await database.read(lambda connection: connection.scalar(select(func.count()).select_from(profiles)))
    latest = select(sessions.c.id).where(sessions.c.tenant == tenant).order_by(sessions.c.id.desc()).limit(20)
    ids = await database.read(lambda connection: list(connection.scalars(latest)))
    alice, bob = await newest(ALICE), await newest(BOB)
    return Populated(
        count, people or 0, await session(alice[0]), await session(bob[0]), [await session(one) for one in ids]
    )
