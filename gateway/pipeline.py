"""The path of a request: seven stages in order, and nothing else (design section 3)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

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


@dataclass(slots=True, kw_only=True)
class Call:
    """A request before it is known whose it is. `arguments` reads the body, and only for somebody who is known."""

    credentials: Credentials
    arguments: Callable[[], Awaitable[object]]
    operation: Callable[[object], AnyOperation]  # which one the arguments ask for
    entry: Callable[[object], Entry | None]  # which session it is made from, once the arguments are read
    min_epoch: Callable[[], int | None] = lambda: None  # what the caller has seen already

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

    async def run(self, call: Call, trail: Trail) -> object:
        """What the operation returns. Raises a GatewayError that the caller may be told, recorded like all the rest."""
        return await self.record_audit(trail, lambda: self._path(call, trail))

    async def _path(self, call: Call, trail: Trail) -> object:
        trail.principal = await self.authenticate(call.credentials)
        epoch = self.epoch_of(trail.principal.tenant)
        arguments = await self._arguments(call, trail, trail.principal)
        operation = call.operation(arguments)
        trail.operation = operation.name
        entry = call.entry(arguments)
        turn = await self._resolve(call, trail, trail.principal, entry)
        if turn.state.epoch != epoch:
            # The body took its time, or an epoch that the caller has seen came in: a credential that was good before
            # may be revoked by now.
            trail.requester = None
            trail.principal = await self.authenticate(call.credentials)
            turn = await self._resolve(call, trail, trail.principal, entry)
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

    async def _arguments(self, call: Call, trail: Trail, principal: Principal) -> object:
        """What was sent. Somebody whose profile is not active is told that, and not what is wrong with it."""
        try:
            return await call.arguments()
        except GatewayError:
            await self._resolve(call, trail, principal, None)
            raise

    async def _resolve(self, call: Call, trail: Trail, principal: Principal, entry: Entry | None) -> Turn:
        async def renew() -> Turn:
            await self.hear(principal.tenant)  # another process may have merged or revoked a moment ago
            verified = await self.authenticate(call.credentials)
            return await self.open_session(await self._resolve(call, trail, verified, entry), entry)

        return await self.resolve_profile(principal, trail, renew, call.min_epoch())
