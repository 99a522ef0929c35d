"""A policy document's text into an answer on one bare question, by reading every row (design section 7)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

# "visibility: a mode, as a set of relations"; copied from the table.
MODES = {
    "self": {"self"},
    "tree": {"self", "child", "child_cross"},
    "agent": {"self", "child", "same_agent"},
    "all": {"self", "child", "child_cross", "same_agent", "other_agent"},
}

# "whose: own ⊂ shared (the person takes part in it, or it is the team's) ⊂ any"
WHOSE = {
    "own": {"own"},
    "shared": {"own", "shared"},
    "any": {"own", "shared", "other"},
}

# "chat: where the request is made from: private (outside any session too), group, or *"
CHATS = {
    "private": {"private"},
    "group": {"group"},
    "*": {"private", "group"},
}

# "Groups read and write through g2"
READ = {"read", "list", "history", "search", "status", "load", "get"}
WRITE = {
    "create",
    "enter",
    "send",
    "spawn",
    "post",
    "participants",
    "owner",
    "archive",
    "reset",
    "delete",
    "append",
    "edit",
    "remember",
    "forget",
    "propose",
    "promote",
    "vouch",
}
ONLY_BY_NAME_OR_STAR = {"publish", "export", "erase", "merge", "decide", "connect"}
ONLY_BY_NAME = {"impersonate"}
ACTIONS = READ | WRITE | ONLY_BY_NAME_OR_STAR | ONLY_BY_NAME


@dataclass(frozen=True, slots=True)
class Row:
    """One `p` line."""

    line: int
    subject: str
    agent: str
    resource: str
    visibility: str
    whose: str
    chat: str
    action: str
    effect: str
    until: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Bare:
    """The question without the world: `(subject, agent, resource, relation, whose, chat, action)`."""

    subjects: frozenset[str]  # not yet closed under g
    agent: str
    resource: str
    relation: str
    whose: str
    chat: str
    action: str


def read_rows(text: str) -> tuple[list[Row], list[tuple[str, str]]]:
    """The `p` rows and the `g` pairs of a document that is known to be well formed."""
    rows: list[Row] = []
    links: list[tuple[str, str]] = []
    for number, line in enumerate(text.splitlines(), start=1):
        fields = [field.strip() for field in line.split(",")]
        if fields[0] == "p":
            until = datetime.fromisoformat(fields[9]) if len(fields) == 10 else None
            subject, agent, resource, visibility, whose, chat, action, effect = fields[1:9]
            rows.append(Row(number, subject, agent, resource, visibility, whose, chat, action, effect, until))
        elif fields[0] == "g":
            links.append((fields[1], fields[2]))
    return rows, links


def closed(subjects: frozenset[str], links: list[tuple[str, str]]) -> set[str]:
    """The set with everything that `g` reaches from it."""
    reached = set(subjects)
    while True:
        more = {wider for narrower, wider in links if narrower in reached} - reached
        if not more:
            return reached
        reached |= more


def resource_matches(pattern: str, resource: str) -> bool:
    """ "`x/*` and `*` match" """
    if pattern == "*":
        return True
    if pattern.endswith("/*"):
        return resource.startswith(pattern[:-1])
    return pattern == resource


def action_matches(pattern: str, action: str) -> bool:
    """By name, by group, or by `*`; `impersonate` by its name alone."""
    if pattern == action:
        return True
    if action in ONLY_BY_NAME:
        return False
    if pattern == "*":
        return True
    if pattern == "read":
        return action in READ
    if pattern == "write":
        return action in WRITE
    return False


def row_matches(row: Row, subjects: set[str], question: Bare, now: datetime) -> bool:
    """Whether every field of the row fits the question at this moment."""
    if row.until is not None and now >= row.until:
        return False  # "`until` ends a row by itself"
    if row.subject not in subjects:
        return False
    if row.agent not in ("*", question.agent):
        return False
    if not resource_matches(row.resource, question.resource):
        return False
    if question.relation not in MODES[row.visibility]:
        return False
    if question.whose not in WHOSE[row.whose]:
        return False
    if question.chat not in CHATS[row.chat]:
        return False
    return action_matches(row.action, question.action)


def ask(text: str, question: Bare, now: datetime) -> tuple[bool, str]:
    """ "some allow and no deny. Nothing matched: deny. An empty document denies all." """
    rows, links = read_rows(text)
    subjects = closed(question.subjects, links)
    allow: Row | None = None
    for row in rows:
        if not row_matches(row, subjects, question, now):
            continue
        if row.effect == "deny":
            return False, f"line {row.line} denies"
        allow = allow or row
    if allow is None:
        return False, "no row matches"
    return True, f"line {allow.line} allows"
