"""Turns the world before and after an attack into what the attack left behind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from gateway.ports import AuditFilter, StoredRecord
from tests.identity.attacking import World
from tests.state import state_of

_NEWEST = 50  # records of the audit: more than one request and what came right before it


@dataclass(frozen=True)
class Told:
    """What the gateway wrote down: codes of access records, of denied decisions, and of what it counted for nobody."""

    audited: list[str]
    decided: list[str]
    counted: list[str]


class Traces:
    """Compares the world with what it was."""

    def __init__(self, world: World, lines: int, records: set[str], state: dict[str, Any]) -> None:
        self._world = world
        self._lines = lines
        self._records = records
        self._state = state

    @classmethod
    async def before(cls, world: World) -> Self:
        """From here on is what the attack did."""
        world.home.gateway.refusals.flush()
        records = {one.hash for one in await _newest(world)}
        return cls(world, len(world.logs.lines), records, await state_of(world.home))

    async def unchanged(self) -> bool:
        """Whether no row and no file is another than before."""
        return await state_of(self._world.home) == self._state

    async def told(self) -> Told:
        """What was written down since then."""
        self._world.home.gateway.refusals.flush()
        lines = self._world.logs.lines[self._lines :]
        counted = [line["code"] for line in lines if line["event"] == "refused" for _ in range(line["count"])]
        new = [one.record for one in await _newest(self._world) if one.hash not in self._records]
        return Told(
            audited=[one.code for one in new if one.kind == "access"],
            decided=[one.code for one in new if one.kind == "decision" and one.effect == "deny"],
            counted=counted,
        )


async def _newest(world: World) -> list[StoredRecord]:
    audit = world.home.gateway.stores.audit
    pages = [
        await audit.read(one.tenant, AuditFilter(), limit=_NEWEST, cursor=None, ascending=False)
        for one in (world.home, world.there)
    ]
    return [one for page in pages for one in page.items]
