"""Turns a tenant into everybody whom two documents may treat differently: classes, people in rows, nobody known."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence, Set
from typing import Final

from gateway.model import Profile, ProfileId, RoleAssignment, TenantId
from gateway.policy.population import by_credential
from gateway.ports import Identities

MOST_NAMED: Final = 5_000  # people named by rows who are looked at one by one
_AT_ONCE: Final = 500

Holders = list[tuple[Profile, int]]  # somebody, and for how many people they stand


class Population:
    """Everybody who is there."""

    def __init__(self, identities: Identities) -> None:
        self._identities = identities

    async def holders(self, tenant: TenantId, named: Sequence[ProfileId], subjects: Set[str]) -> tuple[Holders, int]:
        """Each class as one, without those whom a row names, who are looked at alone; and who is stored nowhere. The
        second are those of `named` who were too many to be looked at: its last ones."""
        some = await self.profiles(tenant, named[:MOST_NAMED])
        ids = {one.merged_into or one.id for one in some}
        alone = [one for one in await self.profiles(tenant, sorted(ids)) if not one.disabled]
        found: Holders = [(one, 1) for one in alone if one.merged_into is None]
        in_class: dict[tuple[str, frozenset[object]], int] = {}
        for one, _ in found:
            key = (one.kind, frozenset(one.roles))
            in_class[key] = in_class.get(key, 0) + 1
        classes = await self._identities.classes(tenant)
        for each in classes:
            others = (each.people or 0) - in_class.get((each.kind, frozenset(each.roles)), 0)
            if others > 0:
                found.append((_of_class(tenant, each.kind, each.roles, each.key), others))
        stored = {role.role for each in classes for role in each.roles}
        nowhere = await asyncio.to_thread(by_credential, tenant, subjects, stored)
        found.extend((one, 0) for one in nowhere)
        return found, max(0, len(named) - MOST_NAMED)

    async def profiles(self, tenant: TenantId, ids: Sequence[ProfileId]) -> list[Profile]:
        """Those that there are."""
        found: list[Profile] = []
        for begin in range(0, len(ids), _AT_ONCE):
            found.extend(await self._identities.profiles(tenant, ids[begin : begin + _AT_ONCE]))
        return found


def _of_class(tenant: TenantId, kind: str, roles: tuple[RoleAssignment, ...], key: str) -> Profile:
    """Somebody of a class whom no row names."""
    return Profile(id=ProfileId(key), tenant=tenant, name="", kind=kind, roles=roles)
