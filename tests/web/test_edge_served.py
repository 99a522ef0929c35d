"""Turns bytes on a real connection into answers: the limits of the edge on the server that we ship."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from gateway.settings import Server
from gateway.web.middleware import with_edge
from tests.clock import SettableClock
from tests.conftest import LogCapture
from tests.serving import served

LIMIT = 64 * 1024


async def size(request: Request) -> JSONResponse:
    return JSONResponse({"size": len(await request.body())})


@asynccontextmanager
async def limited(logs: LogCapture, http: str) -> AsyncIterator[int]:
    """A port of this machine on which the app answers."""
    routes = [Route("/size", size, methods=["POST"])]
    app = with_edge(Starlette(routes=routes), Server(body_limit_bytes=LIMIT), SettableClock(), logs.loggers)
    async with served(app, http=http) as port:
        yield port


async def said(port: int, *parts: bytes) -> bytes:
    """What the server answers to the parts, until it closes the connection."""
    async with asyncio.timeout(10):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            for part in parts:
                writer.write(part)
                await writer.drain()
            return await reader.read()
        finally:
            writer.close()


def chunk(body: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(body), body)


HEAD = b"POST /size HTTP/1.1\r\nHost: gateway\r\n"
CLOSE = b"Connection: close\r\n"


@pytest.mark.parametrize("http", ["httptools", "h11"])
async def test_a_body_is_measured_whether_declared_or_chunked(logs: LogCapture, http: str) -> None:
    """Issue 2: body limit. The refusal comes while most of the body is unsent, and ends the connection."""
    async with limited(logs, http) as port:
        fitting = await said(port, HEAD, CLOSE, b"Content-Length: %d\r\n\r\n" % LIMIT, b"x" * LIMIT)
        chunked = await said(port, HEAD, CLOSE, b"Transfer-Encoding: chunked\r\n\r\n", chunk(b"x" * LIMIT), chunk(b""))
        declared = await said(port, HEAD, b"Content-Length: 1000000000\r\n\r\n", b"x" * 10)
        streamed = await said(port, HEAD, b"Transfer-Encoding: chunked\r\n\r\n", *[chunk(b"x" * 1024)] * 65)

    for good in (fitting, chunked):
        assert good.startswith(b"HTTP/1.1 200 ")
        assert good.endswith(b'{"size":%d}' % LIMIT)
    for refused in (declared, streamed):
        assert refused.startswith(b"HTTP/1.1 413 ")
        assert b'"code":"too_large"' in refused
        assert b"\r\nconnection: close\r\n" in refused.lower()
        assert refused.lower().count(b"\r\nx-request-id: req_") == 1
