"""Answers other runtimes what somebody of the tenant may do (AuthZEN 1.0), for services that may ask and nobody else.

Words that are not ours are denied, each with its reason: an unknown type, action or property could be meant to narrow.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from gateway.errors import ToolNotAllowed
from gateway.identity.roles import SERVICE
from gateway.identity.scopes import DECIDE
from gateway.model import Action, Requester, Resource
from gateway.operations.asking import Asking, OnSession, OnTool, Thing, Wish
from gateway.operations.found import function
from gateway.operations.questions import memory
from gateway.policy.comparison import OF_MEMORY, OF_SESSIONS
from gateway.policy.permit import Permit
from gateway.policy.targets import FunctionTarget
from gateway.tools.registry import AnyOperation, Operation
from gateway.turn import Turn

FAMILY = (Resource.GATEWAY,)
USER: Final = "user"
SESSION: Final = "session"
MEMORY: Final = "memory"
TOOL: Final = "tool"
RUN: Final = "run"
# `create` is about a session that is not there yet, and so about none that could be named.
ACTIONS: Final[Mapping[str, Mapping[str, Action]]] = {
    SESSION: {str(one): one for one in Action if one in OF_SESSIONS - {Action.CREATE}},
    MEMORY: {str(one): one for one in Action if one in OF_MEMORY},
    TOOL: {RUN: Action.READ},  # what a tool does it says itself
}

UNKNOWN_TYPE: Final = "unknown_type"
UNKNOWN_ACTION: Final = "unknown_action"
UNKNOWN_PROPERTY: Final = "unknown_property"
NOT_IN_SESSION: Final = "session_not_entered"

_NOT_FOR_YOU: Final = (
    "A service asks for decisions, with a token whose scopes name `decide`. A person is answered by asking themselves."
)


class Semantic(StrEnum):
    """How several questions are answered: all of them, or up to the first answer of one kind."""

    EXECUTE_ALL = "execute_all"
    DENY_ON_FIRST_DENY = "deny_on_first_deny"
    PERMIT_ON_FIRST_PERMIT = "permit_on_first_permit"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A question. What a search looks for is None; `extra` says that an entity has a property that we don't know."""

    subject_type: str
    subject: str | None
    action: str | None
    resource_type: str
    resource: str | None
    session: str | None = None
    kind: str | None = None
    extra: bool = False

    @property
    def unknown(self) -> str | None:
        """The reason why nothing can be asked, or None where something can."""
        if self.subject_type != USER or self.resource_type not in ACTIONS:
            return UNKNOWN_TYPE
        if self.action is not None and self.action not in ACTIONS[self.resource_type]:
            return UNKNOWN_ACTION
        return UNKNOWN_PROPERTY if self.extra else None

    @property
    def wanted(self) -> Action:
        """The action of the policy. Raises KeyError where `unknown` says so."""
        return ACTIONS[self.resource_type][self.action or ""]

    @property
    def thing(self) -> Thing:
        """What is asked about."""
        name = self.resource or ""
        if self.resource_type == SESSION:
            return OnSession(name)
        return memory(name) if self.resource_type == MEMORY else OnTool(name)

    def wish(self, asked: Requester) -> Wish:
        """The question about somebody."""
        return Wish(asked=asked, action=self.wanted, thing=self.thing, session=self.session, kind=self.kind)


@dataclass(frozen=True, slots=True)
class Failed:
    """A question of several that could not be read: it is denied, and says why."""

    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Several:
    """Questions in their order, and when to stop."""

    asks: tuple[Ask | Failed, ...]
    semantic: Semantic


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluated:
    """An answer: with the id of its record, but where nothing could be asked."""

    allowed: bool
    reason: str
    epoch: int
    decision: str | None = None
    error: str | None = None


class DecisionPoint:
    """Builds the operations that answer questions one by one; `searches.py` has those that look for what fits."""

    def __init__(self, asking: Asking) -> None:
        self._asking = asking
        self.evaluation: AnyOperation = decides(
            "authzen.evaluation", "Says whether somebody may do something.", self._run_one
        )
        self.evaluations: AnyOperation = decides(
            "authzen.evaluations", "Answers several questions in their order.", self._run_several
        )

    def choose(self, asked: Ask | Several) -> AnyOperation:
        """Which of the two: a list with nothing in it is one question."""
        return self.evaluation if isinstance(asked, Ask) else self.evaluations

    async def _run_one(self, _permit: Permit[FunctionTarget], turn: Turn, ask: Ask) -> Evaluated:
        return await self._evaluate(turn, ask, {})

    async def _run_several(self, _permit: Permit[FunctionTarget], turn: Turn, several: Several) -> Sequence[Evaluated]:
        people: dict[str, Requester] = {}
        answers: list[Evaluated] = []
        for ask in several.asks:
            if isinstance(ask, Failed):
                answer = Evaluated(allowed=False, reason="invalid", epoch=turn.state.epoch, error=ask.message)
            else:
                answer = await self._evaluate(turn, ask, people)
            answers.append(answer)
            if several.semantic is Semantic.DENY_ON_FIRST_DENY and not answer.allowed:
                break
            if several.semantic is Semantic.PERMIT_ON_FIRST_PERMIT and answer.allowed:
                break
        return answers

    async def _evaluate(self, turn: Turn, ask: Ask, people: dict[str, Requester]) -> Evaluated:
        if ask.unknown is not None:
            return Evaluated(allowed=False, reason=ask.unknown, epoch=turn.state.epoch)
        name = ask.subject or ""
        asked = people.get(name)
        if asked is None:
            asked = people[name] = await self._asking.requester(turn, name)
        reply = await self._asking.put(turn, ask.wish(asked))
        verdict = reply.decision.verdict
        return Evaluated(
            allowed=verdict.allowed and reply.entered,
            reason=verdict.code if reply.entered else NOT_IN_SESSION,
            epoch=reply.decision.epoch,
            decision=reply.decision.id,
        )


class _Unheard:
    """The trail of a search: what it tries is no decision that somebody got. The search itself is on the record."""

    def decided(self, decision: object) -> None:
        pass

    def reached(self, agent: str, session: str) -> None:
        pass

    def noted(self, decision: str, details: dict[str, object]) -> None:
        pass


def unheard(turn: Turn) -> Turn:
    """The same turn, whose answers are noted nowhere."""
    return replace(turn, trail=_Unheard())


def decides(name: str, summary: str, run: Callable[..., Awaitable[object]]) -> AnyOperation:
    """An operation of a decision point."""
    return Operation(name=name, summary=summary, action=Action.DECIDE, family=FAMILY, find=_find, run=run)


async def _find(turn: Turn, asked: object) -> FunctionTarget:
    """Raises ToolNotAllowed for whoever is no service, and for a token that does not name `decide`: one for everything
    was not made for this."""
    requester = turn.requester
    if requester.profile.kind != SERVICE or DECIDE not in requester.principal.scopes:
        raise ToolNotAllowed(_NOT_FOR_YOU)
    return function(turn, Resource.GATEWAY, getattr(asked, "about", None))
