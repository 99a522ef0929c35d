"""Counting and cutting by UTF-16 code units."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.workspace.units import head, tail, units

TEXTS = st.text(alphabet=st.characters(codec="utf-8"))


@pytest.mark.parametrize(("text", "count"), [("", 0), ("abc", 3), ("é", 1), ("退票", 2), ("😀" * 2001, 4002)])
def test_a_character_outside_the_basic_plane_counts_twice(text: str, count: int) -> None:
    """reference/openclaw-visibility 2.4: "😀" × 2001 is over the limit of 4,000."""
    assert units(text) == count


@given(TEXTS, st.integers(0, 40))
def test_a_cut_keeps_whole_characters_and_loses_at_most_one_unit(text: str, count: int) -> None:
    """design section 6: a cut never splits a surrogate pair."""
    first, last = head(text, count), tail(text, count)

    assert text.startswith(first)
    assert text.endswith(last)
    for part in (first, last):
        assert min(count, units(text)) - 1 <= units(part) <= count


def test_a_pair_at_the_border_goes_whole() -> None:
    """The same, at the border itself."""
    assert (head("a😀b", 2), head("a😀b", 3)) == ("a", "a😀")
    assert (tail("a😀b", 2), tail("a😀b", 3)) == ("b", "😀b")
