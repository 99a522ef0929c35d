"""Sentences of the design as documents, questions and the answers that follow from them."""

from __future__ import annotations

from typing import NamedTuple

from tests.oracle.team import EVERYTHING, SKETCH, asks
from tests.oracle.world import GUEST, STRANGER, OnFile, OnSession, Request


class Case(NamedTuple):
    """A sentence of the design, the document it is tried under, and questions with their answers."""

    sentence: str
    policy: str
    asked: list[tuple[Request, bool]]


def modes(mode: str) -> str:
    """One row that lets everybody read in this mode."""
    return f"p, *, *, session/*, {mode}, any, *, read, allow\n"


ORIGIN = "alice's"
SEEN = {  # relation to ORIGIN: an example of it
    "self": ORIGIN,
    "child": "alice's child",
    "child, two steps": "alice's grandchild",
    "child_cross": "alice's child on hotel",
    "same_agent": "bob's",
    "other_agent": "alice's on hotel",
}


def mode_case(mode: str, row: str, *seen: str) -> Case:
    """A row of the table of modes: what is seen, and everything else is not."""
    return Case(row, modes(mode), [(asks("alice", "list", SEEN[one], ORIGIN), one in seen) for one in SEEN])


TEAM_RULES = "p, role:member, *, memory/rules, agent, shared, *, read, allow\n"
CASES = [
    # the table of modes
    mode_case("self", "| self | ✓ | | | | |", "self"),
    mode_case("tree", "| tree | ✓ | ✓ | ✓ | | |", "self", "child", "child, two steps", "child_cross"),
    mode_case("agent", "| agent | ✓ | ✓ | | ✓ | |", "self", "child", "child, two steps", "same_agent"),
    mode_case("all", "| all | ✓ | ✓ | ✓ | ✓ | ✓ |", *SEEN),
    # whose
    *(
        Case(
            f"`whose`: `own` ⊂ `shared` ⊂ `any`: {whose}",
            f"p, *, *, session/*, agent, {whose}, *, read, allow\n",
            [
                (asks("alice", "history", "team"), True),
                (asks("bob", "history", "team"), whose != "own"),
                (asks("dana", "history", "team"), whose == "any"),
            ],
        )
        for whose in ("own", "shared", "any")
    ),
    # chat
    *(
        Case(
            f"`chat`: where the request is made *from*: {chat}",
            f"p, *, *, session/*, all, any, {chat}, read, allow\n",
            [
                (asks("alice", "history", "team"), chat != "group"),
                (asks("alice", "history", "team", "alice's"), chat != "group"),
                (asks("alice", "history", "alice's", "alice's child"), chat != "group"),
                (asks("alice", "history", "team", "team"), chat != "private"),
                (asks("alice", "history", "alice's", "nightly"), chat != "private"),
            ],
        )
        for chat in ("private", "group", "*")
    ),
    # relations
    Case(
        "From outside any session: `self` for sessions that are the person's own or shared with them, `same_agent` "
        "for the others",
        modes("self"),
        [
            (asks("bob", "list", "bob's"), True),
            (asks("bob", "list", "team"), True),
            (asks("bob", "list", "team's grandchild"), True),
            (asks("bob", "list", "alice's"), False),
            (asks("dana", "list", "team"), False),
        ],
    ),
    Case(
        "`same_agent` for the others",
        modes("agent"),
        [(asks("bob", "list", "alice's"), True), (asks("bob", "list", "alice's on hotel"), True)],
    ),
    Case(
        "a child of a child is in the tree",
        modes("tree"),
        [
            (asks("alice", "list", "team's grandchild", "team"), True),
            (asks("alice", "list", "team's grandchild", "team's child"), True),
            (asks("alice", "list", "team", "team's child"), False),
            (asks("alice", "list", "team's helper", "team's child"), False),
        ],
    ),
    Case(
        "for `child_cross` it is the tree root's, since a parent answers for its children",
        "p, *, flight, session/*, tree, any, *, read, allow\n",
        [
            (asks("alice", "history", "alice's child on hotel", "alice's"), True),
            (asks("alice", "history", "alice's child on hotel"), False),
            (asks("alice", "history", "alice's child on hotel", "alice's child on hotel"), False),
            (asks("alice", "history", "alice's grandchild", "alice's child on hotel"), True),
        ],
    ),
    Case(
        "`agent` is the target's",
        "p, *, hotel, session/*, all, any, *, read, allow\n",
        [
            (asks("alice", "history", "alice's on hotel", "alice's"), True),
            (asks("alice", "history", "alice's child on hotel", "alice's"), False),
            (asks("alice", "history", "alice's", "alice's on hotel"), False),
        ],
    ),
    Case(
        "We don't: that exception is how one person reads another",
        modes("tree"),
        [
            (asks("alice", "list", "bob's", "alice's"), False),
            (asks("alice", "list", "alice's second", "alice's"), False),
        ],
    ),
    # private and shared
    Case(
        "`session/private`, `session/shared` (by what the *target* is)",
        "p, *, *, session/private, all, any, *, read, allow\n",
        [
            (asks("dana", "history", "alice's", "team"), True),
            (asks("dana", "history", "alice's child", "team"), True),
            (asks("dana", "history", "alice's helper", "team"), True),
            (asks("dana", "history", "alice's group child"), False),
            (asks("dana", "history", "team", "bob's"), False),
            (asks("dana", "history", "team's helper"), False),
            (asks("dana", "history", "room"), False),
            (asks("dana", "history", "nightly"), False),
            (asks("dana", "history", "odd"), False),
            (asks("dana", "history", "pair"), False),
        ],
    ),
    Case(
        "so a group can't send a child for what it may not read itself",
        SKETCH,
        [
            (asks("alice", "history", "alice's", "alice's second"), True),
            (asks("alice", "history", "alice's", "team's child"), False),
            (asks("alice", "history", "alice's", "team's helper"), False),
            (asks("alice", "get", "MEMORY.md", "alice's helper"), True),
            (asks("alice", "get", "MEMORY.md", "team's helper"), False),
        ],
    ),
    Case(
        "Leaving a group ends access",
        SKETCH,
        [
            (asks("bob", "history", "team"), True),
            (asks("erin", "history", "team"), False),
            (asks("erin", "enter", "team", "team"), False),
        ],
    ),
    Case(
        "Owner and participants of a child are those of its tree's root",
        SKETCH,
        [
            (asks("bob", "history", "team's grandchild"), True),
            (asks("dana", "history", "team's grandchild"), False),
            (asks("alice", "history", "alice's grandchild"), True),
            (asks("bot", "history", "alice's grandchild"), False),
        ],
    ),
    Case(
        "An unknown kind is treated as `group`",
        SKETCH,
        [(asks("alice", "get", "MEMORY.md", "odd"), False), (asks("alice", "get", "USER.md", "odd"), True)],
    ),
    # subjects
    Case(
        "a row matches if its subject is in the set, so that one decision sees all roles and a deny for any holds",
        EVERYTHING + "p, role:admin, *, session/*, all, any, *, history, deny\n",
        [
            (asks("bob", "history", "team"), True),
            (asks("erin", "history", "team"), False),
            (asks("erin", "list", "team"), True),
        ],
    ),
    Case(
        "closed under `g` … a deny for any of them holds",
        EVERYTHING
        + "p, role:staff, *, session/*, all, any, *, read, deny\n"
        + "g, role:supervisor, role:member\ng, role:member, role:staff\n",
        [
            (asks("dana", "history", "team"), False),
            (asks("bob", "history", "team"), False),
            (asks("frank", "history", "team"), True),
        ],
    ),
    Case(
        "g, role:supervisor, role:member",
        SKETCH,
        [
            (asks("dana", "get", "MEMORY.md"), True),
            (asks("bob", "history", "alice's"), False),
            (asks("dana", "history", "alice's"), True),
        ],
    ),
    Case(
        "`g` goes one way",
        "p, role:supervisor, *, session/*, all, any, *, read, allow\ng, role:supervisor, role:member\n",
        [(asks("dana", "list", "alice's"), True), (asks("bob", "list", "alice's"), False)],
    ),
    Case(
        "the roles held on that agent",
        SKETCH,
        [
            (asks("erin", "get", "USER.md"), True),
            (asks("erin", "get", "hotel:USER.md"), False),
            (asks("frank", "get", "USER.md"), False),
        ],
    ),
    Case(
        "Subjects and roles never share a namespace",
        "p, user:role:member, *, *, all, any, *, *, allow\np, user:bob, *, session/*, all, any, *, read, allow\n",
        [(asks("bob", "list", "alice's"), True), (asks("alice", "list", "bob's"), False)],
    ),
    # effects
    Case("An empty document denies all.", "", [(asks("alice", "list", "alice's"), False)]),
    Case(
        "some allow and no deny. Nothing matched: deny.",
        "p, *, *, session/*, all, any, *, read, deny\n" + EVERYTHING,
        [(asks("alice", "list", "alice's"), False), (asks("alice", "post", "alice's"), True)],
    ),
    Case(
        "`until` ends a row by itself",
        "p, *, *, session/*, all, any, *, list, allow, 2026-11-30T12:00:01Z\n"
        "p, *, *, session/*, all, any, *, history, allow, 2026-11-30T12:00:00Z\n"
        "p, *, *, session/*, all, any, *, status, allow\n"
        "p, *, *, session/*, all, any, *, status, deny, 2026-11-29T00:00:00Z\n",
        [
            (asks("alice", "list", "alice's"), True),
            (asks("alice", "history", "alice's"), False),
            (asks("alice", "status", "alice's"), True),
        ],
    ),
    Case(
        "`x/*` and `*` match",
        "p, *, *, memory/personal/*, self, own, *, get, allow\np, *, *, admin/*, self, own, *, read, allow\n",
        [
            (asks("alice", "get", "users/alice/memory/2026-11-30.md"), True),
            (asks("alice", "get", "memory/2026-11-30.md"), False),
            (asks("alice", "read", "admin/audit"), True),
            (asks("alice", "read", "gateway"), False),
        ],
    ),
    Case(
        "Groups `read` and `write` through `g2`",
        "p, *, *, *, all, any, *, read, allow\n",
        [
            (asks("alice", "search", "alice's"), True),
            (asks("alice", "load", "USER.md"), True),
            (asks("alice", "read", "admin/audit"), True),
            (asks("alice", "send", "alice's"), False),
            (asks("alice", "export", "admin/audit"), False),
        ],
    ),
    Case(
        "Groups `read` and `write` through `g2`: write",
        "p, *, *, *, all, any, *, write, allow\n",
        [
            (asks("alice", "enter", "alice's", "alice's"), True),
            (asks("alice", "append", "memory/2026-11-30.md"), True),
            (asks("alice", "edit", "admin/people"), True),
            (asks("alice", "history", "alice's"), False),
            (asks("alice", "publish", "admin/policy"), False),
        ],
    ),
    Case(
        "Reading as somebody else (`impersonate`) is a right that no shipped role has",
        EVERYTHING + "p, user:erin, *, admin/people, self, own, *, impersonate, allow\n",
        [
            (asks("alice", "impersonate", "admin/people"), False),
            (asks("alice", "merge", "admin/people"), True),
            (asks("erin", "impersonate", "admin/people"), True),
        ],
    ),
    # memory
    Case(
        "one's own (`self`, `own`); the agent's (`same_agent`, `shared`)",
        "p, *, *, memory/*, self, own, *, get, allow\n",
        [(asks("alice", "get", "users/alice/MEMORY.md"), True), (asks("alice", "get", "USER.md"), False)],
    ),
    Case(
        "another agent's (`other_agent`, `shared`)",
        "p, *, *, memory/*, agent, shared, *, get, allow\n",
        [
            (asks("alice", "get", "USER.md", "alice's"), True),
            (asks("alice", "get", "hotel:USER.md", "alice's"), False),
            (asks("alice", "get", "hotel:USER.md"), True),
        ],
    ),
    Case(
        "`admin/*` and `gateway`: (`self`, `own`)",
        "p, role:admin, *, admin/*, self, own, *, *, allow\np, role:member, flight, admin/*, all, any, *, *, allow\n",
        [
            (asks("erin", "edit", "admin/people"), True),
            (asks("bob", "edit", "admin/people"), False),
            (asks("erin", "connect", "gateway"), False),
            (asks("erin", "decide", "gateway"), False),
        ],
    ),
    # invariants: no row can lift them
    Case(
        "other tenant",
        EVERYTHING,
        [
            (asks("alice", "list", "bob's"), True),
            (asks("alice", "list", "zoe's"), False),
            (Request(tenant="other", who="zoe", action="list", target=OnSession("zoe's")), True),
            (Request(tenant="other", who="zoe", action="list", target=OnSession("bob's")), False),
            (Request(tenant="acme", who="zoe", action="list", target=OnSession("bob's")), False),
            (Request(tenant="acme", who="alice", action="get", target=OnFile("other", "flight", "USER.md")), False),
        ],
    ),
    Case(
        "neither profile nor guest",
        TEAM_RULES.replace("role:member", "role:guest") + EVERYTHING.replace("*, allow", "list, allow"),
        [
            (asks(GUEST, "load", "AGENTS.md", "room"), True),
            (asks(GUEST, "load", "USER.md", "room"), False),
            (asks(STRANGER, "load", "AGENTS.md", "room"), False),
            (asks(STRANGER, "list", "room"), False),
        ],
    ),
    Case(
        "captured authority of the retired profile fails closed",
        EVERYTHING,
        [
            (asks("alice2", "list", "alice2's"), False),
            (asks("gone", "list", "team"), False),
            (asks("alice", "list", "alice2's"), True),
        ],
    ),
    Case(
        "alias resolution is one hop, also for policy rows that name the retired id; both private sessions stay",
        "p, user:alice2, *, session/*, self, own, *, read, allow\n",
        [
            (asks("alice", "history", "alice2's"), True),
            (asks("alice", "history", "alice's"), True),
            (asks("alice2", "history", "alice2's"), False),
        ],
    ),
    Case(
        "root `MEMORY.md` from a shared session, by load, get, search",
        EVERYTHING,
        [
            (asks("alice", action, "MEMORY.md", origin), origin in (None, "alice's", "alice's child"))
            for action in ("load", "get", "search")
            for origin in (None, "alice's", "alice's child", "team", "room", "nightly", "team's helper", "odd", "pair")
        ],
    ),
    Case(
        "root `MEMORY.md` from a shared session: another agent's too",
        EVERYTHING,
        [
            (asks("alice", "get", "hotel:MEMORY.md", "team"), False),
            (asks("alice", "get", "hotel:MEMORY.md", "alice's"), True),
            (asks("alice", "get", "users/alice/MEMORY.md", "team"), True),
        ],
    ),
    Case(
        "another person's personal files",
        EVERYTHING,
        [
            (asks("alice", "get", "users/alice/USER.md"), True),
            (asks("alice", "get", "users/bob/USER.md"), False),
            (asks("dana", "load", "users/bob/MEMORY.md", "bob's"), False),
            (asks("alice", "get", "users/alice2/USER.md"), False),
            (asks(GUEST, "get", "users/bob/USER.md", "team"), False),
        ],
    ),
    Case(
        "an incognito session to anybody but itself",
        EVERYTHING,
        [
            (asks("alice", "history", "alice's secret", "alice's secret"), True),
            (asks("alice", "history", "alice's secret"), False),
            (asks("alice", "list", "alice's secret", "alice's"), False),
            (asks("alice", "send", "alice's secret", "alice's second"), False),
            (asks("alice", "history", "alice's second", "alice's secret"), True),
        ],
    ),
    Case(
        "a write to a `MEMORY.md` that is not Deep's",
        EVERYTHING,
        [
            (asks("alice", "append", "MEMORY.md"), False),
            (asks("alice", "edit", "users/alice/MEMORY.md"), False),
            (asks("alice", "remember", "MEMORY.md"), True),
            (asks("alice", "append", "memory/2026-11-30.md"), True),
        ],
    ),
    Case(
        "a tainted turn that writes instructions, remembers, appends to the team or sends elsewhere",
        EVERYTHING,
        [
            (asks("alice", action, target, "alice's", tainted=tainted), allowed or not tainted)
            for tainted in (False, True)
            for action, target, allowed in (
                ("edit", "users/alice/USER.md", False),
                ("remember", "MEMORY.md", False),
                ("append", "memory/2026-11-30.md", False),
                ("send", "team", False),
                ("send", "alice's", True),
                ("append", "users/alice/memory/2026-11-30.md", True),
                ("get", "MEMORY.md", True),
            )
        ],
    ),
    # the sandbox
    Case(
        "the relations that a policy allows are intersected with `tree`",
        EVERYTHING,
        [
            (asks("alice", "history", "alice's box", "alice's box"), True),
            (asks("alice", "history", "box's child", "alice's box"), True),
            (asks("alice", "history", "alice's", "alice's box"), False),
            (asks("alice", "history", "alice's on hotel", "alice's box"), False),
            (asks("alice", "history", "alice's box", "box's child"), False),
            (asks("alice", "history", "alice's box"), True),
            (asks("alice", "get", "MEMORY.md", "alice's box"), True),
        ],
    ),
    Case(
        "OpenClaw widens a `self` there; we don't",
        modes("self"),
        [
            (asks("alice", "history", "alice's box", "alice's box"), True),
            (asks("alice", "history", "box's child", "alice's box"), False),
        ],
    ),
    # what is to be
    Case(
        "A person's private session with an agent … opened on first use",
        SKETCH,
        [
            (asks("alice", "create", "new:flight:direct"), True),
            (asks("erin", "create", "new:flight:group"), True),
            (asks("erin", "create", "new:hotel:direct"), False),
        ],
    ),
    Case(
        "spawn a child (any depth, other agent)",
        SKETCH,
        [
            (asks("alice", "spawn", "new:flight:subagent", "alice's"), True),
            (asks("alice", "spawn", "new:hotel:subagent", "alice's grandchild"), True),
            (asks("bob", "spawn", "new:hotel:subagent", "team"), True),
            (asks("dana", "spawn", "new:flight:subagent", "team"), False),
        ],
    ),
]
