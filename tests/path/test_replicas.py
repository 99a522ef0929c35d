"""Two gateways over one store and one Redis: what one ends is ended in the other, and outages refuse (design 7, 12)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from uuid import uuid4

import httpx2
import pytest

from gateway.app import Gateway, compose, create_app
from gateway.settings import Settings
from gateway.settings.redis import Redis
from tests.clock import RunningClock
from tests.conftest import LogCapture
from tests.house import WHERE, House, house
from tests.redis_servers import OwnRedis, own_redis

BOUND_S = 10.0


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[OwnRedis]:
    """A server to restart."""
    with own_redis(tmp_path) as server:
        yield server


@pytest.fixture
def both(settings: Settings, redis: OwnRedis) -> Settings:
    """Settings of either gateway."""
    shared = Redis(url=redis.url, prefix=f"test-{uuid4().hex}", timeout_s=0.5)
    return settings.model_copy(update={"redis": shared})


@pytest.fixture
async def one(both: Settings, logs: LogCapture) -> AsyncIterator[House]:
    """The gateway at which things are changed."""
    async with house(both, RunningClock(), logs.loggers) as home:
        yield home


@pytest.fixture
async def other(both: Settings, one: House, logs: LogCapture) -> AsyncIterator[House]:
    """Another gateway over the same store."""
    gateway: Gateway = compose(both, logs.loggers, clock=RunningClock(), environ={})
    async with gateway.running():
        yield House(gateway, create_app(gateway, logs.loggers, environ={}), one.tenant, one.people, one.secrets)


async def _until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(BOUND_S):
        while not condition():  # noqa: ASYNC110 - it is true of another gateway, which sets no event here
            await asyncio.sleep(0.005)


async def _status(home: House, who: str) -> int:
    return (await home.get(who, "/v1/me")).status_code


async def test_who_was_let_in_before_a_revocation_elsewhere_is_refused_after_it(one: House, other: House) -> None:
    """A token that the other gateway remembers is revoked here: from its epoch on it opens nothing there."""
    assert await _status(other, "alice") == 200
    token = (await one.gateway.stores.identities.tokens(one.tenant, one.id("alice")))[0]
    await one.gateway.stores.identities.revoke_token(one.tenant, one.id("alice"), token.id, one.gateway.clock.now())
    epoch = one.gateway.epochs.current(one.tenant)
    await _until(lambda: other.gateway.epochs.current(one.tenant) == epoch)
    assert await _status(other, "alice") == 401


async def test_a_request_in_flight_during_a_revocation_elsewhere_writes_no_old_answer_back(
    one: House, other: House
) -> None:
    """The step: many requests are under way at the other gateway while the token is revoked here; whatever these are
    answered, the first one after the epoch came is refused, and so is every later one."""
    identities = one.gateway.stores.identities
    for _ in range(3):
        secret = await one.token("bob")
        other.secrets["bob"] = secret
        known = {token.id for token in await identities.tokens(one.tenant, one.id("bob")) if token.revoked_at is None}
        under_way = [asyncio.create_task(_status(other, "bob")) for _ in range(20)]
        for token in known:
            await identities.revoke_token(one.tenant, one.id("bob"), token, one.gateway.clock.now())
        epoch = one.gateway.epochs.current(one.tenant)
        await _until(lambda: other.gateway.epochs.current(one.tenant) == epoch)  # noqa: B023 - awaited here
        after = await _status(other, "bob")
        assert set(await asyncio.gather(*under_way)) <= {200, 401}
        assert (after, await _status(other, "bob")) == (401, 401)


async def test_without_redis_decisions_go_on_for_the_bound_then_refuse_and_come_back(
    one: House, redis: OwnRedis
) -> None:
    """Design section 12: 503 with Retry-After, said in /readyz, and no restart is needed."""
    clock = one.gateway.clock
    assert isinstance(clock, RunningClock)
    redis.stop()
    assert await _status(one, "alice") == 200
    clock.advance(5)
    refused = await one.get("alice", "/v1/me")
    assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
    # The store is heard again by the next poll; Redis is not.
    await _until(lambda: one.gateway.epochs.what_is_not_heard.startswith("Redis"))
    assert await _status(one, "alice") == 503
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=one.app), base_url=WHERE) as client:
        ready = await client.get("/readyz")
    assert ready.status_code == 503
    assert "Redis" in ready.text
    redis.start()
    await _until(lambda: one.gateway.epochs.healthy)
    assert await _status(one, "alice") == 200
