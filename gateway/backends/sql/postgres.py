"""Turns one PostgreSQL database, which many processes share, into the same units of work (design section 11).

A unit of work runs through `AsyncConnection.run_sync` over asyncpg. What the stores rely on is that nobody writes
between what a write reads and what it writes; SQLite has one writer anyway. Here every write first takes one advisory
lock of the database, which ends with its transaction: rows alone could not be locked that are not there yet, and
serialisable transactions would be tried again and again by the very batches that must not be late. The audit, which
writes no table of anybody else's, has a lock of its own, so that each tenant's chain has no gap and no fork and nobody
waits for it. This is also the one place where PostgreSQL's errors become ours.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import asyncpg
from sqlalchemy import (
    URL,
    BigInteger,
    CheckConstraint,
    Column,
    Connection,
    Integer,
    MetaData,
    Table,
    event,
    func,
    make_url,
    select,
    text,
)
from sqlalchemy.engine import ExceptionContext
from sqlalchemy.exc import DBAPIError, IntegrityError, SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from gateway.backends.sql.schema import prepare
from gateway.backends.sql.store import AWAY, TAKEN, Budget, EpochListener, ResultT, Work, begin_write, guarded
from gateway.errors import Conflict, Invalid, Unavailable

_LOCKS = 0x67617465  # "gate": the first half of our advisory locks' keys
_STORE, _AUDIT = 1, 2
_LOCK = text("SELECT pg_advisory_xact_lock(:locks, :which)")
_READ_ONLY, _CANCELLED = "25006", "57014"  # SQLSTATE
_NO_TEXT = ("22021", "22P05")  # a NUL character, which no text of PostgreSQL's can hold
_COPY = (
    "The database takes no writes: it is a read-only copy. Make it the primary, or name the primary in database.url."
)

# How many writes there were, the audit's aside: what another process wrote is seen here, and nowhere else.
_writes = Table(
    "store_writes",
    MetaData(),
    Column("only", Integer, CheckConstraint('"only" = 1'), primary_key=True, autoincrement=False),
    Column("number", BigInteger, nullable=False),
)
_COUNT_ONE = _writes.update().values(number=_writes.c.number + 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How many connections a process holds, and how long it waits for what."""

    connections: int = 10
    connect_s: float = 3.0
    statement_s: float = 10.0
    lock_s: float = 5.0


def address(url: str) -> URL:
    """The same address for our driver, which calls `sslmode` `ssl`."""
    found = make_url(url).set(drivername="postgresql+asyncpg")
    tls = found.query.get("sslmode")
    return found if tls is None else found.difference_update_query(["sslmode"]).update_query_dict({"ssl": tls})


def _leave_a_copy(failed: ExceptionContext) -> None:
    """Has every connection made anew after a write met a read-only copy: the next one may lead to the primary."""
    if getattr(failed.original_exception, "sqlstate", None) == _READ_ONLY:
        failed.is_disconnect = True


class PostgresDatabase:
    """`store.Store` on PostgreSQL: `async with PostgresDatabase(url) as database`."""

    def __init__(self, url: str, limits: Limits | None = None) -> None:
        """`url` as PostgreSQL's own clients take it: `postgresql://user:password@host:5432/name?sslmode=…`."""
        self._url = address(url)
        self._limits = limits or Limits()
        self._listeners: list[EpochListener] = []
        self._engines: tuple[AsyncEngine, AsyncEngine] | None = None
        self._own_writes = 0

    def when_epoch_rises(self, listener: EpochListener) -> None:
        """Tells `listener` of every epoch that this process raises, once it is committed."""
        self._listeners.append(listener)

    async def __aenter__(self) -> Self:
        """Makes the tables in an empty database. Raises ConfigurationFaults where it is not ours, and Unavailable where
        it can't be reached."""
        shared = self._engine(self._limits.connections)
        self._engines = shared, self._engine(1)
        try:
            with _mapped(TAKEN):
                async with shared.begin() as connection:
                    await connection.run_sync(self._prepare)
        except BaseException:
            await self._close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._close()

    async def read(self, work: Work[ResultT], *, budget: Budget | None = None) -> ResultT:
        """Runs `work` on a snapshot that no write changes; a caller that gives up stops the query too. Raises
        Unavailable where the store can't answer, and where `work` takes longer than its budget."""
        shared, _ = self._open()
        return await self._reading(shared, work, budget)

    async def read_at_once(self, work: Work[ResultT]) -> ResultT:
        """As `read`, on a connection of its own, for what must not wait behind others: keep it short."""
        _, apart = self._open()
        return await self._reading(apart, work, None)

    async def write(
        self,
        work: Work[ResultT],
        *,
        taken: str = TAKEN,
        after: Callable[[ResultT], None] | None = None,
        apart: bool = False,
    ) -> ResultT:
        """Runs `work` while no process writes; see `store.Store.write`."""
        shared, _ = self._open()
        alone = guarded(work)

        def run(connection: Connection) -> tuple[ResultT, dict[Any, int]]:
            raised = begin_write(connection)
            connection.execute(_LOCK, {"locks": _LOCKS, "which": _AUDIT if apart else _STORE})
            result = alone(connection)
            if not apart:
                connection.execute(_COUNT_ONE)
            return result, raised

        with _mapped(taken):
            async with shared.begin() as connection:
                result, raised = await connection.run_sync(run)
        self._own_writes += not apart
        if after is not None:
            await asyncio.to_thread(after, result)
        for tenant, epoch in raised.items():
            for listener in self._listeners:
                listener(tenant, epoch)
        return result

    async def changes_elsewhere(self) -> int:
        """A number that differs from the last one where another process has written since, the audit aside."""
        written = await self.read_at_once(lambda connection: connection.scalar(select(_writes.c.number)))
        return int(written or 0) - self._own_writes

    async def _reading(self, engine: AsyncEngine, work: Work[ResultT], budget: Budget | None) -> ResultT:
        def run(connection: Connection) -> ResultT:
            if budget is not None:
                limit = f"{max(1, round(budget.seconds * 1000))}ms"
                connection.execute(select(func.set_config("statement_timeout", limit, True)))
            return work(connection)

        reader = engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
        with _mapped(TAKEN, budget):
            async with reader.begin() as connection:
                return await connection.run_sync(run)

    # ── the connections ──────────────────────────────────────────────────────────────────────────────────────────────

    def _open(self) -> tuple[AsyncEngine, AsyncEngine]:
        if self._engines is None:
            raise Unavailable("The store is closed.")
        return self._engines

    def _engine(self, connections: int) -> AsyncEngine:
        limits = self._limits
        settings = {
            "application_name": "gateway",
            "statement_timeout": f"{limits.statement_s}s",
            "lock_timeout": f"{limits.lock_s}s",
            "idle_in_transaction_session_timeout": f"{limits.statement_s}s",
            "jit": "off",  # our statements are short; compiling one takes longer than most of them
        }
        engine = create_async_engine(
            self._url,
            pool_size=connections,
            max_overflow=0,
            pool_timeout=limits.connect_s,
            hide_parameters=True,
            connect_args={"timeout": limits.connect_s, "server_settings": settings},
        )
        event.listen(engine.sync_engine, "handle_error", _leave_a_copy)
        return engine

    def _prepare(self, connection: Connection) -> None:
        begin_write(connection)
        connection.execute(_LOCK, {"locks": _LOCKS, "which": _STORE})  # two that start at once make the tables once
        prepare(connection, f"The database {self._url.database!r}")
        _writes.metadata.create_all(connection)
        if connection.scalar(select(_writes.c.number)) is None:
            connection.execute(_writes.insert().values(only=1, number=0))

    async def _close(self) -> None:
        engines, self._engines = self._engines or (), None
        for engine in engines:
            await engine.dispose()


@contextmanager
def _mapped(taken: str, budget: Budget | None = None) -> Iterator[None]:
    """Turns every error of SQLAlchemy and asyncpg into Conflict, Invalid or Unavailable, without its text: that
    holds values of other people, or the address of the database."""
    try:
        yield
    except IntegrityError as error:
        raise Conflict(taken) from error
    except DBAPIError as error:
        state = getattr(error.orig, "sqlstate", None)
        if state in _NO_TEXT:
            raise Invalid.of("text", "unicode", "A NUL character can't be stored. Leave it out.") from error
        if isinstance(error.orig, UnicodeEncodeError) or "surrogates not allowed" in str(error.orig):
            told = "Half a surrogate pair can't be stored. Send whole characters."
            raise Invalid.of("text", "unicode", told) from error
        if state == _CANCELLED and budget is not None:
            raise Unavailable(budget.spent) from error
        if state == _READ_ONLY:
            raise Unavailable(_COPY) from error
        raise Unavailable(AWAY) from error
    except (SQLAlchemyError, asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError) as error:
        raise Unavailable(AWAY) from error
