"""One hand-written world that the oracle's own tests ask about: a team of two agents, and a second tenant."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import yaml

from tests.oracle.world import (
    Agent,
    File,
    Message,
    OnFile,
    OnNewSession,
    OnOffice,
    OnSession,
    Participation,
    Person,
    Request,
    Role,
    Session,
    Target,
    Tenant,
    World,
)

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
SKETCH: str = yaml.safe_load(Path(__file__).with_name("policy.yaml").read_text())["rows"]
EVERYTHING = "p, *, *, *, all, any, *, *, allow\n"


def _person(name: str, *roles: str, merged_into: str | None = None, disabled: bool = False) -> Person:
    held = tuple(Role(name=role.split("@")[0], agent=role.partition("@")[2] or "*") for role in roles)
    return Person(id=name, tenant="acme", name=name, roles=held, merged_into=merged_into, disabled=disabled)


PEOPLE = (
    _person("alice", "member"),
    _person("alice2", merged_into="alice"),
    _person("bob", "member"),
    _person("carol", "member"),
    _person("dana", "supervisor"),
    _person("erin", "admin", "member@flight"),
    _person("frank"),
    _person("gone", "member", disabled=True),
    Person(id="bot", tenant="acme", name="bot", kind="service", roles=(Role(name="member", agent="*"),)),
    Person(id="zoe", tenant="other", name="zoe", roles=(Role(name="member", agent="*"),)),
)


def _root(name: str, kind: str, owner: str, *others: Participation, agent: str = "flight", **more: object) -> Session:
    fields: dict[str, object] = {
        "id": name,
        "key": f"agent:{agent}:{kind}:{name}",
        "tenant": "acme",
        "agent": agent,
        "kind": kind,
        "creator": owner,
        "owner": owner,
        "participants": (Participation(person=owner), *others),
    }
    return Session(**(fields | more))  # type: ignore[arg-type]  # a dict of fields has no single type


def _child(name: str, kind: str, parent: str, agent: str = "flight", *, sandboxed: bool = False) -> Session:
    return Session(
        id=name,
        key=f"agent:{agent}:{kind}:{name}",
        tenant="acme",
        agent=agent,
        kind=kind,
        creator="bot",
        parent=parent,
        sandboxed=sandboxed,
    )


_BOB = Participation(person="bob")
SESSIONS = (
    _root("alice's", "direct", "alice"),
    _child("alice's child", "subagent", "alice's"),
    _child("alice's helper", "direct", "alice's"),
    _child("alice's child on hotel", "subagent", "alice's", "hotel"),
    _child("alice's grandchild", "subagent", "alice's child on hotel"),
    _child("alice's group child", "group", "alice's"),
    _root("alice's second", "direct", "alice"),
    _root("alice's on hotel", "direct", "alice", agent="hotel"),
    _root("alice2's", "direct", "alice2"),
    _root("alice's secret", "direct", "alice", incognito=True),
    _root("alice's box", "direct", "alice", sandboxed=True),
    _child("box's child", "subagent", "alice's box", sandboxed=True),
    _root("bob's", "direct", "bob"),
    _root(
        "team",
        "group",
        "alice",
        _BOB,
        Participation(person="carol", joined_after=2),
        Participation(person="erin", left=True),
    ),
    _child("team's child", "subagent", "team"),
    _child("team's grandchild", "subagent", "team's child"),
    _child("team's helper", "direct", "team"),
    _root("room", "channel", "bob", Participation(person="alice")),
    _root("odd", "séance", "alice", _BOB),
    _root("pair", "direct", "alice", _BOB),
    _root("nightly", "cron", "alice"),
    _root("bot's group", "group", "bot", Participation(person="alice"), _BOB, creator="alice"),
    _root("zoe's", "direct", "zoe", tenant="other"),
)

MESSAGES = tuple(
    Message(
        id=f"{session} {number}",
        tenant="acme",
        session=session,
        incarnation=incarnation,
        number=number,
        role="user",
        sender="alice",
        text=f"{session} {number}",
    )
    for number, (session, incarnation) in enumerate(
        [("team", 1), ("team's child", 1), ("team", 1), ("team's child", 1), ("alice's", 1), ("alice's", 2)], start=1
    )
)

PATHS = (
    "AGENTS.md",
    "SOUL.md",
    "IDENTITY.md",
    "USER.md",
    "MEMORY.md",
    "DREAMS.md",
    "memory/2026-11-30.md",
    "memory/2026-11-29.md",
    "users/alice/USER.md",
    "users/alice/MEMORY.md",
    "users/alice/memory/2026-11-30.md",
    "users/alice/memory/2026-11-29.md",
    "users/alice2/USER.md",
    "users/bob/USER.md",
    "users/bob/MEMORY.md",
    "users/bob/memory/2026-11-30.md",
)

WORLD = World(
    now=NOW,
    tenants=(Tenant(name="acme", policy=SKETCH), Tenant(name="other", policy=SKETCH)),
    people=PEOPLE,
    agents=(
        Agent(tenant="acme", name="flight"),
        Agent(tenant="acme", name="hotel"),
        Agent(tenant="other", name="flight"),
    ),
    sessions=tuple(replace(session, incarnation=2) if session.id == "alice's" else session for session in SESSIONS),
    messages=MESSAGES,
    files=tuple(
        File(tenant="acme", agent=agent, path=path, text=f"{agent} {path}")
        for agent in ("flight", "hotel")
        for path in PATHS
    ),
)


def under(policy: str) -> World:
    """The same world with another document."""
    return replace(WORLD, tenants=(Tenant(name="acme", policy=policy), Tenant(name="other", policy=policy)))


def target_of(words: str, tenant: str = "acme") -> Target:
    """A target in short: "hotel:MEMORY.md" or "MEMORY.md" (of flight), "new:hotel:direct", "admin/audit", a session."""
    if words.startswith(("admin/", "gateway")):
        return OnOffice(words)
    if words.startswith("new:"):
        _, agent, kind = words.split(":")
        return OnNewSession(agent, kind)
    if words.endswith(".md"):
        agent, _, path = words.rpartition(":")
        return OnFile(tenant, agent or "flight", path)
    return OnSession(words)


def asks(who: str, action: str, target: str, origin: str | None = None, *, tainted: bool = False) -> Request:
    """A request of the first tenant."""
    return Request(tenant="acme", who=who, action=action, target=target_of(target), origin=origin, tainted=tainted)
