"""Looks for who may do something, on what somebody may do it, and what they may do (AuthZEN 1.0, searches).

Whatever is found is decided like a question about it, so that asking for each result one by one gives the same answer.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import asdict, dataclass, replace
from zoneinfo import ZoneInfo

from gateway.model import OUTSIDE, Action, Agent, Origin, ProfileId, Requester, SessionFacts
from gateway.operations.asking import FROM_INSIDE, Asking, OnMemory, child_of, nobody
from gateway.operations.decision_point import ACTIONS, MEMORY, SESSION, TOOL, Ask, decides, unheard
from gateway.operations.page_tokens import PageTokens
from gateway.operations.questions import memory
from gateway.operations.somebody import as_requester
from gateway.operations.what_can import WhatCan
from gateway.operations.who_can import Wanted, WhoCan
from gateway.policy.permit import Permit
from gateway.policy.relations import origin_of
from gateway.policy.targets import FunctionTarget, MemoryTarget, SessionTarget, SingleTarget
from gateway.ports import Clock, Identities
from gateway.sessions.conversations import Conversations
from gateway.tools.registry import AnyOperation, Registry
from gateway.turn import Turn
from gateway.workspace.bootstrap import candidates


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """A question with a blank, and where its answer goes on."""

    ask: Ask
    limit: int
    token: str | None

    @property
    def about(self) -> str:
        """What the audit calls it: the words without the blank."""
        ask = self.ask
        named = ((ask.subject_type, ask.subject), (None, ask.action), (ask.resource_type, ask.resource))
        return ", ".join(f"{kind} {word}" if kind else word for kind, word in named if word is not None)


@dataclass(frozen=True, slots=True)
class Results:
    """Ids of things of a kind, or names; and the token of the next page, None at the end."""

    kind: str
    found: tuple[str, ...]
    next_token: str | None


@dataclass(frozen=True, slots=True)
class _Part:
    """A page before its place is signed."""

    found: tuple[str, ...]
    place: str | None


_NOTHING = _Part((), None)
Look = Callable[[Turn, Search, "str | None"], Awaitable[_Part]]


class Searches:
    """Builds the three operations."""

    def __init__(
        self,
        asking: Asking,
        identities: Identities,
        conversations: Conversations,
        tools: Registry,
        who_can: WhoCan,
        what_can: WhatCan,
        tokens: PageTokens,
        clock: Clock,
    ) -> None:
        self._asking = asking
        self._identities = identities
        self._conversations = conversations
        self._tools = tools
        self._who_can = who_can
        self._what_can = what_can
        self._tokens = tokens
        self._clock = clock
        self.subjects: AnyOperation = decides(
            "authzen.search.subject", "Lists the people who may do something.", self._run_subjects
        )
        self.resources: AnyOperation = decides(
            "authzen.search.resource", "Lists what somebody may do something to.", self._run_resources
        )
        self.actions: AnyOperation = decides(
            "authzen.search.action", "Lists what somebody may do to something.", self._run_actions
        )

    async def _run_subjects(self, _permit: Permit[FunctionTarget], turn: Turn, search: Search) -> Results:
        return await self._paged(turn, search, self._subjects)

    async def _run_resources(self, _permit: Permit[FunctionTarget], turn: Turn, search: Search) -> Results:
        return await self._paged(turn, search, self._resources)

    async def _run_actions(self, _permit: Permit[FunctionTarget], turn: Turn, search: Search) -> Results:
        return await self._paged(turn, search, self._actions)

    async def _paged(self, turn: Turn, search: Search, look: Look) -> Results:
        """Raises Malformed for a token that is not of this question."""
        question = [turn.operation, asdict(search.ask)]
        place = None if search.token is None else self._tokens.read(turn.tenant, question, search.token)
        part = _NOTHING if search.ask.unknown is not None else await look(unheard(turn), search, place)
        token = None if part.place is None else self._tokens.write(turn.tenant, question, part.place)
        return Results(search.ask.resource_type, part.found, token)

    # ── who ──────────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _subjects(self, turn: Turn, search: Search, place: str | None) -> _Part:
        ask = search.ask
        if ask.resource_type == TOOL:
            return await self._tool_users(turn, search, place)
        here, origin = None, OUTSIDE
        if ask.session is not None:
            here = await self._conversations.find(turn.tenant, ask.session)
            if here is None:
                return _NOTHING
            origin = origin_of(here.session, ask.kind, tainted=False)
        if ask.resource_type == MEMORY:
            file = memory(ask.resource or "")
            named = self._asking.file(turn, as_requester(turn, nobody(turn.tenant, "")), Action.GET, file, origin)
            if isinstance(named, MemoryTarget) and named.owner is not None:
                return await self._only(turn, ask, named.owner)
            target = self._team_file(turn, ask, file, origin)
        else:
            target, here, origin = await self._session(turn, ask, here, origin)
        if target is None:
            return _NOTHING
        wanted = Wanted(action=ask.wanted, target=target, origin=origin, here=here)
        after = None if place is None else ProfileId(place)
        page = await self._who_can.page(turn, wanted, limit=search.limit, after=after)
        return _Part(tuple(one.profile.id for one in page.items), page.next_cursor)

    def _team_file(self, turn: Turn, ask: Ask, file: OnMemory, origin: Origin) -> SingleTarget | None:
        anybody = as_requester(turn, nobody(turn.tenant, ""))
        found = self._asking.file(turn, anybody, ask.wanted, file, origin)
        return found if isinstance(found, MemoryTarget) else None

    async def _session(
        self, turn: Turn, ask: Ask, here: SessionFacts | None, origin: Origin
    ) -> tuple[SingleTarget | None, SessionFacts | None, Origin]:
        """What is asked about, and from where: as `Asking.put` has it."""
        facts = await self._conversations.find(turn.tenant, ask.resource or "")
        if facts is None:
            return None, here, origin
        inside = origin_of(facts.session, None, tainted=False)
        if here is None and ask.wanted in FROM_INSIDE:
            here, origin = facts, inside
        elif here is None and facts.session.incognito:
            origin = inside  # its owner asks from there, and nobody else may anything
        if here is not None and ask.wanted is Action.SPAWN and here.session.id == facts.session.id:
            return child_of(here), here, origin
        return SessionTarget(facts), here, origin

    async def _only(self, turn: Turn, ask: Ask, owner: ProfileId) -> _Part:
        """A personal file is one person's; an id that was merged away is not whom its survivor asks as."""
        asked = await self._asking.requester(turn, owner)
        may = asked.profile.id == owner and await self._may(turn, ask, asked)
        return _Part((owner,) if may else (), None)

    async def _tool_users(self, turn: Turn, search: Search, place: str | None) -> _Part:
        """A page of people at a time, of whom perhaps none may: what a tool does has no one class of people."""
        page = await self._identities.people(turn.tenant, limit=search.limit, cursor=place)
        found = [one.id for one in page.items if await self._may(turn, search.ask, as_requester(turn, one))]
        return _Part(tuple(found), page.next_cursor)

    # ── on what ──────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _resources(self, turn: Turn, search: Search, place: str | None) -> _Part:
        asked = await self._asking.requester(turn, search.ask.subject or "")
        if asked.profile.disabled:
            return _NOTHING
        if search.ask.resource_type == SESSION:
            return await self._sessions(turn, search, asked, place)
        names = self._files(turn, asked) if search.ask.resource_type == MEMORY else self._tool_names()
        return await self._of(names, turn, search, asked, place)

    async def _sessions(self, turn: Turn, search: Search, asked: Requester, place: str | None) -> _Part:
        ask = search.ask
        if ask.session is not None:
            here = await self._conversations.find(turn.tenant, ask.session)
            if here is None:
                return _NOTHING
            origin = origin_of(here.session, ask.kind, tainted=False)
            scope = turn.authorize.scope_of(turn, asked, ask.wanted, origin)
        elif ask.wanted in FROM_INSIDE:
            scope = turn.authorize.scope_inside(turn, asked, ask.wanted)
        else:
            scope = turn.authorize.scope_of(turn, asked, ask.wanted)
        if not scope.cells:
            return _NOTHING
        page = await self._what_can.in_scope(turn.tenant, scope, None, limit=search.limit, cursor=place)
        keys = [one.session.key for one in page.items]
        found = [key for key in keys if await self._may(turn, replace(ask, resource=key), asked)]
        return _Part(tuple(found), page.next_cursor)

    def _files(self, turn: Turn, asked: Requester) -> Iterator[str]:
        """What every agent has or could have: the files that a turn looks at, the person's own among them, and nobody
        else's. Older notes are not listed; each can be asked about."""
        for agent in turn.state.agents.values():
            for path in self._paths(agent, asked):
                yield f"{agent.name}/{path}"

    def _paths(self, agent: Agent, asked: Requester) -> Iterator[str]:
        today = self._clock.now().astimezone(ZoneInfo(agent.timezone)).date()
        yield from (one.path for one in candidates(asked.profile.id, today))

    def _tool_names(self) -> Iterator[str]:
        return (tool.name for tool in self._tools.all())

    # ── what ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _actions(self, turn: Turn, search: Search, place: str | None) -> _Part:
        asked = await self._asking.requester(turn, search.ask.subject or "")
        names = iter(ACTIONS[search.ask.resource_type])
        return await self._of(names, turn, search, asked, place, action=True)

    async def _of(
        self,
        names: Iterator[str],
        turn: Turn,
        search: Search,
        asked: Requester,
        place: str | None,
        *,
        action: bool = False,
    ) -> _Part:
        """Those of a short list that are allowed, from the place on; each is tried."""
        begin, found = int(place or 0), list[str]()
        for at, name in enumerate(names):
            if at < begin:
                continue
            ask = replace(search.ask, action=name) if action else replace(search.ask, resource=name)
            if not await self._may(turn, ask, asked):
                continue
            if len(found) == search.limit:
                return _Part(tuple(found), str(at))
            found.append(name)
        return _Part(tuple(found), None)

    async def _may(self, turn: Turn, ask: Ask, asked: Requester) -> bool:
        reply = await self._asking.put(turn, ask.wish(asked))
        return reply.entered and reply.decision.verdict.allowed
