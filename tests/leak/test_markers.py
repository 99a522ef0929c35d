"""A mark is found in whatever form it comes, and nothing else is taken for one."""

from __future__ import annotations

import base64
import hashlib

import pytest

from gateway.leak_test.markers import Marks, Sort
from tests.leak.holes import SPELLINGS


@pytest.mark.parametrize(("how", "spell"), SPELLINGS, ids=[how for how, _ in SPELLINGS])
def test_a_mark_is_found_in_every_spelling(how: str, spell: object) -> None:
    """Case, escapes, hexadecimal, base64 and the hash of the text that holds it; once for each form."""
    marks = Marks()
    mark, other = (marks.make(Sort.TITLE, name, "private session", None) for name in ("alice", "bob"))
    text = f"Trip {mark.word} to Oslo"
    marks.hashed(mark, text)
    assert callable(spell)

    found = list(marks.find(b'{"x": "' + spell(text).encode() + b'"}'))

    assert [hit.mark for hit in found] == [mark], how
    assert other not in [hit.mark for hit in found]


@pytest.mark.parametrize("before", range(4))
@pytest.mark.parametrize("after", range(4))
def test_a_mark_is_found_in_base64_at_every_place(before: int, after: int) -> None:
    """A text can begin at any byte of a triple, and its digits at any of a group of four."""
    marks = Marks()
    mark = marks.make(Sort.MESSAGE, "alice", "group", None)
    digits = base64.b64encode(b"?" * before + mark.word.encode() + b"?" * after).rstrip(b"=")

    for behind in range(4):
        assert [hit.mark for hit in marks.find(b"A" * behind + digits)] == [mark]


def test_ids_and_keys_are_found_as_themselves_and_in_cursors() -> None:
    """That there is a session shows in its id and key, in any case, also within a cursor."""
    marks = Marks()
    there = marks.make(Sort.SESSION, "alice", "private session", None)
    key, name = "agent:flight:direct:prf_01JALICE00000000000000000000"[:54], "ses_01JALICE0000000000000000000"[:30]
    marks.named(there, key, name)
    cursor = base64.urlsafe_b64encode(name.encode())

    for answer in (key.encode(), f'"{key}"'.encode(), name.lower().encode(), b'"next_cursor":"' + cursor + b'"'):
        assert [hit.mark for hit in marks.find(answer)] == [there], answer
    assert list(marks.find(b"agent:flight:direct:prf_somebody ses_00000000000000000000000000")) == []
    assert list(marks.find(hashlib.sha256(b"something else").hexdigest().encode())) == []
