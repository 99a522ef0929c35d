"""The path of a request: seven stages in order, and nothing else (design section 3)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from gateway.errors import GatewayError, NotFound
from gateway.identity.credentials import Credentials
from gateway.model import Principal, TenantId
from gateway.stages.assemble_context import AssembleContext
from gateway.stages.authenticate import Authenticate
from gateway.stages.authorize import AuthorizeStage
from gateway.stages.call_tool import CallTool
from gateway.stages.open_session import Entry, OpenSession
from gateway.stages.record_audit import RecordAudit, Trail
from gateway.stages.resolve_profile import ResolveProfile
from gateway.tools.registry import AnyOperation
from gateway.turn import Turn


class Asked(Protocol):
    """A request before it is known whose it is. What it asks for is read only for somebody who is."""

    @property
    def credentials(self) -> Credentials:
        """What it presents."""

    def arguments(self) -> Awaitable[object]:
        """What was sent. Raises a GatewayError for what can't be read."""

    def operation(self, arguments: Any, /) -> AnyOperation:
        """Which one the arguments ask for."""

    def entry(self, arguments: Any, /) -> Entry | None:
        """Which session it is made from, once the arguments are read."""

    def min_epoch(self) -> int | None:
        """What the caller has seen already."""


@dataclass(slots=True, kw_only=True)
class Call:
    """A request that does not come over HTTP."""

    credentials: Credentials
    arguments: Callable[[], Awaitable[object]]
    operation: Callable[[object], AnyOperation]
    entry: Callable[[object], Entry | None]
    min_epoch: Callable[[], int | None] = lambda: None

    @classmethod
    def of(
        cls,
        credentials: Credentials,
        operation: AnyOperation,
        arguments: object = None,
        entry: Entry | None = None,
    ) -> Call:
        """A request for one operation, whose arguments are at hand."""

        async def read() -> object:
            return arguments

        return cls(
            credentials=credentials,
            arguments=read,
            operation=lambda _arguments: operation,
            entry=lambda _arguments: entry,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """The stages. Every surface runs every operation through here."""

    authenticate: Authenticate
    resolve_profile: ResolveProfile
    open_session: OpenSession
    assemble_context: AssembleContext
    authorize: AuthorizeStage
    call_tool: CallTool
    record_audit: RecordAudit
    hear: Callable[[TenantId], Awaitable[None]]  # takes note of the tenant's epoch as the store has it now
    epoch_of: Callable[[TenantId], int]  # as it is known now; 0 for a tenant that is not there

    def run(self, call: Asked, trail: Trail) -> Coroutine[Any, Any, object]:
        """What the operation returns. Raises a GatewayError that the caller may be told, recorded like all the rest."""
        return self.record_audit(trail, self._path(call, trail))

    async def _path(self, call: Asked, trail: Trail) -> object:
        trail.principal = principal = await self.authenticate(call.credentials)
        epoch = self.epoch_of(principal.tenant)
        try:
            arguments = await call.arguments()
        except GatewayError:
            # Somebody whose profile is not active is told that, and not what is wrong with what they sent.
            await self._resolve(call, trail, principal, None)
            raise
        operation = call.operation(arguments)
        trail.operation = operation.name
        entry = call.entry(arguments)
        turn = await self._resolve(call, trail, principal, entry)
        if turn.state.epoch != epoch:
            # The body took its time, or an epoch that the caller has seen came in: a credential that was good before
            # may be revoked by now.
            trail.requester = None
            trail.principal = principal = await self.authenticate(call.credentials)
            turn = await self._resolve(call, trail, principal, entry)
        self.authorize.bearer(turn, operation)
        turn = await self.open_session(turn, entry)
        if operation.assembles:
            turn = await self.assemble_context(turn)
        try:
            permit = await self.authorize(turn, operation, arguments)
        except NotFound:
            if operation.absent is None:
                raise
            trail.denied = True
            return operation.absent(arguments)
        return await self.call_tool(permit, turn, operation, arguments, trail)

    def _resolve(self, call: Asked, trail: Trail, principal: Principal, entry: Entry | None) -> Awaitable[Turn]:
        renew = partial(self._renew, call, trail, principal.tenant, entry)
        return self.resolve_profile(principal, trail, renew, call.min_epoch())

    async def _renew(self, call: Asked, trail: Trail, tenant: TenantId, entry: Entry | None) -> Turn:
        await self.hear(tenant)  # another process may have merged or revoked a moment ago
        verified = await self.authenticate(call.credentials)
        return await self.open_session(await self._resolve(call, trail, verified, entry), entry)
