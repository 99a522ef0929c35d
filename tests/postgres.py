"""Turns a running PostgreSQL into a database of this worker's own, which each test finds empty."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import asyncpg
import pytest
from sqlalchemy import URL, make_url

HERE = "postgresql://postgres@127.0.0.1:5432/postgres"
NONE_HERE = (
    "no PostgreSQL answers: start one on 127.0.0.1:5432 that trusts the user postgres, or name one in"
    " GATEWAY_TEST_DATABASE_URL (postgresql://user:password@host/database, allowed to create databases)"
)


@contextmanager
def own_database() -> Iterator[URL]:
    """The address of a new database, which is dropped at the end. Skips, and says how to get one, where none is."""
    server = make_url(os.environ.get("GATEWAY_TEST_DATABASE_URL", HERE))
    name = f"gateway_test_{os.getpid()}"
    try:
        # What is tried is a process that dies and no power cut, so that no commit needs to wait for the disk.
        asyncio.run(
            _run(
                server,
                f"DROP DATABASE IF EXISTS {name} WITH (FORCE)",
                f"CREATE DATABASE {name}",
                f"ALTER DATABASE {name} SET synchronous_commit = off",
            )
        )
    except (OSError, asyncpg.PostgresError) as error:
        if "GATEWAY_TEST_DATABASE_URL" in os.environ:
            raise
        pytest.skip(f"{NONE_HERE} ({type(error).__name__})")
    try:
        yield server.set(drivername="postgresql+asyncpg", database=name)
    finally:
        asyncio.run(_run(server, f"DROP DATABASE {name} WITH (FORCE)"))


async def emptied(url: URL) -> None:
    """Leaves every table without a row, as a new database has them; the tables themselves stay where there are any."""
    connection = await connected(url)
    try:
        names = [
            row[0] for row in await connection.fetch("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        ]
        kept = {"schema_version", "store_writes"}
        async with connection.transaction():
            await connection.execute("SET CONSTRAINTS ALL DEFERRED")
            await connection.execute("SET session_replication_role = replica")  # no order of foreign keys to heed
            for name in sorted(set(names) - kept):
                await connection.execute(f"DELETE FROM {name}")
    finally:
        await connection.close()


def as_written(url: URL) -> str:
    """The address as somebody writes it into the settings."""
    return url.set(drivername="postgresql").render_as_string(hide_password=False)


async def connected(url: URL) -> Any:
    """A plain connection of the driver's own."""
    return await asyncpg.connect(as_written(url), timeout=5)


async def _run(url: URL, *statements: str) -> None:
    connection = await connected(url)
    try:
        for statement in statements:
            await connection.execute(statement)
    finally:
        await connection.close()
