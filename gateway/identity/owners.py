"""Keeps the last owner of a tenant: whatever would take that role asks here first (design section 5)."""

from __future__ import annotations

import asyncio

from gateway.errors import Conflict
from gateway.identity.roles import PERSON, is_owner
from gateway.model import Profile
from gateway.ports import Identities

_PAGE = 200


class Owners:
    """Who owns a tenant. Hold `one_at_a_time` from the check to the end of the change: two owners who take the role
    from each other at once must not both find the other still there."""

    def __init__(self, identities: Identities) -> None:
        self._identities = identities
        self.one_at_a_time = asyncio.Lock()

    async def check_one_stays(self, target: Profile) -> None:
        """Raises Conflict where `target` is the only acting owner."""
        if is_owner(target) and not await self._has_other_owner(target):
            raise Conflict("This is the last owner. Make somebody else an owner first.")

    async def _has_other_owner(self, target: Profile) -> bool:
        cursor: str | None = None
        while True:
            page = await self._identities.people(target.tenant, limit=_PAGE, cursor=cursor)
            if any(_is_acting_owner(person) and person.id != target.id for person in page.items):
                return True
            cursor = page.next_cursor
            if cursor is None:
                return False


def _is_acting_owner(profile: Profile) -> bool:
    return is_owner(profile) and profile.kind == PERSON and not profile.disabled
