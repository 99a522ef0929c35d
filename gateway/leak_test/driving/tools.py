"""Tools: each from every kind of session of one's own about everybody's, and from inside everybody else's."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace

from gateway.leak_test.driver import Driver, Probe, Twin, in_path
from gateway.leak_test.driving import memory
from gateway.leak_test.driving.targets import NOTHING, enterable, few_sessions, missing_session, titles, victims, words
from gateway.leak_test.driving.toolbox import Bench, tool_row
from gateway.leak_test.markers import BAIT, Mark, Sort
from gateway.leak_test.world import Caller, Person, PlantedSession
from gateway.model import Action

_LISTED = {Sort.TITLE: Action.LIST, Sort.MESSAGE: Action.HISTORY}
_WORDS = {Sort.MESSAGE: Action.HISTORY}
_FOUND = {Sort.MESSAGE: Action.SEARCH}
_STATUS = {Sort.TITLE: Action.STATUS}


async def sessions_list(bench: Bench) -> None:
    """`sessions_list`: all of it, with messages, and narrowed by everybody's titles."""
    sessions = bench.world.sessions
    await _all_pages(bench, "sessions_list", {"limit": 100}, titles(sessions))
    for body in (
        {"limit": 200, "messageLimit": 3},
        {"limit": 200, "kinds": ["subagent", "cron"]},
        {"limit": 200, "agentId": bench.elsewhere},
        {"limit": 200, "activeMinutes": 60},
    ):
        await bench.call("sessions_list", body, _LISTED)
    if not bench.thorough:
        return
    for victim in victims(bench.world):
        theirs = [one for one in sessions if one.planted_for is victim]
        denied = not any(bench.may(Action.LIST, one) for one in theirs)
        twin = _like_nothing(bench, "sessions_list", {"search": NOTHING}, victim, "titles") if denied else None
        await bench.call("sessions_list", {"search": victim.bait}, _LISTED, twin=twin)


async def _all_pages(bench: Bench, tool: str, body: dict[str, object], due: Iterable[Mark]) -> None:
    seen: set[Mark] = set()
    cursor: object = None
    for _ in range(10):
        page = await bench.call(tool, body if cursor is None else body | {"cursor": cursor}, _LISTED)
        seen |= page.marks
        cursor = page.json.get("result", {}).get("nextCursor")
        if not cursor:
            break
    bench.driver.due(bench.probe(tool, body, _LISTED), due, frozenset(seen))


async def sessions_history(bench: Bench) -> None:
    """`sessions_history` of every session from one's private one, of a few from the others."""
    for session in bench.targets:
        body = {"sessionKey": session.key, "limit": 200, "includeTools": True}
        denied = not bench.may(Action.HISTORY, session)
        twin = _missing(bench, "sessions_history", body, session) if denied else None
        await bench.call("sessions_history", body, _WORDS, due=words(session), twin=twin)
    for word in ("current", "main"):
        first = await bench.call("sessions_history", {"sessionKey": word, "limit": 1}, _WORDS)
        cursor = first.json.get("result", {}).get("nextCursor")
        if cursor:
            await bench.call("sessions_history", {"sessionKey": word, "cursor": cursor}, _WORDS)


async def sessions_search(bench: Bench) -> None:
    """`sessions_search` by the words that stand beside everybody's marks, over all and within each session."""
    await bench.call("sessions_search", {"query": BAIT, "limit": 200}, _FOUND)
    for victim in bench.victims:
        theirs = [one for one in bench.world.sessions if one.planted_for is victim]
        denied = not any(bench.may(Action.SEARCH, one) for one in theirs)
        twin = _like_nothing(bench, "sessions_search", {"query": NOTHING}, victim, "messages") if denied else None
        due = tuple(mark for one in theirs for mark in words(one))
        body: dict[str, object] = {"query": victim.bait, "limit": 200}
        await bench.call(
            "sessions_search", body if twin is None else {"query": victim.bait}, _FOUND, due=due, twin=twin
        )
    for session in bench.targets if bench.thorough else bench.targets[::5]:
        body = {"query": BAIT, "sessionKey": session.key}
        twin = None if bench.may(Action.SEARCH, session) else _missing(bench, "sessions_search", body, session)
        await bench.call("sessions_search", body, _FOUND, due=words(session), twin=twin)


async def session_status(bench: Bench) -> None:
    """`session_status` of a few sessions of everybody, by key and by id."""
    for word in ("current", "main"):
        await bench.call("session_status", {"sessionKey": word}, _STATUS)
    for session in few_sessions(bench.world) if bench.thorough else bench.targets[::3]:
        body: dict[str, object] = {"sessionKey": session.id if session.private else session.key}
        denied = not bench.may(Action.STATUS, session)
        due = () if session.title is None else (session.title,)
        twin = _missing(bench, "session_status", body, session) if denied else None
        await bench.call("session_status", body, _STATUS, due=due, twin=twin)


async def sessions_spawn(bench: Bench) -> None:
    """`sessions_spawn`: what is opened is new, and nothing of anybody's is in the answer."""
    body = {"task": "Look it up.", "label": "errand", "sandboxed": True}
    await bench.call("sessions_spawn", body, {})
    await bench.call("sessions_spawn", {"task": "Look it up.", "agentId": bench.elsewhere}, {})


async def personal_instructions(bench: Bench) -> None:
    """`personal_instructions`: one's own from everywhere; a change from what was never read is a conflict."""
    own = tuple(
        one.mark for one in bench.world.files
        if one.loads_as == "personal" and one.owner is bench.caller.person and one.mark is not None
        and one.agent == bench.origin.agent
    )  # fmt: skip
    got = {Sort.FILE: Action.GET}
    await bench.call("personal_instructions", {"action": "get"}, got, due=own)
    await bench.call("personal_instructions", {"action": "get", "agentId": bench.elsewhere}, got)
    stale = {"action": "set", "content": "Short.", "expectedHash": "0" * 64}
    await bench.call("personal_instructions", stale, {Sort.FILE: Action.EDIT})
    await bench.call("personal_instructions", {"action": "set", "person": "alice"}, {})


TOOLS: Mapping[str, Callable[[Bench], Awaitable[None]]] = {
    "sessions_list": sessions_list,
    "sessions_history": sessions_history,
    "sessions_search": sessions_search,
    "session_status": session_status,
    "sessions_spawn": sessions_spawn,
    "memory_get": memory.memory_get,
    "memory_append": memory.memory_append,
    "personal_instructions": personal_instructions,
}
# From inside somebody else's session one request of each is enough: whoever got in would see at once.
_INSIDE: Mapping[str, Mapping[str, object]] = {
    "sessions_list": {"limit": 200, "messageLimit": 3},
    "sessions_history": {"sessionKey": "current"},
    "sessions_search": {"query": BAIT},
    "session_status": {},
    "sessions_spawn": {"task": "Look it up."},
    "memory_get": {"path": "MEMORY.md"},
    "memory_append": {"scope": "shared", "text": "A fact."},
    "personal_instructions": {"action": "get"},
}
_SHOWN_INSIDE = {
    "sessions_list": _LISTED,
    "sessions_history": _WORDS,
    "sessions_search": _FOUND,
    "session_status": _STATUS,
    "memory_get": {Sort.FILE: Action.GET},
    "personal_instructions": {Sort.FILE: Action.GET},
}


async def drive(driver: Driver, caller: Caller) -> None:
    """Every tool that there is a way to ask, from everywhere that the caller gets in and from everywhere else."""
    mine = enterable(driver, caller)
    for origin in mine:
        bench = Bench(driver, caller, origin, thorough=origin is mine[0])
        for name, ask in TOOLS.items():
            if driver.wanted(tool_row(name)):
                await ask(bench)
    for session in few_sessions(driver.world):
        if session not in mine and not driver.expectation.enters(caller, session):
            await _from_inside(driver, caller, session)


async def _from_inside(driver: Driver, caller: Caller, session: PlantedSession) -> None:
    for tool, body in _INSIDE.items():
        path = f"/v1/sessions/{{session}}/tools/{tool}"
        await driver.send(
            Probe(
                caller=caller,
                row=tool_row(tool),
                method="POST",
                target=path.replace("{session}", in_path(session.key)),
                body=dict(body),
                origin=session,
                shows=_SHOWN_INSIDE.get(tool, {}),
                twin=missing_session(path, session, session.key, dict(body)),
            )
        )


def _missing(bench: Bench, tool: str, body: dict[str, object], session: PlantedSession) -> Twin:
    """The same call about a session that is not there."""
    reference = str(body["sessionKey"])
    twin = missing_session("", session, reference, None)
    return replace(twin, target=bench.target(tool), body=body | {"sessionKey": twin.other})


def _like_nothing(bench: Bench, tool: str, body: dict[str, object], victim: Person, what: str) -> Twin:
    return Twin(
        target=bench.target(tool),
        body=body,
        real=victim.bait,
        other=NOTHING,
        whose=victim.name,
        what=f"{victim.name}'s {what} (that there are some)",
    )


async def appending(driver: Driver, caller: Caller) -> None:
    """`memory_append` as it is meant, and `sessions_spawn`: what they answer is where it went."""
    for origin in enterable(driver, caller)[:4]:
        bench = Bench(driver, caller, origin, thorough=False)
        for scope in ("personal", "shared"):
            await bench.call("memory_append", {"scope": scope, "text": "A fact."}, {})
