"""A store of an older gateway is taken along (design section 11)."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import Connection, inspect

from gateway.backends.sql.database import Database
from gateway.backends.sql.tables import SCHEMA_VERSION, metadata, schema_version, tenants
from gateway.model import RoleAssignment
from tests.backends.stores import ACME, BOB, FLIGHT, NOW, Factory, a_profile
from tests.cast import BEGAN

# What each older schema had not: tables, and columns of those that it had.
ADDED: dict[int, tuple[set[str], set[tuple[str, str]]]] = {
    1: ({"channel_events", "merges", "notices", "people_classes", "sign_ins", "tainted_turns"}, set()),
    2: ({"notices", "people_classes"}, {("access_tokens", "made_by"), ("identities", "linked_by")}),
}
ADDED[1][1].update(ADDED[2][1])


@pytest.mark.parametrize("older", ADDED)
async def test_a_store_of_an_older_schema_gets_what_was_added(tmp_path: Path, older: int) -> None:
    """What is in it stays."""
    path = tmp_path / "gateway.sqlite"
    async with Database(path) as database:
        await database.write(lambda connection: _make_older(older, connection))
    async with Database(path) as database:
        names, version, kept = await database.write(
            lambda connection: (
                _everything(connection),
                connection.scalar(schema_version.select().with_only_columns(schema_version.c.version)),
                connection.scalar(tenants.select().with_only_columns(tenants.c.id)),
            )
        )

    assert names == {table.name: {column.name for column in table.columns} for table in metadata.sorted_tables}
    assert (version, kept) == (SCHEMA_VERSION, "acme")


@pytest.mark.parametrize("older", ADDED)
async def test_people_of_an_older_store_are_in_their_classes(factory: Factory, tmp_path: Path, older: int) -> None:
    """Schema 3: who can is answered by classes, for those too who were there before."""
    async with factory(tmp_path) as stores:
        await stores.tenants.add(ACME, demo=False, now=NOW)
        member = RoleAssignment(role="member", agent=FLIGHT)
        await stores.identities.add_profile(a_profile(roles=(member,)))
        await stores.identities.add_profile(a_profile(BOB, disabled=True))
        before = await stores.identities.classes(ACME)
    async with Database(tmp_path / "gateway.db") as database:
        await database.write(lambda connection: _make_older(older, connection, fill=False))
    async with factory(tmp_path) as stores:
        assert await stores.identities.classes(ACME) == before
        assert [(one.key, one.people) for one in before] == [("person member@flight", 1)]


def _everything(connection: Connection) -> dict[str, set[str]]:
    looked = inspect(connection)
    return {name: {column["name"] for column in looked.get_columns(name)} for name in looked.get_table_names()}


def _make_older(older: int, connection: Connection, *, fill: bool = True) -> None:
    tables, columns = ADDED[older]
    for name in tables:
        metadata.tables[name].drop(connection)
    for table, column in columns:
        connection.exec_driver_sql(f"ALTER TABLE {table} DROP COLUMN {column}")
    connection.execute(schema_version.update().values(version=older))
    if fill:
        connection.execute(tenants.insert().values(id="acme", epoch=1, demo=False, last_message=0, created_at=BEGAN))
