"""Turns the place where a page of a list ended into an opaque cursor, and back."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Sequence
from typing import TypeVar

from gateway.errors import Invalid
from gateway.ports import Page

RowT = TypeVar("RowT")
_LARGEST = 2**63 - 1
_MAX_LENGTH = 200


def write(kind: str, place: str) -> str:
    """A cursor of one kind of list; it fits no other."""
    return base64.urlsafe_b64encode(f"{kind}:{place}".encode()).decode().rstrip("=")


def read(kind: str, cursor: str) -> str:
    """The place. Raises Invalid for what is not a cursor of this kind of list, byte for byte as it was given out."""
    try:
        text = base64.urlsafe_b64decode(cursor[:_MAX_LENGTH].encode("ascii") + b"=" * (-len(cursor) % 4)).decode()
    except (binascii.Error, UnicodeError):
        raise not_a_cursor() from None
    prefix, _, place = text.partition(":")
    if prefix != kind or not place or write(kind, place) != cursor:
        raise not_a_cursor()
    return place


def read_number(kind: str, cursor: str) -> int:
    """The place, where places are numbers."""
    place = read(kind, cursor)
    if not (place.isascii() and place.isdigit() and int(place) <= _LARGEST):
        raise not_a_cursor()
    return int(place)


def page(kind: str, rows: Sequence[RowT], limit: int, place: Callable[[RowT], object]) -> Page[RowT]:
    """The first `limit` of the rows; one row more than that says that the list goes on."""
    kept = tuple(rows[:limit])
    more = len(rows) > limit and bool(kept)
    return Page(kept, write(kind, str(place(kept[-1]))) if more else None)


def not_a_cursor() -> Invalid:
    """What is raised for a cursor that fits no place of the list."""
    return Invalid.of("cursor", "cursor", "That is no cursor of this list. Leave it out to start at the beginning.")
