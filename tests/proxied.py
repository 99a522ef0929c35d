"""A gateway that stands behind proxies, and requests to it from any address, with the reason of each refusal."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

from gateway.model import Identity
from gateway.settings import Settings, load
from tests.clock import SettableClock
from tests.conftest import LogCapture
from tests.house import WHERE, House, house

Header = tuple[str, str]
Raw = tuple[bytes, bytes]

PROXY = "192.0.2.10"  # addresses for documentation (RFC 5737): no machine that runs tests has one
STRANGER = "198.51.100.7"


@dataclass
class Behind:
    """The house, and what its log says of refusals that belong to no tenant."""

    home: House
    logs: LogCapture

    async def ask(
        self,
        *headers: Header | Raw,
        peer: str = PROXY,
        method: str = "GET",
        path: str = "/v1/me",
        body: object = None,
    ) -> httpx2.Response:
        """One request with these headers, over a connection from `peer`."""
        transport = httpx2.ASGITransport(app=self.home.app, client=(peer, 40_000))
        async with httpx2.AsyncClient(transport=transport, base_url=WHERE) as client:
            return await client.request(method, path, json=body, headers=list(headers))  # type: ignore[arg-type] # each is text or bytes

    async def who(self, *headers: Header | Raw, **more: Any) -> str:
        """Whose profile and which kind of credential: `alice by proxy_header`."""
        answer = await self.ask(*headers, **more)
        assert answer.status_code == 200, answer.text
        body = answer.json()
        return f"{body['profile']['name']} by {body['credential']['kind']}"

    async def why_not(self, *headers: Header | Raw, **more: Any) -> str:
        """The reason of a refusal, which is recorded once: in the audit of the tenant, or in the log where there is
        none. It names a 401 and nothing of what was sent."""
        self._logged()
        before = len(await self.home.audit())
        answer = await self.ask(*headers, **more)
        assert answer.status_code == 401, answer.text
        assert answer.json()["code"] == "unauthenticated"
        sent = [value if isinstance(value, bytes) else value.encode() for _, value in headers]
        assert all(value not in answer.content for value in sent if len(value) > 20)
        recorded = [one.record for one in (await self.home.audit())[before:]]
        assert [one.kind for one in recorded] in ([], ["access"])  # nothing was decided, so nothing ran
        reasons = self._logged() + [one.code for one in recorded if one.effect == "deny"]
        assert len(reasons) == 1, reasons
        return reasons[0]

    async def link(self, name: str, issuer: str, subject: str) -> None:
        """Lets somebody sign in under a subject of an issuer."""
        identity = Identity(issuer=issuer, subject=subject, profile=self.home.id(name))
        await self.home.gateway.stores.identities.link(self.home.tenant, identity, self.home.gateway.clock.now())

    def _logged(self) -> list[str]:
        """The reasons that the log got since the last look; it counts within a second and then tells."""
        self.home.gateway.refusals.flush()
        lines = [line for line in self.logs.lines if line["event"] == "refused"]
        found = [line["code"] for line in lines[self._told :] for _ in range(line["count"])]
        self._told = len(lines)
        return found

    _told: int = 0


@asynccontextmanager
async def behind(text: str, settings: Settings, clock: SettableClock, logs: LogCapture) -> AsyncIterator[Behind]:
    """A house with the settings of `text` (TOML)."""
    async with house(settings_of(text, settings.state.folder), clock, logs.loggers) as home:
        yield Behind(home, logs)


def settings_of(text: str, state: Path) -> Settings:
    """Settings with these tables."""
    config = state.parent / "proxies.toml"
    config.write_text(text, encoding="utf-8")
    return load(config, {"GATEWAY_STATE__FOLDER": str(state), "GATEWAY_LOG__LEVEL": "debug"})


def bearer(secret: str) -> Header:
    """The usual header of a token."""
    return ("Authorization", f"Bearer {secret}")
