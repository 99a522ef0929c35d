"""Turns a permit and arguments into a result; an effect only once its intent is in the audit (design section 12)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager

from gateway.model import ProfileId, TenantId
from gateway.policy.permit import Permit
from gateway.policy.targets import Target
from gateway.stages.record_audit import Trail
from gateway.tools.registry import AnyOperation
from gateway.turn import Turn


class CallTool:
    """Runs an operation; without a permit there is no way to."""

    def __init__(
        self,
        intent: Callable[[Trail], Awaitable[None]],
        epoch_of: Callable[[TenantId], int],
        on_behalf_of: Callable[[TenantId, ProfileId], AbstractContextManager[None]],
    ) -> None:
        """In the block of `on_behalf_of` the store refuses every write once that profile is retired or disabled."""
        self._intent = intent
        self._epoch_of = epoch_of
        self._on_behalf_of = on_behalf_of

    async def __call__(
        self, permit: Permit[Target], turn: Turn, operation: AnyOperation, arguments: object, trail: Trail
    ) -> object:
        """What the operation returns. Raises Unavailable, and runs nothing, where the intent can't be written,
        and Unauthenticated, with nothing written, where the person was merged away while it ran."""
        if operation.details is not None:
            trail.details[permit.decision.id] = await operation.details(permit, turn, arguments)
        if operation.effect or operation.recorded_first:
            await self._intent(trail)
        with self._on_behalf_of(turn.tenant, turn.requester.profile.id):
            result = await operation.run(permit, turn, arguments)
        if operation.raises_epoch:  # so that the answer names the epoch that the change is in force at
            trail.epoch = self._epoch_of(turn.tenant)
        return result
