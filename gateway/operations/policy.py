"""The policy document over REST and the command line: show, publish, history, rollback (design section 7)."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from pydantic import Field

from gateway.errors import Invalid, NotFound, Unavailable
from gateway.model import ANY_AGENT, Action, Requester, Resource
from gateway.operations.found import LONGEST_NAME, function
from gateway.policy.documents import Document, parse
from gateway.policy.drafts import Draft, draft
from gateway.policy.endings import ending
from gateway.policy.lockout import publishable
from gateway.policy.permit import Permit
from gateway.policy.rows import Row
from gateway.policy.targets import FunctionTarget, PolicyTarget
from gateway.ports import Clock, Page, Policies, PolicyVersion, overtaken
from gateway.raising.publishing import PublishingIsWeighed
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
    """One version: to look at, or to go back to."""

    version: int


@dataclass(frozen=True, slots=True)
class InForce:
    """A version, the epoch that it is in force at, and those of its rows that end by themselves soon."""

    version: PolicyVersion
    epoch: int
    ends: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Published:
    """A version of the history, and when a row of it ends next; None where none does, and for what is not in force."""

    version: PolicyVersion
    next_end: datetime | None


class PolicyOperations:
    """Builds the operations on a tenant's policy document."""

    def __init__(self, policies: Policies, publishing: PublishingIsWeighed, clock: Clock) -> None:
        self._policies = policies
        self._publishing = publishing
        self._clock = clock
        self.show: AnyOperation = self._operation(
            "policy.show", "Shows the document in force.", Action.READ, _find, self._run_show
        )
        self.publish: AnyOperation = self._operation(
            "policy.publish",
            "Puts a new document in force.",
            Action.PUBLISH,
            self._find_publish,
            self._run_publish,
            changes=True,
        )
        self.history: AnyOperation = self._operation(
            "policy.history", "Lists the published versions, newest first.", Action.READ, _find, self._run_history
        )
        self.version: AnyOperation = self._operation(
            "policy.version", "Shows one published version.", Action.READ, _find, self._run_version
        )
        self.rollback: AnyOperation = self._operation(
            "policy.rollback",
            "Puts an earlier document in force again.",
            Action.PUBLISH,
            self._find_rollback,
            self._run_rollback,
            changes=True,
        )

    def _operation(
        self,
        name: str,
        summary: str,
        action: Action,
        find: Callable[..., Awaitable[FunctionTarget]],
        run: Callable[..., Awaitable[object]],
        *,
        changes: bool = False,
    ) -> AnyOperation:
        return Operation(
            name=name,
            summary=summary,
            action=action,
            family=FAMILY,
            find=find,
            run=run,
            details=self._details if changes else None,
            effect=changes,
            raises_epoch=changes,
        )

    async def _find_publish(self, turn: Turn, body: PublishBody) -> PolicyTarget:
        """Named for the version that it will be."""
        after = await asyncio.to_thread(parse, body.text)
        return _target(turn, body.base_version + 1, await self._draft(turn, body.base_version, after))

    async def _find_rollback(self, turn: Turn, arguments: OfVersion) -> PolicyTarget:
        """Named for the version that it goes back to."""
        if not _may_read(turn):
            return _target(turn, arguments.version, None)
        earlier = await self._policies.version(turn.tenant, arguments.version)
        current = await self._policies.current(turn.tenant)
        if earlier is None or current is None:
            return _target(turn, arguments.version, None)
        after = await asyncio.to_thread(parse, earlier.text)
        return _target(turn, arguments.version, await self._draft(turn, current[0].version, after))

    async def _draft(self, turn: Turn, base_version: int, after: Document) -> Draft | None:
        snapshot = turn.state.snapshot
        if snapshot.version == base_version:
            return await asyncio.to_thread(draft, base_version, snapshot.document, after)
        base = await self._policies.version(turn.tenant, base_version) if _may_read(turn) else None
        if base is None:
            return None
        before = await asyncio.to_thread(parse, base.text)
        return await asyncio.to_thread(draft, base_version, before, after)

    async def _details(
        self, permit: Permit[PolicyTarget], turn: Turn, arguments: PublishBody | OfVersion
    ) -> dict[str, object]:
        """What becomes of it is worked out here, before the intent is on disk, so that the audit has it either way."""
        if permit.target.draft is not None:
            turn.outcome = await self._publishing.weigh(permit.requester, turn.state, permit.target.draft, turn.at)
        marks = turn.outcome.marks() if turn.outcome is not None else {}
        if isinstance(arguments, OfVersion):
            return {"rolled_back_to": arguments.version} | marks
        digest = hashlib.sha256(arguments.text.encode(errors="surrogatepass")).hexdigest()
        return {"base_version": arguments.base_version, "sha256": digest} | marks

    async def _run_show(self, permit: Permit[FunctionTarget], turn: Turn, _arguments: None) -> InForce:
        version, epoch = await self._current(permit)
        snapshot = turn.state.snapshot
        same = snapshot.version == version.version  # else it was published while this request was under way
        document = snapshot.document if same else await asyncio.to_thread(parse, version.text)
        return InForce(version, epoch, await asyncio.to_thread(ending, document, turn.at))

    async def _run_publish(self, permit: Permit[PolicyTarget], turn: Turn, body: PublishBody) -> InForce:
        return await self._put(permit, turn, body.comment, rolled_back_to=None)

    async def _run_history(self, permit: Permit[FunctionTarget], turn: Turn, arguments: Versions) -> Page[Published]:
        page = await self._policies.history(permit.requester.tenant, limit=arguments.limit, cursor=arguments.cursor)
        snapshot = turn.state.snapshot
        listed = [
            Published(one, snapshot.expires_at if one.version == snapshot.version else None) for one in page.items
        ]
        return Page(tuple(listed), page.next_cursor)

    async def _run_version(self, permit: Permit[FunctionTarget], _turn: Turn, arguments: OfVersion) -> PolicyVersion:
        found = await self._policies.version(permit.requester.tenant, arguments.version)
        if found is None:
            raise NotFound
        return found

    async def _run_rollback(self, permit: Permit[PolicyTarget], turn: Turn, arguments: OfVersion) -> InForce:
        earlier = await self._run_version(permit, turn, arguments)
        comment = f"Back to version {earlier.version}: {earlier.comment}"[:500]
        return await self._put(permit, turn, comment, rolled_back_to=earlier.version)

    async def _put(
        self, permit: Permit[PolicyTarget], turn: Turn, comment: str, *, rolled_back_to: int | None
    ) -> InForce:
        """Raises Conflict, and compares nothing, for a draft on top of what is not in force: its author has to look at
        what changed first. The store looks again when it writes, so what was compared is what is replaced."""
        wanted, outcome = permit.target.draft, turn.outcome
        current, _ = await self._current(permit)
        if wanted is None or outcome is None or wanted.base_version != current.version:
            raise overtaken(current.version)
        await asyncio.to_thread(_check, wanted.after)
        outcome.check()
        now = self._clock.now()
        version, epoch = await self._policies.publish(
            permit.requester.tenant,
            wanted.after.text,
            base_version=wanted.base_version,
            comment=comment,
            author=_author(permit.requester),
            now=now,
            rolled_back_to=rolled_back_to,
            told=outcome.notices(permit.requester, now, "policy", f"version {wanted.base_version + 1}"),
        )
        return InForce(version, epoch, await asyncio.to_thread(ending, wanted.after, now))

    async def _current(self, permit: Permit[FunctionTarget]) -> tuple[PolicyVersion, int]:
        found = await self._policies.current(permit.requester.tenant)
        if found is None:
            raise Unavailable("This organisation has no policy in force yet. The operator can publish one.")
        return found


def _check(document: Document) -> None:
    """Raises Invalid for a document that can't be put in force. A long one takes a while: run it in a thread."""
    faults = publishable(document)
    if faults:
        raise Invalid(faults)


async def _find(turn: Turn, _arguments: Versions | OfVersion | None) -> FunctionTarget:
    return function(turn, Resource.ADMIN_POLICY)


def _may_read(turn: Turn) -> bool:
    """Whether a version may be read from the store to see what is different: by who reads the policy, or publishes it
    for every agent. What is in force is at hand."""
    everywhere = function(turn, Resource.ADMIN_POLICY)
    return any(turn.permit(action, everywhere) is not None for action in (Action.READ, Action.PUBLISH))


def _target(turn: Turn, version: int, wanted: Draft | None) -> PolicyTarget:
    agent = ANY_AGENT if wanted is None else wanted.agent
    return PolicyTarget(turn.tenant, Resource.ADMIN_POLICY, f"version {version}"[:LONGEST_NAME], agent, wanted)


def _author(requester: Requester) -> str:
    return f"{requester.profile.name} ({requester.profile.id})"
