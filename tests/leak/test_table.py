"""A route, a tool or an argument that the test would leave out is itself a failure of the command, named."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gateway import app as composition
from gateway.app import create_app
from gateway.leak_test.driving import tools as driving_tools
from gateway.leak_test.driving.table import ROUTES, arguments_not_driven, not_driven, rows
from gateway.tools.memory import AppendArguments
from gateway.web.api.for_people import for_people
from tests.conftest import LogCapture
from tests.house import House


def test_every_route_and_tool_that_there_is_is_driven(home: House, logs: LogCapture) -> None:
    """Issue 4: every tool and route; and nothing is in the table that the app does not have."""
    app = create_app(home.gateway, logs.loggers)

    assert not_driven(app, home.gateway.catalogue) == []
    assert set(ROUTES) <= set(rows(app))


def test_a_new_route_a_new_tool_and_a_new_argument_are_named(
    home: House, logs: LogCapture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody has to remember the test: what it does not know fails it."""
    real = for_people

    def with_another(catalogue: Any) -> Any:
        endpoints = real(catalogue)
        return (*endpoints, replace(endpoints[-1], method="GET", path="/v1/me/diary"))

    monkeypatch.setattr(composition, "for_people", with_another)
    monkeypatch.setattr(
        driving_tools, "TOOLS", {one: ask for one, ask in driving_tools.TOOLS.items() if one != "memory_get"}
    )
    app = create_app(home.gateway, logs.loggers)

    assert not_driven(app, home.gateway.catalogue) == ["the route GET /v1/me/diary", "the tool memory_get"]
    sent = {"POST /v1/sessions/{session}/tools/memory_append": set(AppendArguments.model_fields) - {"scope"}}
    missing = arguments_not_driven(app, home.gateway.catalogue, sent)
    assert "'scope' of POST /v1/sessions/{session}/tools/memory_append" in missing
    assert "'text' of POST /v1/sessions/{session}/tools/memory_append" not in missing
