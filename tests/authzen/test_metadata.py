"""AuthZEN 1.0, discovery: where the decision point says what it is called (section 6 of the certification scenario)."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from gateway.settings import Settings
from tests.clock import SettableClock
from tests.conftest import LogCapture
from tests.house import house
from tests.serving import served

METADATA = "/.well-known/authzen-configuration"


def _with(settings: Settings, **changed: Any) -> Settings:
    """The settings with another address to listen on, or to be called."""
    login = settings.login.model_copy(update={"public_url": changed.pop("public_url", None)})
    server = settings.server.model_copy(update=changed)
    return settings.model_copy(update={"login": login, "server": server})


@pytest.mark.parametrize(
    ("changed", "name"),
    [
        ({"public_url": "https://gateway.example.com"}, "https://gateway.example.com"),
        ({"public_url": "https://gateway.example.com", "host": "0.0.0.0"}, "https://gateway.example.com"),
        ({"host": "127.0.0.1", "port": 8080}, "http://127.0.0.1:8080"),
        ({"host": "::1", "port": 9000}, "http://[::1]:9000"),
    ],
)
async def test_6_the_document_names_the_decision_point_and_its_endpoints(
    settings: Settings, clock: SettableClock, logs: LogCapture, changed: dict[str, Any], name: str
) -> None:
    """Sections 6.1 to 6.5: public, JSON, exactly the configured name, every endpoint; whatever Host somebody sends."""
    async with house(_with(settings, **changed), clock, logs.loggers, cast={}) as home:
        answer = await home.get(None, METADATA, headers={"Host": "evil.example", "X-Forwarded-Host": "evil.example"})

    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
    assert answer.json() == {
        "policy_decision_point": name,
        "access_evaluation_endpoint": f"{name}/access/v1/evaluation",
        "access_evaluations_endpoint": f"{name}/access/v1/evaluations",
        "search_subject_endpoint": f"{name}/access/v1/search/subject",
        "search_resource_endpoint": f"{name}/access/v1/search/resource",
        "search_action_endpoint": f"{name}/access/v1/search/action",
    }


async def test_6_a_port_that_the_system_chose_is_the_socket_s(
    settings: Settings, clock: SettableClock, logs: LogCapture
) -> None:
    """`--port 0`: nobody can write it down before, and the socket knows it."""
    async with (
        house(_with(settings, port=0), clock, logs.loggers, cast={}) as home,
        served(home.app) as port,
        httpx2.AsyncClient() as client,
    ):
        answer = await client.get(f"http://127.0.0.1:{port}{METADATA}", headers={"Host": "evil.example:1"})

    assert answer.json()["policy_decision_point"] == f"http://127.0.0.1:{port}"


async def test_6_without_a_name_there_is_no_document(
    settings: Settings, clock: SettableClock, logs: LogCapture
) -> None:
    """A gateway that others reach and that was not told its address must not guess one (mix-up attacks)."""
    async with house(_with(settings, host="0.0.0.0"), clock, logs.loggers, cast={}) as home:
        answer = await home.get(None, METADATA)

    assert (answer.status_code, answer.json()["code"]) == (503, "unavailable")
    assert "login.public_url" in answer.json()["detail"]
