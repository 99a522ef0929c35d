"""Sessions over REST: lists with every filter, each session and its messages, and every change that is refused."""

from __future__ import annotations

from gateway.leak_test.driver import Driver, Probe, Twin, in_path
from gateway.leak_test.driving.targets import (
    NOTHING,
    about,
    all_sessions,
    few_sessions,
    missing_session,
    own_tenant,
    pages,
    titles,
    victims,
    words,
)
from gateway.leak_test.markers import Sort
from gateway.leak_test.world import Caller, PlantedSession
from gateway.model import Action

ONE = "/v1/sessions/{session}"
_LISTED = {Sort.TITLE: Action.LIST}
_TITLES = {Sort.TITLE: Action.STATUS}
_WORDS = {Sort.MESSAGE: Action.HISTORY}
KINDS = ("direct", "group", "channel", "subagent", "cron")
RELATIONS = ("self", "child", "child_cross", "same_agent", "other_agent")


# ── lists ────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def lists(driver: Driver, caller: Caller) -> None:
    """`GET /v1/sessions`."""
    await _listing(driver, caller, "GET /v1/sessions", "/v1/sessions", list(driver.world.sessions))


async def lists_of_agents(driver: Driver, caller: Caller) -> None:
    """`GET /v1/agents/{agent}/sessions`."""
    for agent in driver.world.agents:
        here = [one for one in driver.world.sessions if one.agent == agent]
        await _listing(driver, caller, "GET /v1/agents/{agent}/sessions", f"/v1/agents/{agent}/sessions", here)


async def _listing(driver: Driver, caller: Caller, row: str, path: str, sessions: list[PlantedSession]) -> None:
    def listing(query: str, twin: Twin | None = None) -> Probe:
        return Probe(caller=caller, row=row, method="GET", target=f"{path}?{query}", shows=_LISTED, twin=twin)

    await pages(driver, listing("limit=50"), titles(sessions))
    for kind in KINDS:
        await pages(driver, listing(f"limit=200&kind={kind}"), titles(one for one in sessions if one.kind == kind))
    for relation in RELATIONS:
        await pages(driver, listing(f"limit=200&relation={relation}"), ())
    foreign = await pages(driver, listing("limit=1"), (), most=1)
    if foreign is not None and (cursor := foreign.json.get("next_cursor")):
        driver.cursors.setdefault(row, str(cursor))
    if row in driver.cursors:  # somebody else's place in the list
        await driver.send(listing(f"limit=200&cursor={driver.cursors[row]}"))
    for victim in victims(driver.world):
        theirs = [one for one in sessions if one.planted_for is victim]
        denied = not any(driver.expectation.session(caller, None, Action.LIST, one) for one in theirs)
        same = _nothing_found(f"{path}?q={NOTHING}", victim.bait, victim.name) if denied else None
        await pages(driver, listing(f"limit=200&q={victim.bait}"), titles(theirs)) if not denied else await driver.send(
            listing(f"q={victim.bait}", same)
        )


def _nothing_found(target: str, bait: str, name: str) -> Twin:
    """A filter by a title's words finds as much as one by words that stand nowhere."""
    return Twin(target=target, real=bait, other=NOTHING, whose=name, what=f"{name}'s titles (that there are some)")


# ── one session ──────────────────────────────────────────────────────────────────────────────────────────────────────


async def shown(driver: Driver, caller: Caller) -> None:
    """`GET /v1/sessions/{session}`, by key and by id."""
    for session in all_sessions(driver, caller):
        due = () if session.title is None or session.gone else (session.title,)
        probe = about(driver, caller, session, Action.STATUS, f"GET {ONE}", shows=_TITLES, due=due)
        if probe is not None:
            await driver.send(probe)
    for session in few_sessions(driver.world):
        by_id = about(driver, caller, session, Action.STATUS, f"GET {ONE}", reference=session.id, shows=_TITLES)
        if by_id is not None:
            await driver.send(by_id)


async def messages(driver: Driver, caller: Caller) -> None:
    """`GET /v1/sessions/{session}/messages`, whole, in pages, and with another transcript's cursor."""
    row = f"GET {ONE}/messages"
    for session in all_sessions(driver, caller):
        due = words(session)
        probe = about(driver, caller, session, Action.HISTORY, row, query="?limit=200", shows=_WORDS, due=due)
        if probe is not None:
            await driver.send(probe)
    for session in few_sessions(driver.world):
        first = about(driver, caller, session, Action.HISTORY, row, query="?limit=1", shows=_WORDS)
        if first is None:
            return
        seen = await driver.send(first)
        if cursor := seen.json.get("next_cursor"):
            driver.cursors[row] = str(cursor)
        if row in driver.cursors:
            query = f"?limit=200&cursor={driver.cursors[row]}"
            foreign = about(driver, caller, session, Action.HISTORY, row, query=query, shows=_WORDS)
            if foreign is not None:
                await driver.send(foreign)


async def posting(driver: Driver, caller: Caller) -> None:
    """`POST /v1/sessions/{session}/messages` where it is refused; what is sent is no mark."""
    await _refused(
        driver, caller, f"POST {ONE}/messages", Action.POST, {"role": "user", "content": "hello"}, {}, inside=True
    )


# ── changes that are refused ─────────────────────────────────────────────────────────────────────────────────────────


async def _refused(
    driver: Driver,
    caller: Caller,
    row: str,
    action: Action,
    body: object,
    shows: dict[Sort, Action],
    *,
    inside: bool = False,
    every: int = 1,
) -> None:
    """A change of everybody's sessions, each only where it is refused: what was planted has to stay."""
    for session in few_sessions(driver.world)[::every]:
        probe = about(driver, caller, session, action, row, body=body, shows=shows, inside=inside)
        if probe is not None and probe.twin is not None:
            await driver.send(probe)


async def patching(driver: Driver, caller: Caller) -> None:
    """`PATCH /v1/sessions/{session}`: the title, the people, both, and what can't be read."""
    row, me = f"PATCH {ONE}", "" if caller.person is None else caller.person.id
    await _refused(driver, caller, row, Action.POST, {"title": "mine now"}, {Sort.TITLE: Action.POST})
    await _refused(
        driver, caller, row, Action.PARTICIPANTS, {"participants": [me]}, {Sort.TITLE: Action.PARTICIPANTS}, every=3
    )
    await _refused(
        driver, caller, row, Action.POST, {"title": "mine", "participants": [me]}, {Sort.TITLE: Action.POST}, every=3
    )
    await _refused(driver, caller, row, Action.POST, {"titel": 1}, {}, every=3)  # a fault tells nothing either


async def owning(driver: Driver, caller: Caller) -> None:
    """`PUT /v1/sessions/{session}/owner`, to oneself."""
    me = "prf_" + "0" * 26 if caller.person is None else caller.person.id
    await _refused(driver, caller, f"PUT {ONE}/owner", Action.OWNER, {"profile": me}, {Sort.TITLE: Action.OWNER})


async def archiving(driver: Driver, caller: Caller) -> None:
    """`POST /v1/sessions/{session}/archive`."""
    await _refused(driver, caller, f"POST {ONE}/archive", Action.ARCHIVE, None, {Sort.TITLE: Action.ARCHIVE})


async def resetting(driver: Driver, caller: Caller) -> None:
    """`POST /v1/sessions/{session}/reset`."""
    await _refused(driver, caller, f"POST {ONE}/reset", Action.RESET, None, {Sort.TITLE: Action.RESET})


async def deleting(driver: Driver, caller: Caller) -> None:
    """`DELETE /v1/sessions/{session}`."""
    await _refused(driver, caller, f"DELETE {ONE}", Action.DELETE, None, {})


async def creating(driver: Driver, caller: Caller) -> None:
    """`POST /v1/agents/{agent}/sessions`: one's own private one, one of others' names, and children of others'."""
    row = "POST /v1/agents/{agent}/sessions"
    shows = {Sort.TITLE: Action.CREATE}
    for agent in driver.world.agents:
        for body in (
            {"kind": "direct"},
            {"kind": "direct", "name": "notes"},
            {"kind": "direct", "title": "errand", "incognito": True, "sandboxed": True},
            {"kind": "group", "participants": [one.id for one in victims(driver.world)]},
            {"kind": "nonsense"},
        ):
            target = f"/v1/agents/{agent}/sessions"
            await driver.send(Probe(caller=caller, row=row, method="POST", target=target, body=body, shows=shows))
    for session in few_sessions(driver.world):
        if session.tenant == own_tenant(driver.world, caller) and driver.expectation.enters(caller, session):
            continue
        twin = missing_session("/v1/agents/flight/sessions", session, session.key, None)
        body = {"kind": "subagent", "parent": session.key}
        twin = Twin(
            target=twin.target,
            body={"kind": "subagent", "parent": twin.other},
            real=twin.real,
            other=twin.other,
            whose=twin.whose,
            what=twin.what,
        )
        await driver.send(
            Probe(caller=caller, row=row, method="POST", target=twin.target, body=body, origin=session, twin=twin)
        )


# ── the owner's own, at the end ──────────────────────────────────────────────────────────────────────────────────────


async def spare_session(driver: Driver, caller: Caller) -> None:
    """Every change of a session of one's own that nothing else needs: what the answer shows is its owner's to see."""
    for session in driver.world.sessions:
        if session.what != "spare session" or session.owner is not caller.person or session.title is None:
            continue
        if caller.bound is not None or caller.scopes != frozenset({"*"}):
            return
        title = {"title": f"{session.owner.bait} {session.title.word}"}
        people = {"participants": [session.owner.id]}
        steps = (
            ("PATCH", "", title, Action.POST),
            ("PATCH", "", people, Action.PARTICIPANTS),
            ("PATCH", "", title | people, Action.POST),
            ("PUT", "/owner", {"profile": session.owner.id}, Action.OWNER),
            ("POST", "/reset", None, Action.RESET),
            ("POST", "/archive", None, Action.ARCHIVE),
            ("DELETE", "", None, Action.DELETE),
        )
        for method, more, body, action in steps:
            await driver.send(
                Probe(
                    caller=caller,
                    row=f"{method} {ONE}{more}",
                    method=method,
                    target=f"/v1/sessions/{in_path(session.key)}{more}",
                    body=body,
                    shows={Sort.TITLE: action},
                )
            )
