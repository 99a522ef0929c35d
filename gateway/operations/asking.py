"""Turns a question about somebody into the decision that the gateway would make for them: nothing runs by it.

Targets and origins are made by the code that makes them for a request, so that an answer and what happens agree. Roles
that only a credential's groups give are not known here: nobody is signed in.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final
from zoneinfo import ZoneInfo

from gateway.keys import LONGEST_WORD, is_profile_id
from gateway.model import (
    OUTSIDE,
    Action,
    Decision,
    FileKind,
    Kind,
    Origin,
    Profile,
    ProfileId,
    Requester,
    Resource,
    SessionFacts,
    TenantId,
)
from gateway.operations.found import LONGEST_NAME, asked_from
from gateway.operations.somebody import as_requester
from gateway.policy.relations import origin_of
from gateway.policy.targets import (
    PERSONAL_RESOURCES,
    MemoryTarget,
    MissingTarget,
    NewSessionTarget,
    SessionTarget,
    SingleTarget,
)
from gateway.ports import Clock, Identities
from gateway.sessions.conversations import Conversations
from gateway.stages.assemble_context import PERSONAL, RESOURCES, belongs
from gateway.tools.memory import file_target
from gateway.tools.registry import SESSIONS, Registry, Tool
from gateway.turn import Turn
from gateway.workspace.bootstrap import candidates

# A request for one of these is made from inside the session that it is about: so is a question without another origin.
FROM_INSIDE: Final = frozenset({Action.ENTER, Action.POST, Action.SPAWN})


@dataclass(frozen=True, slots=True)
class OnSession:
    """A question about a session, by its key or id."""

    reference: str


@dataclass(frozen=True, slots=True)
class OnMemory:
    """A question about a memory file of an agent, by its path in the workspace."""

    agent: str
    path: str


@dataclass(frozen=True, slots=True)
class OnTool:
    """A question about a tool: whether they could run it at all, or from the session that they ask from."""

    name: str


Thing = OnSession | OnMemory | OnTool


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What is asked. `session` is where they would ask from, None outside any; `kind` narrows it as a turn's kind does.

    For a tool the action says nothing: it is what the tool does.
    """

    asked: Requester
    action: Action
    thing: Thing
    session: str | None = None
    kind: str | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """The decision. Where they can't enter the session that they would ask from it is that one; then not `entered`."""

    decision: Decision
    entered: bool = True


class Asking:
    """Puts questions about other people to the policy, for operations that are permitted to ask."""

    def __init__(self, identities: Identities, conversations: Conversations, tools: Registry, clock: Clock) -> None:
        self._identities = identities
        self._conversations = conversations
        self._tools = tools
        self._clock = clock

    async def person(self, tenant: TenantId, profile: str) -> Profile | None:
        """The profile of that id, or its survivor; None where there is none."""
        if not is_profile_id(profile):
            return None
        found = await self._identities.profile(tenant, ProfileId(profile))
        if found is None or found.merged_into is None:
            return found
        return await self._identities.profile(tenant, found.merged_into)

    async def with_email(self, tenant: TenantId, email: str) -> Profile | None:
        """The profile that holds this folded email now."""
        return await self._identities.profile_with_email(tenant, email)

    async def requester(self, turn: Turn, profile: str) -> Requester:
        """Somebody by id, as if they asked now with a credential for everything. Who is not there is nobody who may do
        anything, like somebody who is disabled: the two look the same."""
        found = await self.person(turn.tenant, profile)
        return as_requester(turn, found or nobody(turn.tenant, profile))

    async def put(self, turn: Turn, wish: Wish) -> Reply:
        """What the gateway would answer. The record says of whom it speaks, and that the turn's requester asked."""
        origin = OUTSIDE
        here: SessionFacts | None = None
        reference = wish.session
        if reference is None and isinstance(wish.thing, OnSession) and wish.action in FROM_INSIDE:
            reference = wish.thing.reference
        if reference is not None:
            here = await self._conversations.find(turn.tenant, reference)
            entered = _enter(turn, wish.asked, here, reference)
            if here is None or not entered.verdict.allowed:
                return Reply(entered, entered=wish.action is Action.ENTER and wish.session is None)
            if wish.action is Action.ENTER and wish.session is None:
                return Reply(entered)
            origin = origin_of(here.session, wish.kind, tainted=False)
        if isinstance(wish.thing, OnTool):
            return Reply(self._put_tool(turn, wish.asked, wish.thing.name, origin, here))
        target, origin = await self._target(turn, wish, origin, here)
        return Reply(turn.authorize.answer(turn, wish.asked, origin, wish.action, target))

    async def _target(
        self, turn: Turn, wish: Wish, origin: Origin, here: SessionFacts | None
    ) -> tuple[SingleTarget, Origin]:
        if isinstance(wish.thing, OnMemory):
            return self.file(turn, wish.asked, wish.action, wish.thing, origin), origin
        assert isinstance(wish.thing, OnSession)  # noqa: S101 - a tool is answered before
        reference = wish.thing.reference
        if here is not None and wish.action is Action.SPAWN and reference in (here.session.id, here.session.key):
            return child_of(here), origin
        facts = await self._conversations.find(turn.tenant, reference)
        if facts is None:
            return MissingTarget(turn.tenant, Resource.SESSION_PRIVATE, reference), origin
        return SessionTarget(facts), asked_from(facts, origin, wish.asked.profile.id)

    # ── memory ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def file(
        self, turn: Turn, asked: Requester, action: Action, file: OnMemory, origin: Origin
    ) -> MemoryTarget | MissingTarget:
        """The file as a request for it would name it, or as a turn there would load it."""
        if action is Action.LOAD:
            return self._loaded(turn, asked, file, origin)
        return file_target(turn.tenant, turn.agent(file.agent), file.path)

    def _loaded(self, turn: Turn, asked: Requester, file: OnMemory, origin: Origin) -> MemoryTarget | MissingTarget:
        """A file that a turn there would look at; any other is missing for it, like one that its kind never loads."""
        agent, here, me = turn.agent(file.agent), origin.session, asked.profile.id
        missing = MissingTarget(turn.tenant, Resource.MEMORY_DAILY, file.path)
        if agent is None or (here is not None and here.agent != agent.name):
            return missing
        today = self._clock.now().astimezone(ZoneInfo(agent.timezone)).date()
        profile = me if is_profile_id(me) else None
        found = next((one for one in candidates(profile, today) if one.path == file.path), None)
        if found is None or not belongs(origin.kind, found):
            return missing
        mine = found.kind in PERSONAL
        if mine and here is not None and here.owner != me:
            return missing
        if found.kind is FileKind.PERSONAL and turn.state.people < 2:
            return missing
        return MemoryTarget(turn.tenant, agent.name, RESOURCES[found.kind], me if mine else None, file.path)

    # ── tools ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _put_tool(self, turn: Turn, asked: Requester, name: str, origin: Origin, here: SessionFacts | None) -> Decision:
        """Whether the tool could do anything for them: by their roles, and from the session where there is one."""
        tool = self._tools.find(name)
        if tool is None:
            missing = MissingTarget(turn.tenant, Resource.GATEWAY, name)
            return turn.authorize.answer(turn, asked, origin, Action.READ, missing)
        if here is None:
            tries = (
                turn.authorize.answer_function(turn, asked, one.action, one.family, tool.name)
                for one in tool.operations
            )
        else:
            tries = (
                turn.authorize.answer(turn, asked, origin, action, target)
                for action, target in _reached_by(tool, turn, asked, here)
            )
        denied: Decision | None = None
        for decision in tries:
            if decision.verdict.allowed:
                return decision
            denied = denied or decision
        assert denied is not None  # noqa: S101 - a tool has an operation, and each reaches something
        return denied


def nobody(tenant: TenantId, reference: str) -> Profile:
    """Who is called so and is not there: like somebody disabled, who may do nothing."""
    return Profile(id=ProfileId(reference[:LONGEST_NAME]), tenant=tenant, name="", kind="person", disabled=True)


def _enter(turn: Turn, asked: Requester, here: SessionFacts | None, reference: str) -> Decision:
    if here is None:
        missing = MissingTarget(turn.tenant, Resource.SESSION_PRIVATE, reference[:LONGEST_WORD])
        return turn.authorize.answer(turn, asked, OUTSIDE, Action.ENTER, missing)
    inside = origin_of(here.session, None, tainted=False)
    return turn.authorize.answer(turn, asked, inside, Action.ENTER, SessionTarget(here))


def child_of(here: SessionFacts) -> NewSessionTarget:
    one = here.session
    return NewSessionTarget(one.tenant, one.agent, Kind.SUBAGENT, one.private, here)


def _reached_by(tool: Tool, turn: Turn, asked: Requester, here: SessionFacts) -> Iterator[tuple[Action, SingleTarget]]:
    """What a tool is about where nothing else is named: its session, a child of it, or a file of its agent."""
    one = here.session
    for operation in tool.operations:
        if operation.family == SESSIONS:
            yield operation.action, child_of(here) if operation.action is Action.SPAWN else SessionTarget(here)
            continue
        for resource in operation.family:
            owner = asked.profile.id if resource in PERSONAL_RESOURCES else None
            yield operation.action, MemoryTarget(turn.tenant, one.agent, resource, owner, str(resource))
