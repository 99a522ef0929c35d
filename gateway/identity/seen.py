"""Collects when each sign-in was last seen, so that a request costs no write (design section 5.6, "idle expiry")."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from gateway.model import SignIn
from gateway.ports import Clock, SignIns

WRITTEN_EVERY = timedelta(minutes=1)


@dataclass(slots=True)
class _Times:
    """When a sign-in was seen, and how much of that is in the store."""

    seen: datetime
    written: datetime


class Seen:
    """When sign-ins were seen here; `app` flushes it now and then, and each is written at most once a minute."""

    def __init__(self, sign_ins: SignIns, clock: Clock) -> None:
        self._sign_ins = sign_ins
        self._clock = clock
        self._times: dict[str, _Times] = {}

    def last(self, sign_in: SignIn) -> datetime:
        """When it was last seen, here or as the store knows."""
        times = self._times.get(sign_in.id)
        return sign_in.last_seen_at if times is None else max(times.seen, sign_in.last_seen_at)

    def in_force(self, sign_in: SignIn, idle: timedelta) -> bool:
        """Whether neither its end has come nor `idle` has passed since it was last seen."""
        now = self._clock.now()
        return now < sign_in.expires_at and now < self.last(sign_in) + idle

    def record(self, sign_in: SignIn, at: datetime) -> None:
        """Remembers that it is seen."""
        times = self._times.get(sign_in.id)
        if times is None:
            self._times[sign_in.id] = _Times(at, sign_in.last_seen_at)
        else:
            times.seen = max(times.seen, at)

    async def flush(self) -> None:
        """Writes what is a minute newer than what was written. Raises Unavailable, and then loses nothing."""
        now = self._clock.now()
        due = {
            sign_in: times.seen
            for sign_in, times in self._times.items()
            if times.seen > times.written and now - times.written >= WRITTEN_EVERY
        }
        await self._sign_ins.touch(due)
        for sign_in, at in due.items():
            self._times[sign_in].written = at
        # What the store knows is forgotten here, so that memory does not grow with every browser that ever came.
        self._times = {
            sign_in: times
            for sign_in, times in self._times.items()
            if times.seen > times.written or now - times.seen < WRITTEN_EVERY
        }
