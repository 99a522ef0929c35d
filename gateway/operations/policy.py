"""The policy document over REST and the command line: show, publish, history, rollback (design section 7)."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from gateway.errors import Invalid, NotFound, Unavailable
from gateway.model import Action, Requester, Resource
from gateway.operations.found import function
from gateway.policy.documents import parse
from gateway.policy.lockout import publishable
from gateway.policy.permit import Permit
from gateway.policy.targets import FunctionTarget
from gateway.ports import Clock, Page, Policies, PolicyVersion
from gateway.tools.arguments import Arguments
from gateway.tools.registry import AnyOperation, Operation
from gateway.turn import Turn

FAMILY = (Resource.ADMIN_POLICY,)


class PublishBody(Arguments):
    """`PUT /v1/admin/policy`."""

    text: str
    base_version: Annotated[int, Field(ge=0)]
    comment: Annotated[str, Field(min_length=1, max_length=500)]


@dataclass(frozen=True, slots=True)
class Versions:
    """Arguments of the history."""

    limit: int
    cursor: str | None


@dataclass(frozen=True, slots=True)
class OfVersion:
    """Arguments of a rollback: the version to go back to."""

    version: int


@dataclass(frozen=True, slots=True)
class InForce:
    """A version and the epoch that it is in force at."""

    version: PolicyVersion
    epoch: int


class PolicyOperations:
    """Builds the operations on a tenant's policy document."""

    def __init__(self, policies: Policies, clock: Clock) -> None:
        self._policies = policies
        self._clock = clock
        self.show: AnyOperation = self._operation(
            "policy.show", "Shows the document in force.", Action.READ, self._run_show
        )
        self.publish: AnyOperation = self._operation(
            "policy.publish", "Puts a new document in force.", Action.PUBLISH, self._run_publish, changes=True
        )
        self.history: AnyOperation = self._operation(
            "policy.history", "Lists the published versions, newest first.", Action.READ, self._run_history
        )
        self.rollback: AnyOperation = self._operation(
            "policy.rollback",
            "Puts an earlier document in force again.",
            Action.PUBLISH,
            self._run_rollback,
            changes=True,
        )

    def _operation(
        self, name: str, summary: str, action: Action, run: Callable[..., Awaitable[object]], *, changes: bool = False
    ) -> AnyOperation:
        return Operation(
            name=name,
            summary=summary,
            action=action,
            family=FAMILY,
            find=_find,
            run=run,
            details=_details if changes else None,
            effect=changes,
            raises_epoch=changes,
        )

    async def _run_show(self, permit: Permit[FunctionTarget], _turn: Turn, _arguments: None) -> InForce:
        return await self._in_force(permit)

    async def _run_publish(self, permit: Permit[FunctionTarget], _turn: Turn, body: PublishBody) -> InForce:
        await asyncio.to_thread(_check, body.text)
        return await self._put(permit, body.text, body.base_version, body.comment, rolled_back_to=None)

    async def _run_history(
        self, permit: Permit[FunctionTarget], _turn: Turn, arguments: Versions
    ) -> Page[PolicyVersion]:
        return await self._policies.history(permit.requester.tenant, limit=arguments.limit, cursor=arguments.cursor)

    async def _run_rollback(self, permit: Permit[FunctionTarget], _turn: Turn, arguments: OfVersion) -> InForce:
        earlier = await self._policies.version(permit.requester.tenant, arguments.version)
        if earlier is None:
            raise NotFound
        await asyncio.to_thread(_check, earlier.text)
        current = await self._in_force(permit)
        comment = f"Back to version {earlier.version}: {earlier.comment}"[:500]
        return await self._put(permit, earlier.text, current.version.version, comment, rolled_back_to=earlier.version)

    async def _put(
        self, permit: Permit[FunctionTarget], text: str, base: int, comment: str, *, rolled_back_to: int | None
    ) -> InForce:
        version, epoch = await self._policies.publish(
            permit.requester.tenant,
            text,
            base_version=base,
            comment=comment,
            author=_author(permit.requester),
            now=self._clock.now(),
            rolled_back_to=rolled_back_to,
        )
        return InForce(version, epoch)

    async def _in_force(self, permit: Permit[FunctionTarget]) -> InForce:
        found = await self._policies.current(permit.requester.tenant)
        if found is None:
            raise Unavailable("This organisation has no policy in force yet. The operator can publish one.")
        return InForce(*found)


def _check(text: str) -> None:
    """Raises Invalid for a document that can't be put in force. A long one takes seconds: run it in a thread."""
    faults = publishable(parse(text))
    if faults:
        raise Invalid(faults)


async def _find(turn: Turn, arguments: PublishBody | OfVersion | Versions | None) -> FunctionTarget:
    """Named for the version that it will be, or that it goes back to."""
    match arguments:
        case PublishBody():
            return function(turn, Resource.ADMIN_POLICY, f"version {arguments.base_version + 1}")
        case OfVersion():
            return function(turn, Resource.ADMIN_POLICY, f"version {arguments.version}")
        case _:
            return function(turn, Resource.ADMIN_POLICY)


async def _details(
    _permit: Permit[FunctionTarget], _turn: Turn, arguments: PublishBody | OfVersion
) -> dict[str, object]:
    if isinstance(arguments, OfVersion):
        return {"rolled_back_to": arguments.version}
    digest = hashlib.sha256(arguments.text.encode(errors="surrogatepass")).hexdigest()
    return {"base_version": arguments.base_version, "sha256": digest}


def _author(requester: Requester) -> str:
    return f"{requester.profile.name} ({requester.profile.id})"
