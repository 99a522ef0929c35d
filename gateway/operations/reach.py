"""Who can do this, and what can this person do: for admins, from the policy in force (design section 7)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from pydantic import Field, model_validator

from gateway.errors import Invalid, NotFound
from gateway.keys import is_profile_id
from gateway.model import ANY_AGENT, OUTSIDE, Action, AgentName, Chat, Profile, ProfileId, Resource
from gateway.operations.found import function
from gateway.operations.what_can import Reachable, WhatCan
from gateway.operations.who_can import Able, Wanted, WhoCan
from gateway.policy.permit import Permit
from gateway.policy.population import Words
from gateway.policy.relations import origin_of
from gateway.policy.targets import PERSONAL_RESOURCES, FunctionTarget, MemoryTarget, SessionTarget, SingleTarget
from gateway.ports import Identities, Page
from gateway.sessions.conversations import Conversations
from gateway.tools.arguments import Arguments
from gateway.tools.registry import SESSIONS, AnyOperation, Operation
from gateway.turn import Turn

FAMILY = (Resource.ADMIN_POLICY,)
_NO_CURSOR = "That is no cursor of this list. Leave it out to start at the beginning."


class WhoCanWords(Arguments):
    """What is asked of `who-can`: about a session, or about one kind of memory or function of an agent."""

    action: Action
    session: str | None = Field(default=None, min_length=1, max_length=512)
    agent: str | None = Field(default=None, min_length=1, max_length=64)
    resource: Resource | None = None
    person: str | None = Field(default=None, description="Whose personal file it is.")
    inside: str | None = Field(default=None, min_length=1, max_length=512, description="The session they ask from.")
    chat: Chat = Field(default=Chat.PRIVATE, description="For memory: whether they ask in private or from a group.")

    @model_validator(mode="after")
    def _is_about_one_thing(self) -> Self:
        if (self.session is None) == (self.resource is None):
            raise ValueError("name either a session or a resource")
        if self.resource in SESSIONS:
            raise ValueError("name the session itself: who can depends on whose it is")
        if self.session is not None and (self.agent or self.person):
            raise ValueError("a session has its agent and its people already; leave agent and person out")
        if (self.person is not None) != (self.resource in PERSONAL_RESOURCES):
            raise ValueError("a personal file is one person's: name the person for memory/personal/…, and for no other")
        if self.chat is Chat.GROUP and (self.session is not None or self.inside is not None):
            raise ValueError("where they ask from is the session in inside; leave chat out")
        memory = self.resource is not None and self.resource.startswith("memory/")
        if memory and self.agent is None:
            raise ValueError("memory is an agent's: name the agent")
        return self


@dataclass(frozen=True, slots=True)
class WhoCanAsked:
    """Arguments of `who-can`."""

    words: WhoCanWords
    limit: int
    cursor: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatCanAsked:
    """Arguments of `what-can`."""

    person: str
    action: Action
    agent: AgentName | None
    limit: int
    cursor: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """What somebody may do, and a page of the sessions that they may do `action` to."""

    profile: Profile
    action: Action
    abilities: tuple[Words, ...]
    sessions: Page[Reachable]


class ReachOperations:
    """Builds both questions. They are about everybody of the tenant, and so for those who may read its policy."""

    def __init__(
        self, identities: Identities, conversations: Conversations, who_can: WhoCan, what_can: WhatCan
    ) -> None:
        self._identities = identities
        self._conversations = conversations
        self._who_can = who_can
        self._what_can = what_can
        self.who_can: AnyOperation = Operation(
            name="policy.who_can",
            summary="Lists the people who may do something to a session or to a kind of memory.",
            action=Action.READ,
            family=FAMILY,
            find=_find_who,
            run=self._run_who,
        )
        self.what_can: AnyOperation = Operation(
            name="policy.what_can",
            summary="Says what a person may do, and to which sessions.",
            action=Action.READ,
            family=FAMILY,
            find=_find_what,
            run=self._run_what,
        )

    async def _run_who(self, _permit: Permit[FunctionTarget], turn: Turn, asked: WhoCanAsked) -> Page[Able]:
        if asked.cursor is not None and not is_profile_id(asked.cursor):
            raise Invalid.of("cursor", "cursor", _NO_CURSOR)
        after = None if asked.cursor is None else ProfileId(asked.cursor)
        wanted = await self._wanted(turn, asked.words)
        return await self._who_can.page(turn, wanted, limit=asked.limit, after=after)

    async def _wanted(self, turn: Turn, words: WhoCanWords) -> Wanted:
        """Raises NotFound for a session or an agent that is not there."""
        here = None
        origin = OUTSIDE._replace(chat=words.chat)
        if words.inside is not None:
            here = await self._conversations.find(turn.tenant, words.inside)
            if here is None:
                raise NotFound
            origin = origin_of(here.session, None, tainted=False)
        target = await self._target(turn, words)
        return Wanted(action=words.action, target=target, origin=origin, here=here)

    async def _target(self, turn: Turn, words: WhoCanWords) -> SingleTarget:
        if words.session is not None:
            facts = await self._conversations.find(turn.tenant, words.session)
            if facts is None:
                raise NotFound
            return SessionTarget(facts)
        agent = ANY_AGENT if words.agent is None else AgentName(words.agent)
        if words.agent is not None and turn.agent(words.agent) is None:
            raise NotFound
        assert words.resource is not None  # noqa: S101 - the words were checked: a session or a resource
        if words.resource.startswith("memory/"):
            owner = None if words.person is None else ProfileId(words.person)
            return MemoryTarget(turn.tenant, agent, words.resource, owner, words.resource)
        return FunctionTarget(turn.tenant, words.resource, words.resource, agent)

    async def _run_what(self, _permit: Permit[FunctionTarget], turn: Turn, asked: WhatCanAsked) -> Reach:
        profile = await self._identities.profile(turn.tenant, ProfileId(asked.person))
        if profile is not None and profile.merged_into is not None:
            profile = await self._identities.profile(turn.tenant, profile.merged_into)
        if profile is None or (asked.agent is not None and turn.agent(asked.agent) is None):
            raise NotFound
        page = await self._what_can.sessions(
            turn, profile, asked.action, asked.agent, limit=asked.limit, cursor=asked.cursor
        )
        abilities = await self._what_can.abilities(turn, profile, asked.agent)
        return Reach(profile=profile, action=asked.action, abilities=tuple(abilities), sessions=page)


async def _find_who(turn: Turn, asked: WhoCanAsked) -> FunctionTarget:
    words = asked.words
    about = words.session or f"{words.resource} of {words.agent or 'the organisation'}"
    return function(turn, Resource.ADMIN_POLICY, f"who can {words.action}: {about}")


async def _find_what(turn: Turn, asked: WhatCanAsked) -> FunctionTarget:
    return function(turn, Resource.ADMIN_POLICY, f"what can {asked.person}")
