"""Turns errors into `application/problem+json` (RFC 9457; interface, "Conventions")."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

import orjson
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Scope

from gateway.errors import (
    Conflict,
    Fault,
    GatewayError,
    Invalid,
    NotFound,
    PreconditionFailed,
    TooLarge,
    Unavailable,
)

MEDIA_TYPE = "application/problem+json"
TYPE_PREFIX = "urn:gateway:problem:"


class MethodNotAllowed(GatewayError):
    """The path is there, the method is not; the route table is public, so this shows nothing."""

    status = 405
    code = "method_not_allowed"
    title = "Not with that method"


def problem(error: GatewayError, request_id: str) -> Response:
    """The answer that tells a caller of `error`. X-Request-ID is added to every answer by the edge."""
    headers = {"Cache-Control": "no-store", **error.headers}
    return Response(document(error, request_id), error.status, headers, MEDIA_TYPE)


def document(error: GatewayError, request_id: str) -> bytes:
    """The body. Two of the same kind with the same detail differ in `request_id` alone."""
    body: dict[str, Any] = {
        "type": TYPE_PREFIX + error.code,
        "title": error.title,
        "status": error.status,
        "detail": error.detail,
        "code": error.code,
        "request_id": request_id,
        "errors": [_entry(fault) for fault in error.faults] if isinstance(error, Invalid) else [],
    }
    if isinstance(error, PreconditionFailed):
        body["current"] = error.current
    if isinstance(error, Conflict) and error.facts:
        body["facts"] = error.facts
    return orjson.dumps(body)


def internal() -> GatewayError:
    """What a caller is told of a failure that nobody foresaw: nothing but where to ask."""
    return GatewayError("Something failed here. Nothing is wrong with your request; tell the operator its request_id.")


def _entry(fault: Fault) -> dict[str, Any]:
    entry: dict[str, Any] = {"field": fault.field, "rule": fault.rule, "message": fault.message}
    if fault.line is not None:
        entry["line"] = fault.line
    if fault.column is not None:
        entry["column"] = fault.column
    return entry


def _methods(scope: Scope) -> set[str]:
    """Every method of the path (RFC 9110 section 10.2.1); each is a route of its own."""
    here = scope["path"]
    routes = (route for route in scope["app"].routes if isinstance(route, Route) and route.path_regex.match(here))
    return {method for route in routes for method in route.methods or ()}


def of_starlette(error: HTTPException, scope: Scope) -> GatewayError:
    """Our error for one of Starlette's, whose text may quote the request and is not repeated."""
    headers = dict(error.headers or {})
    match error.status_code:
        case 404:
            return NotFound()
        case 405:
            allowed = ", ".join(sorted(_methods(scope)))
            return MethodNotAllowed(f"This path takes {allowed}.", headers={**headers, "Allow": allowed})
        case 413:
            return TooLarge("The request is too large.")
        case 503:
            return Unavailable("Not available right now; try again.")
        case status if 400 <= status < 500:
            phrase = HTTPStatus(status).phrase
            return Invalid.of("request", "malformed", f"can't be read: {phrase}")
        case _:
            return internal()
