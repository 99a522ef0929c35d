"""Policy documents: what is refused, where, and what is only warned of (design section 7)."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from gateway.errors import Invalid
from gateway.policy import documents
from gateway.policy.documents import lint, parse
from gateway.policy.rows import ACTIONS, RESOURCES

NOW = datetime(2030, 1, 1, tzinfo=UTC)
GOOD = "p, role:member, *, session/*, agent, shared, private, *, allow"
CAROL = "user:prf_01JCAR00000000000000000000"


def found(text: str) -> list[tuple[str, int | None, int | None]]:
    """Rule, line and column of every fault, and that `parse` refuses exactly when there is one."""
    faults, _ = lint(text, NOW)
    if faults:
        with pytest.raises(Invalid) as refused:
            parse(text)
        assert refused.value.faults == faults
    else:
        parse(text)
    return [(fault.rule, fault.line, fault.column) for fault in faults]


def warned(text: str) -> list[tuple[str, int | None]]:
    """Rule and line of every warning of a document without faults."""
    faults, warnings = lint(text, NOW)
    assert faults == ()
    return [(warning.rule, warning.line) for warning in warnings]


def row(**changes: str) -> str:
    """A good row with some fields changed."""
    fields = {
        "subject": "role:member",
        "agent": "flight",
        "resource": "session/private",
        "visibility": "agent",
        "whose": "shared",
        "chat": "private",
        "action": "history",
        "effect": "allow",
    }
    return ", ".join(["p", *(fields | changes).values()])


def test_a_document_is_read_with_comments_blank_lines_tabs_and_either_line_end() -> None:
    """Ours: one row a line, trimmed, `#` comments; people's comments may be in any script."""
    text = f"# 規則 – Regeln\r\n\r\n \t{GOOD} # why\r\n{row(until='2031-01-31T18:00:00Z')}\ng,role:a,role:b"

    document = parse(text)

    assert [(row.line, row.text) for row in document.rows] == [
        (3, GOOD),
        (4, row(until="2031-01-31T18:00:00Z")),
    ]
    assert [(link.line, link.child, link.parent) for link in document.links] == [(5, "role:a", "role:b")]
    assert document.text == text
    assert document.rows[0].rule == f"line 3: {GOOD}"


def test_an_empty_document_is_no_fault() -> None:
    """Design section 7: it parses, and denies all."""
    for text in ("", "\n\n", "# nothing yet\n"):
        assert found(text) == []
        assert parse(text).rows == ()


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("subject", ["*", "role:member", "role:a-b_2", CAROL], ["member", "Role:member", "role:", "role:Member"]),
        ("subject", [], ["user:alice", "user:prf_01jcar00000000000000000000", "prf_01JCAR00000000000000000000"]),
        ("subject", [], ["user:role:member", "role:user:x", "role:*", "group:x", "**", f"{CAROL}0", "user:*"]),
        ("agent", ["*", "flight", "a-1_b"], ["Flight", "fli ght", "flight*", "-x", "a" * 65, "agent:flight"]),
        ("resource", list(RESOURCES), ["session", "session/", "memory/personal/", "session/*/x", "Session/*", "a/*"]),
        ("resource", [], ["admin", "gateway/*", "session/other", "/*", "session/**", "memory/personal"]),
        ("visibility", ["self", "tree", "agent", "all"], ["Self", "any", "same_agent", "*", "none"]),
        ("whose", ["own", "shared", "any"], ["other", "*", "OWN", "all"]),
        ("chat", ["private", "group", "*"], ["any", "direct", "Private"]),
        ("action", list(ACTIONS), ["History", "reads", "*read", "any", "session:read"]),
        ("effect", ["allow", "deny"], ["Allow", "permit", "true", "*", "1"]),
        ("until", ["2031-01-31T18:00:00Z", "2028-02-29T00:00:00.5Z"], ["2031-01-31", "2031-01-31T18:00:00+00:00"]),
        ("until", [], ["2031-01-31T18:00:00", "2031-01-31t18:00:00z", "2031-02-31T18:00:00Z", "2031-01-31T18:00:60Z"]),
        ("until", [], ["2031-01-31 18:00:00Z", "2031-1-31T18:00:00Z", "never", "*", "2031-01-31T25:00:00Z"]),
    ],
)
def test_each_field_takes_its_closed_set_of_words_and_nothing_else(name: str, good: list[str], bad: list[str]) -> None:
    """Design section 7, the lists of words; they are compared byte for byte."""
    for word in good:
        assert found(row(**{name: word})) == [], word
    for word in bad:
        text = row(**{name: word})
        column = text.index(f", {word}") + 3
        assert found(text)[0] == (name, 1, column), word
        assert len(found(text)) == 1, word


@pytest.mark.parametrize("place", range(8))
@pytest.mark.parametrize(
    "hostile",
    [
        ")",
        "(",
        "x) || (true",
        "a&&b",
        "a||b",
        "!x",
        "r.subjects",
        "p.action == p.action",
        "'",
        '"',
        '"*"',
        "'*'",
        "\\",
        "*\\n",
        "eval(p.subject)",
        "keyMatch(r.resource",
        "{}",
        "[x]",
        "a\tb",
        "__class__",
        "\u202e*",
        "\u200b*",
        "*\u00a0",
        "\uff0a",  # fullwidth asterisk
        "\u0430ll",  # Cyrillic а
        "own\u0301",
        "own\x00",
        "own\x0b",
        "own\x85",
        "own\u2028p",
        "own\rp",
        "\ufeff*",
        "\udc80",
        "x" * 100_000,
    ],
)
def test_a_hostile_field_is_refused_with_its_line_and_column(hostile: str, place: int) -> None:
    """The issue: a policy row with `)` or a newline or a quote in it; the traps of pycasbin's own reader."""
    fields = row().split(", ")
    text_before = f"{GOOD}\n\n" + ", ".join(fields[: place + 1]) + ", "
    text = text_before + ", ".join([hostile, *fields[place + 2 :]]) + f"\n{row()}"

    faults, _ = lint(text, NOW)

    assert [fault.line for fault in faults] == [3]
    column = faults[0].column
    assert column is not None
    start = len(text_before) - len(GOOD) - 2 + 1
    assert start <= column < start + len(hostile)
    assert found(text) != []
    assert faults[0].message.isprintable()
    assert len(faults[0].message) < 600


@pytest.mark.parametrize("hostile", [GOOD.replace(", ", ",\n"), f"p, role:member\n{GOOD}", f"{GOOD}, , ", "p"])
def test_a_row_that_is_cut_or_goes_on_is_refused(hostile: str) -> None:
    """Trap 5 of the reference: one short row raises for every request; so none gets in."""
    assert {rule for rule, _, _ in found(hostile)} <= {"fields", "row", "until"}
    assert found(hostile) != []


def test_every_fault_is_named_at_once_in_the_order_of_the_text() -> None:
    """Design section 7: lint names every fault with its line."""
    text = "\n".join(
        [
            "p, member, Flight, sessions, near, mine, here, look, yes, soon",
            "q, role:a, role:b",
            "",
            "p, role:member, *, session/*, agent, shared, private, allow",
            "g, role:a",
            "g, user:prf_01JCAR00000000000000000000, *",
            "g2, history, write",
            GOOD,
            GOOD,
            "g, role:a, role:b",
            "g, role:a, role:b",
            "p, , *, session/*, agent, shared, private, *, allow",
            f"{GOOD}, ",
        ]
    )

    assert found(text) == [
        ("subject", 1, 4),
        ("agent", 1, 12),
        ("resource", 1, 20),
        ("visibility", 1, 30),
        ("whose", 1, 36),
        ("chat", 1, 42),
        ("action", 1, 48),
        ("effect", 1, 54),
        ("until", 1, 59),
        ("row", 2, 1),
        ("fields", 4, 1),
        ("fields", 5, 1),
        ("role", 6, 4),
        ("role", 6, 41),
        ("row", 7, 1),
        ("duplicate", 9, 1),
        ("duplicate", 11, 1),
        ("subject", 12, 3),
        ("until", 13, len(GOOD) + 2),
    ]


def test_messages_say_what_to_write_instead() -> None:
    """The brief of every error: what was wrong, where, and what to do."""
    messages = {
        row(subject="member"): "write role:member",
        row(subject="prf_01JCAR00000000000000000000"): f"write {CAROL}",
        row(subject="user:alice"): "profile id",
        row(subject="a b"): "role:<name>",
        row(visibility="near"): "self tree agent all",
        row(effect="Allow"): "lower case: allow",
        row(chat="\uff0a"): "U+FF0A (fullwidth asterisk)",
        row(chat="a\x01"): "U+0001 (a control character)",
        "g, role:a, role:A": "role:<name>",
        "g2, history, write": "Groups of actions are fixed",
    }
    for text, wanted in messages.items():
        faults, _ = lint(text, NOW)
        assert wanted in faults[0].message


def test_a_comment_cannot_hide_what_it_shows() -> None:
    """Ours: a mark that turns the direction of writing, or a lone CR, shows a reader another text."""
    assert found(f"{GOOD} # fine: é 漢字 ✓") == []
    assert found(f"{GOOD} # \u202edeny") == [("characters", 1, len(GOOD) + 4)]
    assert found(f"# a\rp, *\n{GOOD}") == [("characters", 1, 4)]


def test_a_byte_order_mark_is_refused_at_its_place() -> None:
    """Ours: invisible in editors, and the first row would not begin with p."""
    assert found(f"\ufeff{GOOD}") == [("characters", 1, 1)]


def test_a_document_over_its_limits_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: a document is read whole, so its size is bounded in bytes and in rows."""
    assert found("#" + "x" * (documents.MOST_BYTES - 1)) == []
    assert found("#" + "x" * documents.MOST_BYTES) == [("size", None, None)]
    assert found("#" + "é" * (documents.MOST_BYTES // 2)) == [("size", None, None)]

    monkeypatch.setattr(documents, "MOST_ROWS", 2)
    two = f"{row()}\n{row(action='list')}"
    assert found(two) == []
    assert found(f"{two}\n\n{row(action='get')}") == [("size", 4, None)]


def test_roles_that_hold_each_other_are_refused_at_the_row_that_closes_the_circle() -> None:
    """Ours: Casbin's role managers walk such circles silently."""
    assert found("g, role:a, role:b\ng, role:b, role:c\ng, role:a, role:c") == []
    assert found("g, role:a, role:a") == [("circle", 1, 1)]
    assert found("g, role:a, role:b\ng, role:b, role:c\ng, role:c, role:a") == [("circle", 3, 1)]
    two = "g, role:a, role:b\ng, role:b, role:a\ng, role:x, role:y\ng, role:y, role:x\ng, role:z, role:x"
    assert found(two) == [("circle", 2, 1), ("circle", 4, 1)]


def test_a_chain_of_roles_has_at_most_eight_steps() -> None:
    """Ours: stock Casbin stops looking after ten levels and denies."""
    links = [f"g, role:r{step}, role:r{step + 1}" for step in range(8)]
    assert found("\n".join(links)) == []
    assert found("\n".join([*links, "g, role:r8, role:r9", "g, role:r9, role:r10"])) == [("chain", 2, 1)]
    assert found("\n".join(f"g, role:r{step}, role:r{step + 1}" for step in range(3_000)))[0][0] == "chain"


def test_warnings_name_what_is_perhaps_not_meant_and_refuse_nothing() -> None:
    """Design section 7: a warning where a deny reaches a role through `g`."""
    assert warned(f"{row(effect='deny')}\n{row(action='impersonate', effect='deny')}") == []
    assert warned(f"g, role:supervisor, role:member\n{row(effect='deny')}") == [("inherited_deny", 2)]
    assert warned(row(effect="allow", until="2029-12-31T00:00:00Z")) == [("ended", 1)]
    assert warned(row(until="2030-01-01T00:00:00Z")) == [("ended", 1)]
    assert warned(row(until="2030-01-01T00:00:00.000001Z")) == []
    assert warned(row(action="impersonate")) == [("impersonate", 1)]


def test_a_crowd_of_rows_for_one_subject_is_warned_of_once() -> None:
    """Ours: the first decision of a slice reads each of its rows."""
    moments = [f"2031-01-01T00:00:{second:02}.{part}Z" for second in range(60) for part in range(5)]
    rows = [row(until=moment) for moment in moments]

    assert warned("\n".join(rows[:256])) == []
    assert warned("\n".join(rows)) == [("many_rows", 257)]


def test_a_large_document_is_read_in_reasonable_time_with_all_its_rows() -> None:
    """Ours: what tenants with a row for each person write."""
    people = [f"user:prf_{number:026d}" for number in range(20_000)]

    document = parse("\n".join(row(subject=person) for person in people))

    assert [row.subject for row in document.rows] == people


@pytest.mark.parametrize(
    ("line", "rule"),
    [("x", "row"), ("g, role:a, role:b", "duplicate"), ("# \x00", "characters"), ("g, role:a, role:a", "circle")],
)
def test_a_text_of_nothing_but_faults_names_the_first_hundred_and_says_that_there_are_more(
    line: str, rule: str
) -> None:
    """Ours: a hundred are enough to mend, and a long text of faults is no work for the gateway."""
    many = found("\n".join([line] * 10_000))

    assert len(many) == 101
    assert rule in {one[0] for one in many}
    assert many[-1] == ("more", None, None)
    assert "more" not in {one[0] for one in found("\n".join(["x"] * 100))}
