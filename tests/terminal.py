"""A command line in front of the demo tenant, and the REST interface over the same state to compare it with."""

from __future__ import annotations

import asyncio
import io
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import orjson
from typer.testing import CliRunner

from gateway.app import Gateway, compose, create_app
from gateway.cli import build
from gateway.cli.demo import Demo, make_demo
from gateway.founding import DEMO
from gateway.logs import configure
from gateway.settings import load

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """What was printed, read as JSON."""
        return orjson.loads(self.out)


@dataclass(frozen=True, slots=True)
class Terminal:
    """A state folder that holds the demo, and what the demo made."""

    state: Path
    demo: Demo
    ids: dict[str, str]

    def run(self, *words: str, who: str | None = None, env: Mapping[str, str | None] | None = None) -> Answer:
        """Runs a command as somebody of the demo, or as the local operator."""
        variables: dict[str, str | None] = {
            "GATEWAY_STATE__FOLDER": str(self.state),
            "GATEWAY_CONFIG": None,
            "GATEWAY_TOKEN": self.demo.secrets[who] if who else None,
            **(env or {}),
        }
        result = CliRunner().invoke(build(), list(words), env=variables, catch_exceptions=False)
        return Answer(result.exit_code, result.stdout, result.stderr)

    def rest(self, method: str, path: str, *, who: str, body: object = None) -> Any:
        """The object that the REST interface answers to somebody, over the same state."""
        return asyncio.run(self._rest(method, path, who, body))

    def operations(self) -> list[tuple[str, str]]:
        """(operation, effect) of each request from a command line, in the audit's order, this one left out."""
        lines = self.run("audit", "export").out.splitlines()
        records = [orjson.loads(line) for line in lines]
        return [
            (one["operation"], one["effect"])
            for one in records
            if one["kind"] == "access" and one["surface"] == "cli" and one["operation"] != "audit.export"
        ]

    async def _rest(self, method: str, path: str, who: str, body: object) -> Any:
        settings = load(None, {"GATEWAY_STATE__FOLDER": str(self.state), "GATEWAY_LOG__LEVEL": "error"})
        loggers = configure(settings, io.BytesIO())
        gateway = compose(settings, loggers)
        async with gateway.running():
            transport = httpx2.ASGITransport(app=create_app(gateway, loggers))
            headers = {"Authorization": f"Bearer {self.demo.secrets[who]}"}
            async with httpx2.AsyncClient(transport=transport, base_url="http://gateway.test") as client:
                answer = await client.request(method, path, json=body, headers=headers)
        return answer.json()


def environment(state: Path) -> dict[str, str]:
    """The variables of a process that runs the gateway from this clone on that state, and nothing else of ours."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("GATEWAY_")}
    return {**inherited, "PYTHONPATH": str(ROOT), "GATEWAY_STATE__FOLDER": str(state)}


async def founded(gateway: Gateway) -> tuple[Demo, dict[str, str]]:
    """The demo in a gateway that has none, and the ids of its people by name."""
    demo = await make_demo(gateway)
    assert demo is not None
    page = await gateway.stores.identities.people(DEMO, limit=200, cursor=None)
    return demo, {profile.name: profile.id for profile in page.items}
