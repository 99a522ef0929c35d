"""An endpoint is found by its method and pattern, and it is the one that Starlette would choose."""

from __future__ import annotations

import re
from typing import Any

import pytest
from starlette.routing import Match, Route, Router
from starlette.types import Receive, Scope, Send

from gateway.app import create_app
from gateway.web.api.endpoint import EndpointApp
from gateway.web.dispatch import Dispatch
from tests.conftest import LogCapture
from tests.house import House

ODD = ("x", "%2e%2e", "..", "a b", "x:y:z", "漢字", "x\ny", "")
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


def _by_starlette(router: Router, scope: Scope) -> tuple[Any, Any]:
    """The app of the first route that matches whole, and the words of its path."""
    for route in router.routes:
        match, child = route.matches(dict(scope))
        if match is Match.FULL:
            return getattr(route, "app", None), child["path_params"]
    return None, None


async def test_every_path_and_method_finds_what_starlette_finds(
    home: House, logs: LogCapture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also paths that are nearly one: with a line's end, a slash more, or an empty word."""
    app = create_app(home.gateway, logs.loggers)
    reached: list[tuple[Any, Any]] = []

    async def endpoint(self: EndpointApp, scope: Scope, _receive: Receive, _send: Send) -> None:
        reached.append((self, scope["path_params"]))

    async def starlette(_router: Router, scope: Scope, _receive: Receive, _send: Send) -> None:
        reached.append(_by_starlette(app.router, scope))

    monkeypatch.setattr(EndpointApp, "__call__", endpoint)
    monkeypatch.setattr(Router, "__call__", starlette)
    dispatch = Dispatch(app.router)
    found = 0
    for template in {route.path for route in app.routes if isinstance(route, Route)}:
        for word in ODD:
            path = re.sub(r"\{\w+\}", lambda _: word, template)  # noqa: B023 - used before the loop goes on
            for spelled in (path, f"{path}/", f"{path}\n", f"/{path}", path.upper()):
                for method in METHODS:
                    scope = {"type": "http", "method": method, "path": spelled, "root_path": "", "path_params": {}}
                    await dispatch(dict(scope), None, None)  # type: ignore[arg-type]  # nothing is answered
                    assert reached.pop() == _by_starlette(app.router, scope), (method, spelled)
                    found += isinstance(_by_starlette(app.router, scope)[0], EndpointApp)
    assert found > len(app.routes)


async def test_below_another_app_starlette_finds_the_way(home: House, logs: LogCapture) -> None:
    """There the path begins with the other app's, which is not to be matched."""
    app = create_app(home.gateway, logs.loggers)
    scope = {"type": "http", "method": "GET", "path": "/gateway/v1/me", "root_path": "/gateway", "headers": []}
    calls: list[str] = []

    class Found(Router):
        async def __call__(self, scope: Scope, _receive: Receive, _send: Send) -> None:
            calls.append(scope["path"])

    await Dispatch(Found(routes=app.routes))(scope, None, None)  # type: ignore[arg-type]  # nothing is answered
    assert calls == ["/gateway/v1/me"]


@pytest.mark.parametrize("path", ["/v1/x/{number:int}", "/v1/later"])
async def test_what_could_be_found_otherwise_fails_the_start(home: House, logs: LogCapture, path: str) -> None:
    """An endpoint behind another route, or with words that are read as something else."""
    endpoint = next(
        route.app
        for route in create_app(home.gateway, logs.loggers).routes
        if isinstance(route, Route) and isinstance(route.app, EndpointApp)
    )
    first = [] if "int" in path else [Route("/v1/{word}", lambda _request: None)]
    with pytest.raises(ValueError, match="can't be found by its pattern alone"):
        Dispatch(Router(routes=[*first, Route(path, endpoint, methods=["POST"])]))
