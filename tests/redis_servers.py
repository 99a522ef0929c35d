"""Turns what this machine has of Redis into servers that a test may ask, restart, freeze and cut off."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest

USUAL = "redis://127.0.0.1:6379"
START_S = 10.0


def answers(url: str) -> bool:
    """Whether a Redis server without a password is there."""
    parts = urlsplit(url)
    try:
        with socket.create_connection((parts.hostname or "", parts.port or 6379), timeout=1) as opened:
            opened.sendall(b"PING\r\n")
            return opened.recv(5) == b"+PONG"
    except OSError:
        return False


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


class OwnRedis:
    """A server process of this test alone, which keeps nothing when it ends."""

    def __init__(self, folder: Path, *options: str, port: int | None = None) -> None:
        binary = shutil.which("redis-server") or shutil.which("valkey-server")
        if binary is None:
            pytest.skip("no redis-server here: install the package redis-server")
        self.port = port or free_port()
        self.url = f"redis://127.0.0.1:{self.port}"
        self._command = [binary, *options, "--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(folder)]
        if "--sentinel" not in options:
            self._command += ["--save", "", "--appendonly", "no"]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Starts it, empty, and waits until it answers."""
        self._process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until = time.monotonic() + START_S
        while not answers(self.url):
            assert time.monotonic() < until, "redis-server did not start"
            time.sleep(0.01)

    def stop(self) -> None:
        """Ends it at once, as a crash would; stopping again changes nothing."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def freeze(self) -> None:
        """It goes on being connected, and answers nothing."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """It goes on."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        os.kill(self._process.pid, number)


@contextmanager
def own_redis(folder: Path, *options: str) -> Iterator[OwnRedis]:
    """A server that was started, and is ended whatever a test did to it."""
    server = OwnRedis(folder, *options)
    try:
        server.start()
        yield server
    finally:
        server.stop()


@contextmanager
def any_redis(folder: Path) -> Iterator[str]:
    """The address of a server that others may use too: the one that GATEWAY_TEST_REDIS_URL names, else the machine's,
    else one of our own. A named one that is not there is a failure, not a reason to look elsewhere."""
    named = os.environ.get("GATEWAY_TEST_REDIS_URL")
    if named is not None:
        assert answers(named), "GATEWAY_TEST_REDIS_URL names no server that answers"
        yield named
    elif answers(USUAL):
        yield USUAL
    else:
        with own_redis(folder) as server:
            yield server.url


class Cable:
    """What lies between a client and a server: a test can cut it, so that nobody is told and nothing arrives."""

    def __init__(self, port: int) -> None:
        self._to = port
        self._whole = asyncio.Event()
        self._whole.set()
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.connections = 0
        self.port = 0

    async def __aenter__(self) -> Cable:
        self._server = await asyncio.start_server(self._plugged, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    @property
    def url(self) -> str:
        """Where the client goes."""
        return f"redis://127.0.0.1:{self.port}"

    def cut(self) -> None:
        """From now on every byte of every connection is lost; the connections stay, also new ones."""
        self._whole.clear()

    def mend(self) -> None:
        """New connections go through; those that lost something never say anything again."""
        self._whole.set()

    async def _plugged(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        with suppress(OSError, asyncio.CancelledError):
            if self._whole.is_set():
                there_reader, there_writer = await asyncio.open_connection("127.0.0.1", self._to)
            else:
                await asyncio.Event().wait()
            both = asyncio.gather(self._pass(reader, there_writer), self._pass(there_reader, writer))
            try:
                await both
            finally:
                both.cancel()
                there_writer.close()
        writer.close()
        self._tasks.discard(task)

    async def _pass(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        while data := await source.read(65_536):
            if not self._whole.is_set():
                await asyncio.Event().wait()  # this connection is dead for good, and neither end knows
            sink.write(data)
            await sink.drain()
        sink.close()
