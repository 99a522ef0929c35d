"""Turns the state of a tenant into the rights that its document gives, worked out once for a version."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Final

from gateway.bounded import keep
from gateway.model import TenantId
from gateway.policy.rights import Rights
from gateway.policy.states import TenantState

MOST_TENANTS: Final = 64


class RightsInForce:
    """The rights of the documents in force, for those who compare them. A long document is read on another thread."""

    def __init__(self) -> None:
        self._known: dict[TenantId, tuple[int, Rights]] = {}

    async def of(self, state: TenantState, now: datetime) -> Rights:
        """What the rows of the document in force allow at `now`."""
        version, rights = self._known.get(state.tenant, (None, None))
        if rights is None or version != state.snapshot.version or not rights.hold_at(now):
            rights = await asyncio.to_thread(Rights, state.snapshot.document, now)
            keep(self._known, state.tenant, (state.snapshot.version, rights), MOST_TENANTS)
        return rights
