"""Turns a request into a call of the ASGI app, and all that comes back into bytes: nothing is left out of an answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

Message = MutableMapping[str, Any]
App = Callable[[Message, Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]], Awaitable[None]]
Headers = Sequence[tuple[bytes, bytes]]
LONGEST_S = 30.0
_MOST_BYTES = 32 * 1024 * 1024  # of an answer; a stream that does not end is an answer that was not looked at


class Unanswered(Exception):
    """The app did not answer in time, or without end."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back."""

    status: int
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes

    @property
    def bytes(self) -> bytes:
        """Status, headers and body in one."""
        lines = [str(self.status).encode(), *(name + b": " + value for name, value in self.headers)]
        return b"\n".join([*lines, self.body])


async def ask(app: App, method: str, target: str, headers: Headers = (), body: bytes | None = None) -> Answer:
    """The answer to one request. `target` is the path as it is sent, with its query. Raises Unanswered."""
    path, _, query = target.partition("?")
    scope: Message = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": unquote(path),
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": query.encode(),
        "headers": [(b"host", b"gateway.test"), *_of_body(body), *headers],
        "client": ("127.0.0.1", 40000),
        "server": ("127.0.0.1", 8080),
    }
    received = _Received(body or b"")
    try:
        async with asyncio.timeout(LONGEST_S):
            await app(scope, received.receive, received.send)
    except TimeoutError:
        raise Unanswered(f"{method} {path} did not answer within {LONGEST_S:g} s") from None
    return received.answer()


def _of_body(body: bytes | None) -> Headers:
    if body is None:
        return ()
    return ((b"content-type", b"application/json"), (b"content-length", str(len(body)).encode()))


class _Received:
    def __init__(self, body: bytes) -> None:
        self._body = body
        self._asked = False
        self._start: Message = {}
        self._chunks: list[bytes] = []
        self._size = 0

    async def receive(self) -> Message:
        """The body, and then the silence of somebody who waits for the answer."""
        if self._asked:
            await asyncio.Event().wait()
        self._asked = True
        return {"type": "http.request", "body": self._body, "more_body": False}

    async def send(self, message: Message) -> None:
        """Keeps what is sent. Raises Unanswered for what does not end."""
        if message["type"] == "http.response.start":
            self._start = message
        elif message["type"] == "http.response.body":
            self._chunks.append(message.get("body", b""))
            self._size += len(self._chunks[-1])
            if self._size > _MOST_BYTES:
                raise Unanswered("an answer has no end")

    def answer(self) -> Answer:
        """All of it."""
        return Answer(self._start["status"], tuple(self._start.get("headers", ())), b"".join(self._chunks))
