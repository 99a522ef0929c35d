"""Where the id of a request is found: in its scope, and in the lines of the log."""

from __future__ import annotations

import re
from collections.abc import Iterable

from starlette.types import Scope

KEY = "gateway.request_id"
HEADER = b"x-request-id"
OURS = b"gateway-request-id"
DECISION_POINT = "/access/v1/"
_ECHOED = re.compile(rb"[A-Za-z0-9._~:/+=@-]{1,128}")  # no letter that could end a header, or run to its limits
_WELL_FORMED = re.compile(rb"[A-Za-z0-9._-]{1,64}")


def request_id_of(scope: Scope) -> str:
    """The id of the request. A KeyError means that the edge is not in the path: a wiring fault."""
    request_id: str = scope[KEY]
    return request_id


def id_headers(scope: Scope, request_id: str) -> tuple[tuple[bytes, bytes], ...]:
    """The headers of an answer that say which request it is of.

    A decision point answers with its caller's own id (AuthZEN 1.0), where one came that can be said again; ours, by
    which the audit and the log know the request, stands beside it.
    """
    ours = request_id.encode()
    if scope["path"].startswith(DECISION_POINT):
        theirs = [value for name, value in scope["headers"] if name == HEADER]
        if len(theirs) == 1 and _ECHOED.fullmatch(theirs[0]):
            return ((HEADER, theirs[0]), (OURS, ours))
    return ((HEADER, ours),)


class RequestTag:
    """The ids of one request; the caller's is looked for only when a line is written."""

    __slots__ = ("_headers", "_request_id")

    def __init__(self, request_id: str, headers: Iterable[tuple[bytes, bytes]]) -> None:
        self._request_id = request_id
        self._headers = headers

    def fields(self) -> dict[str, str]:
        """`request`, and `caller_request` where the caller sent one that can be told in a line."""
        fields = {"request": self._request_id}
        theirs = [value for name, value in self._headers if name == HEADER]
        if len(theirs) == 1 and _WELL_FORMED.fullmatch(theirs[0]):
            fields["caller_request"] = theirs[0].decode("ascii")
        return fields
