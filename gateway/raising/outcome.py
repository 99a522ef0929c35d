"""What a change of who may do what comes to: refused, or made, and then whether only an owner could make it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from gateway.errors import ToolNotAllowed
from gateway.model import ProfileId

MOST_TOUCHED: Final = 20  # in the audit, which keeps every record


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
    touches: tuple[ProfileId, ...] = ()  # people with more rights than whoever is no owner may touch

    @property
    def raises(self) -> bool:
        """Whether only an owner can make it."""
        return bool(self.reasons)

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
            marks["gains"] = gains[:MOST_TOUCHED]
        if self.touches:
            marks["touches"] = _few(self.touches)
        return marks


def _few(touched: Sequence[ProfileId]) -> list[str]:
    more = len(touched) - MOST_TOUCHED
    return list(touched) if more <= 0 else [*touched[:MOST_TOUCHED], f"and {more} more"]
