"""Turns the path of a workspace file into its parts, and into what it is to the policy (design sections 6 and 7)."""

from __future__ import annotations

import re
import unicodedata
from datetime import date
from functools import lru_cache

from gateway.keys import is_profile_id
from gateway.model import ProfileId, Resource
from gateway.workspace.problems import FileUnsafe

OURS = ".gateway-"  # names of temporary files; nobody may ask for one

_LONGEST_PATH = 1024
_LONGEST_NAME = 255  # bytes; the limit of the file systems that we know
_PLAIN_NAME = r"[A-Za-z0-9_-](?:[A-Za-z0-9_.-]{0,100}[A-Za-z0-9_-])?"
_PLAIN = re.compile(_PLAIN_NAME)  # what nearly every name is; spares the look at each character
_PLAIN_PATH = re.compile(rf"{_PLAIN_NAME}(?:/{_PLAIN_NAME})*")
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def components(path: str) -> tuple[str, ...]:
    """The names that lead from the agent's folder to a file.

    A path is relative, in Unicode form NFC, with "/" between names of at most 255 bytes. A name holds letters, marks,
    digits, punctuation, symbols and inner spaces; it is not "." or "..", has no backslash and no percent sign, and does
    not end in a dot. So each file has one spelling, and none means another file to some other layer.

    Raises:
        FileUnsafe: for anything else.

    """
    if len(path) > _LONGEST_PATH:
        raise FileUnsafe(path, f"its path is longer than {_LONGEST_PATH:,} characters")
    names = tuple(path.split("/"))
    if not _PLAIN_PATH.fullmatch(path) and not all(is_component(name) for name in names):
        raise FileUnsafe(path, "its path is not a plain relative one")
    return names


def is_component(name: str) -> bool:
    """Whether `name` may be one name of a path; see `components`."""
    if _PLAIN.fullmatch(name):
        return True
    if not name or name != name.strip(" ") or name.endswith("."):
        return False
    if any(not _is_allowed(character) for character in name):
        return False
    if name != unicodedata.normalize("NFC", name) or _folded(name).startswith(OURS):
        return False
    return len(name.encode()) <= _LONGEST_NAME


def _is_allowed(character: str) -> bool:
    """Letters, marks, numbers, punctuation, symbols and the space: no control, format, private or surrogate code."""
    if character in "/\\%":
        return False
    return character == " " or unicodedata.category(character)[0] in "LMNPS"


def instructions_path(profile: ProfileId) -> str:
    """Where a person's own instructions lie. Raises FileUnsafe for what is not spelled like a profile id."""
    return f"{_home(profile)}USER.md"


def longterm_path(profile: ProfileId | None) -> str:
    """The team's `MEMORY.md`, or a person's own."""
    return f"{_home(profile)}MEMORY.md"


def daily_path(day: date, profile: ProfileId | None) -> str:
    """The note of a day, the team's or a person's own."""
    return f"{_home(profile)}memory/{day.isoformat()}.md"


def _home(profile: ProfileId | None) -> str:
    if profile is None:
        return ""
    if not is_profile_id(profile):
        raise FileUnsafe("users/", "the person's folder is not named by a profile id")
    return f"users/{profile}/"


def day_of(path: str) -> date | None:
    """The day whose note `path` is: `memory/2026-03-03.md` or `users/<profile id>/memory/2026-03-03.md`; else None."""
    classified = memory_resource(path)
    if classified is None or classified[0] not in (Resource.MEMORY_DAILY, Resource.PERSONAL_DAILY):
        return None
    name = path.removesuffix(".md")[-len("2026-03-03") :]
    if not _DAY.fullmatch(name):
        return None
    try:
        day = date.fromisoformat(name)
    except ValueError:
        return None
    return day if path == daily_path(day, classified[1]) else None


@lru_cache(maxsize=4096)  # pure, and the same few files are asked for over and over
def memory_resource(path: str) -> tuple[Resource, ProfileId | None] | None:
    """What a memory file is to the policy, and whose it is where it is a person's; None for all that is no memory.

    Whatever is spelled like MEMORY.md, in any case or Unicode form and at any depth of a `memory` folder, is long-term
    memory: on some disks `memory.md` opens `MEMORY.md` (design section 7, invariants).
    """
    try:
        names = components(path)
    except FileUnsafe:
        return None
    if names[0] != "users":
        resource = _team_resource(names)
        return None if resource is None else (resource, None)
    if len(names) < 3 or not is_profile_id(names[1]):
        return None
    resource = _personal_resource(names[2:])
    return None if resource is None else (resource, ProfileId(names[1]))


def _team_resource(names: tuple[str, ...]) -> Resource | None:
    if names == ("USER.md",):
        return Resource.MEMORY_SHARED
    if _is_longterm(names):
        return Resource.MEMORY_LONGTERM
    if len(names) == 1:
        return Resource.MEMORY_DREAMS if _folded(names[0]) == "dreams.md" else None
    if not _is_note(names):
        return None
    # What dreaming wrote about itself is no note of the team (reference/openclaw-memory 1.1).
    return Resource.MEMORY_DREAMS if _folded(names[1]) in ("dreaming", ".dreams") else Resource.MEMORY_DAILY


def _personal_resource(names: tuple[str, ...]) -> Resource | None:
    if names == ("USER.md",):
        return Resource.PERSONAL_INSTRUCTIONS
    if _is_longterm(names):
        return Resource.PERSONAL_LONGTERM
    return Resource.PERSONAL_DAILY if _is_note(names) else None


def _is_longterm(names: tuple[str, ...]) -> bool:
    return (len(names) == 1 or names[0] == "memory") and any(_folded(name) == "memory.md" for name in names)


def _is_note(names: tuple[str, ...]) -> bool:
    return len(names) > 1 and names[0] == "memory" and names[-1].endswith(".md")


def _folded(name: str) -> str:
    return unicodedata.normalize("NFKC", name).casefold()
