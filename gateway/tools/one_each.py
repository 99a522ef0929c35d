"""Turns a person's second costly request at once into a refusal, so that nobody takes all the readers of the store."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from gateway.errors import RateLimited
from gateway.model import ProfileId, TenantId
from gateway.turn import Turn

RETRY_AFTER_S = 2  # no search takes longer


class OneEach:
    """Who has such a request running; `what` names it for the person."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._running: set[tuple[TenantId, ProfileId]] = set()

    @contextmanager
    def turn_of(self, turn: Turn) -> Iterator[None]:
        """Held while the request runs. Raises RateLimited where the person has another one running."""
        who = turn.tenant, turn.requester.profile.id
        if who in self._running:
            raise RateLimited(
                f"You have {self._what} running already. Wait for it to end, then ask again.",
                headers={"Retry-After": str(RETRY_AFTER_S)},
            )
        self._running.add(who)
        try:
            yield
        finally:
            self._running.discard(who)
