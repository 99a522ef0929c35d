"""Which lines of a file a tool gives, and where to go on (reference, openclaw-memory 1.7)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.tools.excerpts import MAX_CHARACTERS, excerpt

TEN = "".join(f"line {number}\n" for number in range(1, 11))


@pytest.mark.parametrize(
    ("text", "start", "count", "shown"),
    [
        (TEN, 1, 120, {"text": TEN.rstrip("\n"), "from": 1, "lines": 10}),
        (TEN, 9, 120, {"text": "line 9\nline 10", "from": 9, "lines": 2}),
        (TEN, 11, 5, {"text": "", "from": 11, "lines": 0}),
        (TEN, 10, 1, {"text": "line 10", "from": 10, "lines": 1}),
        ("", 1, 5, {"text": "", "from": 1, "lines": 0}),
        ("no newline", 1, 5, {"text": "no newline", "from": 1, "lines": 1}),
        ("a\n\nb", 2, 1, None),
        ("x" * MAX_CHARACTERS, 1, 1, {"text": "x" * MAX_CHARACTERS, "from": 1, "lines": 1}),
    ],
)
def test_an_excerpt_is_the_lines_that_were_asked_for(
    text: str, start: int, count: int, shown: dict[str, object] | None
) -> None:
    """The empty line after a final newline does not count; past the end is an empty text."""
    found = excerpt(text, start, count)
    if shown is None:
        assert (found["lines"], found["nextFrom"], found["truncated"]) == (1, 3, True)
    else:
        assert found == shown


def test_what_does_not_fit_goes_on_where_it_stopped() -> None:
    """At most 12,000 characters; all excerpts together are the whole file."""
    text = "\n".join(f"{number:05} " + "y" * 94 for number in range(300))
    lines: list[str] = []
    start: object = 1
    while start is not None:
        assert isinstance(start, int)
        found = excerpt(text, start, 10_000)
        got = str(found["text"]).split("\n")
        assert len("\n".join(got[: int(str(found["lines"]))])) <= MAX_CHARACTERS
        lines += got[: int(str(found["lines"]))]
        start = found.get("nextFrom")
    assert "\n".join(lines) == text


def test_one_line_over_the_limit_is_cut() -> None:
    """Going on from it would never end."""
    found = excerpt("z" * (MAX_CHARACTERS + 5) + "\nnext", 1, 5)
    assert found == {"text": "z" * MAX_CHARACTERS, "from": 1, "lines": 1, "truncated": True}


@given(text=st.text(alphabet="\n\r\u2028a漢", max_size=24), count=st.integers(min_value=1, max_value=30))
def test_all_of_a_file_is_its_lines_one_by_one(text: str, count: int) -> None:
    """A file that is shown whole is not taken apart, and shows the same."""
    found = excerpt(text, 1, count)
    number = int(str(found["lines"]))

    alone = [str(excerpt(text, line, 1)["text"]).split("\n")[0] for line in range(1, number + 1)]

    assert str(found["text"]).split("\n")[:number] == alone
    assert ("nextFrom" in found) == (excerpt(text, number + 1, 1)["lines"] == 1)
