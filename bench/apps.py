"""The bare app that `bench/tool_call.py` compares the gateway with, as a factory for a server process."""

from __future__ import annotations

import os
from pathlib import Path

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route


def bare() -> Starlette:
    """A Starlette app with one route that returns the bytes of a file."""
    body = Path(os.environ["BENCH_BODY"]).read_bytes()

    async def endpoint(_request: Request) -> Response:
        return Response(body, media_type="application/json")

    return Starlette(routes=[Route("/v1/sessions/{session}/tools/{tool}", endpoint, methods=["POST"])])
