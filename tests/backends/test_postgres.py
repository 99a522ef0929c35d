"""One PostgreSQL under many gateways: nobody's write is lost, no chain has a gap or a fork, and no word leaks."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from sqlalchemy import URL, Connection, text

from gateway.backends.sql.postgres import Limits, PostgresDatabase
from gateway.backends.sql.store import Budget
from gateway.backends.sql.tables import SCHEMA_VERSION
from gateway.errors import ConfigurationFaults, Conflict, Invalid, Unavailable
from gateway.model import ProfileId
from gateway.ports import AuditFilter
from tests.backends.stores import ACME, ALICE, BOB, NOW, Stores, a_draft, a_profile, a_record, a_session, over
from tests.postgres import as_written, connected, emptied

MANY = 4
BOUND_S = 30


@pytest.fixture
async def gateways(postgres: URL, tmp_path: Path) -> AsyncIterator[list[Stores]]:
    """The stores of several gateways over one database and one folder, each with connections of its own."""
    await emptied(postgres)
    async with AsyncExitStack() as stack:
        # All start at once, as after an upgrade.
        databases = [PostgresDatabase(as_written(postgres)) for _ in range(MANY)]
        await asyncio.gather(*(stack.enter_async_context(one) for one in databases))
        made = [over(database, tmp_path) for database in databases]
        await made[0].tenants.add(ACME, demo=False, now=NOW)
        for person in (ALICE, BOB):
            await made[0].identities.add_profile(a_profile(person))
        yield made


async def test_many_gateways_write_one_chain_without_gap_or_fork(gateways: list[Stores]) -> None:
    """Issue 5: audit keeps one chain per tenant with many writers."""
    rounds = 12

    async def append(number: int, stores: Stores) -> None:
        for turn in range(rounds):
            batch = [a_record(number * 1000 + turn * 10 + one) for one in range(3)]
            await stores.audit.append(batch)

    async with asyncio.timeout(BOUND_S):
        await asyncio.gather(*(append(number, stores) for number, stores in enumerate(gateways)))

    page = await gateways[0].audit.read(ACME, AuditFilter(), limit=1000, cursor=None, ascending=True)
    assert [one.sequence for one in page.items] == list(range(1, MANY * rounds * 3 + 1))
    for stores in gateways:
        report = await stores.audit.verify(ACME)
        assert (report.records, report.faults) == (MANY * rounds * 3, ())


async def test_of_many_that_publish_on_one_version_one_wins_and_the_others_are_told(gateways: list[Stores]) -> None:
    """Design section 7: publish with a base version; a draft that was overtaken changes nothing."""

    async def publish(number: int, stores: Stores) -> str:
        try:
            await stores.policies.publish(ACME, f"# {number}\n", base_version=0, comment="", author="olga", now=NOW)
        except Conflict:
            return "overtaken"
        return "published"

    outcomes = await asyncio.gather(*(publish(number, stores) for number, stores in enumerate(gateways)))

    assert sorted(outcomes) == ["overtaken"] * (MANY - 1) + ["published"]
    assert len((await gateways[0].policies.history(ACME, limit=10, cursor=None)).items) == 1


async def test_messages_of_many_gateways_have_one_order_and_none_is_lost(gateways: list[Stores]) -> None:
    """Transcripts are in order, and an acknowledged message is there."""
    session = a_session("A")
    await gateways[0].sessions.create(session, [ALICE])

    async def say(number: int, stores: Stores) -> list[int]:
        said = []
        for turn in range(10):
            message = await stores.transcripts.append(ACME, a_draft(session, "hello", 100 * number + turn))
            assert message is not None
            said.append(message.number)
        return said

    async with asyncio.timeout(BOUND_S):
        said = await asyncio.gather(*(say(number, stores) for number, stores in enumerate(gateways)))

    assert all(numbers == sorted(numbers) for numbers in said)
    assert sorted(number for numbers in said for number in numbers) == list(range(1, MANY * 10 + 1))


async def test_what_another_gateway_wrote_is_seen_and_what_it_only_recorded_is_not(gateways: list[Stores]) -> None:
    """What is remembered of sessions is forgotten once somebody else wrote; an audit of theirs is no reason to."""
    mine, other = gateways[:2]
    before = await mine.database.changes_elsewhere()
    await mine.identities.add_profile(a_profile(ProfileId("prf_mine")))
    assert await mine.database.changes_elsewhere() == before
    await other.audit.append([a_record(1)])
    assert await mine.database.changes_elsewhere() == before
    await other.identities.add_profile(a_profile(ProfileId("prf_theirs")))
    assert await mine.database.changes_elsewhere() != before


async def test_a_read_writes_nothing_and_ends_when_its_budget_does(gateways: list[Stores]) -> None:
    """A search that takes too long is stopped in the server, and whoever asked is told so."""
    database = gateways[0].database

    def slow(connection: Connection) -> None:
        connection.execute(text("SELECT pg_sleep(20)"))

    def writes(connection: Connection) -> None:
        connection.execute(text("DELETE FROM profiles"))

    with pytest.raises(Unavailable, match="Narrow it"):
        await database.read(slow, budget=Budget(0.05, "Narrow it."))
    with pytest.raises(Unavailable):
        await database.read(writes)
    assert await gateways[0].identities.count_people(ACME) == 2


async def test_a_server_that_became_a_copy_is_named_and_a_primary_is_used_again(
    gateways: list[Stores], postgres: URL
) -> None:
    """Issue 5: read-only fail-over named."""
    administrator = await connected(postgres)
    try:
        name = postgres.database
        await administrator.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
        await administrator.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1 AND pid <> pg_backend_pid()",
            name,
        )
        refused = [await _refusal(gateways[0]) for _ in range(12)]
        assert refused[-1] is not None
        assert "read-only copy" in refused[-1]
        assert await gateways[0].identities.count_people(ACME) == 2
    finally:
        await administrator.execute("SET default_transaction_read_only = off")
        await administrator.execute(f"ALTER DATABASE {name} RESET default_transaction_read_only")
        await administrator.close()
    # The next write may still go to a session that thinks of itself as a copy; the one after it does not.
    outcomes = [await _refusal(gateways[0]) for _ in range(12)]
    assert outcomes[-1] is None


async def _refusal(stores: Stores) -> str | None:
    try:
        await stores.identities.change_profile(ACME, ALICE, name="Alice", emails=None, disabled=None)
    except Unavailable as refusal:
        return refusal.detail
    return None


async def test_what_nobody_can_store_is_refused_for_what_it_is(gateways: list[Stores]) -> None:
    """A text with a NUL or half a character is the caller's fault, and leaves nothing behind."""
    for name in ("a\0b", "half \ud800"):
        with pytest.raises(Invalid):
            await gateways[0].identities.change_profile(ACME, ALICE, name=name, emails=None, disabled=None)
    found = await gateways[0].identities.profile(ACME, ALICE)
    assert found is not None
    assert found.name == "Alice"


async def test_a_server_that_is_not_there_is_told_without_its_address_or_password() -> None:
    """Whoever reads an error or a log of it learns no secret."""
    with socket.socket() as taken:  # bound, and nobody listens: refused at once
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        database = PostgresDatabase(f"postgresql://gateway:very-secret@127.0.0.1:{port}/acme", Limits(connect_s=1))
        with pytest.raises(Unavailable) as refusal:
            await database.__aenter__()
    shown = f"{refusal.value!r} {refusal.value} {database!r}"
    assert "very-secret" not in shown
    assert str(port) not in shown


async def test_a_database_of_another_version_or_program_is_left_alone(postgres: URL) -> None:
    """Issue 5: checked at start; a newer schema refuses."""
    await emptied(postgres)
    async with PostgresDatabase(as_written(postgres)):
        pass
    administrator = await connected(postgres)
    try:
        await administrator.execute(f"UPDATE schema_version SET version = {SCHEMA_VERSION + 1}")
        with pytest.raises(ConfigurationFaults, match="newer gateway") as refusal:
            await PostgresDatabase(as_written(postgres)).__aenter__()
        assert postgres.database is not None
        assert postgres.database in str(refusal.value)
        assert await administrator.fetchval("SELECT version FROM schema_version") == SCHEMA_VERSION + 1
    finally:
        await administrator.execute(f"UPDATE schema_version SET version = {SCHEMA_VERSION}")
        await administrator.close()


async def test_every_text_is_compared_byte_for_byte(gateways: list[Stores]) -> None:
    """No language's rules: two people must not become one, and pages must not skip."""

    def foreign(connection: Connection) -> list[str]:
        rows = connection.execute(
            text(
                "SELECT DISTINCT indexrelid::regclass::text || ' ' || collname FROM pg_index"
                " JOIN pg_class ON pg_class.oid = indrelid CROSS JOIN unnest(indcollation) AS used"
                " JOIN pg_collation ON pg_collation.oid = used"
                " WHERE relnamespace = 'public'::regnamespace AND collname <> 'C'"
            )
        )
        return [row[0] for row in rows]

    assert await gateways[0].database.read(foreign) == []
