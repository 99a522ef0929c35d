"""Turns a method and a path into the endpoint that answers, and leaves everything else to Starlette.

Starlette matches a request against each route in turn, and makes a scope of each match. For the endpoints of the table
this does the same with a look-up of the method and the regular expressions alone: a twentieth of a tool call.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Awaitable

from starlette.convertors import StringConvertor
from starlette.routing import Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from gateway.web.api.endpoint import EndpointApp


class Dispatch:
    """`router`, whose endpoints are found more quickly. Everything that is not an endpoint is found by the router."""

    def __init__(self, router: Router) -> None:
        """Raises ValueError where the router could choose another: the endpoints come first, and take plain words."""
        self._router = router
        self._endpoints: defaultdict[str, list[tuple[re.Pattern[str], ASGIApp]]] = defaultdict(list)
        others = False
        for route in router.routes:
            if not isinstance(route, Route) or not isinstance(route.app, EndpointApp):
                others = True
                continue
            if others or any(type(one) is not StringConvertor for one in route.param_convertors.values()):
                raise ValueError(f"{route.path} can't be found by its pattern alone")
            self._endpoints[route.app.endpoint.method].append((route.path_regex, route.app))

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """What answers, begun."""
        if scope["type"] == "http" and not scope.get("root_path"):  # below another app, paths begin elsewhere
            for pattern, app in self._endpoints.get(scope["method"], ()):
                found = pattern.match(scope["path"])
                if found is not None:
                    scope["path_params"] = found.groupdict()
                    return app(scope, receive, send)
        return self._router(scope, receive, send)
