"""Turns a tenant into the rows that decide there, by subject: read once for a version, on a thread of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from gateway.bounded import keep
from gateway.model import AgentName, TenantId
from gateway.policy.ahead import RowsBySubject
from gateway.policy.states import TenantState

MOST_TENANTS: Final = 64


class RowsInForce:
    """The documents in force, for those who compare by them."""

    def __init__(self, current: Callable[[TenantId], Awaitable[TenantState]]) -> None:
        """`current` is a tenant's state at its epoch."""
        self._current = current
        self._known: dict[TenantId, tuple[int, RowsBySubject]] = {}

    async def of(self, tenant: TenantId) -> tuple[RowsBySubject, frozenset[AgentName]]:
        """The rows, and the tenant's agents. Raises Unavailable where the state can't be read."""
        state = await self._current(tenant)
        version, rows = self._known.get(tenant, (None, None))
        if rows is None or version != state.snapshot.version:
            rows = await asyncio.to_thread(RowsBySubject, state.snapshot.document)
            keep(self._known, tenant, (state.snapshot.version, rows), MOST_TENANTS)
        return rows, frozenset(state.agents)
