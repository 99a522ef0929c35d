"""Two documents, and the rows that differ: what a reviewer is shown, and what a pull says (issue 4, "for Git")."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.policy.differences import NO_END, Differences, differences
from gateway.policy.documents import Document, parse
from gateway.policy.rows import Link, Row

ROW = "p, role:member, *, memory/daily, agent, shared, private, read, allow"
OTHER = "p, role:guest, flight, memory/rules, all, any, *, load, deny"
LINK = "g, role:supervisor, role:member"


def found(before: str, after: str) -> Differences:
    """The differences of two texts."""
    return differences(parse(before), parse(after))


def lines(*parts: Sequence[Row] | Sequence[Link]) -> list[str]:
    """Rows as one would write them."""
    return [row.text for rows in parts for row in rows]


def told(one: Differences) -> tuple[list[str], list[str], list[tuple[str, str, str]]]:
    """Added and removed rows as text, and (field, was, is) of each changed one."""
    return (
        lines(one.added, one.added_links),
        lines(one.removed, one.removed_links),
        [(changed.field, *changed.words) for changed in one.changed],
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "# nothing but a comment\n\n"),
        (f"{ROW}\n{OTHER}\n{LINK}", f"{LINK}\n{OTHER}\n{ROW}"),
        (f"{ROW} # why", ROW.replace(", ", ",\t")),
        (f"{ROW}, 2030-01-01T00:00:00Z", f"{ROW}, 2030-01-01T00:00:00.000Z"),
        (f"{ROW}\r\n{OTHER}\r\n", f"{ROW}\n{OTHER}\n"),
    ],
)
def test_comments_order_and_spelling_are_no_difference(before: str, after: str) -> None:
    """They say nothing to a decision, so a reviewer has nothing to decide about them."""
    assert not found(before, after)
    assert told(found(before, after)) == ([], [], [])


@pytest.mark.parametrize(
    ("before", "after", "added", "removed"),
    [
        ("", ROW, [ROW], []),
        (ROW, "", [], [ROW]),
        (ROW, f"{ROW}\n{OTHER}\n{LINK}", [OTHER, LINK], []),
        (f"{LINK}\n{ROW}", ROW, [], [LINK]),
        (ROW, OTHER, [OTHER], [ROW]),
        (LINK, "g, role:supervisor, role:guest", ["g, role:supervisor, role:guest"], [LINK]),
        (ROW, f"{ROW}, 2030-01-01T00:00:00Z\n{ROW}", [f"{ROW}, 2030-01-01T00:00:00Z"], []),
    ],
)
def test_what_is_in_one_document_alone_is_added_or_removed(
    before: str, after: str, added: list[str], removed: list[str]
) -> None:
    """A `g` row counts as any other; the same row with another end is another row."""
    assert found(before, after)
    assert told(found(before, after)) == (added, removed, [])


@pytest.mark.parametrize(
    ("field", "was", "now"),
    [
        ("subject", "role:member", "role:guest"),
        ("agent", " *,", " flight,"),
        ("resource", "memory/daily", "memory/dreams"),
        ("visibility", " agent,", " all,"),
        ("whose", "shared", "any"),
        ("chat", "private", "group"),
        ("action", "read", "append"),
        ("effect", "allow", "deny"),
        ("until", "allow", "allow, 2030-01-01T00:00:00Z"),
    ],
)
def test_a_row_that_differs_in_one_field_is_that_row_changed(field: str, was: str, now: str) -> None:
    """Both ways round, whichever field it is, with what the field said and says."""
    changed = ROW.replace(was, now, 1)
    words = (NO_END, "2030-01-01T00:00:00Z") if field == "until" else (was.strip(" ,"), now.strip(" ,"))

    assert told(found(ROW, f"\n{changed}")) == ([], [], [(field, *words)])
    assert told(found(changed, ROW)) == ([], [], [(field, *reversed(words))])
    one = found(ROW, f"\n{changed}").changed[0]
    assert (one.before.line, one.after.line) == (1, 2)


def test_a_row_is_paired_once_and_with_the_nearest_in_meaning() -> None:
    """Two rows that could both have become one: the one whose end moved, not the one that is for somebody else."""
    end = ", 2030-01-01T00:00:00Z"
    one = found(f"{ROW.replace('member', 'guest')}\n{ROW}", f"{ROW}{end}")
    twice = found(f"{ROW}\n{ROW}{end}", f"{ROW.replace('allow', 'deny')}\n{ROW.replace('allow', 'deny')}{end}")

    assert told(one) == ([], [ROW.replace("member", "guest")], [("until", NO_END, "2030-01-01T00:00:00Z")])
    assert told(twice) == ([], [], [("effect", "allow", "deny")] * 2)


# Few words, so that two documents have rows in common, and rows that are nearly alike.
_ROWS = [
    f"p, {who}, {agent}, {what}, all, any, *, read, {effect}{end}"
    for who in ("role:a", "role:b", "*")
    for agent in ("flight", "*")
    for what in ("memory/daily", "session/*")
    for effect in ("allow", "deny")
    for end in ("", ", 2030-01-01T00:00:00Z", ", 2031-01-01T00:00:00Z")
]
_LINKS = ["g, role:a, role:b", "g, role:b, role:c", "g, role:a, role:c"]
documents = st.lists(st.sampled_from([*_ROWS, *_LINKS]), max_size=12, unique=True).map(
    lambda rows: parse("# a comment\n" + "\n".join(rows))
)


def texts(document: Document) -> set[str]:
    """The rows of a document as a set."""
    return set(lines(document.rows, document.links))


@given(documents, documents)
def test_the_difference_carried_out_on_one_document_gives_the_other(before: Document, after: Document) -> None:
    """Nothing is left out, nothing told twice, and nothing told that is in both."""
    one = differences(before, after)
    gone = lines(one.removed, one.removed_links, [changed.before for changed in one.changed])
    come = lines(one.added, one.added_links, [changed.after for changed in one.changed])

    assert (texts(before) - set(gone)) | set(come) == texts(after)
    assert set(gone) == texts(before) - texts(after)
    assert set(come) == texts(after) - texts(before)
    assert len(set(gone)) == len(gone)
    assert len(set(come)) == len(come)
    assert bool(one) == (texts(before) != texts(after))
    for changed in one.changed:
        pairs = zip(changed.before.values, changed.after.values, strict=True)
        fields = sum(was != now for was, now in pairs) + (changed.before.until != changed.after.until)
        assert fields == 1


@pytest.mark.timeout(60)
def test_a_long_document_is_compared_without_looking_at_every_pair() -> None:
    """200,000 rows are allowed. Of 20,000 that all changed, every pair would be 400 million looks, for each field."""
    before = parse("\n".join(ROW.replace("member", f"r{number}") for number in range(20_000)))
    flipped = parse(before.text.replace("allow", "deny"))
    others = parse(before.text.replace("role:r", "role:s"))

    for after, field in ((flipped, "effect"), (others, "subject")):
        one = differences(before, after)
        assert {changed.field for changed in one.changed} == {field}
        assert (len(one.changed), one.added, one.removed) == (20_000, (), ())
