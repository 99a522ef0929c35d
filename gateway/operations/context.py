"""A turn's context over REST and the command line: the text for the model, and the manifest (design section 6)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from pydantic import Field

from gateway.identity.roles import GUEST
from gateway.identity.turn_tokens import TurnTokens
from gateway.model import Action, Context
from gateway.operations import found
from gateway.policy.permit import Permit
from gateway.policy.targets import MissingTarget, SessionTarget
from gateway.sessions.conversations import Conversations
from gateway.sessions.taints import Taints
from gateway.tools.arguments import Arguments
from gateway.tools.registry import SESSIONS, AnyOperation, Operation
from gateway.turn import Turn


class TurnBody(Arguments):
    """What a runtime says of this turn. `kind` can only narrow: a private session counts as a group for this turn."""

    kind: Annotated[str, Field(min_length=1, max_length=64)] | None = None


class ContextBody(Arguments):
    """`POST /v1/sessions/{s}/context`."""

    turn: TurnBody = TurnBody()
    turn_token: bool = False  # whether the agent's runtime needs one, to call tools as this person


@dataclass(frozen=True, slots=True)
class OfSession:
    """Arguments of a context: which session, and what is said of the turn."""

    reference: str
    body: ContextBody


@dataclass(frozen=True, slots=True)
class NewTurnToken:
    """A turn token, which nobody can read again, and when it ends."""

    secret: str
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class SessionContext:
    """A context, the session it is for, the epoch it was decided at, and a token for the turn if one was wanted."""

    session: str
    context: Context
    epoch: int
    turn_token: NewTurnToken | None = None


def context_operation(conversations: Conversations, turn_tokens: TurnTokens, taints: Taints) -> AnyOperation:
    """Entering a session and assembling what this turn may see.

    A turn that has read text from outside by then gets the token of a tainted one, or none where that can't be kept.
    """

    async def find(turn: Turn, arguments: OfSession) -> SessionTarget | MissingTarget:
        return await found.session(conversations, turn, arguments.reference)

    async def run(permit: Permit[SessionTarget], turn: Turn, arguments: OfSession) -> SessionContext:
        assert turn.context is not None  # noqa: S101 - the stage before has assembled it
        session = permit.target.facts.session.key
        # A turn token is bound to a profile, and a guest has none.
        if not arguments.body.turn_token or permit.requester.profile.kind == GUEST:
            return SessionContext(session, turn.context, turn.state.epoch)
        token, binding, ends = turn_tokens.mint(permit.requester, permit.target.facts, arguments.body.turn.kind)
        if turn.origin.tainted:
            await taints.report(turn.tenant, binding.turn, ends)  # before anybody has the token
        turn.trail.noted(permit.decision.id, {"turn": binding.turn})  # what the token's own records are found by
        return SessionContext(session, turn.context, turn.state.epoch, NewTurnToken(token, ends))

    return Operation(
        name="context.assemble",
        summary="Assembles what this turn may see: rules, shared and personal instructions, memory.",
        action=Action.ENTER,
        family=SESSIONS,
        find=find,
        run=run,
        inside=True,
        assembles=True,
    )
