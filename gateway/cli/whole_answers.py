"""Turns the head and the body of an answer into one write to the connection.

uvicorn writes them one after the other. With two writes the caller is woken twice, and each costs a system call; for a
short answer that is a tenth of everything.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol


class WholeAnswers(HttpToolsProtocol):
    """uvicorn's protocol over a transport that gathers. What is written within one step of the event loop leaves
    together, so a stream is not held back."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn is called
        """Called by the event loop."""
        super().connection_made(Gathering(transport, self.loop))  # type: ignore[arg-type]  # it has what uvicorn uses


class Gathering:
    """A transport that keeps what is written until a second write, or until the running step of the loop is over."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._waiting = b""

    def __getattr__(self, name: str) -> Any:  # whatever else a transport has
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Writes, soon and in order."""
        if self._waiting:
            whole, self._waiting = self._waiting + data, b""
            self._transport.write(whole)
        elif data:
            self._waiting = data
            self._loop.call_soon(self._flush)

    def close(self) -> None:
        """Closes once everything is written."""
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        if self._waiting:
            data, self._waiting = self._waiting, b""
            self._transport.write(data)
