"""A house for each test of the path."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio

from gateway.settings import Settings
from tests.clock import SettableClock
from tests.conftest import LogCapture
from tests.house import House, house


@pytest_asyncio.fixture
async def home(settings: Settings, clock: SettableClock, logs: LogCapture) -> AsyncIterator[House]:
    """The organisation `acme` with the agent `flight` and everybody."""
    async with house(settings, clock, logs.loggers) as made:
        yield made
