"""An agent's runtime on this machine, that keeps what it is told."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from types import TracebackType
from typing import Self


class LocalRuntime:
    """A small HTTP server; it answers with `status`."""

    def __init__(self, status: int = 204) -> None:
        self.status = status
        self.received: list[tuple[dict[str, str], bytes]] = []
        self.url = ""

    async def __aenter__(self) -> Self:
        """Listens on a free port."""
        self._server = await asyncio.start_server(self._answer, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/told"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stops listening."""
        self._server.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")[1:]
            headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head if line)}
            body = await reader.readexactly(int(headers.get("content-length", "0")))
            self.received.append((headers, body))
            writer.write(f"HTTP/1.1 {self.status} Told\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())
            await writer.drain()
        writer.close()
