"""200 questions asked of the decision point, and the same things really done through `/v1`: equal, each time."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

from gateway.policy.shipped import shipped
from tests.authzen.conftest import Desk

QUESTIONS = 240
PEOPLE = ("alice", "bob", "carol", "dana", "erin", "audrey", "olga", "frank")


async def test_200_evaluations_agree_with_the_same_questions_through_v1(desk: Desk) -> None:
    """Issue 4, proof 4. Random people, sessions of every kind, files and tools, from outside and inside; what is asked
    for is then done (reads, and posts, which take nothing away), so that neither side can answer from the other."""
    home, dice = desk.home, random.Random("agreement")
    await home.add_agent("hotel")
    await home.add("frank", "supervisor", agent="hotel")
    rows = [
        f"p, user:{home.id('carol')}, flight, session/private, agent, any, private, history, allow",
        f"p, user:{home.id('bob')}, *, session/shared, all, any, *, status, deny",
        "p, role:supervisor, *, session/*, tree, any, *, enter, allow",
        "p, role:supervisor, *, session/shared, agent, any, private, read, allow",
        "p, role:auditor, *, memory/daily, agent, shared, *, get, allow",
        "p, role:auditor, *, session/private, self, own, private, *, allow",
    ]
    await home.publish("\n".join([shipped("default.csv"), *rows]))
    sessions = await _sessions(desk)
    seen: Counter[tuple[str, bool]] = Counter()

    for _ in range(QUESTIONS):
        who = dice.choice(PEOPLE)
        way, question, request = dice.choice((_over_rest, _by_tool, _a_file, _their_own, _inside, _a_tool))(
            desk, dice, who, sessions
        )
        decided = await desk.decides({"subject": {"type": "user", "id": home.id(who)}, **question})
        done = await _done(desk, who, *request)
        assert decided == done, (way, who, question, request)
        seen[way, decided] += 1

    assert sum(seen.values()) >= 200
    assert sum(count for (_, allowed), count in seen.items() if allowed) > 50
    assert sum(count for (_, allowed), count in seen.items() if not allowed) > 50
    assert len({way for way, _ in seen}) == 6


async def _sessions(desk: Desk) -> list[str]:
    """Private, group, channel, child, incognito, sandboxed, on two agents; and one that is not there."""
    home = desk.home
    return [
        desk.private,
        desk.group,
        await home.open("bob"),
        await home.open("dana"),
        await home.open("audrey"),
        await home.open("bob", incognito=True),
        await home.open("dana", "channel", participants=[home.id("alice")]),
        await home.open("alice", "subagent", parent=desk.group),
        await home.open("alice", "subagent", parent=desk.private),
        await home.open("alice", sandboxed=True, name="box"),
        await home.open("frank", agent="hotel"),
        await home.open("alice", "group", agent="hotel", participants=[home.id("frank")]),
        "agent:flight:nothing:here",
    ]


async def _done(desk: Desk, who: str, method: str, path: str, body: object) -> bool:
    """Whether it was done: refused is 403 or 404, or a tool's `not_found`; anything else is a fault of this test."""
    answer = await desk.home.send(who, method, path, body)
    assert answer.status_code in (200, 201, 403, 404), (path, answer.status_code, answer.text)
    found = '"status":"not_found"' not in answer.text
    return answer.status_code < 300 and found


def _over_rest(_desk: Desk, dice: random.Random, _who: str, sessions: list[str]) -> Any:
    """From outside any session: one session's facts, or its messages."""
    key = dice.choice(sessions)
    action, tail = dice.choice((("status", ""), ("history", "/messages")))
    return "rest", _about(action, "session", key), ("GET", f"/v1/sessions/{key}{tail}", None)


def _by_tool(_desk: Desk, dice: random.Random, _who: str, sessions: list[str]) -> Any:
    """From inside one session about another."""
    here, key = dice.choice(sessions), dice.choice(sessions)
    action, tool = dice.choice((("history", "sessions_history"), ("status", "session_status")))
    request = ("POST", f"/v1/sessions/{here}/tools/{tool}", {"sessionKey": key})
    return "tool", {**_about(action, "session", key), "context": {"session": here}}, request


def _a_file(desk: Desk, dice: random.Random, who: str, sessions: list[str]) -> Any:
    """A memory file that is there, from inside a session."""
    here = dice.choice(sessions)
    agent = "hotel" if here.startswith("agent:hotel") else "flight"
    path = dice.choice(("USER.md", "MEMORY.md", "memory/2026-12-01.md", "users/{}/USER.md", "AGENTS.md", "notes.txt"))
    path = path.format(desk.home.id(dice.choice((who, "alice"))))
    _write(desk, agent, path)
    question = {**_about("get", "memory", f"{agent}/{path}"), "context": {"session": here}}
    return "file", question, ("POST", f"/v1/sessions/{here}/tools/memory_get", {"path": path})


def _their_own(desk: Desk, dice: random.Random, who: str, _sessions: list[str]) -> Any:
    """One's own instructions, from outside any session; on an agent that is there or not."""
    agent = dice.choice(("flight", "hotel", "train"))
    file = f"{agent}/users/{desk.home.id(who)}/USER.md"
    return "own", _about("get", "memory", file), ("GET", f"/v1/agents/{agent}/personal-instructions", None)


def _inside(_desk: Desk, dice: random.Random, _who: str, sessions: list[str]) -> Any:
    """Entering, and saying something, which are asked from inside the session itself."""
    key = dice.choice(sessions)
    if dice.random() < 0.5:
        return "inside", _about("enter", "session", key), ("POST", f"/v1/sessions/{key}/context", {})
    request = ("POST", f"/v1/sessions/{key}/messages", {"role": "user", "content": "hello"})
    return "inside", _about("post", "session", key), request


def _a_tool(_desk: Desk, dice: random.Random, _who: str, sessions: list[str]) -> Any:
    """Running a tool about the session that it is called from."""
    here = dice.choice(sessions)
    tool, arguments = dice.choice(
        (("session_status", {}), ("sessions_history", {"sessionKey": "current"}), ("sessions_spawn", {"task": "Look."}))
    )
    question = {**_about("run", "tool", tool), "context": {"session": here}}
    return "run", question, ("POST", f"/v1/sessions/{here}/tools/{tool}", arguments)


def _about(action: str, kind: str, name: str) -> dict[str, Any]:
    return {"action": {"name": action}, "resource": {"type": kind, "id": name}}


def _write(desk: Desk, agent: str, path: str) -> None:
    """The file, so that a refusal is not a file that is missing; and none has the text of another."""
    file = desk.home.gateway.folders.root / desk.home.tenant / agent / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"The text of {agent}/{path}.\n", encoding="utf-8")
