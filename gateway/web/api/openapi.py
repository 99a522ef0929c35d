"""Turns the table of endpoints into the OpenAPI 3.1 document."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson
from pydantic import TypeAdapter
from pydantic.json_schema import models_json_schema

from gateway.identity.cookies import COOKIE
from gateway.tools.arguments import Arguments
from gateway.tools.registry import Registry
from gateway.web.api.endpoint import Endpoint, NoQuery, Query

_REF = "#/components/schemas/{model}"
_PARAMETER = re.compile(r"\{(\w+)\}")
_PROBLEMS = {
    "401": "No credential, or one that does not hold.",
    "403": "A function that your roles lack altogether.",
    "404": "Missing, or not yours: the two are the same answer.",
    "422": "A field breaks a rule; nothing was changed.",
    "503": "Something beneath is away; try again.",
}
_PROBLEM: dict[str, Any] = {
    "type": "object",
    "required": ["type", "title", "status", "detail", "code", "request_id", "errors"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "code": {"type": "string"},
        "request_id": {"type": "string"},
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["field", "rule", "message"],
                "properties": {name: {"type": "string"} for name in ("field", "rule", "message")}
                | {name: {"type": "integer"} for name in ("line", "column")},
            },
        },
    },
}
_BY_PEOPLE: list[dict[str, list[str]]] = [{"bearer": []}, {"browser": [], "page": []}]


class Document:
    """The document as it is served. Made when it is first asked for, by a thread: it takes longer than the whole rest
    of a start, and most who start a gateway never ask."""

    def __init__(self, endpoints: Sequence[Endpoint], tools: Registry, version: str) -> None:
        self._made_of = endpoints, tools, version
        self._making = asyncio.Lock()
        self._bytes: bytes | None = None

    async def bytes(self) -> bytes:
        """JSON. Whoever asks while it is made waits for that one."""
        async with self._making:
            if self._bytes is None:
                self._bytes = await asyncio.to_thread(lambda: orjson.dumps(openapi(*self._made_of)))
        return self._bytes


def openapi(endpoints: Iterable[Endpoint], tools: Registry, version: str) -> dict[str, Any]:
    """The document. Each operation names the action that the policy is asked, in `x-gateway-action`."""
    schemas: dict[str, Any] = {"Problem": _PROBLEM}
    paths: dict[str, Any] = {}
    for endpoint in endpoints:
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = _operation(endpoint, tools, schemas)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Agent memory gateway", "version": version},
        "security": _BY_PEOPLE,
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "turn": {"type": "apiKey", "in": "header", "name": "Gateway-Turn-Token"},
                "browser": {"type": "apiKey", "in": "cookie", "name": COOKIE, "description": "Of GET /sign-in."},
                "page": {
                    "type": "apiKey",
                    "in": "header",
                    "name": "X-CSRF-Token",
                    "description": "`credential.csrf_token` of GET /v1/me; for whatever is not a GET or HEAD.",
                },
            },
        },
    }


def _operation(endpoint: Endpoint, tools: Registry, schemas: dict[str, Any]) -> dict[str, Any]:
    described: dict[str, Any] = {
        "operationId": f"{endpoint.method.lower()}{re.sub(r'[^A-Za-z0-9]+', '_', endpoint.path).rstrip('_')}",
        "summary": endpoint.summary,
        "parameters": [*_path_parameters(endpoint.path), *_query_parameters(endpoint.query, schemas)],
        "responses": _responses(endpoint, schemas),
        "x-gateway-action": sorted({str(operation.action) for operation in endpoint.operations}),
    }
    if any(operation.by_turn_token for operation in endpoint.operations):
        described["security"] = [*_BY_PEOPLE, {"turn": []}, {"turn": [], "bearer": []}]
    if endpoint.body is not None:
        content = _tool_bodies(tools, schemas) if endpoint.body is Arguments else _model(endpoint.body, schemas)
        described["requestBody"] = {"required": True, "content": {"application/json": {"schema": content}}}
    return described


def _path_parameters(path: str) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in _PARAMETER.findall(path)
    ]


def _query_parameters(query: type[Query], schemas: dict[str, Any]) -> list[dict[str, Any]]:
    if query is NoQuery:
        return []
    schema = query.model_json_schema(by_alias=True, ref_template=_REF)
    schemas.update(schema.pop("$defs", {}))
    return [{"name": name, "in": "query", "schema": shape} for name, shape in schema["properties"].items()]


def _responses(endpoint: Endpoint, schemas: dict[str, Any]) -> dict[str, Any]:
    good: dict[str, Any] = {"description": "Done."}
    if endpoint.shape is not None:
        good["content"] = {"application/json": {"schema": _shape(endpoint.shape, schemas)}}
    extra = {str(status): {**good, "description": text} for status, text in endpoint.responses.items()}
    problem = {"application/problem+json": {"schema": {"$ref": _REF.format(model="Problem")}}}
    refused = {status: {"description": text, "content": problem} for status, text in _PROBLEMS.items()}
    return {str(endpoint.status): good, **extra, **refused}


def _shape(shape: Any, schemas: dict[str, Any]) -> Mapping[str, Any]:
    """The schema of a good answer; a list stands for a page of it."""
    schema = TypeAdapter(shape).json_schema(mode="serialization", ref_template=_REF)
    schemas.update(schema.pop("$defs", {}))
    if schema.get("type") != "array":
        name = shape.__name__
        schemas[name] = schema
        return {"$ref": _REF.format(model=name)}
    return {
        "type": "object",
        "required": ["items", "next_cursor"],
        "properties": {"items": schema, "next_cursor": {"type": ["string", "null"]}},
    }


def _model(body: type[Arguments], schemas: dict[str, Any]) -> Mapping[str, Any]:
    _, described = models_json_schema([(body, "validation")], ref_template=_REF)
    schemas.update(described["$defs"])
    return {"$ref": _REF.format(model=body.__name__)}


def _tool_bodies(tools: Registry, schemas: dict[str, Any]) -> Mapping[str, Any]:
    return {"anyOf": [_model(tool.arguments, schemas) for tool in tools.all()]}
