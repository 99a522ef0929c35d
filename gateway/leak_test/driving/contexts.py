"""Contexts: what a turn may load, from every kind of session, narrowed in every way, and in others' sessions."""

from __future__ import annotations

from gateway.leak_test.driver import Driver, Probe, in_path
from gateway.leak_test.driving.targets import enterable, few_sessions, missing_session
from gateway.leak_test.markers import Mark, Sort
from gateway.leak_test.world import Caller, PlantedSession
from gateway.model import Action

ROW = "POST /v1/sessions/{session}/context"
_TURNS = (None, "group", "channel", "cron", "subagent", "direct", "unheard-of")
_LOADED = {Sort.FILE: Action.LOAD}


async def contexts(driver: Driver, caller: Caller) -> None:
    """`POST /v1/sessions/{session}/context`."""
    if not driver.wanted(ROW):
        return
    mine = enterable(driver, caller)
    for session in mine:
        for turn in _TURNS:
            await driver.send(_probe(driver, caller, session, turn))
    if mine:
        await driver.send(_probe(driver, caller, mine[0], None, turn_token=True))
    for session in few_sessions(driver.world):
        if session not in mine:
            await driver.send(_probe(driver, caller, session, None))


def _probe(driver: Driver, caller: Caller, session: PlantedSession, turn: str | None, **more: bool) -> Probe:
    body: dict[str, object] = {**more} if turn is None else {"turn": {"kind": turn}}
    path = ROW.partition(" ")[2]
    entered = driver.expectation.enters(caller, session)
    return Probe(
        caller=caller,
        row=ROW,
        method="POST",
        target=path.replace("{session}", in_path(session.key)),
        body=body,
        origin=session,
        turn=turn,
        shows=_LOADED,
        due=_loadable(driver, session) if entered and caller.bound is None else (),
        twin=None if entered else missing_session(path, session, session.key, body),
    )


def _loadable(driver: Driver, session: PlantedSession) -> tuple[Mark, ...]:
    """The marks of what a context has a place for; which of them load is the policy's."""
    here = (one for one in driver.world.files if (one.tenant, one.agent) == (session.tenant, session.agent))
    return tuple(one.mark for one in here if one.loads_as is not None and one.mark is not None)
