"""An organisation whose people sign in with a browser, the server that they sign in at, and browsers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import pytest_asyncio

from gateway.backends.sql.tables import sign_ins
from gateway.model import Identity
from gateway.settings import Settings, load
from tests.authorization_server import CLIENT, SECRET, AuthorizationServer
from tests.browser import Browser
from tests.clock import SettableClock
from tests.conftest import LogCapture
from tests.house import House, house

WHERE = "https://gateway.test"
ENVIRON = {"LOGIN_SECRET": SECRET}


@pytest.fixture
def server(clock: SettableClock) -> Iterator[AuthorizationServer]:
    """Where people sign in."""
    with AuthorizationServer(clock) as running:
        yield running


@dataclass
class Lobby:
    """The organisation with its door; alice is linked to her account at the server."""

    home: House
    server: AuthorizationServer
    clock: SettableClock
    logs: LogCapture
    browsers: list[Browser] = field(default_factory=list)

    def browser(self) -> Browser:
        """A fresh one."""
        self.browsers.append(Browser(self.home.app, WHERE))
        return self.browsers[-1]

    async def signed_in(self, account: str = "alice") -> Browser:
        """A browser that `account` is signed in with."""
        self.server.account = account
        browser = self.browser()
        page = await browser.go("/sign-in")
        assert page.status_code == 200, page.text
        return browser

    async def later(self, seconds: float) -> None:
        """Lets time pass, with the store heard at its end."""
        self.clock.advance(seconds)
        await self.home.gateway.epochs.poll()

    async def link(self, name: str, subject: str, issuer: str | None = None) -> Identity:
        """Links somebody of the cast to an account."""
        identity = Identity(issuer=issuer or self.server.url, subject=subject, profile=self.home.id(name))
        await self.home.gateway.stores.identities.link(self.home.tenant, identity, self.clock.now())
        return identity

    async def rows(self) -> int:
        """How many sign-ins there are in the store, ended ones too."""
        found = await self.home.gateway.stores.database.read(
            lambda connection: connection.execute(sign_ins.select()).all()
        )
        return len(found)

    def refusals(self) -> list[str]:
        """The reasons of refusals that belong to no organisation, as the log counts them."""
        self.home.gateway.refusals.flush()
        lines = [line for line in self.logs.lines if line["event"] == "refused" and line["surface"] == "browser"]
        return [line["code"] for line in lines for _ in range(line["count"])]


Configured = Callable[[str], Settings]


@pytest.fixture
def configured(settings: Settings, tmp_path: Path) -> Configured:
    """Settings as an operator writes them."""

    def written(text: str) -> Settings:
        config = tmp_path / "login.toml"
        config.write_text(text, encoding="utf-8")
        return load(config, {"GATEWAY_STATE__FOLDER": str(settings.state.folder)})

    return written


def an_issuer(server: AuthorizationServer, name: str = "office", more: str = "") -> str:
    """An entry of `login.issuers`."""
    return f"""
        [[login.issuers]]
        name = "{name}"
        title = "Sign in at {name} & co"
        issuer = "{server.url}"
        client_id = "{CLIENT}"
        algorithms = ["ES256", "RS256", "EdDSA"]
        {more}
    """


TENANT = 'tenant = "acme"\n'
SECRETLY = 'client_secret_env = "LOGIN_SECRET"\n'
LOGIN = f'[login]\npublic_url = "{WHERE}"\n'


@pytest_asyncio.fixture
async def lobby(
    server: AuthorizationServer, configured: Configured, clock: SettableClock, logs: LogCapture
) -> AsyncIterator[Lobby]:
    """One issuer, a client with a secret, no trust in emails."""
    settings = configured(LOGIN + an_issuer(server, more=TENANT + SECRETLY))
    async with house(settings, clock, logs.loggers, environ=ENVIRON) as home:
        made = Lobby(home, server, clock, logs)
        await made.link("alice", "alice")
        yield made


@pytest_asyncio.fixture
async def home(settings: Settings, clock: SettableClock, logs: LogCapture) -> AsyncIterator[House]:
    """The organisation without a door."""
    async with house(settings, clock, logs.loggers) as made:
        yield made
