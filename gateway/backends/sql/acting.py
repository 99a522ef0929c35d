"""Refuses what a retired profile's request would still write: looked at in the transaction that writes (design 5).

A request that was let in before a merge, in this process or another, must change nothing after it. Each write of the
store asks, so that no operation can forget to; who is asked about travels with the request and not with its arguments,
as the request's id does for the log.
"""

from __future__ import annotations

from contextvars import ContextVar

from sqlalchemy import Connection, bindparam, select

from gateway.backends.sql.prepared import Prepared
from gateway.backends.sql.tables import profiles
from gateway.identity.refusals import NOT_ACTIVE, Reason, refused
from gateway.keys import is_guest_id
from gateway.model import ProfileId, TenantId

_STATE = Prepared(
    select(profiles.c.merged_into, profiles.c.disabled).where(
        profiles.c.tenant == bindparam("of"), profiles.c.id == bindparam("profile")
    )
)


class Actor:
    """Whose request is running: every write in the block of a `with` is refused from the moment that the profile is not
    active any more."""

    __slots__ = ("_before", "profile", "tenant")

    def __init__(self, tenant: TenantId, profile: ProfileId) -> None:
        self.tenant = tenant
        self.profile = profile

    def __enter__(self) -> None:
        self._before = _ACTOR.set(self)

    def __exit__(self, *_raised: object) -> None:
        _ACTOR.reset(self._before)

    def check(self, connection: Connection) -> None:
        """Raises Unauthenticated where the profile was merged away, disabled or removed meanwhile. A guest is stored
        nowhere, so there is nothing of one to end."""
        if is_guest_id(self.profile):
            return
        rows = _STATE.rows(connection, of=self.tenant, profile=self.profile)
        if not rows:
            raise refused(Reason.PROFILE_UNKNOWN)
        merged_into, disabled = rows[0]
        if merged_into is not None:
            raise refused(Reason.PROFILE_RETIRED, NOT_ACTIVE)
        if disabled:
            raise refused(Reason.PROFILE_DISABLED, NOT_ACTIVE)


_ACTOR: ContextVar[Actor | None] = ContextVar("actor", default=None)


def acting() -> Actor | None:
    """Whose request is running here, or None outside any."""
    return _ACTOR.get()


on_behalf_of = Actor  # `with on_behalf_of(…)` is how it reads
