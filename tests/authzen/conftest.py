"""A house with a service that may ask for decisions."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest_asyncio

from gateway.settings import Settings
from tests.clock import SettableClock
from tests.conftest import LogCapture
from tests.house import House, house

EVALUATION = "/access/v1/evaluation"
EVALUATIONS = "/access/v1/evaluations"
SEARCH = "/access/v1/search"


@dataclass
class Desk:
    """The house, its service `gate`, and sessions to ask about."""

    home: House
    private: str  # alice's
    group: str  # alice's, with bob

    async def ask(self, path: str, body: object, *, who: str = "gate", **more: Any) -> httpx2.Response:
        """A request of the service."""
        return await self.home.post(who, path, body, **more)

    async def answer(self, path: str, body: object, **more: Any) -> Any:
        """What the service is answered, with 200."""
        answer = await self.ask(path, body, **more)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def decides(self, body: object) -> bool:
        """The decision alone."""
        return bool((await self.answer(EVALUATION, body))["decision"])

    def question(self, who: str = "alice", action: str = "history", session: str | None = None) -> dict[str, Any]:
        """A well-formed one about a session."""
        return {
            "subject": {"type": "user", "id": self.home.id(who)},
            "action": {"name": action},
            "resource": {"type": "session", "id": session or self.private},
        }


@pytest_asyncio.fixture
async def desk(settings: Settings, clock: SettableClock, logs: LogCapture) -> AsyncIterator[Desk]:
    """`acme` with everybody, and `gate`, whose token names nothing but `decide`."""
    async with house(settings, clock, logs.loggers) as home:
        await home.add("gate", "decider", kind="service")
        home.secrets["gate"] = await home.token("gate", scopes=["decide"])
        private = await home.open("alice")
        group = await home.open("alice", "group", participants=[home.id("bob")])
        yield Desk(home, private, group)
