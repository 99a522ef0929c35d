"""A store of an older gateway is taken along (design section 11)."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection, inspect

from gateway.backends.sql.database import Database
from gateway.backends.sql.tables import SCHEMA_VERSION, metadata, schema_version, tenants
from tests.cast import BEGAN

ADDED_SINCE_1 = {"channel_events", "merges", "sign_ins", "tainted_turns"}


async def test_a_store_of_the_first_schema_gets_the_tables_that_were_added(tmp_path: Path) -> None:
    """What is in it stays."""
    path = tmp_path / "gateway.sqlite"
    async with Database(path) as database:
        await database.write(_make_older)
    async with Database(path) as database:
        names, version, kept = await database.write(
            lambda connection: (
                set(inspect(connection).get_table_names()),
                connection.scalar(schema_version.select().with_only_columns(schema_version.c.version)),
                connection.scalar(tenants.select().with_only_columns(tenants.c.id)),
            )
        )

    assert names == set(metadata.tables)
    assert (version, kept) == (SCHEMA_VERSION, "acme")


def _make_older(connection: Connection) -> None:
    for name in ADDED_SINCE_1:
        metadata.tables[name].drop(connection)
    connection.execute(schema_version.update().values(version=1))
    connection.execute(tenants.insert().values(id="acme", epoch=1, demo=False, last_message=0, created_at=BEGAN))
