"""What the stores stand on: units of work that read one snapshot, or write while nobody else does (design section 11).

A unit of work is a plain function of a SQLAlchemy connection. `database.Database` runs it on SQLite, in one hop to a
thread; `postgres.PostgresDatabase` runs the same function on PostgreSQL.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from typing import Protocol, TypeVar

from sqlalchemy import Connection

from gateway.backends.sql.acting import acting
from gateway.model import TenantId

ResultT = TypeVar("ResultT")
Work = Callable[[Connection], ResultT]

TAKEN = "Something under that name is there already. Look it up, or choose another name."
AWAY = "The store can't answer right now. Try again in a moment."
_RAISED = "raised_epochs"


class EpochListener(Protocol):
    """Who is told at once that a tenant's epoch rose in this process."""

    def __call__(self, tenant: TenantId, epoch: int) -> None:
        """Called after the commit, on the event loop's thread."""


@dataclass(frozen=True, slots=True)
class Budget:
    """How long one read may take, and the sentence for whoever asked for more than that."""

    seconds: float
    spent: str

    def begin(self) -> Callable[[], bool]:
        """Whether it is spent, counted from now."""
        end = monotonic() + self.seconds
        return lambda: monotonic() >= end


class Store(Protocol):
    """Where units of work run."""

    def when_epoch_rises(self, listener: EpochListener) -> None:
        """Tells `listener` of every epoch that this process raises, once it is committed."""

    async def read(self, work: Work[ResultT], *, budget: Budget | None = None) -> ResultT:
        """Runs `work` on a snapshot that no write changes. Raises Unavailable where the store can't answer, and where
        `work` takes longer than its budget."""

    async def read_at_once(self, work: Work[ResultT]) -> ResultT:
        """As `read`, for what must not wait behind others: keep it short."""

    async def write(
        self,
        work: Work[ResultT],
        *,
        taken: str = TAKEN,
        after: Callable[[ResultT], None] | None = None,
        apart: bool = False,
    ) -> ResultT:
        """Runs `work` while nobody else writes, in this process or another; it is durable when this returns, and
        `after`, which must not raise, has run. `apart` is for the audit, which writes no table of anybody else's and
        need not wait for them.

        Raises Conflict with the sentence `taken` where a name is held already, and Unavailable where the store can't
        answer; nothing is written then. Raises Unauthenticated, and writes nothing, where the running request's profile
        is not active any more (`acting`)."""

    async def changes_elsewhere(self) -> int:
        """A number that differs from the last one where another process has written since; the audit aside, perhaps."""


def guarded(work: Work[ResultT]) -> Work[ResultT]:
    """The same work, but not for a request whose profile was merged away or disabled since it was let in."""
    actor = acting()  # here, on the loop: a writer's thread does not know whose request it is
    if actor is None:
        return work

    def checked(connection: Connection) -> ResultT:
        actor.check(connection)
        return work(connection)

    return checked


def begin_write(connection: Connection) -> dict[TenantId, int]:
    """Where the running write notes the epochs that it raises, for the listeners."""
    raised: dict[TenantId, int] = {}
    connection.info[_RAISED] = raised
    return raised


def note_raised(connection: Connection, tenant: TenantId, epoch: int) -> None:
    """Has the listeners told of this epoch once the running write is committed."""
    connection.info[_RAISED][tenant] = epoch
