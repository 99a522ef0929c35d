"""Turns a sender's turn that a connector may bring into the same turn as the sender's own, through the whole path.

There is no second way: opening their session, posting, seeing the session and its context are the operations that
everybody has, run with the sender's rights and recorded as theirs, under the connector's request id.
"""

from __future__ import annotations

from dataclasses import dataclass

from gateway.errors import NotFound, Unauthenticated
from gateway.identity.credentials import Credentials
from gateway.identity.roles import GUEST
from gateway.model import ProfileId, SessionFacts
from gateway.operations.connectors import Permitted
from gateway.operations.context import ContextBody, OfSession, SessionContext
from gateway.operations.sessions import CreateBody, MessageBody, OnAgent, OnSession, SessionOperations
from gateway.pipeline import Call, Pipeline
from gateway.stages.open_session import Entry
from gateway.stages.record_audit import Trail
from gateway.tools.registry import AnyOperation


@dataclass(frozen=True, slots=True)
class Asking:
    """The connector's request, which the sender's turn is recorded under."""

    request: str
    surface: str


@dataclass(frozen=True, slots=True)
class ChannelTurn:
    """A sender's turn: where they are, who they are, and what the agent is to know.

    `session` is None where they may not see it, as a guest: then only its key is told, which the channel knows already.
    """

    key: str
    session: SessionFacts | None
    profile: ProfileId | None
    context: SessionContext


class ChannelTurns:
    """Runs senders' turns."""

    def __init__(self, pipeline: Pipeline, sessions: SessionOperations, context: AnyOperation) -> None:
        self._pipeline = pipeline
        self._sessions = sessions
        self._context = context

    async def speak(self, turn: Permitted, asking: Asking) -> None:
        """Opens the sender's own session on first use, and posts their message; durable on return.

        Raises NotFound where the sender may not, and as the operations do.
        """
        if turn.opens:
            body = OnAgent(turn.agent, CreateBody(kind="direct"))
            await self._run(turn, asking, self._sessions.create, body, entry=None)
        if turn.text is not None:
            message = OnSession(turn.session, MessageBody(role="user", content=turn.text))
            await self._run(turn, asking, self._sessions.post, message, Entry(turn.session))

    async def answer(self, turn: Permitted, asking: Asking) -> ChannelTurn:
        """The sender's context, with a turn token where they are a person. Raises as `speak`."""
        asked = OfSession(turn.session, ContextBody(turn_token=True))
        context, trail = await self._run(turn, asking, self._context, asked, Entry(turn.session))
        assert trail.requester is not None  # noqa: S101 - it has run
        assert isinstance(context, SessionContext)  # noqa: S101 - what that operation returns
        profile = trail.requester.profile
        if profile.kind == GUEST:
            return ChannelTurn(turn.session, None, None, context)
        return ChannelTurn(turn.session, await self._seen(turn, asking), profile.id, context)

    async def _seen(self, turn: Permitted, asking: Asking) -> SessionFacts | None:
        try:
            facts, _ = await self._run(turn, asking, self._sessions.show, OnSession(turn.session, None), entry=None)
        except NotFound:  # the policy lets them speak there and not look at who takes part
            return None
        assert isinstance(facts, SessionFacts)  # noqa: S101 - what that operation returns
        return facts

    async def _run(
        self, turn: Permitted, asking: Asking, operation: AnyOperation, arguments: object, entry: Entry | None
    ) -> tuple[object, Trail]:
        trail = Trail(asking.request, asking.surface, operation.name)
        call = Call.of(Credentials(asserted=turn.sender), operation, arguments, entry)
        try:
            return await self._pipeline.run(call, trail), trail
        except Unauthenticated:
            # It is the sender's profile that does not hold, which the connector's own credential has no part in.
            raise NotFound from None
