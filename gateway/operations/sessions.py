"""Sessions over REST: open, list, show, change, end; and their messages (interface, REST)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated, Any, Generic, Self, TypeVar

from pydantic import Field, model_validator

from gateway.errors import Invalid
from gateway.model import Action, AgentName, Kind, Message, Notice, ProfileId, Relation, SessionFacts
from gateway.operations import found
from gateway.policy.permit import Permit
from gateway.policy.targets import MissingTarget, NewSessionTarget, SessionsTarget, SessionTarget
from gateway.ports import Page, SessionFilter
from gateway.raising.sessions import SessionsAreWeighed
from gateway.sessions.conversations import Conversations
from gateway.sessions.lineage import Creation, as_known_to, check
from gateway.tools.arguments import Arguments
from gateway.tools.registry import SESSIONS, AnyOperation, Operation
from gateway.tools.sessions import child_target
from gateway.turn import Turn

RUNTIME_ROLES = ("assistant", "system", "tool")
Text = Annotated[str, Field(min_length=1, max_length=512)]


class CreateBody(Arguments):
    """`POST /v1/agents/{agent}/sessions`."""

    kind: Text
    name: Text | None = None
    parent: Text | None = None
    participants: list[Text] = Field(default_factory=list)
    title: Text | None = None
    incognito: bool = False
    sandboxed: bool = False


class PatchBody(Arguments):
    """`PATCH /v1/sessions/{s}`; a field that is not sent stays, and a title of null is taken away."""

    title: Text | None = None
    participants: list[Text] = Field(default_factory=list)

    @model_validator(mode="after")
    def _changes_something(self) -> Self:
        if not self.model_fields_set:
            raise ValueError("say what to change: 'title', 'participants' or both")
        return self


class OwnerBody(Arguments):
    """`PUT /v1/sessions/{s}/owner`."""

    profile: Text


class MessageBody(Arguments):
    """`POST /v1/sessions/{s}/messages`. A person writes as `user`; other roles come from a runtime's turn token."""

    role: Text
    content: Annotated[str, Field(min_length=1)]


@dataclass(frozen=True, slots=True)
class OnAgent:
    """Arguments of a creation: the agent of the path and the body."""

    agent: str
    body: CreateBody


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """Arguments of a list of sessions."""

    agent: str | None
    kind: str | None
    relation: str | None
    query: str | None
    limit: int
    cursor: str | None


BodyT = TypeVar("BodyT")


@dataclass(frozen=True, slots=True)
class OnSession(Generic[BodyT]):
    """Arguments of an operation on one session: its reference in the path, and the body, which may be None."""

    reference: str
    body: BodyT


@dataclass(frozen=True, slots=True, kw_only=True)
class OfMessages:
    """Arguments of a history."""

    reference: str
    limit: int
    cursor: str | None


class SessionOperations:
    """Builds the operations over `Conversations`; each is an attribute, so that the route table reads like the API."""

    def __init__(self, conversations: Conversations, weighing: SessionsAreWeighed) -> None:
        self._conversations = conversations
        self._weighing = weighing
        self.create: AnyOperation = Operation(
            name="sessions.create",
            summary="Opens a session, or finds the person's private one.",
            action=Action.CREATE,
            family=SESSIONS,
            find=self._find_new,
            run=self._run_create,
            effect=True,
        )
        self.spawn: AnyOperation = Operation(
            name="sessions.spawn",
            summary="Opens a child of a session.",
            action=Action.SPAWN,
            family=SESSIONS,
            find=self._find_child,
            run=self._run_spawn,
            effect=True,
            inside=True,
        )
        self.list: AnyOperation = Operation(
            name="sessions.list",
            summary="Lists the sessions that you may see, newest first.",
            action=Action.LIST,
            family=SESSIONS,
            find=self._find_list,
            run=self._run_list,
        )
        self.show = self._on_one("sessions.show", "Shows one session.", Action.STATUS, self._run_show, effect=False)
        self.rename = self._on_one("sessions.rename", "Changes the title.", Action.POST, self._run_rename)
        self.set_participants = self._on_one(
            "sessions.participants",
            "Says who takes part from now on.",
            Action.PARTICIPANTS,
            self._run_participants,
            details=self._people_details,
        )
        self.rename_and_set_participants = self._on_one(
            "sessions.change",
            "Changes the title and who takes part.",
            Action.POST,
            self._run_both,
            also=(Action.PARTICIPANTS,),
            details=self._people_details,
        )
        self.set_owner = self._on_one(
            "sessions.owner",
            "Gives a shared session to somebody else.",
            Action.OWNER,
            self._run_owner,
            details=self._owner_details,
        )
        self.archive = self._on_one(
            "sessions.archive", "Ends a session; it can be read.", Action.ARCHIVE, self._run_archive
        )
        self.reset = self._on_one("sessions.reset", "Empties a session under its id.", Action.RESET, self._run_reset)
        self.delete = self._on_one(
            "sessions.delete", "Removes a session, its children and their messages.", Action.DELETE, self._run_delete
        )
        self.messages: AnyOperation = Operation(
            name="messages.list",
            summary="Reads a session's messages, oldest first.",
            action=Action.HISTORY,
            family=SESSIONS,
            find=self._find_one,
            run=self._run_messages,
        )
        self.post: AnyOperation = Operation(
            name="messages.post",
            summary="Adds your message to a session.",
            action=Action.POST,
            family=SESSIONS,
            find=self._find_one,
            run=self._run_post,
            effect=True,
            inside=True,
            by_turn_token=True,
        )

    def _on_one(
        self,
        name: str,
        summary: str,
        action: Action,
        run: Callable[..., Awaitable[object]],
        *,
        effect: bool = True,
        also: tuple[Action, ...] = (),
        details: Callable[..., Awaitable[dict[str, object]]] | None = None,
    ) -> AnyOperation:
        return Operation(
            name=name,
            summary=summary,
            action=action,
            family=SESSIONS,
            find=self._find_one,
            run=run,
            effect=effect,
            also=also,
            details=details,
        )

    def patch(self, arguments: OnSession[PatchBody]) -> AnyOperation:
        """What a PATCH asks for: a title, people, or both at once."""
        asked = arguments.body.model_fields_set
        if asked == {"title", "participants"}:
            return self.rename_and_set_participants
        return self.rename if "title" in asked else self.set_participants

    # ── finding ──────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _find_one(self, turn: Turn, arguments: OnSession[Any] | OfMessages) -> SessionTarget | MissingTarget:
        return await found.session(self._conversations, turn, arguments.reference)

    async def _find_list(self, _turn: Turn, _arguments: Listing) -> None:
        return None

    async def _find_new(self, turn: Turn, arguments: OnAgent) -> NewSessionTarget | MissingTarget:
        creation = _creation(turn, arguments)
        check(creation)  # before the agent is looked up: a fault must not tell that there is one
        if turn.agent(arguments.agent) is None:
            return MissingTarget(turn.tenant, SESSIONS[0], f"new {creation.kind}")
        return NewSessionTarget(turn.tenant, creation.agent, creation.kind, creation.private, None)

    async def _find_child(self, turn: Turn, arguments: OnAgent) -> NewSessionTarget | MissingTarget:
        return child_target(turn, _creation(turn, arguments))

    # ── running ──────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _run_create(
        self, permit: Permit[NewSessionTarget], turn: Turn, arguments: OnAgent
    ) -> tuple[SessionFacts, bool]:
        return await self._conversations.create(permit, _creation(turn, arguments))

    async def _run_spawn(
        self, permit: Permit[NewSessionTarget], turn: Turn, arguments: OnAgent
    ) -> tuple[SessionFacts, bool]:
        return await self._conversations.create(permit, _creation(turn, arguments))

    async def _run_list(self, permit: Permit[SessionsTarget], turn: Turn, arguments: Listing) -> Page[SessionFacts]:
        narrow = SessionFilter(
            agent=AgentName(arguments.agent) if arguments.agent else None,
            kinds=frozenset({_kind(arguments.kind)}) if arguments.kind else None,
            relations=frozenset({_relation(arguments.relation)}) if arguments.relation else None,
            title=arguments.query,
        )
        page = await self._conversations.list(permit, narrow, limit=arguments.limit, cursor=arguments.cursor)
        found = await self._conversations.with_participants(page.items)
        return Page(tuple(as_known_to(permit.requester.profile.id, facts) for facts in found), page.next_cursor)

    async def _run_show(self, permit: Permit[SessionTarget], _turn: Turn, _arguments: OnSession[None]) -> SessionFacts:
        return _known(permit, permit.target.facts)

    async def _run_rename(
        self, permit: Permit[SessionTarget], _turn: Turn, arguments: OnSession[PatchBody]
    ) -> SessionFacts:
        return _known(permit, await self._conversations.rename(permit, arguments.body.title))

    async def _run_both(
        self, permit: Permit[SessionTarget], turn: Turn, arguments: OnSession[PatchBody]
    ) -> SessionFacts:
        body, told = arguments.body, self._checked(turn, "session_people", permit)
        people = _people(body.participants)
        return _known(permit, await self._conversations.rename_and_set_participants(permit, body.title, people, told))

    async def _run_participants(
        self, permit: Permit[SessionTarget], turn: Turn, arguments: OnSession[PatchBody]
    ) -> SessionFacts:
        told = self._checked(turn, "session_people", permit)
        return _known(
            permit, await self._conversations.set_participants(permit, _people(arguments.body.participants), told)
        )

    async def _run_owner(
        self, permit: Permit[SessionTarget], turn: Turn, arguments: OnSession[OwnerBody]
    ) -> SessionFacts:
        told = self._checked(turn, "session_owner", permit)
        return _known(permit, await self._conversations.set_owner(permit, ProfileId(arguments.body.profile), told))

    def _checked(self, turn: Turn, code: str, permit: Permit[SessionTarget]) -> tuple[Notice, ...]:
        """Who is told. Raises ToolNotAllowed where whoever asks would gain by it themselves. The store changes only the
        session that was looked at."""
        if turn.outcome is None:
            return ()
        turn.outcome.check()
        return turn.outcome.notices(turn.requester, turn.at, code, permit.target.facts.session.key)

    async def _run_archive(
        self, permit: Permit[SessionTarget], _turn: Turn, _arguments: OnSession[None]
    ) -> SessionFacts:
        return _known(permit, await self._conversations.archive(permit))

    async def _run_reset(self, permit: Permit[SessionTarget], _turn: Turn, _arguments: OnSession[None]) -> SessionFacts:
        return _known(permit, await self._conversations.reset(permit))

    async def _run_delete(self, permit: Permit[SessionTarget], _turn: Turn, _arguments: OnSession[None]) -> int:
        return await self._conversations.delete(permit)

    async def _people_details(
        self, permit: Permit[SessionTarget], turn: Turn, arguments: OnSession[PatchBody]
    ) -> dict[str, object]:
        facts, people = permit.target.facts, _people(arguments.body.participants)
        turn.outcome = await self._weighing.people(permit.requester, facts, people)
        before = found.few(sorted(one.profile for one in facts.participants))
        return {"participants": found.few(sorted(people)), "before": before, **turn.outcome.marks()}

    async def _owner_details(
        self, permit: Permit[SessionTarget], turn: Turn, arguments: OnSession[OwnerBody]
    ) -> dict[str, object]:
        facts, owner = permit.target.facts, arguments.body.profile
        turn.outcome = await self._weighing.owner(permit.requester, facts, ProfileId(owner))
        return {"owner": owner, "before": facts.session.owner, **turn.outcome.marks()}

    async def _run_messages(self, permit: Permit[SessionTarget], _turn: Turn, arguments: OfMessages) -> Page[Message]:
        return await self._conversations.history(permit, limit=arguments.limit, cursor=arguments.cursor)

    async def _run_post(self, permit: Permit[SessionTarget], _turn: Turn, arguments: OnSession[MessageBody]) -> Message:
        body = arguments.body
        _check_role(body.role, runtime=permit.requester.principal.turn is not None)
        return await self._conversations.post(permit, permit.target.facts, body.content, body.role)


def _known(permit: Permit[SessionTarget], facts: SessionFacts) -> SessionFacts:
    """What is told of a session to whom the permit is."""
    return as_known_to(permit.requester.profile.id, facts)


def _check_role(role: str, *, runtime: bool) -> None:
    """Nobody speaks as the agent but its runtime, and that never as a person (design section 6)."""
    if not runtime and role != "user":
        message = "A person writes as 'user'. Other roles come from the agent's runtime, with a turn token."
        raise Invalid.of("role", "user_only", message)
    if runtime and role not in RUNTIME_ROLES:
        message = f"A runtime writes as one of {', '.join(RUNTIME_ROLES)}. A person's words come with their credential."
        raise Invalid.of("role", "runtime_only", message)


def _creation(turn: Turn, arguments: OnAgent) -> Creation:
    body = arguments.body
    return Creation(
        tenant=turn.tenant,
        agent=AgentName(arguments.agent),
        kind=_kind(body.kind),
        creator=turn.requester.profile.id,
        parent=turn.entered.target.facts if turn.entered is not None else None,
        participants=_people(body.participants),
        name=body.name,
        title=body.title,
        incognito=body.incognito,
        sandboxed=body.sandboxed,
    )


def _people(ids: list[str]) -> frozenset[ProfileId]:
    return frozenset(ProfileId(one) for one in ids)


def _kind(word: str) -> Kind:
    """A creating call names a known kind; a stored or delivered one that is not known would count as a group."""
    if word not in Kind.__members__.values():
        raise Invalid.of("kind", "unknown_kind", f"Say one of {', '.join(Kind)}.")
    return Kind(word)


def _relation(word: str) -> Relation:
    if word not in Relation.__members__.values():
        raise Invalid.of("relation", "unknown_relation", f"Say one of {', '.join(Relation)}.")
    return Relation(word)
