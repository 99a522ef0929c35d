"""What a change of who may do what comes to: refused, or made, and then whether only an owner could make it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Protocol

from gateway.errors import ToolNotAllowed
from gateway.keys import new_id
from gateway.model import Notice, Profile, ProfileId, Requester

MOST_NAMED: Final = 20  # in the audit, which keeps every record
MOST_TOLD: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """Why somebody who is no owner may not make a change: a sentence for them, and what they would gain."""

    detail: str
    gains: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A change that was looked at before it is made."""

    owner: bool  # an owner asks: they can
    reasons: tuple[Reason, ...] = ()
    touches: tuple[ProfileId, ...] = ()  # whom it is about, where whoever is no owner may not touch them
    tells: tuple[ProfileId, ...] = ()  # the people who are told of it

    def check(self) -> None:
        """Raises ToolNotAllowed where whoever asks may not make it, with what they would gain and who can."""
        if self.reasons and not self.owner:
            raise ToolNotAllowed(self.reasons[0].detail)

    def marks(self) -> dict[str, object]:
        """What the audit says of it: nothing of a change that anybody with the right could make."""
        if not self.reasons:
            return {}
        marks: dict[str, object] = {"raises": True}
        gains = [words for reason in self.reasons for words in reason.gains]
        if gains:
            marks["gains"] = gains[:MOST_NAMED]
        if self.touches:
            marks["touches"] = _few(self.touches)
        return marks

    def notices(self, actor: Requester, now: datetime, code: str, about: str) -> tuple[Notice, ...]:
        """What the people whom it touches are told of it once it is made; whoever makes it knows."""
        told = [one for one in self.tells if one != actor.profile.id] if self.reasons else []
        return tuple(
            Notice(
                id=new_id("ntc", now),
                tenant=actor.tenant,
                profile=one,
                at=now,
                code=f"owner_{code}" if actor.profile.id in self.touches else code,
                by=actor.profile.id,
                about=about,
            )
            for one in told[:MOST_TOLD]
        )


class Weighing(Protocol):
    """Looks at changes of people before they are made: by names, and by the decisions before and after.

    None of it refuses: `Outcome.check` does. Every method raises Unavailable where the rules or the store are away.
    """

    async def change(self, actor: Requester, target: Profile) -> Outcome:
        """What touches somebody and gives nobody anything: a name, a switch, a link that goes, a token that ends."""

    async def switch_on(self, actor: Requester, target: Profile) -> Outcome:
        """Somebody disabled is active again."""

    async def assign(self, actor: Requester, before: Profile | None, after: Profile) -> Outcome:
        """Other roles; `before` is None for somebody new."""

    async def speak_as(self, actor: Requester, target: Profile, what: str) -> Outcome:
        """A way to call as somebody; `what` is a word for it, like "A token"."""

    async def merge(self, actor: Requester, retired: ProfileId, survivor: ProfileId) -> Outcome:
        """Two profiles become one."""


def _few(touched: Sequence[ProfileId]) -> list[str]:
    more = len(touched) - MOST_NAMED
    return list(touched) if more <= 0 else [*touched[:MOST_NAMED], f"and {more} more"]
