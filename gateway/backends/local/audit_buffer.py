"""Turns single audit records into batches of a chain, off the hot path and never lost (design section 12)."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Literal, NamedTuple, Protocol, Self

from gateway.errors import GatewayError, Unavailable
from gateway.model import AuditRecord
from gateway.ports import Audit, Clock

HOLD_S = 0.05
_GATHERING = 0.8  # of the hold; what is left is for the write itself
_RETRY_S = 0.1
_CLOSING_TRIES = 50
_BATCH = 2_000  # each batch costs its writer some thirty waits for the interpreter, however long it is

Pause = Callable[[float], Awaitable[None]]
_REFUSAL = "The audit can't be written right now, and nothing is done without it."


class Observer(Protocol):
    """Who is told of each batch, for counting."""

    def flushed(self, records: int, seconds: float) -> None:
        """A batch is on the disk, and took so long."""

    def failed(self) -> None:
        """A batch could not be written."""


class _NoObserver:
    def flushed(self, records: int, seconds: float) -> None:
        pass

    def failed(self) -> None:
        pass


_NO_OBSERVER = _NoObserver()


class _Entry(NamedTuple):
    """The records of one request, which go to the disk together."""

    records: tuple[AuditRecord, ...]
    buffered_at: float
    written: asyncio.Future[None] | None  # of whoever waits for it


class AuditBuffer:
    """Records of reads wait at most `hold_s`, those of writes until they are on disk; both go in the order they came.

    `reads="durable"` makes reads wait too. Open it with `async with`; closing writes what is left.
    """

    def __init__(
        self,
        audit: Audit,
        clock: Clock,
        *,
        reads: Literal["buffered", "durable"] = "buffered",
        capacity: int = 10_000,
        crowd: int = 2 * _BATCH,
        hold_s: float = HOLD_S,
        observer: Observer = _NO_OBSERVER,
        pause: Pause = asyncio.sleep,
    ) -> None:
        self._audit = audit
        self._clock = clock
        self._reads_wait = reads == "durable"
        self._capacity = capacity
        self._crowd = crowd
        self._hold_s = hold_s
        self._observer = observer
        self._pause = pause
        self._entries: deque[_Entry] = deque()
        self._waiting = 0  # records in all of them
        self._something = asyncio.Event()
        self._hurry = asyncio.Event()
        self._failing_since: float | None = None
        self._closing = False
        self._flushing: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        """Starts the task that writes."""
        self._flushing = asyncio.create_task(self._flush_until_closed())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Writes what is left. Raises Unavailable, with the number of records lost, where the store stays away."""
        self._closing = True
        self._something.set()
        self._hurry.set()
        if self._flushing is not None:
            await self._flushing
        if self._entries:
            raise Unavailable(f"{self._waiting} audit records could not be written before the end.")

    @property
    def healthy(self) -> bool:
        """Whether a request may be served: there is room, and the store has not failed for longer than 50 ms."""
        running = self._flushing is not None and not self._flushing.done() and not self._closing
        failing = self._failing_since is not None and self._failing_too_long(self._failing_since)
        return running and self._waiting < self._capacity and not failing

    @property
    def waiting(self) -> int:
        """How many records are not on the disk yet."""
        return self._waiting

    async def record(self, *records: AuditRecord) -> None:
        """Records of reads. Raises Unavailable where they can't be kept; the request must be refused then.

        While more come than the disk takes, a read waits for its own like a write: callers slow down and none is
        refused, and no more than a moment's records are ever at risk.
        """
        if self._reads_wait or self._waiting >= self._crowd:
            await self.record_durably(*records)
        elif records:
            self._add(records, None)

    async def record_durably(self, *records: AuditRecord) -> None:
        """Records of writes: on disk when this returns, and all that came before them too. Raises Unavailable where
        the store does not take them now; the effect must not happen then."""
        if not records:
            return
        written: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._add(records, written)
        self._hurry.set()
        await written

    def _add(self, records: tuple[AuditRecord, ...], written: asyncio.Future[None] | None) -> None:
        if not self.healthy or self._waiting + len(records) > self._capacity:
            raise Unavailable(_REFUSAL)
        self._entries.append(_Entry(records, self._clock.monotonic(), written))
        self._waiting += len(records)
        if len(self._entries) == 1:
            self._something.set()

    def _failing_too_long(self, since: float) -> bool:
        return self._clock.monotonic() - since > self._hold_s

    # ── the task ─────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _flush_until_closed(self) -> None:
        tries_left = _CLOSING_TRIES
        while self._entries or not self._closing:
            await self._something.wait()
            await self._wait_for_company()
            if self._entries and not await self._flush():
                tries_left -= self._closing
                if tries_left == 0:
                    return
                await self._pause(_RETRY_S)
            if not self._entries and not self._closing:
                self._something.clear()

    async def _wait_for_company(self) -> None:
        """Lets records gather, but none longer than the window, and not at all where somebody waits."""
        if self._entries and not self._hurry.is_set():
            left = self._hold_s * _GATHERING - (self._clock.monotonic() - self._entries[0].buffered_at)
            if left > 0 and self._waiting < _BATCH:
                await self._pause_or_hurry(left)
        if not self._closing:
            self._hurry.clear()

    async def _pause_or_hurry(self, seconds: float) -> None:
        waits = [asyncio.ensure_future(self._pause(seconds)), asyncio.create_task(self._hurry.wait())]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()

    async def _flush(self) -> bool:
        batch = self._next_batch()
        records = [record for entry in batch for record in entry.records]
        begun, written = self._clock.monotonic(), False
        try:
            await self._audit.append(records)
            written = True
        except GatewayError:
            return False
        finally:
            if not written:  # whatever it was, nobody is to wait for ever
                self._fail()
        self._failing_since = None
        self._observer.flushed(len(records), self._clock.monotonic() - begun)
        self._waiting -= len(records)
        for entry in batch:
            self._entries.popleft()
            if entry.written is not None and not entry.written.done():
                entry.written.set_result(None)
        # Whoever waits for a record beyond this batch is not to wait for more company.
        if any(entry.written is not None for entry in self._entries):
            self._hurry.set()
        return True

    def _next_batch(self) -> list[_Entry]:
        """The first entries, of `_BATCH` records or few more: a request's are never torn apart."""
        batch, size = [], 0
        for entry in self._entries:
            batch.append(entry)
            size += len(entry.records)
            if size >= _BATCH:
                break
        return batch

    def _fail(self) -> None:
        self._observer.failed()
        # The records stay, in order, until they are written: a refused effect may be in the audit, never the reverse.
        if self._failing_since is None:
            self._failing_since = self._clock.monotonic()
        for entry in self._entries:
            if entry.written is not None and not entry.written.done():
                entry.written.set_exception(Unavailable(_REFUSAL))
                entry.written.exception()  # its caller may have gone
