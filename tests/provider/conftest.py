"""The providers of this test process, and a gateway that trusts them, on a clock that goes and can be put forward."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from gateway.model import Identity
from gateway.settings import Settings, load
from tests.clock import RunningClock
from tests.conftest import LogCapture
from tests.house import House, house
from tests.provider.running import AUDIENCE, Provider, running


@pytest.fixture(scope="session")
def provider() -> Iterator[Provider]:
    """Started once; what a test changes in it (its keys) must not matter to another."""
    with running() as started:
        yield started


@pytest.fixture
def running_clock() -> RunningClock:
    """The provider lives in the time of this machine, so the gateway has to."""
    return RunningClock()


def configured(tmp_path: Path, settings: Settings, text: str) -> Settings:
    """Settings as an operator writes them."""
    config = tmp_path / "provider.toml"
    config.write_text(text, encoding="utf-8")
    return load(config, {"GATEWAY_STATE__FOLDER": str(settings.state.folder)})


@pytest_asyncio.fixture
async def behind(
    provider: Provider, settings: Settings, tmp_path: Path, running_clock: RunningClock, logs: LogCapture
) -> AsyncIterator[House]:
    """The organisation behind the provider: alice is linked to her account there, and the service `robot` is."""
    text = f"""
        [[oidc.issuers]]
        issuer = "{provider.url}"
        audience = "{AUDIENCE}"
        algorithms = ["ES256"]
        tenant = "acme"
        scopes = "person"
        trust_email = true
    """
    async with house(configured(tmp_path, settings, text), running_clock, logs.loggers) as made:
        await made.add("robot", "member", kind="service")
        for name in ("alice", "robot"):
            identity = Identity(issuer=provider.url, subject=name, profile=made.id(name))
            await made.gateway.stores.identities.link(made.tenant, identity, running_clock.now())
        yield made
