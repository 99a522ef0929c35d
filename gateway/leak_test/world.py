"""What is planted, as facts of our own: who is who, what each session is, and what each file is.

The expectation is worked out from these alone. Nothing here is read back from the gateway, since it is what is tested.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from gateway.leak_test.markers import Mark, Marks


@dataclass(slots=True, eq=False, kw_only=True)
class Person:
    """Somebody made up. `roles` are (role, agent); `aliases` are ids that were merged into this one."""

    name: str
    tenant: str
    id: str = ""
    kind: str = "person"
    roles: tuple[tuple[str, str], ...] = ()
    home: str = ""  # the agent that most of theirs is on
    other: str = ""  # a second one
    active: bool = True
    plants: bool = True
    aliases: tuple[str, ...] = ()
    secret: str = ""  # of their access token
    token: str = ""  # its id

    @property
    def bait(self) -> str:
        """The word that stands in each of their messages and titles."""
        return f"leakbait{self.name.replace('-', '')}zz"  # so that none is the beginning of another


@dataclass(slots=True, eq=False, kw_only=True)
class PlantedSession:
    """A session. `people` are those who take part in its tree's root, each with when they joined."""

    what: str
    key: str
    id: str
    agent: str
    tenant: str
    kind: str
    private: bool
    owner: Person  # of the tree's root, as it is now
    planted_for: Person  # who opened it, whatever became of them
    people: dict[str, int]  # by profile id: the count of planted messages at the time
    parent: PlantedSession | None = None
    incognito: bool = False
    sandboxed: bool = False
    title: Mark | None = None
    there: Mark | None = None  # that there is such a session
    messages: list[PlantedMessage] = field(default_factory=list)
    gone: bool = False  # it was removed: nobody sees it any more

    @property
    def root(self) -> PlantedSession:
        """The session that its tree began with."""
        return self if self.parent is None else self.parent.root

    def is_below(self, other: PlantedSession) -> bool:
        """Whether it is a child of `other`, at any depth."""
        return self.parent is not None and (self.parent is other or self.parent.is_below(other))


@dataclass(slots=True, eq=False, kw_only=True)
class PlantedMessage:
    """A message; `number` counts the messages of its tree, and `gone` is one that a reset took away."""

    session: PlantedSession
    number: int
    gone: bool = False
    mark: Mark | None = None


@dataclass(slots=True, eq=False, kw_only=True)
class PlantedFile:
    """A file of an agent's workspace. A personal one has an owner; `never` is for what no path may lead to."""

    agent: str
    tenant: str
    path: str
    resource: str
    owner: Person | None = None
    copied_as: str | None = None  # the resource of another file that holds the same bytes
    loads_as: str | None = None  # the kind in a context: rules, shared, personal, longterm, daily, …
    never: bool = False
    mark: Mark | None = None


@dataclass(slots=True, eq=False, kw_only=True)
class Caller:
    """Somebody with a credential, as a request presents them. Without a person it is nobody."""

    label: str
    person: Person | None
    headers: tuple[tuple[bytes, bytes], ...] = ()
    scopes: frozenset[str] = frozenset({"*"})
    bound: PlantedSession | None = None  # a turn token is good inside this session alone
    place: PlantedSession | None = None  # where the channel brings a guest from

    @property
    def tenant(self) -> str:
        """Whose credential it is."""
        return "" if self.person is None else self.person.tenant

    @property
    def holds(self) -> bool:
        """Whether the credential is good."""
        return self.person is not None and self.person.active


@dataclass(slots=True, kw_only=True)
class World:
    """All of it."""

    now: datetime
    documents: Mapping[str, str]  # by tenant
    agents: tuple[str, ...]  # each tenant has the same
    marks: Marks = field(default_factory=Marks)
    people: list[Person] = field(default_factory=list)
    sessions: list[PlantedSession] = field(default_factory=list)
    files: list[PlantedFile] = field(default_factory=list)
    callers: list[Caller] = field(default_factory=list)
    spare: dict[str, Person] = field(default_factory=dict)  # by tenant: somebody whom admins may change
    chat: PlantedSession | None = None  # the one that a connector opened

    def person(self, name: str, tenant: str) -> Person:
        """The person of that name."""
        return next(one for one in self.people if (one.name, one.tenant) == (name, tenant))

    def planted_for(self, person: Person) -> list[PlantedSession]:
        """The sessions that are there and were planted for somebody."""
        return [one for one in self.sessions if one.planted_for is person and not one.gone]
