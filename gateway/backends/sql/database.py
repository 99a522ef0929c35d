"""Turns one SQLite file into reads of a consistent snapshot and one write at a time, both off the event loop.

A unit of work is a plain function of a SQLAlchemy connection, run as one transaction in one hop to a thread: awaiting
each statement would cost ten hops for a single row (about 4 ms against 0.3 ms). The same functions run on PostgreSQL
(`postgres.py`). This is also the one place where SQLite's errors become ours.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from types import TracebackType
from typing import Self, cast

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.exc import IntegrityError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from gateway.backends.sql.schema import prepare
from gateway.backends.sql.store import AWAY, TAKEN, Budget, EpochListener, ResultT, Work, begin_write, guarded
from gateway.errors import Conflict, Invalid, Unavailable
from gateway.model import TenantId

BUSY_TIMEOUT_MS = 5_000
_STEPS = 10_000  # of SQLite's machine, about a millisecond
_COSTLY_STEPS = 200  # of a query whose single steps look through whole texts


class Database:
    """The store's file: `async with Database(path) as database`, then `read` and `write` units of work."""

    def __init__(self, path: Path, *, readers: int = 4) -> None:
        self._path = path
        self._reader_count = readers
        self._idle: SimpleQueue[Connection] = SimpleQueue()
        self._idle_apart: SimpleQueue[Connection] = SimpleQueue()
        self._open: list[Connection] = []
        self._readers: ThreadPoolExecutor | None = None
        self._writer: ThreadPoolExecutor | None = None
        self._apart: ThreadPoolExecutor | None = None
        self._write_connection: Connection | None = None
        self._listeners: list[EpochListener] = []

    def when_epoch_rises(self, listener: EpochListener) -> None:
        """Tells `listener` of every epoch that this process raises, once it is committed."""
        self._listeners.append(listener)

    async def __aenter__(self) -> Self:
        """Opens the file, makes the tables in a new one, and raises ConfigurationFaults where the file is not ours."""
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="store-writer")
        self._readers = ThreadPoolExecutor(self._reader_count, thread_name_prefix="store-reader")
        self._apart = ThreadPoolExecutor(1, thread_name_prefix="store-apart")
        try:
            await self._hop(self._writer, self._connect)
        except BaseException:
            await self._close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._close()

    async def read(self, work: Work[ResultT], *, budget: Budget | None = None) -> ResultT:
        """Runs `work` on a snapshot that no other write changes. Raises Unavailable where the store can't answer, and
        where `work` takes longer than its budget.

        A caller that gives up stops the query too, so that no abandoned search holds a reader.
        """
        return await self._reading(self._readers, self._idle, work, budget)

    async def read_at_once(self, work: Work[ResultT]) -> ResultT:
        """As `read`, on a connection and a thread of its own, for what must not wait behind others: keep it short."""
        return await self._reading(self._apart, self._idle_apart, work, None)

    async def write(
        self,
        work: Work[ResultT],
        *,
        taken: str = TAKEN,
        after: Callable[[ResultT], None] | None = None,
        apart: bool = False,  # a file has one writer, whatever is written
    ) -> ResultT:
        """Runs `work` as the only writer; it is on disk when this returns, and `after`, which must not raise, has run.

        Raises Conflict with the sentence `taken` where a name is held already, and Unavailable where the store can't
        answer; nothing is written then. Raises Unauthenticated, and writes nothing, where the running request's profile
        is not active any more (`acting`)."""
        result, raised = await self._hop(self._writer, partial(self._write, guarded(work), taken, after))
        for tenant, epoch in raised.items():
            for listener in self._listeners:
                listener(tenant, epoch)
        return result

    async def changes_elsewhere(self) -> int:
        """A number that differs from the last one where another process has written since."""

        def version() -> int:
            with mapped_errors(TAKEN):
                return cast("int", driver(self._held()).execute("PRAGMA data_version").fetchone()[0])

        return await self._hop(self._writer, version)

    async def _reading(
        self,
        threads: ThreadPoolExecutor | None,
        idle: SimpleQueue[Connection],
        work: Work[ResultT],
        budget: Budget | None,
    ) -> ResultT:
        given_up = threading.Event()
        try:
            return await self._hop(threads, partial(self._read, idle, work, given_up, budget))
        except asyncio.CancelledError:
            given_up.set()
            raise

    # ── on the threads ───────────────────────────────────────────────────────────────────────────────────────────────

    def _read(
        self, idle: SimpleQueue[Connection], work: Work[ResultT], given_up: threading.Event, budget: Budget | None
    ) -> ResultT:
        connection = idle.get()
        raw = driver(connection)
        over = budget.begin() if budget else given_up.is_set
        # Asked every few steps of a query; an interrupt from outside would miss a query that is about to begin.
        raw.set_progress_handler(lambda: given_up.is_set() or over(), _COSTLY_STEPS if budget else _STEPS)
        try:
            with mapped_errors(TAKEN), _transaction(connection, "BEGIN"):
                return work(connection)
        except Unavailable:
            if budget and over():
                raise Unavailable(budget.spent) from None
            raise
        finally:
            raw.set_progress_handler(None, _STEPS)
            idle.put(connection)

    def _write(
        self, work: Work[ResultT], taken: str, after: Callable[[ResultT], None] | None
    ) -> tuple[ResultT, dict[TenantId, int]]:
        connection = self._held()
        raised = begin_write(connection)
        with mapped_errors(taken), _transaction(connection, "BEGIN IMMEDIATE"):
            result = work(connection)
        if after is not None:
            after(result)
        return result, raised

    def _held(self) -> Connection:
        if self._write_connection is None:
            raise Unavailable("The store is closed.")
        return self._write_connection

    def _connect(self) -> None:
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Conversations are in it: nobody else on the machine reads it. SQLite gives its side files the same mode.
        os.close(os.open(self._path, os.O_CREAT | os.O_RDWR, 0o600))
        with mapped_errors(TAKEN):
            self._write_connection = self._connection(_engine(self._path, query_only=False))
            with _transaction(self._write_connection, "BEGIN IMMEDIATE"):
                prepare(self._write_connection, str(self._path))
            reading = _engine(self._path, query_only=True)
            for _ in range(self._reader_count):
                self._idle.put(self._connection(reading))
            self._idle_apart.put(self._connection(reading))

    def _connection(self, engine: Engine) -> Connection:
        connection = engine.connect()
        self._open.append(connection)
        return connection

    def _disconnect(self) -> None:
        for connection in self._open:
            connection.close()
        self._open.clear()
        self._write_connection = None

    # ── on the event loop ────────────────────────────────────────────────────────────────────────────────────────────

    async def _hop(self, executor: ThreadPoolExecutor | None, work: Callable[[], ResultT]) -> ResultT:
        if executor is None:
            raise Unavailable("The store is closed.")
        return await asyncio.get_running_loop().run_in_executor(executor, work)

    async def _close(self) -> None:
        executors = (self._readers, self._apart, self._writer)
        self._readers = self._apart = self._writer = None
        for executor in executors:
            if executor is not None:
                await asyncio.to_thread(executor.shutdown)
        await asyncio.to_thread(self._disconnect)


def driver(connection: Connection) -> sqlite3.Connection:
    """The sqlite3 connection beneath, for what has to be quick."""
    return cast("sqlite3.Connection", connection.connection.driver_connection)


@contextmanager
def mapped_errors(taken: str) -> Iterator[None]:
    """Turns every error of SQLAlchemy and sqlite3 into Conflict, Invalid or Unavailable, without its text: that holds
    values of other people."""
    try:
        yield
    except (IntegrityError, sqlite3.IntegrityError) as error:
        raise Conflict(taken) from error
    except UnicodeEncodeError as error:
        raise Invalid.of("text", "unicode", "Half a surrogate pair can't be stored. Send whole characters.") from error
    except (SQLAlchemyError, sqlite3.Error, sqlite3.Warning, OSError) as error:
        raise Unavailable(AWAY) from error


@contextmanager
def _transaction(connection: Connection, begin: str) -> Iterator[None]:
    # Straight to the driver: SQLAlchemy's own BEGIN and COMMIT cost as much again as a small read.
    raw = driver(connection)
    raw.execute(begin)
    try:
        yield
        raw.execute("COMMIT")
    finally:
        if raw.in_transaction:
            raw.execute("ROLLBACK")


def _engine(path: Path, *, query_only: bool) -> Engine:
    engine = create_engine(
        f"sqlite+pysqlite:///{path}",
        poolclass=NullPool,
        isolation_level="AUTOCOMMIT",
        connect_args={"check_same_thread": False, "isolation_level": None, "timeout": BUSY_TIMEOUT_MS / 1000},
    )

    def configure(connection: sqlite3.Connection, _: object) -> None:
        for pragma in (
            f"busy_timeout={BUSY_TIMEOUT_MS}",
            "journal_mode=WAL",
            "synchronous=FULL",
            "foreign_keys=ON",
            "cache_size=-32768",
            f"query_only={'ON' if query_only else 'OFF'}",
        ):
            connection.execute(f"PRAGMA {pragma}")

    event.listen(engine, "connect", configure)
    return engine
