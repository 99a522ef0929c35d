"""Turns what is planted into marks that nothing else holds, and the bytes of an answer into the marks that are in it.

A mark is one word that no request ever sends: whoever gets it back was shown what it stands in. It is found in any
case, behind JSON and percent escapes, in hexadecimal and in base64, and by the hash of the text that holds it.
"""

from __future__ import annotations

import base64
import hashlib
import re
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from urllib.parse import unquote_to_bytes

PREFIX = "leakmark"
BAIT = "leakbait"  # the words that searches ask for; they stand beside the marks
_ALPHABET = "abcdefghijkmnpqrstuvwxyz23456789"
_DIGITS = 14
_WORD = re.compile(rb"leakmark[a-z2-9]{14}")
_HASH = re.compile(rb"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")
_ID = re.compile(rb"(?:ses|msg|tok)_[0-9a-z]{26}")
_KEY = re.compile(rb"agent:[^\s\"\\<>,]+")
_ESCAPE = re.compile(rb"\\+u00([0-9a-f]{2})")  # also where an escaped text was escaped again
_CURSOR = re.compile(rb'"next_?cursor":\s*"([^"]+)"', re.IGNORECASE)
_HEXADECIMAL = re.compile(PREFIX.encode().hex().encode() + rb"[0-9a-f]{28}")


class Sort(StrEnum):
    """What kind of thing a mark stands in."""

    TITLE = "title"
    MESSAGE = "message"
    FILE = "file"
    SESSION = "session id"  # that there is such a session: its id and key
    EMAIL = "email"
    TOKEN = "access token"  # noqa: S105 - a word for its name and id


@dataclass(slots=True, eq=False)
class Mark:
    """One planted thing. `whose` is the person's name, or the agent's for what is the team's."""

    sort: Sort
    whose: str
    what: str  # "private session", "personal instructions": for people who read a finding
    where: object  # the planted session, message or file, which the expectation is asked about
    word: str

    @property
    def label(self) -> str:
        """For a finding: `alice's private session (message)`."""
        return f"{self.whose}'s {self.what} ({self.sort})"


@dataclass(frozen=True, slots=True)
class Hit:
    """A mark that was found, and the form that it was found in."""

    mark: Mark
    form: str
    text: bytes  # as it stands there, in small letters


@dataclass(slots=True)
class Marks:
    """Every mark of a run, and how to find them."""

    _by_word: dict[bytes, Mark] = field(default_factory=dict)
    _by_hash: dict[bytes, Mark] = field(default_factory=dict)
    _by_name: dict[bytes, Mark] = field(default_factory=dict)
    all: list[Mark] = field(default_factory=list)

    def make(self, sort: Sort, whose: str, what: str, where: object) -> Mark:
        """A new mark; its word goes into what is planted."""
        word = PREFIX + "".join(secrets.choice(_ALPHABET) for _ in range(_DIGITS))
        mark = Mark(sort, whose, what, where, word)
        self._by_word[word.encode()] = mark
        self.all.append(mark)
        return mark

    def placed(self, mark: Mark, where: object) -> Mark:
        """The mark, once it is known what it stands in."""
        mark.where = where
        return mark

    def hashed(self, mark: Mark, text: str) -> None:
        """The mark is also what the hash of `text` gives away."""
        self._by_hash[hashlib.sha256(text.encode()).hexdigest().encode()] = mark

    def named(self, mark: Mark, *names: str) -> None:
        """The mark is also what these ids and keys give away."""
        for name in names:
            self._by_name[name.lower().encode()] = mark

    def find(self, answer: bytes) -> Iterator[Hit]:
        """Every mark in `answer`, each form of it once."""
        seen: set[tuple[int, str, bytes]] = set()
        for hit in self._all_hits(answer):
            key = (id(hit.mark), hit.form, hit.text)
            if key not in seen:
                seen.add(key)
                yield hit

    def _all_hits(self, answer: bytes) -> Iterator[Hit]:
        small = answer.lower()
        yield from self._plain(small, "as it is")
        if b"%" in small or b"\\u00" in small:
            yield from self._plain(_unescaped(small), "escaped")
        for found in _HASH.finditer(small):
            if found[0] in self._by_hash:
                yield Hit(self._by_hash[found[0]], "hash", found[0])
        for found in _HEXADECIMAL.finditer(small):
            yield from self._words(bytes.fromhex(found[0].decode()), "hexadecimal")
        for core in _BASE64.finditer(answer):
            for text in _decoded(_run_around(answer, core.start(), core.end())):
                yield from self._words(text.lower(), "base64")
        for cursor in _CURSOR.finditer(answer):
            for text in _decoded(cursor[1]):
                yield from self._plain(text.lower(), "cursor")

    def _plain(self, small: bytes, form: str) -> Iterator[Hit]:
        yield from self._words(small, form)
        for pattern in (_ID, _KEY):
            for found in pattern.finditer(small):
                if found[0] in self._by_name:
                    yield Hit(self._by_name[found[0]], form, found[0])

    def _words(self, small: bytes, form: str) -> Iterator[Hit]:
        for found in _WORD.finditer(small):
            if found[0] in self._by_word:
                yield Hit(self._by_word[found[0]], form, found[0])


def _unescaped(small: bytes) -> bytes:
    plain = _ESCAPE.sub(lambda found: bytes.fromhex(found[1].decode()), small)
    return unquote_to_bytes(plain).lower()


def _decoded(run: bytes) -> Iterator[bytes]:
    """What a run of base64 digits is, from each of the four places that a text can begin at."""
    standard = run.translate(bytes.maketrans(b"-_", b"+/"))
    for start in range(4):
        digits = standard[start:].rstrip(b"=")
        digits = digits[: len(digits) - (len(digits) % 4 == 1)]
        yield base64.b64decode(digits + b"=" * (-len(digits) % 4))


def _run_around(answer: bytes, start: int, end: int) -> bytes:
    """The whole run of base64 digits that a piece of it stands in."""
    while start and answer[start - 1] in _BASE64_DIGITS:
        start -= 1
    while end < len(answer) and answer[end] in _BASE64_DIGITS:
        end += 1
    return answer[start:end]


def _in_base64() -> re.Pattern[bytes]:
    """The prefix of a mark in base64, at any of the three places that it can have in a triple of bytes."""
    cores = []
    for before in range(3):
        digits = base64.b64encode(b"\0" * before + PREFIX.encode()).rstrip(b"=")
        cores.append(re.escape(digits[-(-before * 8 // 6) : (before + len(PREFIX)) * 8 // 6]))
    return re.compile(b"|".join(cores))


_BASE64 = _in_base64()
_BASE64_DIGITS = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_")
