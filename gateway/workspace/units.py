"""Turns texts into counts of UTF-16 code units, in which every limit of a context is given, and cuts by them."""

from __future__ import annotations

_UTF16 = "utf-16-le"


def units(text: str) -> int:
    """How many UTF-16 code units `text` has: "😀" has two (reference/openclaw-visibility 2.4)."""
    return len(text) if text.isascii() else len(text.encode(_UTF16)) // 2


def head(text: str, count: int) -> str:
    """The first `count` units, or one less where the cut would split a surrogate pair."""
    data = text.encode(_UTF16)[: 2 * count]
    return data[: len(data) - 2 * _is_high(data[-2:])].decode(_UTF16)


def tail(text: str, count: int) -> str:
    """The last `count` units, or one less where the cut would split a surrogate pair."""
    data = text.encode(_UTF16)
    data = data[max(0, len(data) - 2 * count) :]
    return data[2 * _is_low(data[:2]) :].decode(_UTF16)


def _is_high(unit: bytes) -> bool:
    return bool(unit) and 0xD8 <= unit[1] <= 0xDB


def _is_low(unit: bytes) -> bool:
    return bool(unit) and 0xDC <= unit[1] <= 0xDF
