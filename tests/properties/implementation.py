"""What the property test asks of an implementation, in words of the oracle's world."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from tests.oracle.world import Request, World


@dataclass(frozen=True, slots=True)
class Given:
    """A candidate file of a turn as a manifest shows it."""

    path: str
    kind: str
    included: bool
    reason: str | None


@dataclass(frozen=True, slots=True)
class Turn:
    """The manifest of a turn in its order, and the text that goes to the model."""

    manifest: tuple[Given, ...]
    text: str


class Implementation(Protocol):
    """One gateway on real stores. Worlds never share a tenant, so that many can be put into one."""

    async def put(self, world: World) -> None:
        """Makes everything of the world exist, under its ids; its moment is the moment from then on."""

    async def decide(self, request: Request) -> bool | None:
        """Whether the request is allowed; None where this way in has no such question (a stranger, a guest)."""

    async def visible(self, tenant: str, person: str, origin: str | None) -> set[str] | None:
        """The ids of every session in the person's list, all pages of it; None where they may not enter the origin."""

    async def messages(self, tenant: str, person: str, origin: str | None, session: str) -> list[str] | None:
        """The texts of the messages the person reads there, oldest first; None where they are refused."""

    async def context(self, tenant: str, person: str, session: str) -> Turn | None:
        """The context of a turn; None where the person may not enter."""

    async def memory_get(self, tenant: str, person: str, session: str, path: str) -> str | None:
        """The text that the tool gives, without the last line's end; None where the file is missing or refused."""
