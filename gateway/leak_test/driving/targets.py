"""Turns a caller into where they ask from and whom they ask about, and a session into a request about it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from gateway.leak_test.cast import OURS
from gateway.leak_test.driver import NO_SESSION, Driver, Probe, Seen, Twin, in_path
from gateway.leak_test.markers import Mark
from gateway.leak_test.planting import TEAM_ROOM
from gateway.leak_test.world import Caller, Person, PlantedSession, World
from gateway.model import Action

NOTHING = "zzxqnothingzz"  # stands nowhere
# What each caller asks from, in this order; of several of a kind the first.
ORIGINS = (
    "private session",
    "private session elsewhere",
    TEAM_ROOM,
    "group",
    "child",
    "child on another agent",
    "sandboxed child",
    "incognito session",
    "cron session",
    "channel session",
    "child of the group",
    "named session",
)


def own_sessions(world: World, caller: Caller) -> list[PlantedSession]:
    """One of each kind that the caller owns or takes part in; their own before others'."""
    person = caller.person
    if person is None:
        return []
    mine = [one for one in world.sessions if not one.gone and person.id in one.root.people]
    mine.sort(key=lambda one: one.planted_for is not person)
    found: dict[str, PlantedSession] = {}
    for session in mine:
        found.setdefault(session.what, session)
    return [found[what] for what in ORIGINS if what in found]


def enterable(driver: Driver, caller: Caller) -> list[PlantedSession]:
    """Those of their own sessions that the policy lets them into."""
    return [one for one in own_sessions(driver.world, caller) if driver.expectation.enters(caller, one)]


def victims(world: World) -> Iterator[Person]:
    """Everybody that something was planted for."""
    return (one for one in world.people if one.plants)


def all_sessions(driver: Driver, caller: Caller) -> list[PlantedSession]:
    """Every session for whoever gets into one; a few of everybody's for whoever gets nowhere."""
    return driver.world.sessions if enterable(driver, caller) else few_sessions(driver.world)


def few_sessions(world: World) -> list[PlantedSession]:
    """Of everybody the private session and the group."""
    return [one for one in world.sessions if one.what in ("private session", "group") or one is world.chat]


def own_tenant(world: World, caller: Caller) -> str:
    """The tenant whose things the caller may have a right to."""
    return caller.tenant or OURS


def about(
    driver: Driver, caller: Caller, session: PlantedSession, action: Action, row: str, **more: Any
) -> Probe | None:
    """A probe of one session over its own route, `{session}` filled in. None where it is not wanted in this run."""
    if not driver.wanted(row):
        return None
    method, _, path = row.partition(" ")
    origin = session if more.pop("inside", False) else asked_from(caller, session)
    denied = not driver.expectation.session(caller, origin, action, session)
    reference = more.pop("reference", session.key)
    query = more.pop("query", "")
    target = path.replace("{session}", in_path(reference)) + query
    twin = missing_session(path + query, session, reference, more.get("body")) if denied else None
    return Probe(caller=caller, row=row, method=method, target=target, origin=origin, twin=twin, **more)


def asked_from(caller: Caller, session: PlantedSession) -> PlantedSession | None:
    """Where a route about one session is asked from: outside, but an incognito one's owner is inside it by its key."""
    owns = caller.person is not None and session.root.owner is caller.person
    return session if session.incognito and owns else None


def missing_session(path: str, session: PlantedSession, reference: str, body: object) -> Twin:
    """The same request about a session that is not there, its reference spelled alike."""
    other = NO_SESSION if reference.startswith("ses_") else f"agent:{session.agent}:direct:prf_{NO_SESSION[4:]}"
    return Twin(
        target=path.replace("{session}", in_path(other)),
        body=body,
        real=reference,
        other=other,
        whose=session.planted_for.name,
        what=f"{session.planted_for.name}'s {session.what} (that it is there)",
    )


async def pages(driver: Driver, probe: Probe, shows_all: Iterable[Mark], most: int = 20) -> Seen | None:
    """Walks a list to its end; all pages together have to show what they may. The last page, or None."""
    seen: set[Mark] = set()
    cursor, last, joined = "", None, "&" if "?" in probe.target else "?"
    for _ in range(most):
        last = await driver.send(_continued(probe, cursor and f"{joined}cursor={cursor}"))
        seen |= last.marks
        cursor = str(last.json.get("next_cursor") or "")
        if not cursor:
            break
    driver.due(probe, shows_all, frozenset(seen))
    return last


def _continued(probe: Probe, more: str) -> Probe:
    return Probe(
        caller=probe.caller,
        row=probe.row,
        method=probe.method,
        target=probe.target + more,
        body=probe.body,
        headers=probe.headers,
        origin=probe.origin,
        shows=probe.shows,
        by_function=probe.by_function,
        quotes=probe.quotes,
    )


def titles(sessions: Iterable[PlantedSession]) -> list[Mark]:
    """The marks of titles."""
    return [one.title for one in sessions if one.title is not None]


def words(session: PlantedSession) -> tuple[Mark, ...]:
    """The marks of a session's messages."""
    return tuple(one.mark for one in session.messages if one.mark is not None)
