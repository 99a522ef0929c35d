"""What is remembered of sessions, and when it is forgotten (design section 7, freshness)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio

from gateway.backends.sql.database import Database
from gateway.backends.sql.identities import SqlIdentities
from gateway.backends.sql.sessions import SqlSessions
from gateway.backends.sql.tenants import SqlTenants
from gateway.errors import Conflict, Unavailable
from gateway.model import SessionFacts, TenantId
from gateway.sessions.directory import SessionDirectory
from tests.cast import ACME, BEGAN, child, person, profile_id, root

PATIENCE_S = 5


class Held(SqlSessions):
    """The real store, which counts its look-ups and may hold one back."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.looked_up: list[str] = []
        self.between: Callable[[], Awaitable[object]] | None = None

    async def find(self, tenant: TenantId, reference: str) -> SessionFacts | None:
        """As the store, and then `between` happens before the answer comes."""
        self.looked_up.append(reference)
        found = await super().find(tenant, reference)
        if self.between is not None:
            between, self.between = self.between, None
            await between()
        return found


@pytest_asyncio.fixture
async def store(tmp_path: Path) -> AsyncIterator[Held]:
    """A store with alice and bob."""
    async with Database(tmp_path / "gateway.sqlite") as database:
        await SqlTenants(database).add(ACME, demo=False, now=BEGAN)
        for name in ("alice", "bob"):
            await SqlIdentities(database).add_profile(person(name, "member"))
        yield Held(database)


async def stored(store: Held, facts: SessionFacts) -> SessionFacts:
    """The facts as the store has them."""
    people = [] if facts.session.parent else [one.profile for one in facts.participants]
    return await store.create(facts.session, people)


async def test_a_session_is_looked_up_once_until_something_changes(store: Held) -> None:
    """By key and by id; its tree is forgotten with it, and nothing else."""
    directory = SessionDirectory(store)
    desk, other = await stored(store, root("desk", "alice")), await stored(store, root("other", "bob"))
    below = await stored(store, child("scout", desk))
    for _ in range(2):
        for facts in (desk, other, below):
            assert await directory.find(ACME, facts.session.key) == facts
            assert await directory.find(ACME, facts.session.id) == facts
    assert len(store.looked_up) == 6
    assert directory.store is store

    await directory.change(desk.session, store.archive(ACME, desk.session.id, BEGAN, expected=None))
    renamed = await directory.find(ACME, desk.session.key)
    await directory.find(ACME, below.session.id)
    await directory.find(ACME, other.session.id)

    assert renamed is not None
    assert renamed.session.archived_at == BEGAN
    assert store.looked_up[6:] == [desk.session.key, below.session.id]
    directory.forget()
    await directory.find(ACME, other.session.id)
    assert store.looked_up[8:] == [other.session.id]


async def test_a_reference_that_is_too_long_for_any_session_is_missing_and_not_looked_up_or_kept(store: Held) -> None:
    """Ours: nobody fills the memory with names of their making."""
    directory = SessionDirectory(store, capacity=1)
    desk = await stored(store, root("desk", "alice"))
    assert await directory.find(ACME, desk.session.key) == desk
    assert await directory.find(ACME, "y" * 513) is None
    assert await directory.find(ACME, desk.session.key) == desk
    assert store.looked_up == [desk.session.key]
    assert await directory.find(ACME, "y" * 512) is None
    assert store.looked_up == [desk.session.key, "y" * 512]


async def test_what_was_missing_is_found_once_it_is_made(store: Held) -> None:
    """A key that was free is told anew; another tenant's never answers for it."""
    directory = SessionDirectory(store)
    desk = root("desk", "alice")
    assert await directory.find(ACME, desk.session.key) is None
    assert await directory.find(ACME, desk.session.key) is None
    assert len(store.looked_up) == 1

    made = await directory.create(desk.session, store.create(desk.session, [profile_id("alice")]))

    assert await directory.find(ACME, desk.session.key) == made
    assert await directory.find(TenantId("globex"), desk.session.key) is None


@pytest.mark.parametrize("change", ["archive", "create", "message", "elsewhere"])
async def test_an_answer_that_was_read_while_something_changed_is_not_kept(store: Held, change: str) -> None:
    """A request in flight can't put the old facts back."""
    directory = SessionDirectory(store)
    desk = await stored(store, root("desk", "alice"))

    async def changes() -> None:
        if change == "archive":
            await directory.change(desk.session, store.archive(ACME, desk.session.id, BEGAN, expected=None))
        elif change == "create":
            new = root("new", "bob").session
            await directory.create(new, store.create(new, [profile_id("bob")]))
        elif change == "message":
            directory.spoken_in(desk.session, BEGAN)
        else:
            directory.forget()

    store.between = changes
    async with asyncio.timeout(PATIENCE_S):
        await directory.find(ACME, desk.session.key)
        await directory.find(ACME, desk.session.key)

    assert store.looked_up == [desk.session.key] * 2


@pytest.mark.parametrize("fails", [False, True])
async def test_a_change_whose_caller_gives_up_goes_on_and_is_forgotten_about_when_it_ends(
    store: Held, fails: bool
) -> None:
    """Ours: what is on its way to the disk can't be taken back, so what was read meanwhile is not kept."""
    directory = SessionDirectory(store)
    desk = await stored(store, root("desk", "alice"))
    begun, disk = asyncio.Event(), asyncio.Event()

    async def archive() -> SessionFacts | None:
        begun.set()
        await disk.wait()
        archived = await store.archive(ACME, desk.session.id, BEGAN, expected=None)
        if fails:
            raise Unavailable("The disk is away.")
        return archived

    async with asyncio.timeout(PATIENCE_S):
        change = asyncio.create_task(archive())
        request = asyncio.create_task(directory.change(desk.session, change))
        await begun.wait()
        request.cancel()
        with pytest.raises(asyncio.CancelledError):
            await request
        before = await directory.find(ACME, desk.session.key)
        disk.set()
        await asyncio.wait([change])
        after = await directory.find(ACME, desk.session.key)

    assert before == desk
    assert after is not None
    assert after.session.archived_at == BEGAN


async def test_a_creation_whose_caller_gives_up_or_that_comes_too_late_leaves_no_missing_key(store: Held) -> None:
    """Interface: the private session is found by its key once it is there, whoever opened it."""
    directory = SessionDirectory(store)
    desk = root("desk", "alice")
    begun, disk = asyncio.Event(), asyncio.Event()

    async def create() -> SessionFacts:
        begun.set()
        await disk.wait()
        return await stored(store, desk)

    async with asyncio.timeout(PATIENCE_S):
        creation = asyncio.create_task(create())
        request = asyncio.create_task(directory.create(desk.session, creation))
        await begun.wait()
        request.cancel()
        with pytest.raises(asyncio.CancelledError):
            await request
        assert await directory.find(ACME, desk.session.key) is None
        disk.set()
        await asyncio.wait([creation])
        assert await directory.find(ACME, desk.session.key) == desk

    other = root("other", "bob")
    assert await directory.find(ACME, other.session.key) is None
    made = await stored(store, other)  # by another process, say
    with pytest.raises(Conflict):
        await directory.create(other.session, stored(store, other))
    assert await directory.find(ACME, other.session.key) == made


async def test_a_message_moves_the_time_of_what_is_known_and_makes_nobody_look_again(store: Held) -> None:
    """Interface, the session's `last_message_at`."""
    directory = SessionDirectory(store)
    desk = await stored(store, root("desk", "alice"))
    await directory.find(ACME, desk.session.key)

    directory.spoken_in(desk.session, BEGAN)
    known = await directory.find(ACME, desk.session.key)

    assert known == replace(desk, session=replace(desk.session, last_message_at=BEGAN))
    assert len(store.looked_up) == 1


async def test_the_memory_is_bounded_and_the_longest_unused_goes_first(store: Held) -> None:
    """Style guide: bounded tables; sessions that are not there take no place for ever either."""
    directory = SessionDirectory(store, capacity=2)
    desk = await stored(store, root("desk", "alice"))
    await directory.find(ACME, desk.session.key)
    await directory.find(ACME, desk.session.id)
    await directory.find(ACME, desk.session.key)
    await directory.find(ACME, "nothing")  # takes the place of the id
    await directory.find(ACME, desk.session.key)
    assert store.looked_up == [desk.session.key, desk.session.id, "nothing"]

    await directory.find(ACME, "nothing else")  # of "nothing"
    await directory.find(ACME, "nothing at all")  # of the key
    await directory.find(ACME, desk.session.key)
    assert store.looked_up[3:] == ["nothing else", "nothing at all", desk.session.key]
    # What was dropped one by one leaves no trace: forgetting the tree still forgets all that is known of it.
    directory.forget_tree(desk.session.root)
    await directory.find(ACME, desk.session.key)
    assert store.looked_up[-1] == desk.session.key
