"""The session tools, with OpenClaw's names and arguments (design section 8)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Annotated, Literal, cast

from pydantic import AfterValidator, Field

from gateway.errors import NotFound
from gateway.model import (
    Action,
    AgentName,
    Kind,
    Message,
    Resource,
    Scope,
    Session,
    SessionFacts,
)
from gateway.policy.permit import Permit
from gateway.policy.targets import MissingTarget, NewSessionTarget, SessionsTarget, SessionTarget
from gateway.ports import SessionFilter
from gateway.sessions.conversations import Conversations
from gateway.sessions.lineage import Creation, as_known_to, check, names_another_agent
from gateway.tools.arguments import Arguments
from gateway.tools.one_each import OneEach
from gateway.tools.registry import SESSIONS, Operation, Tool, tool
from gateway.tools.transcript_limits import bounded, clipped
from gateway.turn import Turn

Limit = Annotated[int, Field(ge=1, le=200)]
Word = Annotated[str, Field(min_length=1, max_length=512)]
MOST_WORDS = 8  # each is looked for in every text
KINDS = tuple(kind.value for kind in Kind)

LIMITED = "Limited by policy: you see your own and shared sessions, and what they spawned."


class ListArguments(Arguments):
    """`sessions_list`."""

    kinds: list[Literal["direct", "group", "channel", "subagent", "cron"]] | None = None
    limit: Limit = 50
    cursor: Word | None = None
    active_minutes: Annotated[int | None, Field(alias="activeMinutes", ge=1, le=5_256_000)] = None
    message_limit: Annotated[int, Field(alias="messageLimit", ge=0, le=20)] = 0
    search: Word | None = None
    agent_id: Annotated[Word | None, Field(alias="agentId")] = None


class HistoryArguments(Arguments):
    """`sessions_history`."""

    session_key: Annotated[Word, Field(alias="sessionKey")]
    limit: Limit = 50
    cursor: Word | None = None
    include_tools: Annotated[bool, Field(alias="includeTools")] = False


def _few_words(query: str) -> str:
    if len(query.split()) > MOST_WORDS:
        raise ValueError(f"Search for at most {MOST_WORDS} words.")
    return query


class SearchArguments(Arguments):
    """`sessions_search`."""

    query: Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_few_words)]
    session_key: Annotated[Word | None, Field(alias="sessionKey")] = None
    limit: Limit = 20


class StatusArguments(Arguments):
    """`session_status`."""

    session_key: Annotated[Word, Field(alias="sessionKey")] = "current"


class SpawnArguments(Arguments):
    """`sessions_spawn`."""

    task: Annotated[str, Field(min_length=1, max_length=20_000)]
    agent_id: Annotated[Word | None, Field(alias="agentId")] = None
    label: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    sandboxed: bool = False


class SessionTools:
    """Builds the five session tools over `Conversations`."""

    def __init__(self, conversations: Conversations) -> None:
        self._conversations = conversations
        self._searching = OneEach("a search")

    def all(self) -> Sequence[Tool]:
        """The tools, in a fixed order."""
        return (self._list(), self._history(), self._search(), self._status(), self._spawn())

    # ── finding what is asked about ──────────────────────────────────────────────────────────────────────────────────

    async def _named(self, turn: Turn, word: str) -> SessionTarget | MissingTarget:
        """A session by key, by id, as `current` (this one) or as `main` (the person's private one)."""
        here = turn.origin.session
        facts: SessionFacts | None
        if word == "main" and here is not None:
            facts = await self._conversations.private_of(turn.tenant, here.agent, turn.requester.profile.id)
        else:
            reference = here.id if word == "current" and here is not None else word
            facts = await self._conversations.find(turn.tenant, reference)
        if facts is None:
            return MissingTarget(turn.tenant, Resource.SESSION_PRIVATE, word)
        return SessionTarget(facts)

    # ── sessions_list ────────────────────────────────────────────────────────────────────────────────────────────────

    def _list(self) -> Tool:
        async def find(_turn: Turn, _arguments: ListArguments) -> None:
            return None

        return tool(
            Operation(
                name="sessions_list",
                summary="Lists the sessions that you may see, newest first.",
                action=Action.LIST,
                family=SESSIONS,
                find=find,
                run=self._run_list,
            ),
            ListArguments,
        )

    async def _run_list(
        self, permit: Permit[SessionsTarget], turn: Turn, arguments: ListArguments
    ) -> dict[str, object]:
        since = timedelta(minutes=arguments.active_minutes) if arguments.active_minutes else None
        narrow = SessionFilter(
            agent=AgentName(arguments.agent_id) if arguments.agent_id else None,
            kinds=frozenset(Kind(kind) for kind in arguments.kinds) if arguments.kinds else None,
            title=arguments.search,
            active_since=turn.at - since if since else None,
        )
        page = await self._conversations.list(permit, narrow, limit=arguments.limit, cursor=arguments.cursor)
        rows = [row(session) for session in await self._as_known(permit, page.items)]
        for session, shown in zip(page.items, rows, strict=True):
            if arguments.message_limit:
                shown["messages"] = await self._latest(turn, session, arguments.message_limit)
        result: dict[str, object] = {"count": len(rows), "sessions": rows, "nextCursor": page.next_cursor}
        if is_limited(permit.scope, len(turn.state.agents)):
            result["visibility"] = {"limited": True, "warning": LIMITED}
        return result

    async def _as_known(self, permit: Permit[SessionsTarget], found: Sequence[Session]) -> Sequence[Session]:
        """Listed sessions as the requester may see them; who takes part is read only where it matters."""
        me = permit.requester.profile.id
        if not any(names_another_agent(one) and one.owner != me for one in found):
            return found
        return [as_known_to(me, facts).session for facts in await self._conversations.with_participants(found)]

    async def _latest(self, turn: Turn, session: Session, limit: int) -> list[dict[str, object]]:
        """The last messages of a listed session: reading them is asked for by itself, like any history."""
        facts = await self._conversations.find(turn.tenant, session.id)
        permit = turn.permit(Action.HISTORY, SessionTarget(facts)) if facts else None
        if permit is None:
            return []
        try:
            return [clipped(one) for one in await self._conversations.latest(permit, limit=limit)]
        except NotFound:  # emptied or removed in between, which is no fault of the list
            return []

    # ── sessions_history ─────────────────────────────────────────────────────────────────────────────────────────────

    def _history(self) -> Tool:
        async def find(turn: Turn, arguments: HistoryArguments) -> SessionTarget | MissingTarget:
            return await self._named(turn, arguments.session_key)

        return tool(
            Operation(
                name="sessions_history",
                summary="Reads the messages of a session that you may see, oldest first.",
                action=Action.HISTORY,
                family=SESSIONS,
                find=find,
                run=self._run_history,
            ),
            HistoryArguments,
        )

    async def _run_history(
        self, permit: Permit[SessionTarget], _turn: Turn, arguments: HistoryArguments
    ) -> dict[str, object]:
        page = await self._conversations.history(permit, limit=arguments.limit, cursor=arguments.cursor)
        messages = [one for one in page.items if arguments.include_tools or one.role != "tool"]
        return {
            "sessionKey": permit.target.facts.session.key,
            **bounded(messages),
            "nextCursor": page.next_cursor,
        }

    # ── sessions_search ──────────────────────────────────────────────────────────────────────────────────────────────

    def _search(self) -> Tool:
        async def find(turn: Turn, arguments: SearchArguments) -> SessionTarget | MissingTarget | None:
            return await self._named(turn, arguments.session_key) if arguments.session_key else None

        return tool(
            Operation(
                name="sessions_search",
                summary="Finds messages that hold every word of a query, in the sessions that you may search.",
                action=Action.SEARCH,
                family=SESSIONS,
                find=find,
                run=self._run_search,
            ),
            SearchArguments,
        )

    async def _run_search(
        self, permit: Permit[SessionTarget] | Permit[SessionsTarget], turn: Turn, arguments: SearchArguments
    ) -> dict[str, object]:
        target = permit.target
        within = target.facts.session if isinstance(target, SessionTarget) else None
        scope = turn.scope(Action.SEARCH) if within else cast("Permit[SessionsTarget]", permit)
        with self._searching.turn_of(turn):
            hits = await self._conversations.search(scope, arguments.query, within=within, limit=arguments.limit)
        result: dict[str, object] = {"results": [_hit(session, message) for session, message in hits]}
        if is_limited(scope.scope, len(turn.state.agents)):
            result["visibility"] = {"limited": True, "warning": LIMITED}
        return result

    # ── session_status ───────────────────────────────────────────────────────────────────────────────────────────────

    def _status(self) -> Tool:
        async def find(turn: Turn, arguments: StatusArguments) -> SessionTarget | MissingTarget:
            return await self._named(turn, arguments.session_key)

        async def run(permit: Permit[SessionTarget], _turn: Turn, _arguments: StatusArguments) -> dict[str, object]:
            facts = as_known_to(permit.requester.profile.id, permit.target.facts)
            return {
                **row(facts.session),
                "owner": facts.session.owner,
                "participants": [one.profile for one in facts.participants],
                "incarnation": facts.session.incarnation,
                "sandboxed": facts.session.sandboxed,
            }

        return tool(
            Operation(
                name="session_status",
                summary="Says what a session is and who takes part in it.",
                action=Action.STATUS,
                family=SESSIONS,
                find=find,
                run=run,
            ),
            StatusArguments,
        )

    # ── sessions_spawn ───────────────────────────────────────────────────────────────────────────────────────────────

    def _spawn(self) -> Tool:
        return tool(
            Operation(
                name="sessions_spawn",
                summary="Opens a child session with a task, on this agent or another.",
                action=Action.SPAWN,
                family=SESSIONS,
                find=self._find_spawn,
                run=self._run_spawn,
                effect=True,
            ),
            SpawnArguments,
        )

    async def _find_spawn(self, turn: Turn, arguments: SpawnArguments) -> NewSessionTarget | MissingTarget:
        return child_target(turn, _child(turn, arguments))

    async def _run_spawn(
        self, permit: Permit[NewSessionTarget], turn: Turn, arguments: SpawnArguments
    ) -> dict[str, object]:
        facts, _ = await self._conversations.create(permit, _child(turn, arguments))
        await self._conversations.post(permit, facts, arguments.task)
        return {"status": "accepted", "childSessionKey": facts.session.key, "sessionId": facts.session.id}


def _child(turn: Turn, arguments: SpawnArguments) -> Creation:
    assert turn.entered is not None  # noqa: S101 - a tool is called from inside a session
    parent = turn.entered.target.facts
    return Creation(
        tenant=turn.tenant,
        agent=AgentName(arguments.agent_id or parent.session.agent),
        kind=Kind.SUBAGENT,
        creator=turn.requester.profile.id,
        parent=parent,
        title=arguments.label,
        sandboxed=arguments.sandboxed,
    )


def child_target(turn: Turn, creation: Creation) -> NewSessionTarget | MissingTarget:
    """What spawning asks about. On another agent the person must also be one who may open a session there.

    Raises Invalid with every fault before the agent is looked up, so that a fault does not tell that there is one;
    NotFound where they may not.
    """
    check(creation)
    parent = creation.parent
    if turn.agent(creation.agent) is None or parent is None:
        return MissingTarget(turn.tenant, Resource.SESSION_PRIVATE, "new subagent")
    target = NewSessionTarget(turn.tenant, creation.agent, creation.kind, creation.private, parent)
    if creation.agent != parent.session.agent:
        turn.require(Action.CREATE, target)
    return target


def row(session: Session) -> dict[str, object]:
    """A session as the tools show it."""
    return {
        "key": session.key,
        "sessionId": session.id,
        "agentId": session.agent,
        "kind": session.kind.value,
        "private": session.private,
        "title": session.title,
        "parentKey": session.parent_key,
        "createdAt": session.created_at.isoformat(),
        "lastMessageAt": session.last_message_at.isoformat() if session.last_message_at else None,
        "archived": session.archived_at is not None,
    }


def is_limited(scope: Scope | None, agents: int) -> bool:
    """Whether a list could have left something out, said from the scope alone and never from what was left out."""
    if scope is None:
        return True
    # Outside: own, shared and others' of each agent. Inside: self, child and same_agent on this agent, child_cross on
    # the root's and other_agent on each other, each own, shared or others'.
    cells_of_a_kind = 3 * agents if scope.origin.session is None else 9 + 3 + 3 * (agents - 1)
    return len(scope.cells) < len(SESSIONS) * cells_of_a_kind


def _hit(session: Session, message: Message) -> dict[str, object]:
    return {"sessionKey": session.key, **clipped(message)}
