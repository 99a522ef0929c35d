"""A seeded random source into small worlds that could have come about."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from random import Random

from tests.oracle.policies import ROLES, document
from tests.oracle.world import Agent, File, Message, Participation, Person, Role, Session, Tenant, World

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
AGENTS = ("flight", "hotel", "rail")


def make_id(rng: Random, prefix: str) -> str:
    """A fresh id, spelled like a ULID, so that many worlds fit into one store."""
    return f"{prefix}_01" + "".join(rng.choices(ALPHABET, k=24))


def make_world(rng: Random, tenants: int = 2, *, traces: bool = True, rows: bool = True) -> World:
    """A small world; everything in it belongs together and could have come about.

    With `traces` a merged profile leaves sessions behind that name it, with `rows` policy rows.
    """
    names = ["t" + "".join(rng.choices("abcdefghijklmnop", k=12)) for _ in range(tenants)]
    agents = {name: list(AGENTS[: rng.randint(1, 3)]) for name in names}
    people = {name: make_people(rng, name, agents[name]) for name in names}
    sessions: list[Session] = []
    messages: list[Message] = []
    files: list[File] = []
    for name in names:
        written = rng.randint(0, 8)
        active = [person for person in people[name] if traces or person.merged_into is None]
        mine = make_sessions(rng, name, active, agents[name], written)
        sessions += mine
        messages += make_messages(rng, name, mine, written)
        files += make_files(rng, name, agents[name], people[name])
    named = {name: [one.id for one in people[name] if rows or one.merged_into is None] for name in names}
    policies = [document(rng, named[name], agents[name], NOW) for name in names]
    return World(
        now=NOW,
        tenants=tuple(Tenant(name=name, policy=policy) for name, policy in zip(names, policies, strict=True)),
        people=tuple(person for name in names for person in people[name]),
        agents=tuple(Agent(tenant=name, name=agent) for name in names for agent in agents[name]),
        sessions=tuple(sessions),
        messages=tuple(messages),
        files=tuple(files),
    )


# ── people ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def make_people(rng: Random, tenant: str, agents: list[str]) -> list[Person]:
    """One to four profiles: mostly members, some with other roles or none, a few retired, a few services."""
    people: list[Person] = []
    for number in range(rng.choice((1, 2, 2, 3, 3, 4))):
        standing = [one.id for one in people if one.merged_into is None and not one.disabled and one.kind == "person"]
        merged = number > 0 and bool(standing) and rng.random() < 0.12
        people.append(
            Person(
                id=make_id(rng, "prf"),
                tenant=tenant,
                name=("alice", "bob", "carol", "dana")[number],
                kind="service" if number > 0 and not merged and rng.random() < 0.08 else "person",
                roles=() if merged else make_roles(rng, agents),
                merged_into=rng.choice(standing) if merged else None,
                disabled=number > 0 and not merged and rng.random() < 0.06,
            )
        )
    return people


def make_roles(rng: Random, agents: list[str]) -> tuple[Role, ...]:
    """Nothing, membership, or membership and something else; on one agent or on all."""
    if rng.random() < 0.08:
        return ()
    roles = []
    if rng.random() < 0.85:
        roles.append(Role(name="member", agent=rng.choice(("*", "*", *agents))))
    while rng.random() < 0.35:
        roles.append(Role(name=rng.choice(ROLES), agent=rng.choice(("*", *agents))))
    return tuple(dict.fromkeys(roles))


# ── sessions ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def make_sessions(rng: Random, tenant: str, people: list[Person], agents: list[str], written: int) -> list[Session]:
    """Up to six sessions in trees of any depth; what is incognito or sandboxed hands that to its children."""
    sessions: list[Session] = []
    for _ in range(rng.randint(1, 6)):
        if sessions and rng.random() < 0.5:
            sessions.append(make_child(rng, rng.choice(sessions), people, agents))
        else:
            sessions.append(make_root(rng, tenant, people, agents, sessions, written))
    return sessions


def make_child(rng: Random, parent: Session, people: list[Person], agents: list[str]) -> Session:
    """A session below another one."""
    agent = parent.agent if rng.random() < 0.6 else rng.choice(agents)
    kind = rng.choices(("subagent", "direct", "group", "cron"), weights=(14, 3, 1, 1))[0]
    ulid = make_id(rng, "ses")
    return Session(
        id=ulid,
        key=f"agent:{agent}:{kind}:{ulid[4:].lower()}",
        tenant=parent.tenant,
        agent=agent,
        kind=kind,
        creator=rng.choice(people).id,
        parent=parent.id,
        incognito=parent.incognito,
        sandboxed=parent.sandboxed or rng.random() < 0.1,
        archived=rng.random() < 0.08,
        incarnation=rng.choice((1, 1, 1, 1, 2)),
    )


def make_root(
    rng: Random, tenant: str, people: list[Person], agents: list[str], there: list[Session], written: int
) -> Session:
    """The top of a tree, with an owner and those who take part."""
    agent = rng.choice(agents)
    kind = rng.choices(("direct", "group", "channel", "cron"), weights=(9, 7, 3, 3))[0]
    owner = rng.choice(people)
    if kind == "direct":
        owner = rng.choice([person for person in people if person.kind == "person"])
    ulid = make_id(rng, "ses")
    incognito = kind == "direct" and rng.random() < 0.12
    main = f"agent:{agent}:direct:{owner.id}"
    if kind != "direct" or incognito or main in [session.key for session in there]:
        key = f"agent:{agent}:{kind}:{ulid[4:].lower()}"
    else:
        key = main
    return Session(
        id=ulid,
        key=key,
        tenant=tenant,
        agent=agent,
        kind=kind,
        creator=owner.id if kind == "direct" or rng.random() < 0.7 else rng.choice(people).id,
        owner=owner.id,
        participants=make_participants(rng, kind, incognito, owner, people, written),
        incognito=incognito,
        sandboxed=rng.random() < 0.12,
        archived=rng.random() < 0.08,
        incarnation=rng.choice((1, 1, 1, 1, 2)),
    )


def make_participants(
    rng: Random, kind: str, incognito: bool, owner: Person, people: list[Person], written: int
) -> tuple[Participation, ...]:
    """One person in a private session; in the others some, of whom some came later and some have left."""
    if kind == "direct" and (incognito or key_holder_alone(rng)):
        return (Participation(person=owner.id),)
    rows = []
    for person in people:
        if person is owner:
            if rng.random() < 0.9:
                rows.append(Participation(person=owner.id, joined_after=later(rng, written, 0.1)))
        elif rng.random() < 0.55:
            late = later(rng, written, 0.4)
            rows.append(Participation(person=person.id, joined_after=late, left=rng.random() < 0.15))
    return tuple(rows)


def key_holder_alone(rng: Random) -> bool:
    """Most direct sessions have one person; one with more is shared."""
    return rng.random() < 0.9


def later(rng: Random, written: int, chance: float) -> int:
    """The message number that somebody joined at: mostly from the start."""
    return rng.randint(0, written) if rng.random() < chance else 0


def make_messages(rng: Random, tenant: str, sessions: list[Session], written: int) -> list[Message]:
    """Messages numbered over the tenant; an older incarnation's come before its next one's."""
    incarnations = {session.id: 1 for session in sessions}
    messages = []
    for number in range(1, written + 1):
        session = rng.choice(sessions)
        if incarnations[session.id] < session.incarnation and rng.random() < 0.6:
            incarnations[session.id] += 1
        message = make_id(rng, "msg")
        messages.append(
            Message(
                id=message,
                tenant=tenant,
                session=session.id,
                incarnation=incarnations[session.id],
                number=number,
                role=rng.choice(("user", "assistant")),
                sender=session.creator,
                text=f"words {message[4:]}",
            )
        )
    return messages


# ── files ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def days() -> tuple[str, str]:
    """Today and yesterday, where every agent's clock is UTC."""
    return f"{NOW.date()}", f"{NOW.date() - timedelta(days=1)}"


def personal_paths(person: str) -> list[str]:
    """The personal files that a person may have."""
    today, yesterday = days()
    names = ("USER.md", "MEMORY.md", f"memory/{today}.md", f"memory/{yesterday}.md")
    return [f"users/{person}/{name}" for name in names]


def team_paths() -> list[str]:
    """The files of the agent itself."""
    today, yesterday = days()
    rules = ["AGENTS.md", "SOUL.md", "IDENTITY.md", "USER.md"]
    return [*rules, "MEMORY.md", "DREAMS.md", f"memory/{today}.md", f"memory/{yesterday}.md"]


def make_files(rng: Random, tenant: str, agents: list[str], people: list[Person]) -> list[File]:
    """Most of the files there could be, each with a text that is found nowhere else."""
    files = []
    for agent in agents:
        paths = team_paths() + [path for person in people for path in personal_paths(person.id)]
        for path in paths:
            if rng.random() < 0.75:
                text = f"only in {tenant} {agent} {path}\n"
                if path.startswith("users/") and path.endswith("/USER.md") and rng.random() < 0.05:
                    text += "x" * 4_000
                files.append(File(tenant=tenant, agent=agent, path=path, text=text))
    return files
