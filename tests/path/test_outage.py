"""When something beneath is away: a refusal, never a guess and never an empty answer (design section 12)."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx2
import pytest

from gateway.app import compose, create_app
from gateway.backends.sql.database import Database
from gateway.errors import Unavailable
from gateway.policy.shipped import shipped
from gateway.settings import Settings
from tests.clock import SettableClock
from tests.conftest import LogCapture
from tests.house import House, house
from tests.path.examples import examples

SECRET = "the runway code is 4711"


async def test_without_its_store_every_route_refuses_until_it_is_back(
    home: House, clock: SettableClock, logs: LogCapture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """litellm#37202: 503 with Retry-After on every route, nothing allowed; /livez stays and /readyz fails.

    Nobody has to restart anything when it is back.
    """
    session = await home.open("alice")
    await home.say("alice", session, SECRET)
    home.workspace().replace("MEMORY.md", SECRET)
    words = {"session": session, "agent": "flight", "profile": home.id("bob"), "token": "tok_x", "version": "1"}
    everything = list(examples(home, logs.loggers, **words))
    assert SECRET in (await home.post("alice", f"/v1/sessions/{session}/context")).text
    assert (await home.get(None, "/readyz")).status_code == 200

    async def away(*_: Any) -> Any:
        raise Unavailable("The store can't answer right now.")

    monkeypatch.setattr(Database, "_hop", away)
    for one in everything:
        answer = await one.send(home, "alice")
        assert answer.status_code == 503, (one.endpoint.method, one.path, answer.text)
        assert int(answer.headers["retry-after"]) >= 1
        assert answer.json()["code"] == "unavailable"
        assert SECRET not in answer.text
    assert (await home.get(None, "/livez")).status_code == 200
    clock.advance(6)
    ready = await home.get(None, "/readyz")
    assert (ready.status_code, ready.headers["content-type"]) == (503, "application/problem+json")
    assert (await home.get("alice", "/v1/me")).status_code == 503
    assert (await home.get(None, "/v1/me")).status_code == 401

    monkeypatch.undo()
    await home.gateway.epochs.poll()
    back = await _answered(home, f"/v1/sessions/{session}/messages")
    assert [one["content"] for one in back.json()["items"]] == [SECRET]
    assert (await home.get(None, "/readyz")).status_code == 200
    assert (await home.get("audrey", "/v1/admin/audit/verify")).json()["sound"] is True


async def _answered(home: House, path: str) -> httpx2.Response:
    """The first answer that is no 503: the audit's buffer tries its store again by itself."""
    async with asyncio.timeout(5):
        while True:
            answer = await home.get("alice", path)
            if answer.status_code != 503:
                return answer


async def test_what_was_heard_too_long_ago_is_not_decided_by(home: House, clock: SettableClock) -> None:
    """Design section 7, freshness: a replica that has not heard from the store for 5 s refuses."""
    session = await home.open("alice")
    assert (await home.get("alice", f"/v1/sessions/{session}")).status_code == 200
    clock.advance(5.1)
    stale = await home.get("alice", f"/v1/sessions/{session}")
    assert stale.status_code == 503
    await home.gateway.epochs.poll()
    assert (await home.get("alice", f"/v1/sessions/{session}")).status_code == 200


async def test_the_operator_says_how_old_an_answer_may_be(
    settings: Settings, clock: SettableClock, logs: LogCapture
) -> None:
    """Settings, `policy.refuse_after_s`: at most the 5 s of design section 7."""
    strict = settings.model_copy(update={"policy": settings.policy.model_copy(update={"refuse_after_s": 1.0})})
    async with house(strict, clock, logs.loggers) as home:
        assert (await home.get("alice", "/v1/me")).status_code == 200
        clock.advance(1.1)
        assert (await home.get("alice", "/v1/me")).status_code == 503


async def test_a_tenant_without_a_policy_is_refused(home: House) -> None:
    """Design section 7: default deny, and said to the operator as what it is."""
    await home.gateway.stores.database.write(
        lambda connection: connection.exec_driver_sql("DELETE FROM policy_versions")
    )
    await home.gateway.stores.identities.set_roles(home.tenant, home.id("bob"), [])

    answer = await home.get("alice", "/v1/me")

    assert answer.status_code == 503
    assert "no policy in force" in answer.json()["detail"]


async def test_one_tenants_broken_policy_stops_nobody_else(home: House) -> None:
    """Design section 12: one tenant's failure does not stop another's work."""
    other = await home.gateway.founder.found("globex", policy=shipped("default.csv"))
    there = House(home.gateway, home.app, other)
    await there.add("mallory", "owner")
    await there.publish("p, this is no document\n")

    broken = await there.get("mallory", "/v1/me")

    assert broken.status_code == 503
    assert "this is no document" not in broken.text
    assert (await home.get("alice", "/v1/me")).status_code == 200


async def test_a_second_start_finds_everything_again(
    settings: Settings, clock: SettableClock, logs: LogCapture
) -> None:
    """Issue, "start": a second start finds the state again; what was acknowledged is there."""
    async with house(settings, clock, logs.loggers) as home:
        session = await home.open("alice")
        await home.say("alice", session, SECRET)
        await home.tool("alice", session, "memory_append", scope="shared", text="Gate 4.")
        people, secrets, tenant = home.people, home.secrets, home.tenant
        before = len(await home.audit())
    gateway = compose(settings, logs.loggers, clock=clock)
    async with gateway.running():
        again = House(gateway, create_app(gateway, logs.loggers), tenant, people, secrets)
        assert SECRET in (await again.get("alice", f"/v1/sessions/{session}/messages")).text
        assert "Gate 4." in (await again.tool("alice", session, "memory_get", path="memory/2026-12-01.md")).text
        assert len(await again.audit()) >= before
        assert (await again.get("audrey", "/v1/admin/audit/verify")).json()["sound"] is True


async def test_a_request_that_takes_too_long_is_stopped(
    settings: Settings, clock: SettableClock, logs: LogCapture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue, "REST": timeouts; it is on record, and others go on."""
    quick = settings.model_copy(update={"server": settings.server.model_copy(update={"request_timeout_s": 1.0})})
    async with house(quick, clock, logs.loggers) as home:
        session = await home.open("alice")
        waiting = asyncio.Event()

        async def hangs(*_: Any, **__: Any) -> Any:
            await waiting.wait()

        monkeypatch.setattr(home.gateway.stores.transcripts, "history", hangs)
        answer = await home.get("alice", f"/v1/sessions/{session}/messages")

        assert (answer.status_code, answer.json()["code"]) == (503, "unavailable")
        assert (await home.get("alice", f"/v1/sessions/{session}")).status_code == 200
        record = next(one.record for one in await home.audit(kind="access") if one.record.operation == "messages.list")
        assert record.effect == "error"
