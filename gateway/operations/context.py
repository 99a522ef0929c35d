"""A turn's context over REST and the command line: the text for the model, and the manifest (design section 6)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from gateway.model import Action, Context
from gateway.operations import found
from gateway.policy.permit import Permit
from gateway.policy.targets import MissingTarget, SessionTarget
from gateway.sessions.conversations import Conversations
from gateway.tools.arguments import Arguments
from gateway.tools.registry import SESSIONS, AnyOperation, Operation
from gateway.turn import Turn


class TurnBody(Arguments):
    """What a runtime says of this turn. `kind` can only narrow: a private session counts as a group for this turn."""

    kind: Annotated[str, Field(min_length=1, max_length=64)] | None = None


class ContextBody(Arguments):
    """`POST /v1/sessions/{s}/context`."""

    turn: TurnBody = TurnBody()


@dataclass(frozen=True, slots=True)
class OfSession:
    """Arguments of a context: which session, and what is said of the turn."""

    reference: str
    body: ContextBody


@dataclass(frozen=True, slots=True)
class SessionContext:
    """A context, the session it is for, and the epoch it was decided at."""

    session: str
    context: Context
    epoch: int


def context_operation(conversations: Conversations) -> AnyOperation:
    """Entering a session and assembling what this turn may see."""

    async def find(turn: Turn, arguments: OfSession) -> SessionTarget | MissingTarget:
        return await found.session(conversations, turn, arguments.reference)

    return Operation(
        name="context.assemble",
        summary="Assembles what this turn may see: rules, shared and personal instructions, memory.",
        action=Action.ENTER,
        family=SESSIONS,
        find=find,
        run=_run,
        inside=True,
        assembles=True,
    )


async def _run(permit: Permit[SessionTarget], turn: Turn, _arguments: OfSession) -> SessionContext:
    assert turn.context is not None  # noqa: S101 - the stage before has assembled it
    return SessionContext(permit.target.facts.session.key, turn.context, turn.state.epoch)
