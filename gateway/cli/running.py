"""Turns a command into one run of an open gateway: who asks, and every operation through the pipeline."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from gateway.app import Gateway, compose
from gateway.errors import GatewayError, Invalid, NotFound, ToolNotAllowed, Unauthenticated, Unavailable
from gateway.identity.credentials import Credentials
from gateway.keys import new_id
from gateway.logs import Loggers, configure
from gateway.model import TenantId
from gateway.operations.catalogue import Catalogue
from gateway.pipeline import Call
from gateway.settings import Settings, load
from gateway.stages.open_session import Entry
from gateway.stages.record_audit import Trail
from gateway.tools.registry import AnyOperation

SURFACE = "cli"
TOKEN_VARIABLE = "GATEWAY_TOKEN"  # noqa: S105 - where a token is, not one

ResultT = TypeVar("ResultT")


class Desk:
    """An open gateway and who stands in front of it. `tenant` is what a person's token must belong to, if anything."""

    def __init__(self, gateway: Gateway, credentials: Credentials, tenant: str | None = None) -> None:
        self.gateway = gateway
        self._credentials = credentials
        self._tenant = tenant

    @property
    def catalogue(self) -> Catalogue:
        """Everything that can be asked for."""
        return self.gateway.catalogue

    @property
    def is_operator(self) -> bool:
        """Whether the local operator asks, and not somebody with a token."""
        return self._credentials.operator_of is not None

    async def ask(
        self, operation: AnyOperation, read: Callable[[], object] = lambda: None, *, entry: Entry | None = None
    ) -> Any:
        """What the operation returns. `read` makes its arguments, once it is known who asks.

        Raises a GatewayError with notes on what to do about it.
        """
        trail = Trail(new_id("req", self.gateway.clock.now()), SURFACE, operation.name)

        async def arguments() -> object:
            self._check_tenant(trail)
            return read()

        call = Call(
            credentials=self._credentials,
            arguments=arguments,
            operation=lambda _arguments: operation,
            entry=lambda _arguments: entry,
        )
        try:
            return await self.gateway.pipeline.run(call, trail)
        except GatewayError as error:
            self._advise(error, trail)
            raise

    def _check_tenant(self, trail: Trail) -> None:
        # The tenant comes from the credential; naming another is a mistake that must not be carried out here.
        if self._tenant is not None and trail.principal is not None and trail.principal.tenant != self._tenant:
            raise NotFound

    def _advise(self, error: GatewayError, trail: Trail) -> None:
        if isinstance(error, Unauthenticated):
            error.add_note(f"{TOKEN_VARIABLE} holds no good token. Set it to one, or unset it to be the operator.")
        elif isinstance(error, NotFound | ToolNotAllowed) and trail.last_decision is not None:
            error.add_note(f"An admin or auditor can look up why: gateway policy explain {trail.last_decision}")


def at_desk(config: Path | None, tenant: str | None, work: Callable[[Desk], Awaitable[ResultT]]) -> ResultT:
    """Opens the gateway of these settings for whoever runs the command, and closes it when `work` is done."""
    environ = os.environ

    async def ask(gateway: Gateway) -> ResultT:
        return await work(await _desk(gateway, tenant, environ))

    return with_gateway(load(config, environ), ask)


def as_operator(config: Path | None, work: Callable[[Gateway], Awaitable[ResultT]]) -> ResultT:
    """Opens the gateway for what only the operator of the machine does. Raises ToolNotAllowed beside a token."""
    refuse_token()
    return with_gateway(load(config, os.environ), work)


def refuse_token() -> None:
    """For what only the operator of the machine does. Raises ToolNotAllowed where a token says who asks."""
    if TOKEN_VARIABLE in os.environ:
        raise ToolNotAllowed(
            f"Only the operator of this machine does this. Unset {TOKEN_VARIABLE} if that is who you are."
        )


def with_gateway(settings: Settings, work: Callable[[Gateway], Awaitable[ResultT]]) -> ResultT:
    """What `work` returns of an open gateway."""
    return asyncio.run(_run(settings, work))


def put_together(settings: Settings, loggers: Loggers, *, local_operator: bool) -> Gateway:
    """A gateway that is not open yet. Raises ConfigurationFaults, and Unavailable where the state folder can't be made.

    `local_operator` is for commands on the machine itself, and for nothing that listens.
    """
    try:
        return compose(settings, loggers, local_operator=local_operator)
    except OSError as error:
        message = (
            f"The state folder {settings.state.folder} can't be used: {error.strerror}. Name another: state.folder"
        )
        raise Unavailable(message) from error


async def _run(settings: Settings, work: Callable[[Gateway], Awaitable[ResultT]]) -> ResultT:
    gateway = put_together(settings, configure(settings), local_operator=True)
    async with gateway.running():
        # An error that left through the gateway's task groups would come out wrapped in a group.
        try:
            return await work(gateway)
        except GatewayError as error:
            failed = error
    raise failed


async def _desk(gateway: Gateway, tenant: str | None, environ: Mapping[str, str]) -> Desk:
    token = environ.get(TOKEN_VARIABLE)
    if token is not None:  # an empty one too: it must not make an operator of whoever forgot to fill it
        return Desk(gateway, Credentials.bearer(token), tenant)
    return Desk(gateway, Credentials(operator_of=await _tenant(gateway, tenant)))


async def _tenant(gateway: Gateway, named: str | None) -> TenantId:
    """The tenant of that name, or the only one. Raises Invalid with the list otherwise."""
    names = [tenant.id for tenant in await gateway.stores.tenants.all()]
    if named is None and len(names) == 1:
        return names[0]
    with suppress(ValueError):
        return names[names.index(TenantId(named or ""))]
    if not names:
        message = "There is no tenant yet. Make one: gateway tenants add NAME --owner EMAIL"
    else:
        message = f"Name one of the tenants here: {', '.join(names)}"
    raise Invalid.of("--tenant", "known", message)
