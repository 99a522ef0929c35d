"""Holds the oracle to what the design says of lists, messages and the context of a turn."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest

from tests.oracle.decide import decide, decide_inside, visible
from tests.oracle.reading import context, memory_get, readable_messages
from tests.oracle.team import SKETCH, WORLD, asks, under
from tests.oracle.world import World


def test_a_list_is_what_the_single_question_allows() -> None:
    """Design section 7: "A list is, for each requester, { x | `list` is allowed on x }"."""
    assert visible(under(SKETCH), "acme", "carol", None, "list") == {
        "team",
        "team's child",
        "team's grandchild",
        "team's helper",
    }
    assert visible(under(SKETCH), "acme", "carol", "team", "list") == {
        "team",
        "team's child",
        "team's grandchild",
        "team's helper",
    }
    assert visible(under(SKETCH), "acme", "carol", "team's child", "list") == {"team's child", "team's grandchild"}
    assert visible(under(SKETCH), "other", "zoe", None, "list") == {"zoe's"}
    assert visible(under(SKETCH), "acme", "alice2", None, "list") == set()


def test_who_joins_later_reads_from_their_joining_on() -> None:
    """Design section 6; in the children of the group too, since messages are numbered over the tenant."""
    read = {
        (who, session): [message.number for message in readable_messages(WORLD, "acme", who, None, session) or []]
        for who in ("bob", "carol", "erin")
        for session in ("team", "team's child")
    }
    assert read == {
        ("bob", "team"): [1, 3],
        ("bob", "team's child"): [2, 4],
        ("carol", "team"): [3],
        ("carol", "team's child"): [4],
        ("erin", "team"): [],
        ("erin", "team's child"): [],
    }
    assert readable_messages(WORLD, "acme", "carol", None, "team") is not None
    assert readable_messages(WORLD, "acme", "erin", None, "team") is None


def test_a_reset_starts_a_new_incarnation() -> None:
    """Design section 6: what was said before a reset is not read after it."""
    messages = readable_messages(WORLD, "acme", "alice", None, "alice's")
    assert [message.number for message in messages or []] == [6]


def test_a_tool_works_only_for_those_who_may_enter() -> None:
    """Design section 3: the session is opened before a tool runs in it."""
    question = asks("bob", "get", "USER.md", "alice's")
    assert decide(WORLD, question).allowed
    assert not decide_inside(WORLD, question).allowed
    assert memory_get(WORLD, "acme", "bob", "alice's", "USER.md") is None
    assert memory_get(WORLD, "acme", "alice", "alice's", "USER.md") == "flight USER.md"
    assert memory_get(WORLD, "acme", "alice", "alice's", "memory/2026-01-01.md") is None
    assert memory_get(WORLD, "acme", "alice", "alice's", "notes/secret.txt") is None
    assert memory_get(WORLD, "acme", "alice", "alice's", "AGENTS.md") is None  # reference, openclaw-memory 1.7


# ── context ──────────────────────────────────────────────────────────────────────────────────────────────────────────

RULES = ["AGENTS.md", "SOUL.md", "IDENTITY.md"]
DAILY = ["memory/2026-11-30.md", "memory/2026-11-29.md"]
OWN = [f"users/alice/{name}" for name in ("MEMORY.md", *DAILY)]
ALL = [*RULES, "USER.md", "users/alice/USER.md", "MEMORY.md", *DAILY, *OWN]
NOT_LONGTERM = [path for path in ALL if path != "MEMORY.md"]
OPEN = "p, *, *, session/*, all, any, *, *, allow\np, *, *, memory/*, all, any, *, load, allow\n"


def loaded(world: World, who: str, session: str) -> list[str] | None:
    """The paths that are in, in their order."""
    entries = context(world, "acme", who, session, date(2026, 11, 30))
    return None if entries is None else [entry.path for entry in entries if entry.included]


def reasons(world: World, who: str, session: str) -> dict[str, frozenset[str]]:
    """Why each of the others is out."""
    entries = context(world, "acme", who, session, date(2026, 11, 30))
    return {entry.path: entry.reasons for entry in entries or [] if not entry.included}


@pytest.mark.parametrize(
    ("row", "session", "in_sketch", "in_open"),
    [
        ("| direct, private | all of it |", "alice's", ALL, ALL),
        ("a child all of whose ancestors are private", "alice's helper", ALL, ALL),
        (
            "| group, channel, unknown | … Never root `MEMORY.md`; … unless a policy row allows it |",
            "team",
            [*RULES, "USER.md"],
            NOT_LONGTERM,
        ),
        ("channel; alice takes part and doesn't own it", "room", [*RULES, "USER.md"], [*RULES, "USER.md", *DAILY]),
        ("unknown", "odd", [*RULES, "USER.md"], NOT_LONGTERM),
        ("direct, but not with exactly one person", "pair", [*RULES, "USER.md"], NOT_LONGTERM),
        ("direct, below a group", "team's helper", [*RULES, "USER.md"], NOT_LONGTERM),
        (
            "the creator, where the owner is not a person",
            "bot's group",
            [*RULES, "USER.md"],
            NOT_LONGTERM,
        ),
        ("| cron | rules and shared `USER.md` |", "nightly", [*RULES, "USER.md"], [*RULES, "USER.md"]),
        ("| subagent | `AGENTS.md` |", "alice's child", ["AGENTS.md"], ["AGENTS.md"]),
        ("subagent of a group", "team's child", ["AGENTS.md"], ["AGENTS.md"]),
    ],
)
def test_each_kind_of_session_loads_its_row(row: str, session: str, in_sketch: list[str], in_open: list[str]) -> None:
    """Design section 6, the table of what loads, under the sketch of the default and with every row open."""
    assert loaded(under(SKETCH), "alice", session) == in_sketch, row
    assert loaded(under(OPEN), "alice", session) == in_open, row


def test_a_person_who_may_not_enter_gets_no_context() -> None:
    """Design section 6: reading context is access too."""
    assert loaded(under(SKETCH), "bob", "alice's") is None
    assert loaded(under(SKETCH), "alice", "zoe's") is None
    assert loaded(under(SKETCH), "alice", "alice's") is not None


def test_in_anybody_elses_turn_the_manifest_says_not_permitted() -> None:
    """Design section 6: "Personal files load only in a turn whose requester is the session's owner"."""
    out = reasons(under(OPEN), "bob", "team")
    assert out["users/bob/USER.md"] == {"not_permitted"}
    assert out["users/bob/MEMORY.md"] == {"not_permitted"}
    assert not [path for path in out if "alice" in path]
    assert reasons(under(OPEN), "bob", "alice's")["users/bob/USER.md"] == {"not_permitted"}
    assert "users/alice/USER.md" not in reasons(under(OPEN), "alice", "team")


def test_the_reason_says_what_keeps_a_file_out() -> None:
    """Interface: the reasons of a manifest."""
    assert reasons(under(SKETCH), "alice", "team")["MEMORY.md"] == {"group_session"}
    assert reasons(under(OPEN), "alice", "alice's child")["SOUL.md"] == {"session_kind"}
    few = replace(WORLD, files=tuple(file for file in WORLD.files if file.path != "SOUL.md"))
    assert reasons(few, "alice", "alice's") == {"SOUL.md": {"missing"}}
    barred = under(SKETCH + "p, role:member, *, memory/rules, all, any, *, load, deny\n")
    assert reasons(barred, "alice", "alice's") == {path: {"not_permitted"} for path in RULES}


def test_personal_instructions_need_two_people_who_count() -> None:
    """Design section 6: "only when the tenant has two or more unmerged people (services and guests don't count)"."""
    two = replace(
        WORLD, people=tuple(one for one in WORLD.people if one.id in ("alice", "alice2", "bob", "gone", "bot"))
    )
    assert loaded(two, "alice", "alice's") == ALL
    alone = replace(WORLD, people=tuple(one for one in two.people if one.id != "bob"))
    assert loaded(alone, "alice", "alice's") == [path for path in ALL if path != "users/alice/USER.md"]
    assert reasons(alone, "alice", "alice's") == {"users/alice/USER.md": {"single_person_tenant"}}


def test_personal_instructions_fit_whole_or_stay_out() -> None:
    """Design section 6: "It must fit whole into 4,000 UTF-16 units or is left out"."""
    for text, inside in (("😀" * 2_000, True), ("😀" * 2_001, False)):
        files = tuple(replace(file, text=text) if file.path == "users/alice/USER.md" else file for file in WORLD.files)
        world = replace(WORLD, files=files)
        assert ("users/alice/USER.md" in (loaded(world, "alice", "alice's") or [])) == inside
        if not inside:
            assert reasons(world, "alice", "alice's") == {"users/alice/USER.md": {"too_large"}}


def test_what_is_today_decides_which_daily_notes_load() -> None:
    """Design section 6: `memory/<today>.md`, `memory/<yesterday>.md`."""
    entries = context(WORLD, "acme", "alice", "alice's", date(2026, 12, 1)) or []
    daily = [(entry.path, entry.included) for entry in entries if entry.kind == "daily"]
    assert daily == [("memory/2026-12-01.md", False), ("memory/2026-11-30.md", True)]
