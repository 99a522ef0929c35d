"""Turns each HTTP request into one with an id of ours: in the scope, in the log, and in the answer."""

from __future__ import annotations

import re
from collections.abc import Iterable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.keys import new_id
from gateway.logs import REQUEST
from gateway.ports import Clock

KEY = "gateway.request_id"
HEADER = b"x-request-id"
_WELL_FORMED = re.compile(rb"[A-Za-z0-9._-]{1,64}")


def request_id_of(scope: Scope) -> str:
    """The id of the request. A KeyError means that `RequestIds` is not in the path: a wiring fault."""
    request_id: str = scope[KEY]
    return request_id


class RequestIds:
    """Always a fresh `req_…`. What a caller sends as X-Request-ID is only told in the log, beside ours (ASVS V4.1.3).

    An id from outside could be made equal to another request's, and an audit record is found by it.
    """

    def __init__(self, app: ASGIApp, clock: Clock) -> None:
        self._app = app
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes other scopes through as they are."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = new_id("req", self._clock.now())
        scope[KEY] = request_id

        async def send_with_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = message.get("headers", ())
                message["headers"] = [*headers, (HEADER, request_id.encode())]
            await send(message)

        token = REQUEST.set(_Tag(request_id, scope["headers"]))
        try:
            await self._app(scope, receive, send_with_id)
        finally:
            REQUEST.reset(token)


class _Tag:
    """The ids of one request; the caller's is looked for only when a line is written."""

    __slots__ = ("_headers", "_request_id")

    def __init__(self, request_id: str, headers: Iterable[tuple[bytes, bytes]]) -> None:
        self._request_id = request_id
        self._headers = headers

    def fields(self) -> dict[str, str]:
        fields = {"request": self._request_id}
        theirs = [value for name, value in self._headers if name == HEADER]
        if len(theirs) == 1 and _WELL_FORMED.fullmatch(theirs[0]):
            fields["caller_request"] = theirs[0].decode("ascii")
        return fields
