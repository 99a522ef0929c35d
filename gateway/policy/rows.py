"""One row of a policy document as a frozen value, and the closed set of words for each of its fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Final

from gateway.model import Action, Chat, Relation, Resource, Whose
from gateway.policy.shipped import shipped

ANY: Final = "*"
ALLOW: Final = "allow"
DENY: Final = "deny"

# The table of design section 7: a visibility mode is a set of relations.
MODES: Final[Mapping[str, frozenset[Relation]]] = MappingProxyType(
    {
        "self": frozenset({Relation.SELF}),
        "tree": frozenset({Relation.SELF, Relation.CHILD, Relation.CHILD_CROSS}),
        "agent": frozenset({Relation.SELF, Relation.CHILD, Relation.SAME_AGENT}),
        "all": frozenset(Relation),
    }
)

# `own` < `shared` < `any`.
WHOSE: Final[Mapping[str, frozenset[Whose]]] = MappingProxyType(
    {
        "own": frozenset({Whose.OWN}),
        "shared": frozenset({Whose.OWN, Whose.SHARED}),
        "any": frozenset(Whose),
    }
)

CHATS: Final = (*(str(chat) for chat in Chat), ANY)
EFFECTS: Final = (ALLOW, DENY)


def _patterns() -> tuple[str, ...]:
    exact = [str(resource) for resource in Resource]
    folders = {name[: at + 1] + ANY for name in exact for at, letter in enumerate(name) if letter == "/"}
    return (*exact, *sorted(folders), ANY)


RESOURCES: Final = _patterns()


def group_links(text: str) -> tuple[tuple[str, str], ...]:
    """The (action or group, group) pairs of `actions.csv`."""
    lines = (line.strip() for line in text.splitlines())
    fields = ([field.strip() for field in line.split(",")] for line in lines if line and not line.startswith("#"))
    return tuple((member, group) for _, member, group in fields)


def words_of_actions(links: tuple[tuple[str, str], ...]) -> Mapping[Action, frozenset[str]]:
    """For each action the words of a row that mean it: itself, its groups, and the groups of those."""
    parents: dict[str, set[str]] = {}
    for member, group in links:
        parents.setdefault(member, set()).add(group)
    reached: dict[Action, frozenset[str]] = {}
    for action in Action:
        words, fresh = {str(action)}, {str(action)}
        while fresh:
            fresh = {group for word in fresh for group in parents.get(word, ())} - words
            words |= fresh
        reached[action] = frozenset(words)
    return MappingProxyType(reached)


GROUP_LINKS: Final = group_links(shipped("actions.csv"))
ACTION_WORDS: Final = words_of_actions(GROUP_LINKS)
ACTIONS: Final = tuple(dict.fromkeys([*map(str, Action), *(group for _, group in GROUP_LINKS)]))


def covers_resource(pattern: str, resource: Resource) -> bool:
    """Whether a row's resource (`x/*` and `*` included) means this one."""
    return resource.startswith(pattern[:-1]) if pattern.endswith(ANY) else resource == pattern


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """`p, subject, agent, resource, visibility, whose, chat, action, effect[, until]`, already checked."""

    line: int
    subject: str
    agent: str
    resource: str
    visibility: str
    whose: str
    chat: str
    action: str
    effect: str
    until: datetime | None = None

    @property
    def values(self) -> tuple[str, ...]:
        """The fields as Casbin takes them: values in the order of `model.conf`, without `until`."""
        return (
            self.subject,
            self.agent,
            self.resource,
            self.visibility,
            self.whose,
            self.chat,
            self.action,
            self.effect,
        )

    @property
    def text(self) -> str:
        """The row as one would write it."""
        end = () if self.until is None else (written(self.until),)
        return ", ".join(("p", *self.values, *end))

    @property
    def rule(self) -> str:
        """How a verdict names the row that decided."""
        return f"line {self.line}: {self.text}"

    def live(self, now: datetime) -> bool:
        """Whether the row still counts; from the instant `until` on it doesn't."""
        return self.until is None or now < self.until


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """`g, child, parent`: whoever holds the role `child` also holds `parent`."""

    line: int
    child: str
    parent: str

    @property
    def text(self) -> str:
        """The row as one would write it."""
        return f"g, {self.child}, {self.parent}"


def written(moment: datetime) -> str:
    """A moment as a row spells it (RFC 3339, UTC)."""
    return moment.isoformat().replace("+00:00", "Z")
