"""Sends one request over and over on a few connections, as fast as the answers come, and counts them.

A raw protocol on uvloop: what it costs itself is far below what a server costs, so the server is what is measured.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from typing import cast


@dataclass
class Round:
    """What one round saw."""

    seconds: float
    answers: int = 0
    bad: int = 0
    latencies_ms: list[float] = field(default_factory=list)

    @property
    def per_second(self) -> float:
        """Answers a second."""
        return self.answers / self.seconds


class _Connection(asyncio.Protocol):
    """One connection: the next request leaves when the answer to the last one is complete."""

    def __init__(self, request: bytes, round_: Round, until: float) -> None:
        self._request = request
        self._round = round_
        self._until = until
        self._buffer = b""
        self.closed = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is one in all but name
        self._send()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, found, rest = self._buffer.partition(b"\r\n\r\n")
        if not found or len(rest) < _length(head):
            return
        now = time.perf_counter()
        self._round.answers += 1
        self._round.bad += not head.startswith(b"HTTP/1.1 200")
        self._round.latencies_ms.append((now - self._sent) * 1000)
        self._buffer = b""
        if now < self._until:
            self._send()
        else:
            self._transport.close()

    def connection_lost(self, error: Exception | None) -> None:
        if not self.closed.done():
            self.closed.set_result(None)

    def _send(self) -> None:
        self._sent = time.perf_counter()
        self._transport.write(self._request)


def _length(head: bytes) -> int:
    for line in head.split(b"\r\n"):
        if line.lower().startswith(b"content-length:"):
            return int(line[15:])
    return 0


async def drive(port: int, request: bytes, *, seconds: float, connections: int) -> Round:
    """One round against a server on this machine."""
    round_ = Round(seconds)
    until = time.perf_counter() + seconds
    loop = asyncio.get_running_loop()
    protocols = [
        (await loop.create_connection(lambda: _Connection(request, round_, until), "127.0.0.1", port))[1]
        for _ in range(connections)
    ]
    await asyncio.wait_for(asyncio.gather(*(one.closed for one in protocols)), timeout=seconds + 10)
    return round_


def http_request(method: str, path: str, headers: dict[str, str], body: bytes = b"") -> bytes:
    """The bytes of a request."""
    lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", f"Content-Length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + body
