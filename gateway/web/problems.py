"""Turns errors into `application/problem+json` (RFC 9457; interface, "Conventions")."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Any

import orjson
from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection
from starlette.responses import Response
from starlette.routing import Route

from gateway.errors import (
    Conflict,
    Fault,
    GatewayError,
    Invalid,
    NotFound,
    PreconditionFailed,
    TooLarge,
    Unavailable,
    field_path,
)
from gateway.web.request_ids import request_id_of

MEDIA_TYPE = "application/problem+json"
TYPE_PREFIX = "urn:gateway:problem:"

Handler = Callable[[HTTPConnection, Exception], Awaitable[Response]]


class MethodNotAllowed(GatewayError):
    """The path is there, the method is not; the route table is public, so this shows nothing."""

    status = 405
    code = "method_not_allowed"
    title = "Not with that method"


def exception_handlers() -> Mapping[type[Exception], Handler]:
    """For `Starlette(exception_handlers=…)`: our errors, and Starlette's own for unknown routes and methods."""
    return {GatewayError: _answer, HTTPException: _answer}


def problem(error: GatewayError, request_id: str) -> Response:
    """The answer that tells a caller of `error`. X-Request-ID is added to every answer by `RequestIds`."""
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


def invalid(error: ValidationError, *, within: str = "") -> Invalid:
    """Every fault of a request body, each with its full name; `within` names the part of the request, if not the body.

    The values are left out: a body may hold what should not be repeated.
    """
    problems = error.errors(include_url=False, include_input=False, include_context=False)
    return Invalid([_fault(one["loc"], one["type"], one["msg"], within) for one in problems])


def _fault(location: tuple[str | int, ...], rule: str, message: str, within: str) -> Fault:
    field = field_path((within, *location) if within else location) or "body"
    return Fault(field=field, rule=rule, message=message.removeprefix("Value error, "))


def _entry(fault: Fault) -> dict[str, Any]:
    entry: dict[str, Any] = {"field": fault.field, "rule": fault.rule, "message": fault.message}
    if fault.line is not None:
        entry["line"] = fault.line
    if fault.column is not None:
        entry["column"] = fault.column
    return entry


async def _answer(connection: HTTPConnection, error: Exception) -> Response:
    told = _ours(error, connection) if isinstance(error, HTTPException) else error
    if isinstance(told, GatewayError) and connection.scope["type"] == "http":
        return problem(told, request_id_of(connection.scope))
    raise error


def _methods(connection: HTTPConnection) -> set[str]:
    """Every method of the path (RFC 9110 section 10.2.1); each is a route of its own."""
    here = connection.scope["path"]
    routes = (route for route in connection.app.routes if isinstance(route, Route) and route.path_regex.match(here))
    return {method for route in routes for method in route.methods or ()}


def _ours(error: HTTPException, connection: HTTPConnection) -> GatewayError:
    """Our error for one of Starlette's, whose text may quote the request and is not repeated."""
    headers = dict(error.headers or {})
    match error.status_code:
        case 404:
            return NotFound()
        case 405:
            allowed = ", ".join(sorted(_methods(connection)))
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
