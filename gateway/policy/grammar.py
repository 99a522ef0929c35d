"""Turns the fields of one line into a `Row` or a `Link`, or says of each field what to write instead.

The grammar is closed: what is not listed here is refused, so nothing of a document can mean anything to Casbin that it
does not mean to us (design section 7).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Final

from gateway.errors import Fault
from gateway.keys import is_name, is_profile_id
from gateway.policy.rows import ACTIONS, ANY, CHATS, EFFECTS, MODES, RESOURCES, WHOSE, Link, Row
from gateway.policy.tokens import Field, Line, fault, shown

_MOMENT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?Z")

_NAMES: Final = ("subject", "agent", "resource", "visibility", "whose", "chat", "action", "effect", "until")
_SHORT: Final = len(_NAMES)  # `p` and eight fields; `until` may follow


def _subject(text: str) -> str | None:
    if text == ANY or _is_role(text) or (text.startswith("user:") and is_profile_id(text.removeprefix("user:"))):
        return None
    if text.startswith("user:"):
        return f"{shown(text)} is not a person; write user: and a profile id (user:prf_ and 26 letters)."
    if text.startswith("prf_"):
        return f"{shown(text)} has no namespace; write user:{text} for this person."
    if is_name(text):
        return f"{shown(text)} has no namespace; write role:{text} for the role."
    return f"{shown(text)} is no subject; write user:prf_…, role:<name> or *."


def _is_role(text: str) -> bool:
    return text.startswith("role:") and is_name(text.removeprefix("role:"))


def _role(text: str) -> str | None:
    if _is_role(text):
        return None
    return f"{shown(text)} is no role; g links role:<name> to role:<name>, and people get their roles by assignment."


def _agent(text: str) -> str | None:
    if text == ANY or is_name(text):
        return None
    return f"{shown(text)} can't name an agent; write its name (a-z, 0-9, _ and -) or * for all."


def _one_of(words: Sequence[str], what: str) -> Callable[[str], str | None]:
    allowed = frozenset(words)
    listed = " ".join(words)

    def check(text: str) -> str | None:
        if text in allowed:
            return None
        if text.lower() in allowed:
            return f"{shown(text)} must be in lower case: {text.lower()}."
        return f"{shown(text)} is not {what}; write one of: {listed}"

    return check


def _until(text: str) -> str | None:
    if _MOMENT.fullmatch(text) and _moment(text) is not None:
        return None
    return f"{shown(text)} is no moment in UTC; write it like 2027-01-31T18:00:00Z."


def _moment(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError):  # the 31st of February, 25 o'clock, a second 60
        return None


_CHECKS: Final[tuple[Callable[[str], str | None], ...]] = (
    _subject,
    _agent,
    _one_of(RESOURCES, "a resource"),
    _one_of(tuple(MODES), "a visibility mode"),
    _one_of(tuple(WHOSE), "a word for whose"),
    _one_of(CHATS, "a place to ask from"),
    _one_of(ACTIONS, "an action"),
    _one_of(EFFECTS, "an effect"),
    _until,
)


def read_plain(number: int, line: str) -> Row | None:
    """The permission in a line that is written as we write it, `p, a, b, …`; None where anything is otherwise.

    It says nothing that `read_line` would not: a long document is read in a fifth of the time.
    """
    words = line.split(", ")
    if len(words) not in (_SHORT, _SHORT + 1) or words[0] != "p":
        return None
    for check, word in zip(_CHECKS, words[1:], strict=False):
        if check(word) is not None:
            return None
    until = _moment(words[_SHORT]) if len(words) > _SHORT else None
    _, subject, agent, resource, visibility, whose, chat, action, effect = words[:_SHORT]
    return Row(
        line=number,
        subject=subject,
        agent=agent,
        resource=resource,
        visibility=visibility,
        whose=whose,
        chat=chat,
        action=action,
        effect=effect,
        until=until,
    )


def read_line(line: Line, faults: list[Fault]) -> Row | Link | None:
    """The row that a line holds; None where it holds faults, which are added to `faults`."""
    first = line.fields[0]
    if first.text == "p":
        return _read_row(line, faults)
    if first.text == "g":
        return _read_link(line, faults)
    if first.text == "g2":
        message = "Groups of actions are fixed and can't be changed in a document; name the actions in p rows."
    else:
        message = f"{shown(first.text)} begins no row; write p for a permission or g for a role that holds another."
    faults.append(fault("row", message, line.number, first.column))
    return None


def _read_row(line: Line, faults: list[Fault]) -> Row | None:
    fields = line.fields[1:]
    if not _SHORT - 1 <= len(fields) <= _SHORT:
        message = f"A p row has 8 fields after the p, and a ninth if it ends: {', '.join(_NAMES)}; this one has "
        faults.append(fault("fields", f"{message}{len(fields)}.", line.number, line.fields[0].column))
        return None
    if not _checked(line.number, fields, faults):
        return None
    words = dict(zip(_NAMES, (field.text for field in fields), strict=False))
    until = _moment(words.pop("until")) if "until" in words else None
    return Row(line=line.number, until=until, **words)


def _checked(number: int, fields: Sequence[Field], faults: list[Fault]) -> bool:
    known = len(faults)
    for name, check, field in zip(_NAMES, _CHECKS, fields, strict=False):
        message = check(field.text) if field.text else f"The field {name} is empty; write a word."
        if message is not None:
            faults.append(fault(name, message, number, field.column))
    return len(faults) == known


def _read_link(line: Line, faults: list[Fault]) -> Link | None:
    fields = line.fields[1:]
    if len(fields) != 2:
        message = f"A g row has 2 fields after the g, the role and the role it also holds; this one has {len(fields)}."
        faults.append(fault("fields", message, line.number, line.fields[0].column))
        return None
    bad = [(field.column, wrong) for field in fields if (wrong := _role(field.text)) is not None]
    if bad:
        faults.extend(fault("role", wrong, line.number, column) for column, wrong in bad)
        return None
    child, parent = fields
    return Link(line=line.number, child=child.text, parent=parent.text)
