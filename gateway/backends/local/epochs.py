"""Turns the epochs in the store into what this process may rely on: fresh, or a refusal (design section 7)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from math import inf
from types import TracebackType
from typing import Self

from gateway.errors import Unavailable
from gateway.model import TenantId
from gateway.ports import Clock, EpochSignals, Tenants

Listener = Callable[[TenantId, int], None]
Pause = Callable[[float], Awaitable[None]]

POLL_S = 0.25
STALE_S = 5.0
WAIT_S = 1.0  # a change is in force everywhere within a second
FIRST_WORD_S = 2.0


async def _never_elsewhere() -> int:
    return 0


class Epochs:
    """The epoch of each tenant: at once where this process raised it, and by polling where another did.

    `elsewhere` answers a number that changes when another process has written anything (`Database.changes_elsewhere`);
    what this process remembers of sessions is then to be forgotten, which raises no epoch. A long write of our own may
    keep that answer waiting: until it comes, every poll counts as such a change, and nothing is refused.

    With `signals`, other replicas say at once when to look, and where these are not heard either, it refuses too: a
    replica that is cut off from the others must not go on as if it were alone.
    """

    def __init__(
        self,
        tenants: Tenants,
        clock: Clock,
        *,
        elsewhere: Callable[[], Awaitable[int]] = _never_elsewhere,
        signals: EpochSignals | None = None,
        refuse_after_s: float = STALE_S,
        pause: Pause = asyncio.sleep,
    ) -> None:
        self._refuse_after_s = refuse_after_s
        self._tenants = tenants
        self._clock = clock
        self._elsewhere = elsewhere
        self._pause = pause
        self._epochs: dict[TenantId, int] = {}
        self._heard_at: float | None = None  # the oldest of what has to be heard
        self._store_heard_at: float | None = None
        self._signals_heard_at: float | None = inf if signals is None else None
        self._seen_elsewhere: int | None = None
        self._risen = asyncio.Event()
        self._listeners: list[Listener] = []
        self._elsewhere_listeners: list[Callable[[], None]] = []
        self._announced: set[TenantId] = set()
        self._wake = asyncio.Event()
        self._first_word = asyncio.Event()
        if signals is None:
            self._first_word.set()
        else:
            signals.follow(self._take_announcement, self._take_signal)
        self._tasks: list[asyncio.Task[None]] = []
        self._asking: asyncio.Task[int] | None = None

    def when_risen(self, listener: Listener) -> None:
        """Calls `listener` with each tenant and epoch that rises, the first one heard of too."""
        self._listeners.append(listener)

    def when_changed_elsewhere(self, listener: Callable[[], None]) -> None:
        """Calls `listener` when another process has written to the store."""
        self._elsewhere_listeners.append(listener)

    async def __aenter__(self) -> Self:
        """Hears the store once, and goes on in tasks of its own. Raises Unavailable where it can't be heard.

        Signals that are away at the start are not waited for long: everything is refused until they are heard.
        """
        await self.poll()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._first_word.wait(), FIRST_WORD_S)
        self._tasks = [asyncio.create_task(self._poll_for_ever()), asyncio.create_task(self._look_for_ever())]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        running = [*self._tasks, *([] if self._asking is None else [self._asking])]
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running)
        self._tasks, self._asking = [], None

    @property
    def healthy(self) -> bool:
        """Whether the store, and the signals where there are any, have been heard lately enough."""
        return self.age_s < self._refuse_after_s

    @property
    def what_is_not_heard(self) -> str:
        """What is away, in words for an operator, where it is not `healthy`."""
        at, now = self._signals_heard_at, self._clock.monotonic()
        if at is None or now - at >= self._refuse_after_s:
            return "Redis has not been heard for too long."
        return "The store has not been heard for too long."

    @property
    def age_s(self) -> float:
        """Seconds since the question that was last answered, by the store or by the signals, whichever is older;
        infinity before the first answer."""
        return inf if self._heard_at is None else self._clock.monotonic() - self._heard_at

    def current(self, tenant: TenantId) -> int:
        """The tenant's epoch. Raises Unavailable where the store has not been heard for five seconds, or not of it."""
        epoch, heard_at = self._epochs.get(tenant), self._heard_at
        # `healthy` written out: every request asks several times.
        stale = heard_at is None or self._clock.monotonic() - heard_at >= self._refuse_after_s
        if epoch is None or stale:
            raise Unavailable("The gateway has not heard from its store, and does not answer from memory.")
        return epoch

    def current_or_none_yet(self, tenant: TenantId) -> int:
        """As `current`; 0 for a tenant that the store does not have."""
        return self.current(tenant) if tenant in self._epochs else 0

    def knows(self, tenant: TenantId) -> bool:
        """Whether the store has such a tenant, as far as it was heard."""
        return tenant in self._epochs

    def raised(self, tenant: TenantId, epoch: int) -> None:
        """Takes note of an epoch; one that is not above the known one changes nothing."""
        if epoch <= self._epochs.get(tenant, 0):
            return
        self._epochs[tenant] = epoch
        for listener in self._listeners:
            listener(tenant, epoch)
        self._risen.set()
        self._risen = asyncio.Event()

    async def hear(self, tenant: TenantId) -> None:
        """Takes note of this tenant's epoch as the store has it now, without waiting for the next poll: before an
        effect that can't be taken back. Raises Unavailable where the store can't answer."""
        found = await self._tenants.find(tenant)
        if found is not None:
            self.raised(tenant, found.epoch)

    async def poll(self) -> None:
        """Hears the store now. Raises Unavailable where it can't answer; what was heard before then ages on."""
        asked_at = self._clock.monotonic()
        for tenant in await self._tenants.all():
            self.raised(tenant.id, tenant.epoch)
        self._store_heard_at = asked_at  # not when it answered: the answer is as old as the question
        self._weigh()
        if await self._changed_elsewhere():
            for listener in self._elsewhere_listeners:
                listener()

    async def _changed_elsewhere(self) -> bool:
        """Whether another process has written since the last answer, or may have: the writer has not said yet."""
        asking = self._asking or asyncio.create_task(self._ask_elsewhere())
        self._asking = asking
        await asyncio.wait([asking], timeout=POLL_S)
        if not asking.done():
            return True
        self._asking = None
        before = self._seen_elsewhere
        try:
            self._seen_elsewhere = asking.result()
        except Unavailable:
            return True
        return before not in (None, self._seen_elsewhere)

    async def _ask_elsewhere(self) -> int:
        return await self._elsewhere()

    async def at_least(self, tenant: TenantId, epoch: int, wait_s: float = WAIT_S) -> None:
        """Waits until the tenant's epoch is `epoch` or above. Raises Unavailable where `wait_s` seconds don't do."""
        try:
            async with asyncio.timeout(wait_s):
                while self.current(tenant) < epoch:
                    await self._risen.wait()
        except TimeoutError:
            raise Unavailable(f"Epoch {epoch} has not come here yet. Ask again in a moment.") from None

    def _take_signal(self, at: float) -> None:
        self._signals_heard_at = at
        self._weigh()
        self._first_word.set()

    def _weigh(self) -> None:
        store, signals = self._store_heard_at, self._signals_heard_at
        self._heard_at = None if store is None or signals is None else min(store, signals)

    def _take_announcement(self, tenant: TenantId, epoch: int) -> None:
        if epoch > self._epochs.get(tenant, 0):
            self._announced.add(tenant)
            self._wake.set()

    async def _look_for_ever(self) -> None:
        """Asks the store about every tenant that was announced: what a signal says is no epoch yet."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._announced:
                with suppress(Unavailable):  # the next poll hears it
                    await self.hear(self._announced.pop())

    async def _poll_for_ever(self) -> None:
        while True:
            await self._pause(POLL_S)
            try:
                await self.poll()
            except Unavailable:
                continue  # `current` refuses once what was heard is too old
