"""A random source into a policy document that could be a tenant's: the usual blocks, some of them bent."""

from __future__ import annotations

from datetime import datetime, timedelta
from random import Random

Fields = tuple[str, ...]  # subject, agent, resource, visibility, whose, chat, action, effect[, until]

MEMBER: list[Fields] = [
    ("role:member", "*", "session/*", "agent", "shared", "private", "*", "allow"),
    ("role:member", "*", "session/*", "tree", "shared", "private", "*", "allow"),
    ("role:member", "*", "session/shared", "tree", "shared", "group", "*", "allow"),
    ("role:member", "*", "memory/rules", "agent", "shared", "*", "read", "allow"),
    ("role:member", "*", "memory/shared", "agent", "shared", "*", "read", "allow"),
    ("role:member", "*", "memory/longterm", "agent", "shared", "private", "read", "allow"),
    ("role:member", "*", "memory/daily", "agent", "shared", "private", "read", "allow"),
    ("role:member", "*", "memory/daily", "agent", "shared", "*", "append", "allow"),
    ("role:member", "*", "memory/personal/*", "self", "own", "private", "*", "allow"),
    ("role:member", "*", "memory/personal/instructions", "self", "own", "*", "edit", "allow"),
]
SUPERVISOR: list[Fields] = [
    ("role:supervisor", "*", "session/private", "agent", "any", "private", "read", "allow"),
    ("role:supervisor", "*", "memory/longterm", "agent", "shared", "private", "remember", "allow"),
    ("role:supervisor", "*", "memory/*", "agent", "shared", "private", "promote", "allow"),
    ("role:supervisor", "*", "memory/dreams", "agent", "shared", "private", "read", "allow"),
]
OFFICE: list[Fields] = [
    ("role:auditor", "*", "admin/audit", "self", "own", "*", "read", "allow"),
    ("role:admin", "*", "admin/*", "self", "own", "private", "read", "allow"),
    ("role:admin", "*", "admin/*", "self", "own", "private", "edit", "allow"),
    ("role:admin", "*", "admin/policy", "self", "own", "private", "publish", "allow"),
    ("role:admin", "*", "admin/people", "self", "own", "private", "merge", "allow"),
    ("role:owner", "*", "admin/*", "self", "own", "private", "*", "allow"),
    ("role:connector", "*", "gateway", "self", "own", "*", "connect", "allow"),
    ("role:decider", "*", "gateway", "self", "own", "private", "decide", "allow"),
    ("role:guest", "*", "memory/rules", "agent", "shared", "*", "load", "allow"),
    ("role:guest", "*", "memory/shared", "agent", "shared", "*", "load", "allow"),
]
WIDE: list[Fields] = [
    ("*", "*", "*", "all", "any", "*", "*", "allow"),
    ("role:member", "*", "session/*", "all", "any", "*", "*", "allow"),
    ("role:member", "*", "memory/*", "all", "any", "*", "*", "allow"),
    ("role:supervisor", "*", "*", "all", "any", "private", "read", "allow"),
    ("role:pilot", "*", "session/*", "all", "shared", "*", "write", "allow"),
    ("role:owner", "*", "*", "all", "any", "*", "impersonate", "allow"),
    ("role:member", "*", "admin/people", "self", "own", "*", "impersonate", "allow"),
]

ROLES = ("member", "supervisor", "auditor", "admin", "owner", "connector", "decider", "pilot")
SESSION_RESOURCES = ("session/private", "session/shared", "session/*")
SESSION_ACTIONS = (
    "create",
    "enter",
    "list",
    "history",
    "search",
    "status",
    "send",
    "spawn",
    "post",
    "participants",
    "owner",
    "archive",
    "reset",
    "delete",
)
MEMORY_RESOURCES = (
    "memory/rules",
    "memory/shared",
    "memory/longterm",
    "memory/daily",
    "memory/dreams",
    "memory/personal/instructions",
    "memory/personal/longterm",
    "memory/personal/daily",
    "memory/personal/*",
    "memory/*",
)
MEMORY_ACTIONS = ("load", "search", "get", "append", "edit", "remember", "forget", "propose", "promote", "vouch")
OFFICE_RESOURCES = (
    "admin/policy",
    "admin/people",
    "admin/agents",
    "admin/audit",
    "admin/dreaming",
    "admin/tenants",
    "gateway",
    "admin/*",
)
OFFICE_ACTIONS = ("read", "edit", "publish", "export", "erase", "merge", "impersonate", "decide", "connect")
AREAS = (
    (SESSION_RESOURCES, SESSION_ACTIONS),
    (MEMORY_RESOURCES, MEMORY_ACTIONS),
    (OFFICE_RESOURCES, OFFICE_ACTIONS),
)
GROUPS = ("read", "write", "*")


def document(rng: Random, people: list[str], agents: list[str], now: datetime) -> str:
    """The text of a document for these profile ids and agents."""
    if rng.random() < 0.03:
        return ""
    rows = usual_rows(rng)
    for _ in range(rng.choice((0, 1, 1, 2, 3, 4, 6))):
        bend(rng, rows, people, agents, now)
    lines = ["p, " + ", ".join(row) for row in dict.fromkeys(rows)]
    lines += [f"g, {narrower}, {wider}" for narrower, wider in links(rng)]
    if rng.random() < 0.2:
        lines.insert(0, "# what our team may see")
    return "\n".join(lines) + "\n"


def usual_rows(rng: Random) -> list[Fields]:
    """The blocks that most documents are made of."""
    rows: list[Fields] = []
    if rng.random() < 0.85:
        rows += MEMBER
    if rng.random() < 0.5:
        rows += SUPERVISOR
    if rng.random() < 0.6:
        rows += rng.sample(OFFICE, rng.randint(3, len(OFFICE)))
    while rng.random() < 0.45:
        rows.append(rng.choice(WIDE))
    return rows


def links(rng: Random) -> list[tuple[str, str]]:
    """`g` rows, without a circle."""
    found = []
    if rng.random() < 0.75:
        found.append(("role:supervisor", "role:member"))
    if rng.random() < 0.3:
        found.append(("role:pilot", "role:member"))
    if rng.random() < 0.2:
        found.append(("role:owner", "role:admin"))
    if rng.random() < 0.15:
        found.append(("role:owner", "role:supervisor"))
    return found


def bend(rng: Random, rows: list[Fields], people: list[str], agents: list[str], now: datetime) -> None:
    """One change such as an admin makes: a row less, a word changed, an end, a new row."""
    change = rng.choice(("drop", "word", "word", "until", "allow", "allow", "deny", "deny"))
    if change in ("allow", "deny") or not rows:
        rows.append(new_row(rng, people, agents, "deny" if change == "deny" else "allow"))
        return
    at = rng.randrange(len(rows))
    if change == "drop":
        del rows[at]
    elif change == "until":
        end = now + timedelta(days=rng.choice((-400, -1, 1, 30, 400)), seconds=rng.randint(1, 3600))
        rows[at] = (*rows[at][:8], end.strftime("%Y-%m-%dT%H:%M:%SZ"))
    else:
        rows[at] = other_word(rng, rows[at], agents)


def other_word(rng: Random, row: Fields, agents: list[str]) -> Fields:
    """The row with one of its fields changed."""
    field = rng.choice((1, 3, 4, 5, 6, 7))
    area = next((area for area in AREAS if row[2] in area[0]), AREAS[0])
    words = {
        1: tuple(agents),
        3: ("self", "tree", "agent", "all"),
        4: ("own", "shared", "any"),
        5: ("private", "group", "*"),
        6: (*area[1], *GROUPS),
        7: ("deny",),
    }[field]
    return (*row[:field], rng.choice(words), *row[field + 1 :])


def new_row(rng: Random, people: list[str], agents: list[str], effect: str) -> Fields:
    """A row made up from the words there are."""
    resources, actions = rng.choices(AREAS, weights=(5, 3, 1))[0]
    subject = rng.choice(("*", "role:member", "role:" + rng.choice(ROLES), "user:" + rng.choice(people)))
    return (
        subject,
        rng.choice(("*", *agents)),
        rng.choice((*resources, "*")),
        rng.choice(("self", "tree", "agent", "all")),
        rng.choice(("own", "shared", "any", "any")),
        rng.choice(("private", "group", "*", "*")),
        rng.choice((*actions, *GROUPS, *GROUPS)),
        effect,
    )
