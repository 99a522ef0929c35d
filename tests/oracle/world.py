"""A small world as plain values: who there is, what they talk about, which rows hold. It imports nothing of ours."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

GUEST = "guest of the tenant"  # an unlinked channel sender: no profile, role `guest`
STRANGER = "nobody"  # neither profile nor guest


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """A role held on one agent, or on every agent ("*")."""

    name: str
    agent: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """A profile of a tenant; `kind` is "person" or "service"."""

    id: str
    tenant: str
    name: str
    kind: str = "person"
    roles: tuple[Role, ...] = ()
    merged_into: str | None = None
    disabled: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """An agent of a tenant."""

    tenant: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Participation:
    """Somebody who takes part in a root session, or did; `joined_after` is the message number they joined at."""

    person: str
    joined_after: int = 0
    left: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One conversation. Owner and participants are set at a root and None and empty at its children."""

    id: str
    key: str
    tenant: str
    agent: str
    kind: str
    creator: str
    owner: str | None = None
    parent: str | None = None
    participants: tuple[Participation, ...] = ()
    incognito: bool = False
    sandboxed: bool = False
    archived: bool = False
    incarnation: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message; `number` rises over the whole tenant."""

    id: str
    tenant: str
    session: str
    incarnation: int
    number: int
    role: str
    sender: str | None
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """One file of an agent's workspace, by its path under the agent's folder."""

    tenant: str
    agent: str
    path: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Tenant:
    """An organisation and the text of its policy document."""

    name: str
    policy: str


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """Everything there is at one moment."""

    now: datetime
    tenants: tuple[Tenant, ...]
    people: tuple[Person, ...]
    agents: tuple[Agent, ...]
    sessions: tuple[Session, ...]
    messages: tuple[Message, ...] = ()
    files: tuple[File, ...] = ()


# ── requests ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class OnSession:
    """A session that is there, of whichever tenant."""

    session: str


@dataclass(frozen=True, slots=True)
class OnNewSession:
    """A session that is to be: a root from outside (`create`), a child of the origin from inside (`spawn`)."""

    agent: str
    kind: str


@dataclass(frozen=True, slots=True)
class OnFile:
    """A file of an agent's workspace, of whichever tenant; it need not be there."""

    tenant: str
    agent: str
    path: str


@dataclass(frozen=True, slots=True)
class OnOffice:
    """`admin/…` or `gateway`: what is not a session and not memory."""

    resource: str


Target = OnSession | OnNewSession | OnFile | OnOffice


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """Who (a person's id, GUEST or STRANGER) of which tenant wants what, from inside a session or from outside."""

    tenant: str
    who: str
    action: str
    target: Target
    origin: str | None = None
    tainted: bool = False  # the turn has read untrusted text from the network


@dataclass(frozen=True, slots=True)
class Answer:
    """Allowed or not, and the rule that says so, for people who read a failing test."""

    allowed: bool
    why: str
