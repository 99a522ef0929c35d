"""What is remembered for a while, in a table that never grows beyond a size."""

from __future__ import annotations

from typing import TypeVar

KeyT = TypeVar("KeyT")
ValueT = TypeVar("ValueT")


def keep(kept: dict[KeyT, ValueT], key: KeyT, value: ValueT, most: int) -> None:
    """Puts `value` into `kept` as its newest entry; where there would be more than `most`, the oldest give way."""
    kept.pop(key, None)
    while len(kept) >= most:
        del kept[next(iter(kept))]
    kept[key] = value
