"""Turns a principal into a turn: their profile and roles, and the state of the tenant that decides about them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

from gateway.errors import Unauthenticated
from gateway.identity.assertions import CHANNEL
from gateway.identity.roles import SERVICE
from gateway.model import OUTSIDE, Principal, Requester, TenantId
from gateway.policy.states import TenantStates
from gateway.ports import Clock
from gateway.stages.record_audit import Trail
from gateway.turn import Authorize, Turn


class Profiles(Protocol):
    """Finds the profile of a principal."""

    async def resolve(self, principal: Principal, *, request: str, surface: str) -> Requester:
        """The person with the roles they hold now. Raises Unauthenticated where there is none, or a retired one, and
        Unavailable."""


class Freshness(Protocol):
    """Knows the epochs."""

    async def at_least(self, tenant: TenantId, epoch: int) -> None:
        """Waits until `epoch` is known here. Raises Unavailable where it does not come in time."""


class ResolveProfile:
    """Finds the profile, and opens the turn outside any session."""

    def __init__(
        self,
        *,
        profiles: Profiles,
        states: TenantStates,
        freshness: Freshness,
        authorize: Authorize,
        clock: Clock,
    ) -> None:
        self._profiles = profiles
        self._states = states
        self._freshness = freshness
        self._authorize = authorize
        self._clock = clock

    async def __call__(
        self, principal: Principal, trail: Trail, renew: Callable[[], Awaitable[Turn]], min_epoch: int | None
    ) -> Turn:
        """The turn. Raises Unauthenticated, or Unavailable where what is known is too old to decide by."""
        if min_epoch is not None:
            await self._freshness.at_least(principal.tenant, min_epoch)
        requester = await self._profiles.resolve(principal, request=trail.request, surface=trail.surface)
        for other in principal.beside:
            _check_goes_with(
                requester, await self._profiles.resolve(other, request=trail.request, surface=trail.surface)
            )
        state = await self._states.current(principal.tenant)
        trail.requester = requester
        trail.epoch = state.epoch
        return Turn(
            request=trail.request,
            at=self._clock.now(),
            surface=trail.surface,
            operation=trail.operation,
            requester=requester,
            state=state,
            origin=OUTSIDE,
            trail=trail,
            authorize=self._authorize,
            renew=renew,
        )


def _check_goes_with(requester: Requester, other: Requester) -> None:
    """Raises Unauthenticated where a second credential names somebody else; a service may carry a turn token, and speak
    for a channel's sender."""
    carried = requester.principal.turn is not None or requester.principal.credential == CHANNEL
    carries = carried and other.profile.kind == SERVICE
    if other.tenant != requester.tenant or not (carries or other.profile.id == requester.profile.id):
        raise Unauthenticated(
            "Your credentials name different people. Send one.",
            reason="credentials_of_different_people",
            error="invalid_request",
        )
