"""The audit over REST and the command line: read it, verify its chain (design section 12)."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.model import Action, Resource
from gateway.operations.found import function
from gateway.policy.permit import Permit
from gateway.policy.targets import FunctionTarget
from gateway.ports import Audit, AuditFilter, ChainReport, Page, StoredRecord
from gateway.tools.registry import AnyOperation, Operation
from gateway.turn import Turn

FAMILY = (Resource.ADMIN_AUDIT,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Arguments of a reading: the filter, and where to go on."""

    narrow: AuditFilter
    limit: int
    cursor: str | None
    ascending: bool = False


class AuditOperations:
    """Builds the operations on a tenant's audit."""

    def __init__(self, audit: Audit) -> None:
        self._audit = audit
        self.read: AnyOperation = Operation(
            name="audit.read",
            summary="Lists what was asked and what was answered, newest first.",
            action=Action.READ,
            family=FAMILY,
            find=_find,
            run=self._run_read,
        )
        self.verify: AnyOperation = Operation(
            name="audit.verify",
            summary="Reads the whole chain and says what is wrong with it.",
            action=Action.READ,
            family=FAMILY,
            find=_find,
            run=self._run_verify,
        )
        self.export: AnyOperation = Operation(
            name="audit.export",
            summary="Reads the audit in order, page by page, to keep it elsewhere.",
            action=Action.EXPORT,
            family=FAMILY,
            find=_find,
            run=self._run_read,
        )

    async def _run_read(self, permit: Permit[FunctionTarget], _turn: Turn, arguments: Reading) -> Page[StoredRecord]:
        return await self._audit.read(
            permit.requester.tenant,
            arguments.narrow,
            limit=arguments.limit,
            cursor=arguments.cursor,
            ascending=arguments.ascending,
        )

    async def _run_verify(self, permit: Permit[FunctionTarget], _turn: Turn, _arguments: None) -> ChainReport:
        return await self._audit.verify(permit.requester.tenant)


async def _find(turn: Turn, _arguments: object) -> FunctionTarget:
    return function(turn, Resource.ADMIN_AUDIT)
