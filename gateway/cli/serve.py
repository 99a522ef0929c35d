"""`gateway serve`: turns settings into a gateway that listens, until a signal ends it."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
import uvicorn
import uvloop

from gateway.app import Gateway, create_app
from gateway.cli import output
from gateway.cli.demo import make_demo, remember_told, tell
from gateway.cli.failures import refusals
from gateway.cli.options import Config
from gateway.cli.running import put_together
from gateway.cli.whole_answers import WholeAnswers
from gateway.errors import ConfigurationFaults, Fault, GatewayError, Unavailable
from gateway.logs import LibraryLines, Loggers, configure
from gateway.settings import Settings, load, refuse_public_demo

DRAIN_S = 10  # how long a signal waits for answers that have begun
_WAITING = 2048  # connections that the kernel keeps for us
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def serve(
    host: Annotated[str | None, typer.Option("--host", help="Address to listen on.")] = None,
    port: Annotated[str | None, typer.Option("--port", help="Port to listen on; 0 takes any free one.")] = None,
    demo: Annotated[
        bool | None, typer.Option("--demo/--no-demo", help="With the tenant demo, made at the first start.")
    ] = None,
    config: Config = None,
) -> None:
    """Starts the gateway. SIGTERM ends it once what has begun is answered."""
    with refusals():
        settings = _settings(config, {"--host": host, "--port": port, "--demo": None if demo is None else str(demo)})
        loggers = configure(settings)
        with (
            _library_lines(loggers),
            _bound(settings.server.host, settings.server.port) as listener,
            asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
        ):
            runner.run(_serve(settings, loggers, listener))


@contextmanager
def _library_lines(loggers: Loggers) -> Iterator[None]:
    """What libraries log becomes our lines, which hold nothing of a request."""
    handler = LibraryLines(loggers)
    logging.getLogger().addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(handler)


async def _serve(settings: Settings, loggers: Loggers, listener: socket.socket) -> None:
    gateway = put_together(settings, loggers, local_operator=False)
    async with gateway.running():
        # An error that left through the gateway's task groups would come out wrapped in a group.
        try:
            config = _uvicorn(gateway, loggers)
            await _prepare(gateway, listener)
        except (GatewayError, ConfigurationFaults) as error:
            failed = error
        else:
            server = _Server(config)
            _spare_the_collector()
            await server.serve(sockets=[listener])
            return
    raise failed


async def _prepare(gateway: Gateway, listener: socket.socket) -> None:
    """All that comes before the first request; when it returns, connections are already waited for."""
    tenants = await gateway.stores.tenants.all()
    refuse_public_demo(gateway.settings, any(tenant.demo for tenant in tenants))
    made = await make_demo(gateway) if gateway.settings.demo.enabled else None
    listener.listen(_WAITING)
    url = _url(listener)
    if gateway.settings.demo.enabled:
        tell(made, url)
        remember_told(gateway)
    output.say(f"The gateway listens on {url}")


def _uvicorn(gateway: Gateway, loggers: Loggers) -> uvicorn.Config:
    return uvicorn.Config(
        create_app(gateway, loggers),
        http=WholeAnswers,
        ws="none",
        lifespan="off",  # the gateway is running already
        log_config=None,
        access_log=False,  # the audit is one, and knows who
        proxy_headers=False,  # what a header says of the peer is nobody's word
        server_header=False,
        timeout_graceful_shutdown=DRAIN_S,
    )


def _spare_the_collector() -> None:
    """What the start made stays to the end, so the garbage collector need not look through it again and again; and a
    request's values go by themselves, so it may look less often. Together about a tenth of what a request costs."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 50)


class _Server(uvicorn.Server):
    """Ends at a signal without raising it again, which would kill the process before the audit is on the disk."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        for number in _SIGNALS:
            loop.add_signal_handler(number, self.handle_exit, number, None)
        try:
            yield
        finally:
            for number in _SIGNALS:
                loop.remove_signal_handler(number)


def _settings(config: Path | None, options: dict[str, str | None]) -> Settings:
    """The settings; an option wins over a variable, which wins over the file. Raises ConfigurationFaults."""
    variables = {"--host": "GATEWAY_SERVER__HOST", "--port": "GATEWAY_SERVER__PORT", "--demo": "GATEWAY_DEMO__ENABLED"}
    given = {variables[option]: value for option, value in options.items() if value is not None}
    options_by_variable = {variables[option]: option for option, value in options.items() if value is not None}
    try:
        return load(config, {**os.environ, **given})
    except ConfigurationFaults as found:
        raise ConfigurationFaults(
            [
                Fault(field=options_by_variable.get(one.field, one.field), rule=one.rule, message=one.message)
                for one in found.faults
            ]
        ) from None


def _bound(host: str, port: int) -> socket.socket:
    """A socket on that address, not listening yet. Raises Unavailable, or ConfigurationFaults for no address at all."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except OSError as error:
        message = f"{host} is no address of this machine: {error.strerror}"
        raise ConfigurationFaults([Fault(field="server.host", rule="address", message=message)]) from error
    listener = socket.socket(family, kind, protocol)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(address)
    except OSError as error:
        listener.close()
        raise Unavailable(_why_not(host, port, error)) from error
    return listener


def _why_not(host: str, port: int, error: OSError) -> str:
    return (
        f"The gateway can't listen on {host} port {port}: {error.strerror}. "
        "Stop the program that holds it, or choose another: gateway serve --port 8081"
    )


def _url(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if listener.family == socket.AF_INET6 else f"http://{host}:{port}"
