"""Turns an HTTP request into a call of the pipeline, and what comes back into an answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from time import perf_counter
from typing import Any, TypeVar

import orjson
from pydantic import ConfigDict
from starlette.datastructures import QueryParams
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from gateway.errors import GatewayError, Invalid
from gateway.identity.credentials import Credentials
from gateway.model import Requester
from gateway.pipeline import Pipeline
from gateway.stages.open_session import Entry
from gateway.stages.record_audit import Trail
from gateway.tools.arguments import Arguments, parse
from gateway.tools.registry import AnyOperation
from gateway.web.metrics import Metrics
from gateway.web.problems import problem
from gateway.web.request_ids import request_id_of

SURFACE = "rest"
NO_STORE = (b"cache-control", b"no-store")
_IS_JSON = (b"content-type", b"application/json")


class Query(Arguments):
    """The base of all query strings: words are read as numbers where a number is wanted; unknown names are faults."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=False)


class NoQuery(Query):
    """No query string."""


QueryT = TypeVar("QueryT", bound=Query)


class Incoming:
    """A request, as the table's readers see it. The body is read only when a reader asks for it."""

    _named: Mapping[bytes, bytes] | None = None

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self._scope = scope
        self._receive = receive
        self.path: Mapping[str, str] = scope["path_params"]

    @property
    def credentials(self) -> Credentials:
        """What the request presents."""
        client = self._scope.get("client")
        return Credentials(self._scope["headers"], client[0] if client else None, self._scope["method"])

    def header(self, name: bytes) -> str | None:
        """One header, by its lower-case name; the first where there are several."""
        found = self.headers(name)
        return found[0] if found else None

    def headers(self, name: bytes) -> tuple[str, ...]:
        """Every header of that lower-case name."""
        if self._named is None:
            self._named = dict(self._scope["headers"])
        if name not in self._named:  # most that are asked for: looking through all of them costs ten times as much
            return ()
        return tuple(value.decode("latin-1") for key, value in self._scope["headers"] if key == name)

    def query(self, model: type[QueryT]) -> QueryT:
        """The query string. Raises Invalid with every fault, a name given twice among them."""
        if not self._scope["query_string"]:
            return model() if model is NoQuery else parse(model, {})
        given = QueryParams(self._scope["query_string"])
        items = given.multi_items()
        if len(items) != len(given):
            raise Invalid.of("query", "once", "Give each parameter once.")
        return parse(model, dict(items))

    async def body(self, model: type[Arguments]) -> Any:
        """The JSON body. Raises Invalid with every fault."""
        try:
            data = orjson.loads(await self.raw_body())
        except orjson.JSONDecodeError:
            raise Invalid.of("body", "json", "Send a JSON object.") from None
        return parse(model, data)

    async def raw_body(self) -> bytes:
        """All of it; the edge has bounded it. Raises Invalid where the caller went away in the middle."""
        chunks = []
        while True:
            message = await self._receive()
            if message["type"] != "http.request":
                raise Invalid.of("body", "complete", "The request ended before its body did.")
            chunks.append(message.get("body", b""))
            if not message.get("more_body", False):
                return b"".join(chunks)


@dataclass(slots=True)
class Answered:
    """What a row of the table makes an answer of."""

    request_id: str
    result: Any
    requester: Requester | None
    decision: str | None


Reader = Callable[[Incoming], Awaitable[Any]]
Writer = Callable[[Answered], Response]


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """One row of the table: a method and a path, what may run there, how arguments are read and results written."""

    method: str
    path: str
    operations: tuple[AnyOperation, ...]
    read: Reader
    write: Writer
    summary: str
    then: Callable[[Any, Trail], Awaitable[Any]] | None = None  # what follows as somebody else, through the path again
    choose: Callable[[Any], AnyOperation] | None = None  # which of several, by the arguments
    enters: Callable[[Incoming, Any], Entry | None] | None = None  # the session that it is asked from inside
    body: type[Arguments] | None = None
    query: type[Query] = NoQuery
    shape: Any = None  # of a good answer, for the OpenAPI document
    status: int = 200
    responses: Mapping[int, str] = field(default_factory=dict)
    name: str | None = None  # of what is asked for until one of several operations is chosen

    @cached_property
    def called(self) -> str:
        """What the records name while nothing is chosen, or what was sent can't be read."""
        return self.name or self.operations[0].name

    @cached_property
    def select(self) -> Callable[[Any], AnyOperation]:
        """The operation for these arguments."""
        only = self.operations[0]
        return self.choose or (lambda _arguments: only)


def row(
    method: str,
    path: str,
    operation: AnyOperation,
    read: Reader,
    write: Writer,
    *,
    shape: Any = None,
    body: type[Arguments] | None = None,
    query: type[Query] = NoQuery,
    status: int = 200,
) -> Endpoint:
    """A row with one operation, asked from outside any session."""
    return Endpoint(
        method=method,
        path=path,
        operations=(operation,),
        read=read,
        write=write,
        summary=operation.summary,
        shape=shape,
        body=body,
        query=query,
        status=status,
    )


def reads(model: type[Arguments]) -> Reader:
    """The body, and nothing from the path."""

    async def read(incoming: Incoming) -> Any:
        return await incoming.body(model)

    return read


class EndpointApp:
    """An endpoint as an ASGI app."""

    def __init__(self, endpoint: Endpoint, pipeline: Pipeline, metrics: Metrics) -> None:
        self.endpoint = endpoint
        self._pipeline = pipeline
        self._count = metrics.request

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request."""
        begun = perf_counter()
        endpoint = self.endpoint
        trail = Trail(request_id_of(scope), SURFACE, endpoint.called)
        try:
            result = await self._pipeline.run(_Asked(endpoint, scope, receive), trail)
            if endpoint.then is not None:
                result = await endpoint.then(result, trail)
            response = endpoint.write(Answered(trail.request, result, trail.requester, trail.last_decision))
        except GatewayError as error:
            response = problem(error, trail.request)
        if trail.requester is not None:
            response.raw_headers.append((b"gateway-epoch", str(trail.epoch).encode()))
        decision = trail.last_decision
        if decision is not None:
            response.raw_headers.append((b"gateway-decision", decision.encode()))
        await response(scope, receive, send)
        self._count(trail.operation, response.status_code, perf_counter() - begun)


class _Asked(Incoming):
    """A request to one endpoint, as the pipeline takes it: everything that it asks for is read when it asks."""

    _tainted = False

    def __init__(self, endpoint: Endpoint, scope: Scope, receive: Receive) -> None:
        Incoming.__init__(self, scope, receive)
        self._endpoint = endpoint
        self.operation = endpoint.select

    async def arguments(self) -> Any:
        """What the endpoint's reader makes of it. Raises Invalid."""
        endpoint = self._endpoint
        if endpoint.query is not NoQuery or self._scope["query_string"]:
            self.query(endpoint.query)
        self._tainted = _says_tainted(self)
        if self._tainted and endpoint.enters is None:
            raise Invalid.of("Gateway-Turn-Tainted", "inside", "Send it with a tool call or a message of the turn.")
        return await endpoint.read(self)

    def entry(self, arguments: Any) -> Entry | None:
        """The session that it is asked from inside, once the arguments are read."""
        enters = self._endpoint.enters
        entered = enters(self, arguments) if enters else None
        return replace(entered, tainted=True) if entered is not None and self._tainted else entered

    def min_epoch(self) -> int | None:
        """What the caller has seen already. Raises Invalid."""
        header = self.header(b"gateway-min-epoch")
        return None if header is None else _min_epoch(header)


def _min_epoch(header: str) -> int:
    if not header.isascii() or not header.isdigit() or len(header) > 18:
        raise Invalid.of("Gateway-Min-Epoch", "number", "Send the number that a Gateway-Epoch header gave you.")
    return int(header)


def _says_tainted(incoming: Incoming) -> bool:
    """Whether a runtime reports that its turn has read untrusted text (design section 9). Raises Invalid."""
    said = incoming.headers(b"gateway-turn-tainted")
    if not said:
        return False
    if any(value != "true" for value in said):
        raise Invalid.of("Gateway-Turn-Tainted", "true", "Send 'true', or nothing: no turn is made clean again.")
    return True


def json(body: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A JSON answer. It may hold content or tokens, so nothing keeps it (interface, "Conventions")."""
    return _Json(orjson.dumps(body), status, headers)


class _Json(Response):
    """An answer whose headers are put together once: Starlette looks through them again for each answer."""

    background = None

    def __init__(self, body: bytes, status: int, headers: Mapping[str, str] | None) -> None:
        self.status_code = status
        self.body = body
        self.raw_headers = [(b"content-length", b"%d" % len(body)), _IS_JSON, NO_STORE]
        if headers:
            self.raw_headers += [(name.lower().encode(), value.encode()) for name, value in headers.items()]
