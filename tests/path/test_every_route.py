"""There is one way in: every route is an operation with its action, or in the short public list (design section 3)."""

from __future__ import annotations

import re

import pytest
from starlette.routing import Route

from gateway.app import create_app
from gateway.model import Action, Resource
from gateway.web.api.endpoint import EndpointApp
from gateway.web.app import PUBLIC
from gateway.web.line import PATH as LINE_WEBHOOK
from tests.conftest import LogCapture
from tests.house import House

WORDS = {
    "session": "agent:flight:direct:prf_00000000000000000000000000",
    "agent": "flight",
    "tool": "memory_get",
    "profile": "prf_00000000000000000000000000",
    "token": "tok_00000000000000000000000000",
    "version": "1",
    "sign_in": "sgn_00000000000000000000000000",
    "issuer": "work",
    "channel": "line",
    "account": "support",
}
CONTENT = {Resource.SESSION_PRIVATE, Resource.SESSION_SHARED} | {
    resource for resource in Resource if resource.startswith("memory/")
}


def _routes(home: House, logs: LogCapture) -> list[Route]:
    return [route for route in create_app(home.gateway, logs.loggers).routes if isinstance(route, Route)]


def _path(route: Route) -> str:
    return re.sub(r"\{(\w+)\}", lambda found: WORDS[found[1]], route.path)


async def test_every_route_is_an_operation_or_public(home: House, logs: LogCapture) -> None:
    """A route that is in neither list fails here; so does an operation that is in no catalogue."""
    known = {operation.name for operation in home.gateway.catalogue.all()}

    for route in _routes(home, logs):
        if route.path in PUBLIC:
            continue
        endpoint = route.app
        assert isinstance(endpoint, EndpointApp), f"{route.path} has a way of its own"
        names = {operation.name for operation in endpoint.endpoint.operations}
        assert names <= known, f"{route.path} runs what no catalogue knows: {names - known}"


async def test_every_operation_can_be_reached_and_declares_what_it_reaches(home: House, logs: LogCapture) -> None:
    """An operation without a way in is dead; one without an action or a family can't be asked about."""
    reached = {
        operation.name
        for route in _routes(home, logs)
        if isinstance(route.app, EndpointApp)
        for operation in route.app.endpoint.operations
    }
    for operation in home.gateway.catalogue.all():
        assert operation.name in reached or operation.name == "audit.export", f"{operation.name} has no route"
        assert operation.action in Action
        assert operation.family
        assert set(operation.family) <= set(Resource)


async def test_nobody_gets_anywhere_without_a_token(home: House, logs: LogCapture) -> None:
    """Every route answers 401 with a challenge (RFC 6750 section 3) before it reads anything, but on public ones."""
    before = len(await home.audit())
    for route in _routes(home, logs):
        method = next(iter((route.methods or set()) - {"HEAD"}))
        answer = await home.send(None, method, _path(route), {})
        if route.path in PUBLIC and route.path != LINE_WEBHOOK:
            assert answer.status_code in (200, 404), route.path
            continue
        assert answer.status_code == 401, (method, route.path, answer.text)
        assert answer.headers["www-authenticate"].startswith("Bearer")
        assert answer.json()["code"] == "unauthenticated"
        assert "gateway-epoch" not in answer.headers
    assert len(await home.audit()) == before


@pytest.mark.parametrize("who", ["alice", "dana", "erin", "audrey", "olga"])
async def test_a_route_answers_no_more_than_the_roles_include(home: House, logs: LogCapture, who: str) -> None:
    """Each route × each role: reading content is refused to those without, in a way that names the function alone."""
    for route in _routes(home, logs):
        if not isinstance(route.app, EndpointApp):
            continue
        operation = route.app.endpoint.operations[0]
        if route.app.endpoint.method != "GET" or not CONTENT.issuperset(operation.family):
            continue
        answer = await home.get(who, _path(route))
        if who in ("alice", "dana"):
            assert answer.status_code in (200, 404), (who, route.path, answer.text)
        else:
            assert answer.status_code == 403, (who, route.path, answer.text)
            assert answer.json()["code"] == "tool_not_allowed"


async def test_the_api_describes_every_route_with_the_action_it_asks(home: House, logs: LogCapture) -> None:
    """The document at /openapi.json is made from the same table."""
    document = (await home.get(None, "/openapi.json")).json()

    assert document["openapi"] == "3.1.0"
    described = {
        (path, method.upper()): one["x-gateway-action"]
        for path, methods in document["paths"].items()
        for method, one in methods.items()
    }
    table = {
        (route.path, route.app.endpoint.method) for route in _routes(home, logs) if isinstance(route.app, EndpointApp)
    }
    assert set(described) == table
    assert all(actions for actions in described.values())
    references = set(re.findall(r"#/components/schemas/(\w+)", (await home.get(None, "/openapi.json")).text))
    assert references <= set(document["components"]["schemas"])
