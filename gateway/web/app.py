"""Turns the pipeline into an ASGI app: the table of endpoints, and the short public list."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from gateway.errors import Unavailable
from gateway.pipeline import Pipeline
from gateway.web.api.endpoint import Endpoint, EndpointApp, json
from gateway.web.api.openapi import Document
from gateway.web.authzen import METADATA
from gateway.web.line import PATH as LINE_WEBHOOK
from gateway.web.metrics import Metrics, metrics_endpoint

# What needs no credential. Everything else is in the table of endpoints (design section 3).
# Signing in is how somebody gets one; it shows nothing of anybody but by the pipeline.
# LINE signs each webhook with the channel's secret: the signature is its credential, and the body what it covers.
PUBLIC = (
    "/livez",
    "/readyz",
    "/metrics",
    "/openapi.json",
    "/sign-in",
    "/sign-in/{issuer}",
    "/sign-in/{issuer}/callback",
    "/signed-in",
    "/sign-out",
    "/signed-out",
    LINE_WEBHOOK,
    METADATA,
)

Lifespan = Callable[[Starlette], AbstractAsyncContextManager[None]]
Readiness = Callable[[], Sequence[str]]


def starlette_app(
    endpoints: Sequence[Endpoint],
    pipeline: Pipeline,
    *,
    document: Document,
    metrics: Metrics,
    who_reads_metrics: Any,
    readiness: Readiness,
    pages: Sequence[Route],
    lifespan: Lifespan,
) -> Starlette:
    """The app. `readiness` names what is wrong, in words for an operator; empty means ready. `pages` are public."""

    async def livez(_request: Request) -> Response:
        return json({"status": "ok"})

    async def readyz(_request: Request) -> Response:
        wrong = readiness()
        if wrong:
            raise Unavailable(" ".join(wrong))
        return json({"status": "ok"})

    async def openapi(_request: Request) -> Response:
        return Response(await document.bytes(), media_type="application/json")

    routes = [
        *(
            Route(endpoint.path, EndpointApp(endpoint, pipeline, metrics), methods=[endpoint.method])
            for endpoint in endpoints
        ),
        Route("/livez", livez, methods=["GET"]),
        Route("/readyz", readyz, methods=["GET"]),
        Route("/metrics", metrics_endpoint(metrics, who_reads_metrics), methods=["GET"]),
        Route("/openapi.json", openapi, methods=["GET"]),
        *pages,
    ]
    app = Starlette(routes=routes, lifespan=lifespan)
    app.router.redirect_slashes = False  # a path has one spelling; another is missing, and is told so
    return app
