"""The grammar of paths, and what a path is to the policy."""

from __future__ import annotations

import unicodedata
from datetime import date

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gateway.model import ProfileId, Resource
from gateway.workspace.paths import components, daily_path, day_of, instructions_path, longterm_path, memory_resource
from gateway.workspace.problems import FileUnsafe

ALICE = ProfileId("prf_01JD0000000000000000000000")

UNSAFE_PATHS = {
    "nothing": "",
    "absolute": "/etc/passwd",
    "parent": "memory/../USER.md",
    "only a parent": "..",
    "here": "./USER.md",
    "empty name": "memory//x.md",
    "trailing slash": "memory/",
    "NUL": "USER.md\0",
    "newline": "memory/a\nb.md",
    "backslash": "memory\\x.md",
    "encoded parent": "%2e%2e/USER.md",
    "encoded dot": "USER%2emd",
    "trailing dot": "MEMORY.md.",
    "trailing space": "MEMORY.md ",
    "leading space": " MEMORY.md",
    "decomposed": unicodedata.normalize("NFD", "memory/é.md"),
    "zero width": "MEM\u200bORY.md",
    "right to left": "memory/\u202edm.md",
    "surrogate": "memory/\udc80.md",
    "unassigned": "memory/\u0378.md",
    "other space": "memory/a\u00a0b.md",
    "name of 256 bytes": "memory/" + "é" * 127 + ".md",
    "long path": "a/" * 600 + "b",
    "ours": ".gateway-0123.tmp",
    "ours in capitals": "memory/.GATEWAY-0123.tmp",
}


@pytest.mark.parametrize("path", UNSAFE_PATHS.values(), ids=UNSAFE_PATHS)
def test_a_path_outside_the_grammar_is_refused_and_is_no_memory(path: str) -> None:
    """design section 6, confinement; issue 2, "Paths"."""
    with pytest.raises(FileUnsafe) as refusal:
        components(path)

    assert refusal.value.path == path
    assert refusal.value.status == 409
    assert memory_resource(path) is None


@pytest.mark.parametrize(
    "path",
    [
        "USER.md",
        "memory/2026-03-03.md",
        "memory/.dreams/corpus.md",
        "memory/退票 规则.md",
        "memory/é" + "x" * 240 + ".md",
    ],
)
def test_a_plain_path_is_its_names(path: str) -> None:
    """Names of people's own notes are in every script."""
    assert "/".join(components(path)) == path


@given(st.text())
@example("memory/../../x.md")
def test_no_path_leads_up_and_each_file_has_one_spelling(path: str) -> None:
    """design section 6, confinement."""
    try:
        names = components(path)
    except FileUnsafe:
        return

    assert "/".join(names) == path == unicodedata.normalize("NFC", path)
    assert not {"", ".", ".."} & set(names)


RESOURCES = {
    "USER.md": (Resource.MEMORY_SHARED, None),
    "MEMORY.md": (Resource.MEMORY_LONGTERM, None),
    "memory.md": (Resource.MEMORY_LONGTERM, None),
    "Memory.MD": (Resource.MEMORY_LONGTERM, None),
    "ＭＥＭＯＲＹ.md": (Resource.MEMORY_LONGTERM, None),
    "memory/MEMORY.md": (Resource.MEMORY_LONGTERM, None),
    "memory/dreaming/memory.md": (Resource.MEMORY_LONGTERM, None),
    "memory/Memory.md/x.md": (Resource.MEMORY_LONGTERM, None),
    "DREAMS.md": (Resource.MEMORY_DREAMS, None),
    "dreams.md": (Resource.MEMORY_DREAMS, None),
    "memory/dreaming/deep/2026-03-03.md": (Resource.MEMORY_DREAMS, None),
    "memory/Dreaming/x.md": (Resource.MEMORY_DREAMS, None),
    "memory/.dreams/x.md": (Resource.MEMORY_DREAMS, None),
    "memory/2026-03-03.md": (Resource.MEMORY_DAILY, None),
    "memory/archive/2025-01-01-refunds.md": (Resource.MEMORY_DAILY, None),
    f"users/{ALICE}/USER.md": (Resource.PERSONAL_INSTRUCTIONS, ALICE),
    f"users/{ALICE}/MEMORY.md": (Resource.PERSONAL_LONGTERM, ALICE),
    f"users/{ALICE}/memory.md": (Resource.PERSONAL_LONGTERM, ALICE),
    f"users/{ALICE}/memory/Memory.md": (Resource.PERSONAL_LONGTERM, ALICE),
    f"users/{ALICE}/memory/2026-03-03.md": (Resource.PERSONAL_DAILY, ALICE),
    "AGENTS.md": None,
    "user.md": None,
    "notes.md": None,
    "memory/x.txt": None,
    "memory": None,
    "Memory/x.md": None,
    "users": None,
    f"users/{ALICE}": None,
    f"users/{ALICE}/notes.md": None,
    f"users/{ALICE}/memory/x.txt": None,
    f"users/{ALICE.lower()}/USER.md": None,
    "users/alice/MEMORY.md": None,
    f"Users/{ALICE}/MEMORY.md": None,
}


@pytest.mark.parametrize(("path", "resource"), RESOURCES.items(), ids=RESOURCES)
def test_a_path_has_one_resource_and_one_owner(path: str, resource: tuple[Resource, ProfileId | None] | None) -> None:
    """design section 7, `resource`; reference/openclaw-memory 1.1 and 1.7."""
    assert memory_resource(path) == resource


def _spellings(word: str) -> st.SearchStrategy[str]:
    """Each letter in either case, or in its full-width form."""
    wide = {letter: chr(ord(letter) + 0xFEE0) for letter in word.upper() + word.lower() if letter != "."}
    letters = [st.sampled_from([sign.lower(), sign.upper(), wide.get(sign.upper(), sign)]) for sign in word]
    return st.tuples(*letters).map("".join)


@given(
    home=st.sampled_from(["", f"users/{ALICE}/"]),
    folders=st.sampled_from(["", "memory/", "memory/dreaming/", "memory/2026/"]),
    name=_spellings("memory.md"),
    below=st.sampled_from(["", "/x.md", "/2026-03-03.md"]),
)
def test_nothing_spelled_like_long_term_memory_is_less(home: str, folders: str, name: str, below: str) -> None:
    """design section 7, invariants: root MEMORY.md, "or any alias of the file"; some disks don't tell cases apart."""
    found = memory_resource(f"{home}{folders}{name}{below}")

    if folders or not below:
        assert found is not None
    assert found in (None, (Resource.PERSONAL_LONGTERM, ALICE) if home else (Resource.MEMORY_LONGTERM, None))


@given(
    st.lists(st.sampled_from(["users", ALICE, "memory", "MEMORY.md", "USER.md", "x.md", "dreaming", ".."]), max_size=5)
)
def test_only_what_lies_below_a_person_is_theirs(names: list[str]) -> None:
    """design section 6: whose a file is follows from where it lies, and from nothing else."""
    found = memory_resource("/".join(names))

    if found is not None:
        assert (found[1] == ALICE) == (names[:2] == ["users", ALICE])
        assert found[0].value.startswith("memory/personal/") == (found[1] is not None)


def test_files_of_a_person_are_named_by_a_profile_id_only() -> None:
    """design section 6, Files. A caller's string never becomes a folder."""
    day = date(2026, 3, 3)

    assert instructions_path(ALICE) == f"users/{ALICE}/USER.md"
    assert (longterm_path(None), longterm_path(ALICE)) == ("MEMORY.md", f"users/{ALICE}/MEMORY.md")
    assert daily_path(day, None) == "memory/2026-03-03.md"
    assert daily_path(day, ALICE) == f"users/{ALICE}/memory/2026-03-03.md"
    for name in ("", "..", "alice", f"{ALICE}/../{ALICE}", ALICE.lower()):
        with pytest.raises(FileUnsafe):
            instructions_path(ProfileId(name))


@pytest.mark.parametrize(
    ("path", "day"),
    [
        ("memory/2026-03-03.md", date(2026, 3, 3)),
        (f"users/{ALICE}/memory/2024-02-29.md", date(2024, 2, 29)),
        ("memory/2026-02-30.md", None),
        ("memory/20260303.md", None),
        ("memory/2026-03-03-refunds.md", None),
        ("memory/archive/2026-03-03.md", None),
        ("memory/dreaming/2026-03-03.md", None),
        ("memory/2026-٠٣-03.md", None),
        ("MEMORY.md", None),
        ("AGENTS.md", None),
    ],
)
def test_a_days_note_is_told_from_its_neighbours(path: str, day: date | None) -> None:
    """design section 6: `memory/<day>.md` and `users/<id>/memory/<day>.md`, nothing else."""
    assert day_of(path) == day
