"""The store's file: one schema, one writer, snapshots, none of its libraries' errors (design sections 11 and 12)."""

from __future__ import annotations

import asyncio
import multiprocessing
import sqlite3
import stat
import threading
from multiprocessing.synchronize import Event
from pathlib import Path

import pytest
import sqlalchemy.exc
from sqlalchemy import Connection, select, text

from gateway.backends.sql.database import Database, driver, mapped_errors
from gateway.backends.sql.identities import SqlIdentities
from gateway.backends.sql.sessions import SqlSessions
from gateway.backends.sql.store import Budget
from gateway.backends.sql.tables import SCHEMA_VERSION, tenants
from gateway.backends.sql.tenants import SqlTenants
from gateway.backends.sql.transcripts import SqlTranscripts
from gateway.errors import ConfigurationFaults, Conflict, GatewayError, Unavailable
from gateway.model import TenantId
from tests.backends.stores import ACME, ALICE, NOW, a_draft, a_profile, a_session

BOUND_S = 30


async def test_the_file_is_its_owners_alone_and_every_connection_is_set_up(tmp_path: Path) -> None:
    """Design section 12: durable before it is answered; readers can't write at all."""
    names = ("journal_mode", "synchronous", "busy_timeout", "foreign_keys", "query_only")

    def pragmas(connection: Connection) -> list[object]:
        return [driver(connection).execute(f"PRAGMA {name}").fetchone()[0] for name in names]

    async with Database(tmp_path / "state" / "gateway.db") as database:
        assert await database.write(pragmas) == ["wal", 2, 5000, 1, 0]
        assert await database.read(pragmas) == ["wal", 2, 5000, 1, 1]
        with pytest.raises(Unavailable):
            await database.read(lambda connection: connection.execute(tenants.delete()))
        for file in (tmp_path / "state").iterdir():
            assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.parametrize("version", [SCHEMA_VERSION + 1, 0])
async def test_a_file_of_another_version_or_program_is_refused_and_left_as_it_is(tmp_path: Path, version: int) -> None:
    """Ours: a newer schema refuses to start, with the way out."""
    path = tmp_path / "gateway.db"
    async with Database(path):
        pass
    connection = sqlite3.connect(path)
    connection.execute("UPDATE schema_version SET version = ?", (version,))
    connection.commit()
    connection.close()
    with pytest.raises(ConfigurationFaults) as caught:
        async with Database(path):
            pytest.fail("opened")
    assert caught.value.faults[0].rule == "schema_version"
    foreign = sqlite3.connect(tmp_path / "foreign.db")
    foreign.execute("CREATE TABLE songs (id INTEGER)")
    foreign.commit()
    with pytest.raises(ConfigurationFaults):
        async with Database(tmp_path / "foreign.db"):
            pytest.fail("opened")
    assert foreign.execute("SELECT name FROM sqlite_master").fetchall() == [("songs",)]
    foreign.close()


async def test_a_file_that_is_no_database_and_a_store_that_is_closed_are_unavailable(tmp_path: Path) -> None:
    """Design section 12: outages refuse; none is answered with "empty"."""
    (tmp_path / "text.db").write_text("not a database, but long enough to be read as one " * 10)
    with pytest.raises(Unavailable):
        async with Database(tmp_path / "text.db"):
            pytest.fail("opened")
    database = Database(tmp_path / "gateway.db")
    with pytest.raises(Unavailable):
        await SqlTenants(database).all()
    async with database:
        assert await SqlTenants(database).all() == []
    with pytest.raises(Unavailable):
        await SqlTenants(database).add(ACME, demo=False, now=NOW)


async def test_a_read_sees_one_snapshot_while_others_write(tmp_path: Path) -> None:
    """Ours: what a unit of work reads fits together, whatever is committed meanwhile."""
    async with Database(tmp_path / "gateway.db") as database:
        store = SqlTenants(database)
        reading, written = threading.Event(), threading.Event()

        def count_twice(connection: Connection) -> tuple[int, int]:
            first = len(connection.execute(select(tenants.c.id)).all())
            reading.set()
            assert written.wait(BOUND_S)
            return first, len(connection.execute(select(tenants.c.id)).all())

        counting = asyncio.ensure_future(database.read(count_twice))
        assert await asyncio.to_thread(reading.wait, BOUND_S)
        await store.add(ACME, demo=False, now=NOW)
        written.set()
        assert await counting == (0, 0)
        assert len(await store.all()) == 1


async def test_a_write_that_fails_writes_nothing_and_the_next_one_works(tmp_path: Path) -> None:
    """Design section 12: a unit of work is all or nothing, and the epoch it raised is not announced."""
    async with Database(tmp_path / "gateway.db") as database:
        announced: list[object] = []
        database.when_epoch_rises(lambda *event: announced.append(event))

        def fail(connection: Connection) -> None:
            row = {"id": ACME, "epoch": 1, "demo": False, "last_message": 0, "created_at": NOW}
            connection.execute(tenants.insert(), row)
            connection.execute(tenants.insert(), row)

        with pytest.raises(Conflict) as caught:
            await database.write(fail, taken="Taken, in our words.")
        assert caught.value.detail == "Taken, in our words."
        assert (await SqlTenants(database).all(), announced) == ([], [])
        await SqlTenants(database).add(ACME, demo=False, now=NOW)
        assert announced == [(ACME, 1)]


async def test_a_read_that_nobody_waits_for_is_stopped_and_its_reader_serves_the_next(tmp_path: Path) -> None:
    """Ours: an abandoned search holds no reader. The query would run for hours."""
    endless = text("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n")
    async with Database(tmp_path / "gateway.db", readers=1) as database:
        started = threading.Event()

        def search(connection: Connection) -> None:
            started.set()
            connection.execute(endless)

        searching = asyncio.ensure_future(database.read(search))
        assert await asyncio.to_thread(started.wait, BOUND_S)
        searching.cancel()
        async with asyncio.timeout(BOUND_S):
            assert await SqlTenants(database).all() == []
        assert searching.cancelled()


def _errors_below() -> list[type[Exception]]:
    found = {
        one
        for module in (sqlite3, sqlalchemy.exc)
        for one in vars(module).values()
        if isinstance(one, type) and issubclass(one, (sqlite3.Error, sqlite3.Warning, sqlalchemy.exc.SQLAlchemyError))
    }
    return sorted(found, key=lambda one: f"{one.__module__}.{one.__qualname__}")


def test_every_error_of_the_libraries_beneath_becomes_one_of_ours() -> None:
    """Style guide 8 (as httpx does): the errors are counted, so that a new one can't leak unmapped."""
    errors = _errors_below()
    assert len(errors) > 40
    kinds = set()
    for error in errors:
        made = error.__new__(error)
        with pytest.raises(GatewayError) as caught, mapped_errors("taken"):
            raise made
        kinds.add(type(caught.value))
        assert error.__name__ not in caught.value.detail
    assert kinds == {Conflict, Unavailable}


def _append_in_process(path: Path, name: str, count: int, go: Event) -> None:
    async def append() -> None:
        async with Database(path) as database:
            session, transcripts = a_session(name), SqlTranscripts(database)
            await SqlSessions(database).create(session, [ALICE])
            assert await asyncio.to_thread(go.wait, BOUND_S)
            for number in range(count):
                stored = await transcripts.append(ACME, a_draft(session, "text", number))
                assert stored is not None

    asyncio.run(append())


async def test_processes_that_write_at_once_lose_nothing_and_number_without_a_gap(tmp_path: Path) -> None:
    """Brief of the store: the command line writes to the same file. Both processes open it before either writes."""
    path, spawn = tmp_path / "gateway.db", multiprocessing.get_context("spawn")
    async with Database(path) as database:
        await SqlTenants(database).add(ACME, demo=False, now=NOW)
        await SqlIdentities(database).add_profile(a_profile(ALICE))
        before = await database.changes_elsewhere()
        assert await database.changes_elsewhere() == before
        go = spawn.Event()
        processes = [spawn.Process(target=_append_in_process, args=(path, name, 40, go)) for name in ("A", "B")]
        for process in processes:
            process.start()
        go.set()
        for process in processes:
            await asyncio.to_thread(process.join, BOUND_S)
            assert process.exitcode == 0
        assert await database.changes_elsewhere() != before
        numbers: list[int] = []
        for name in ("A", "B"):
            page = await SqlTranscripts(database).history(
                ACME, a_session(name).id, incarnation=1, after=0, limit=99, cursor=None
            )
            assert page is not None
            numbers += [one.number for one in page.items]
        assert sorted(numbers) == list(range(1, 81))


async def test_this_process_own_writes_do_not_count_as_another_ones(tmp_path: Path) -> None:
    """Ours: what a process remembers is forgotten only for what it can't know."""
    async with Database(tmp_path / "gateway.db") as database:
        before = await database.changes_elsewhere()
        await SqlTenants(database).add(TenantId("own"), demo=False, now=NOW)
        assert await database.changes_elsewhere() == before
        async with Database(tmp_path / "gateway.db") as other:
            await SqlTenants(other).add(TenantId("others"), demo=False, now=NOW)
        assert await database.changes_elsewhere() != before


async def test_a_read_that_outlasts_its_budget_is_stopped_and_says_so(tmp_path: Path) -> None:
    """Ours: one member's search holds a reader for a moment, and not for as long as they like."""
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"
    async with Database(tmp_path / "gateway.db", readers=1) as database, asyncio.timeout(BOUND_S):
        with pytest.raises(Unavailable) as caught:
            await database.read(lambda it: it.scalar(text(endless)), budget=Budget(0.05, "Narrow it."))
        assert caught.value.detail == "Narrow it."
        assert await database.read(lambda it: it.scalar(text("SELECT 1")), budget=Budget(BOUND_S, "No.")) == 1
        with pytest.raises(Unavailable) as caught:
            await database.read(lambda it: it.scalar(text("SELECT 1 FROM nothing")), budget=Budget(BOUND_S, "No."))
        assert caught.value.detail != "No."


async def test_what_must_not_wait_is_read_while_every_reader_is_held(tmp_path: Path) -> None:
    """Ours: whether the store is there is heard past any number of searches."""
    async with Database(tmp_path / "gateway.db", readers=1) as database, asyncio.timeout(BOUND_S):
        await SqlTenants(database).add(ACME, demo=False, now=NOW)
        over = threading.Event()
        held = asyncio.ensure_future(database.read(lambda _: over.wait(BOUND_S)))
        assert [one.id for one in await SqlTenants(database).all()] == [ACME]
        assert not held.done()
        over.set()
        assert await held
