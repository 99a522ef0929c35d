"""Turns the table of routes into requests that are right in every way but for whom they come from."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx2

from gateway.app import create_app
from gateway.logs import Loggers
from gateway.model import Resource
from gateway.web.api.endpoint import Endpoint, EndpointApp
from tests.house import House

NOBODY = "prf_00000000000000000000000000"
NO_SESSION = "ses_00000000000000000000000000"
NO_TOKEN = "tok_00000000000000000000000000"

BODIES: dict[tuple[str, str], Any] = {
    ("POST", "/v1/sessions/{session}/context"): {},
    ("POST", "/v1/sessions/{session}/messages"): {"role": "user", "content": "hello"},
    ("POST", "/v1/agents/{agent}/sessions"): {"kind": "group"},
    ("POST", "/v1/connectors/{channel}/turns"): {
        "account": "main",
        "sender": "U1",
        "chat": {"kind": "group", "id": "C1"},
    },
    ("POST", "/v1/connectors/{channel}/members"): {
        "account": "main",
        "chat": {"kind": "group", "id": "C1"},
        "joined": ["U1"],
    },
    ("PATCH", "/v1/sessions/{session}"): {"title": "mine now"},
    ("PUT", "/v1/sessions/{session}/owner"): {"profile": NOBODY},
    ("PUT", "/v1/agents/{agent}/personal-instructions"): {"content": "Short."},
    ("POST", "/v1/me/tokens"): {"name": "laptop"},
    ("POST", "/v1/admin/people"): {"name": "New"},
    ("PATCH", "/v1/admin/people/{profile}"): {"name": "Other"},
    ("PUT", "/v1/admin/people/{profile}/roles"): {"roles": []},
    ("POST", "/v1/admin/people/{profile}/merge"): {"into": NOBODY},
    ("POST", "/v1/admin/people/{profile}/identities"): {"issuer": "https://id.example", "subject": "x"},
    ("DELETE", "/v1/admin/people/{profile}/identities"): {"issuer": "https://id.example", "subject": "x"},
    ("POST", "/v1/admin/people/{profile}/tokens"): {"name": "robot"},
    ("POST", "/v1/admin/agents"): {"name": "train"},
    ("POST", "/v1/admin/policy/explain"): {"decision": "dec_00000000000000000000000000"},
    **{
        ("POST", f"/access/v1/{path}"): {
            "subject": {"type": "user", "id": NOBODY},
            "action": {"name": "history"},
            "resource": {"type": "session", "id": "agent:flight:none"},
        }
        for path in ("evaluation", "evaluations", "search/subject", "search/resource", "search/action")
    },
    ("POST", "/v1/me/explain"): {"decision": "dec_00000000000000000000000000"},
    ("POST", "/v1/admin/policy/preview"): {"text": ""},
    ("PUT", "/v1/admin/policy"): {"text": "", "base_version": 1, "comment": "x"},
}
# Rows that are one of several operations, by what is sent.
MORE_BODIES: dict[tuple[str, str], list[Any]] = {
    ("POST", "/v1/admin/policy/explain"): [
        {"person": NOBODY, "action": "history", "session": "agent:flight:none"},
    ],
    ("POST", "/access/v1/evaluations"): [
        {
            "subject": {"type": "user", "id": NOBODY},
            "action": {"name": "history"},
            "evaluations": [{"resource": {"type": "session", "id": "agent:flight:none"}}],
        }
    ],
}
QUERIES = {  # of those routes that can't be asked without one
    "/v1/admin/policy/who-can": "?action=get&agent=flight&resource=memory/shared",
    "/v1/admin/policy/what-can": "?person={profile}",
}
TOOLS: dict[str, list[dict[str, Any]]] = {
    "sessions_list": [{}, {"messageLimit": 3}],
    "sessions_history": [{"sessionKey": "current"}],
    "sessions_search": [{"query": "hello"}, {"query": "hello", "sessionKey": "current"}],
    "session_status": [{}],
    "sessions_spawn": [{"task": "Look it up."}],
    "memory_get": [{"path": "USER.md"}, {"path": "MEMORY.md"}],
    "memory_append": [{"scope": "personal", "text": "A fact."}, {"scope": "shared", "text": "A decision."}],
    "personal_instructions": [{"action": "get"}, {"action": "set", "content": "Short.", "expectedHash": None}],
}


@dataclass(frozen=True)
class Example:
    """One request: a row of the table, filled in."""

    endpoint: Endpoint
    path: str
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)

    async def send(self, home: House, who: str | None) -> httpx2.Response:
        """As somebody."""
        return await home.send(who, self.endpoint.method, self.path, self.body, headers=self.headers)


def endpoints(home: House, loggers: Loggers) -> list[Endpoint]:
    """The table, as the app has it."""
    routes = create_app(home.gateway, loggers).routes
    return [route.app.endpoint for route in routes if isinstance(getattr(route, "app", None), EndpointApp)]  # type: ignore[attr-defined]  # of a Route


def examples(home: House, loggers: Loggers, **words: str) -> Iterator[Example]:
    """Each row with every tool; `words` fill in the path. A row that needs a body and has none here is a KeyError."""
    for endpoint in endpoints(home, loggers):
        asked = endpoint.path + QUERIES.get(endpoint.path, "")
        path = re.sub(r"\{(\w+)\}", lambda found: words.get(found[1], f"{{{found[1]}}}"), asked)
        if "{tool}" in path:
            for tool in home.gateway.catalogue.tools.all():
                for arguments in TOOLS[tool.name]:
                    yield Example(endpoint, path.replace("{tool}", tool.name), arguments)
            continue
        key = (endpoint.method, endpoint.path)
        conditional = key == ("PUT", "/v1/agents/{agent}/personal-instructions")
        yield Example(
            endpoint,
            path,
            BODIES[key] if endpoint.body is not None else None,
            {"If-None-Match": "*"} if conditional else {},
        )
        for body in MORE_BODIES.get(key, []):
            yield Example(endpoint, path, body)


def is_content(endpoint: Endpoint) -> bool:
    """Whether the row reaches sessions or memory."""
    return (
        all(
            resource.partition("/")[0] in ("session", "memory")
            for one in endpoint.operations
            for resource in one.family
        )
        and Resource.GATEWAY not in endpoint.operations[0].family
    )
