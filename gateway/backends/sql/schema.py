"""Turns an empty database into the store's tables, and refuses one that this version can't read."""

from __future__ import annotations

from sqlalchemy import Connection, inspect, select
from sqlalchemy.schema import CreateColumn

from gateway.backends.sql.classes import place_everybody
from gateway.backends.sql.tables import SCHEMA_VERSION, metadata, schema_version
from gateway.errors import ConfigurationFaults, Fault

_TAKEN_ALONG = (1, 2)  # since then only tables were added, and columns that may be empty


def prepare(connection: Connection, where: str) -> None:
    """Makes the tables where there are none. Runs in a write transaction, so that two starts make them once.

    Raises ConfigurationFaults where the database is of another version of the gateway, or of another program;
    `where` names it for people.
    """
    names = inspect(connection).get_table_names()
    if not names:
        metadata.create_all(connection)
        connection.execute(schema_version.insert().values(only=1, version=SCHEMA_VERSION))
        return
    found = connection.scalar(select(schema_version.c.version)) if schema_version.name in names else None
    if found in _TAKEN_ALONG:
        metadata.create_all(connection)
        _add_columns(connection)
        place_everybody(connection)
        connection.execute(schema_version.update().values(version=SCHEMA_VERSION))
        return
    if found != SCHEMA_VERSION:
        raise ConfigurationFaults([Fault(field="state", rule="schema_version", message=_complaint(found, where))])


def _add_columns(connection: Connection) -> None:
    """Gives each table the columns that it has by now; what is in it has nothing there."""
    looked = inspect(connection)
    for table in metadata.sorted_tables:
        known = {column["name"] for column in looked.get_columns(table.name)}
        for column in table.columns:
            if column.name not in known:
                written = CreateColumn(column).compile(dialect=connection.dialect)
                connection.exec_driver_sql(f"ALTER TABLE {table.name} ADD COLUMN {written}")


def _complaint(found: int | None, where: str) -> str:
    if found is None:
        return f"{where} is a database of another program. Give the gateway an empty one."
    if found > SCHEMA_VERSION:
        return (
            f"{where} was written by a newer gateway (schema {found}, this one reads {SCHEMA_VERSION}). "
            "Start that version, or restore a backup made with this one."
        )
    return f"{where} has the older schema {found}, this gateway needs {SCHEMA_VERSION}. Run 'gateway migrate' first."
