"""Turns an ASGI app into the server that we ship, on a port of this machine."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import uvicorn
from starlette.types import ASGIApp

HOST = "127.0.0.1"


class Started(uvicorn.Server):
    """The server, which also says when it listens."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listening = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listens."""
        await super().startup(sockets)
        self.listening.set()


def free_port() -> socket.socket:
    """A bound socket: its port is known before anything listens there, and nobody else's."""
    bound = socket.socket()
    bound.bind((HOST, 0))
    return bound


@asynccontextmanager
async def served(app: ASGIApp, *, http: str = "httptools", on: socket.socket | None = None) -> AsyncIterator[int]:
    """The port on which the app answers for as long as the block lasts."""
    bound = on or free_port()
    # As gateway/cli/serve.py has it: nobody else may say where a request comes from.
    config = uvicorn.Config(app, http=http, ws="none", lifespan="off", log_config=None, proxy_headers=False)
    server = Started(config)
    running = asyncio.create_task(server.serve([bound]))
    async with asyncio.timeout(5):
        await server.listening.wait()
    try:
        yield bound.getsockname()[1]
    finally:
        server.should_exit = True
        await running
