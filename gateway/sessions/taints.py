"""Turns a runtime's word that its turn has read untrusted text into a mark that stays until the turn's token ends.

The mark is on disk before the call goes on that brought it: a restart must not wash a turn clean (design section 9).
"""

from __future__ import annotations

from datetime import datetime

from gateway.bounded import keep
from gateway.model import TenantId
from gateway.ports import Clock, TaintedTurns

CAPACITY = 10_000


class Taints:
    """Which turns are tainted. Only that one is can be remembered: another process may report it at any time."""

    def __init__(self, store: TaintedTurns, clock: Clock, *, capacity: int = CAPACITY) -> None:
        self._store = store
        self._clock = clock
        self._capacity = capacity
        self._known: dict[tuple[TenantId, str], None] = {}

    async def report(self, tenant: TenantId, turn: str, until: datetime) -> None:
        """Marks the turn. Raises Unavailable where that can't be kept; then the call must not go on."""
        if (tenant, turn) not in self._known:
            await self._store.add(tenant, turn, until, self._clock.now())
            keep(self._known, (tenant, turn), None, self._capacity)

    async def holds(self, tenant: TenantId, turn: str) -> bool:
        """Whether the turn is marked. Raises Unavailable."""
        if (tenant, turn) in self._known:
            return True
        if not await self._store.holds(tenant, turn):
            return False
        keep(self._known, (tenant, turn), None, self._capacity)
        return True
