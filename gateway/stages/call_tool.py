"""Turns a permit and arguments into a result; an effect only once its intent is in the audit (design section 12)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from gateway.model import TenantId
from gateway.policy.permit import Permit
from gateway.policy.targets import Target
from gateway.stages.record_audit import Trail
from gateway.tools.registry import AnyOperation
from gateway.turn import Turn


class CallTool:
    """Runs an operation; without a permit there is no way to."""

    def __init__(
        self, intent: Callable[[Trail], Awaitable[None]], refresh: Callable[[TenantId], Awaitable[int]]
    ) -> None:
        self._intent = intent
        self._refresh = refresh

    async def __call__(
        self, permit: Permit[Target], turn: Turn, operation: AnyOperation, arguments: object, trail: Trail
    ) -> object:
        """What the operation returns. Raises Unavailable, and runs nothing, where the intent can't be written."""
        if operation.effect:
            await self._intent(trail)
        if not operation.raises_epoch:
            return await operation.run(permit, turn, arguments)
        try:
            return await operation.run(permit, turn, arguments)
        finally:  # also where it failed half-way: what it did change is in force
            trail.epoch = await self._refresh(turn.tenant)
