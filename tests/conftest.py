"""Turns what every test shares into fixtures (settings, clock, log lines), and keeps tests off the network."""

from __future__ import annotations

import asyncio
import io
import ipaddress
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from sqlalchemy import URL

from gateway.logs import Loggers, configure
from gateway.settings import Settings, load
from tests.clock import SettableClock
from tests.postgres import as_written, emptied, own_database

pytest_plugins = ["tests.not_run"]


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--on-postgres` runs whatever takes its settings from here on PostgreSQL instead of a file."""
    parser.addoption("--on-postgres", action="store_true", default=False, help="keep the store in PostgreSQL")


class Refused(Exception):
    """A test wanted to leave this machine."""


def _stays_here(address: Any) -> bool:
    """Whether a socket address is a path of this machine, or a loopback address or name."""
    if not isinstance(address, tuple):
        return True
    try:
        return ipaddress.ip_address(address[0]).is_loopback
    except ValueError:
        return bool(address[0] == "localhost")


@pytest.fixture(autouse=True, scope="session")
def no_network() -> Iterator[None]:
    """Only loopback addresses can be reached; a test that needs more fails, with the address."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("connect", "connect_ex"):
            patch.setattr(socket.socket, name, _guarded(getattr(socket.socket, name)))
        yield


def _guarded(connect: Any) -> Any:
    def guarded(self: socket.socket, address: Any) -> Any:
        if not _stays_here(address):
            raise Refused(f"tests stay on this machine; this one wanted {address}")
        return connect(self, address)

    return guarded


@pytest.fixture
def clock() -> SettableClock:
    """A clock that stands at 2026-12-01 09:00 UTC until the test moves it."""
    return SettableClock()


@pytest.fixture(scope="session")
def postgres() -> Iterator[URL]:
    """A PostgreSQL database of this worker's own."""
    with own_database() as url:
        yield url


@pytest.fixture
def settings(tmp_path: Path, request: pytest.FixtureRequest) -> Settings:
    """The defaults, with the state in a folder of this test alone; under `--on-postgres` the store is an empty one."""
    config = tmp_path / "gateway.toml"
    config.touch()
    environ = {"GATEWAY_STATE__FOLDER": str(tmp_path / ".gateway"), "GATEWAY_LOG__LEVEL": "debug"}
    if request.config.getoption("--on-postgres"):
        url: URL = request.getfixturevalue("postgres")
        asyncio.run(emptied(url))
        environ["GATEWAY_DATABASE__URL"] = as_written(url)
    return load(config, environ)


class LogCapture:
    """What the gateway logged, through the real chain of processors."""

    def __init__(self, settings: Settings) -> None:
        self._stream = io.BytesIO()
        self.loggers: Loggers = configure(settings, self._stream)

    @property
    def text(self) -> str:
        """Every line as it was written."""
        return self._stream.getvalue().decode()

    @property
    def lines(self) -> list[dict[str, Any]]:
        """Every line, parsed."""
        return [orjson.loads(line) for line in self._stream.getvalue().splitlines()]


@pytest.fixture
def logs(settings: Settings) -> LogCapture:
    """Loggers whose lines the test can read."""
    return LogCapture(settings)
