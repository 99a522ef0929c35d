"""The two apps that `bench/tool_call.py` compares, as factories for a server process."""

from __future__ import annotations

import os
from pathlib import Path

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from gateway.app import compose, create_app
from gateway.logs import configure
from gateway.settings import load


def bare() -> Starlette:
    """A Starlette app with one route that returns the bytes of a file."""
    body = Path(os.environ["BENCH_BODY"]).read_bytes()

    async def endpoint(_request: Request) -> Response:
        return Response(body, media_type="application/json")

    return Starlette(routes=[Route("/v1/sessions/{session}/tools/{tool}", endpoint, methods=["POST"])])


def gateway() -> ASGIApp:
    """The gateway over the state that the benchmark made."""
    settings = load(None, {"GATEWAY_STATE__FOLDER": os.environ["BENCH_STATE"], "GATEWAY_LOG__LEVEL": "error"})
    loggers = configure(settings)
    return create_app(compose(settings, loggers), loggers)
