"""A real gateway to measure: a store on disk, the demo's workspace, alice with a token and her private session."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvloop

from gateway.app import Gateway, compose
from gateway.founding import DEMO
from gateway.identity.credentials import Credentials
from gateway.logs import configure
from gateway.model import Profile
from gateway.operations.sessions import CreateBody, OnAgent
from gateway.pipeline import Call
from gateway.policy.shipped import shipped
from gateway.settings import load
from gateway.stages.record_audit import Trail

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Premises:
    """An open gateway with the demo tenant."""

    gateway: Gateway
    secrets: dict[str, str]
    people: dict[str, Profile]
    session: str  # alice's private one


@asynccontextmanager
async def premises(folder: Path) -> AsyncIterator[Premises]:
    """Founds the demo tenant under the shipped default and opens alice's private session, through the pipeline."""
    settings = load(None, {"GATEWAY_STATE__FOLDER": str(folder), "GATEWAY_LOG__LEVEL": "error"})
    gateway = compose(settings, configure(settings))
    async with gateway.running():
        secrets = await gateway.founder.found_demo(shipped("default.csv"), ROOT / "workspaces/demo/flight")
        page = await gateway.stores.identities.people(DEMO, limit=50, cursor=None)
        people = {profile.name: profile for profile in page.items}
        session = await open_session(gateway, secrets["alice"])
        yield Premises(gateway, secrets, people, session)


async def open_session(gateway: Gateway, secret: str) -> str:
    """Somebody's private session with the demo's agent."""
    wanted = OnAgent("flight", CreateBody(kind="direct"))
    call = Call.of(Credentials.bearer(secret), gateway.catalogue.sessions.create, wanted)
    facts, _ = await gateway.pipeline.run(call, Trail("req_bench", "bench", "bench"))  # type: ignore[misc]  # by operation
    return str(facts.session.key)


@contextmanager
def gateway_server(state: Path) -> Iterator[int]:
    """`gateway serve` over the state that the benchmark made, in a process of its own; its port."""
    environment = {"GATEWAY_STATE__FOLDER": str(state), "GATEWAY_LOG__LEVEL": "error"}
    with _process(["-m", "gateway", "serve", "--port"], environment) as port:
        yield port


@contextmanager
def bare_server(body: Path) -> Iterator[int]:
    """`bench.apps:bare` on the server that the gateway ships with, and with its options; its port."""
    options = ["--loop", "uvloop", "--http", "httptools", "--ws", "none", "--lifespan", "off", "--log-level", "error"]
    options += ["--no-access-log", "--no-server-header", "--no-proxy-headers"]
    command = ["-m", "uvicorn", "bench.apps:bare", "--factory", *options, "--port"]
    with _process(command, {"BENCH_BODY": str(body)}) as port:
        yield port


@contextmanager
def _process(command: list[str], environment: dict[str, str]) -> Iterator[int]:
    port = _free_port()
    process = subprocess.Popen(
        [sys.executable, *command, str(port)], cwd=ROOT, env={**os.environ, **environment}, stdout=subprocess.DEVNULL
    )
    try:
        _wait_for(port, process)
        yield port
    finally:
        process.terminate()
        process.wait(timeout=20)


def _free_port() -> int:
    with contextlib.closing(socket.socket()) as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def _wait_for(port: int, process: subprocess.Popen[bytes], seconds: float = 30) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if process.poll() is not None:
            raise RuntimeError(f"the server ended with {process.returncode}")
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.05)
    raise RuntimeError("the server did not start in time")


def run(main: Coroutine[Any, Any, None]) -> None:
    """Runs a coroutine on uvloop."""
    uvloop.run(main)
