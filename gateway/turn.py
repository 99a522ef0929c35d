"""One request on its way through the stages: who asks, from where, and by which state of the tenant it is decided."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, TypeVar

from gateway.errors import NotFound, Unauthenticated
from gateway.identity.outcome import Outcome
from gateway.model import (
    Action,
    Agent,
    AgentName,
    Context,
    Decision,
    Origin,
    Requester,
    Resource,
    Scope,
    TenantId,
    Verdict,
)
from gateway.policy.permit import Permit
from gateway.policy.states import TenantState
from gateway.policy.targets import MemoryTarget, SessionsTarget, SessionTarget, SingleTarget

SingleT = TypeVar("SingleT", bound=SingleTarget)


class Trail(Protocol):
    """Where decisions of this request are noted for the audit."""

    def decided(self, decision: Decision) -> None:
        """Notes one decision."""

    def reached(self, agent: str, session: str) -> None:
        """Notes the session that the request is about."""

    def noted(self, decision: str, details: dict[str, object]) -> None:
        """Adds `details` to the record of a decision that is not written yet."""


class Authorize(Protocol):
    """The one function that asks the policy; the stages and tools are given it with the turn."""

    def require(self, turn: Turn, action: Action, target: SingleT) -> Permit[SingleT]:
        """A permit. Raises NotFound or ToolNotAllowed where the policy refuses."""

    def permit(self, turn: Turn, action: Action, target: SingleT) -> Permit[SingleT] | None:
        """A permit, or None where the policy refuses."""

    def scope(self, turn: Turn, action: Action) -> Permit[SessionsTarget]:
        """A permit for a list of sessions: all that `action` is allowed on, which may be nothing."""

    def function(self, turn: Turn, action: Action, family: tuple[Resource, ...]) -> None:
        """Raises ToolNotAllowed where the requester's roles could never allow `action` on any of `family`."""

    def answer(self, turn: Turn, asked: Requester, origin: Origin, action: Action, target: SingleTarget) -> Decision:
        """What `asked` would be answered from `origin`. Nothing runs by it; the record says of whom it speaks."""

    def weigh(self, turn: Turn, asked: Requester, origin: Origin, action: Action, target: SingleTarget) -> Verdict:
        """As `answer`, and noted nowhere: for lists of answers."""

    def scope_of(self, turn: Turn, asked: Requester, action: Action, origin: Origin = ...) -> Scope:
        """The sessions on which `asked` may do `action`, from outside any or from `origin`; noted nowhere."""

    def scope_inside(self, turn: Turn, asked: Requester, action: Action) -> Scope:
        """The sessions that `asked` may enter and do `action` to from inside; noted nowhere."""

    def answer_function(
        self, turn: Turn, asked: Requester, action: Action, family: tuple[Resource, ...], name: str
    ) -> Decision:
        """Whether the roles of `asked` could ever allow `action` on any of `family`."""

    def could_ever(self, turn: Turn, agent: AgentName, action: Action, family: tuple[Resource, ...]) -> bool:
        """Whether the requester's roles on `agent` could ever allow `action` on any of `family`."""


@dataclass(slots=True, kw_only=True)
class Turn:
    """A request whose person is known. The stages fill in `origin`, `entered` and `context` as they run, once each, and
    an operation that changes who may do what its `outcome`.

    Not frozen, since it is made and filled once for every request; no two requests ever share one.
    """

    request: str  # req_…
    at: datetime
    surface: str
    operation: str
    requester: Requester
    state: TenantState
    origin: Origin
    trail: Trail
    authorize: Authorize
    renew: Callable[[], Awaitable[Turn]]  # the same person, verified again now; raises where they no longer are
    entered: Permit[SessionTarget] | None = None
    context: Context | None = None
    outcome: Outcome | None = None  # of a change of who may do what: looked at before its intent is written

    @property
    def tenant(self) -> TenantId:
        """The tenant of the credential; no request names another."""
        return self.requester.tenant

    def agent(self, name: str) -> Agent | None:
        """A configured agent of this tenant."""
        return self.state.agents.get(AgentName(name))

    def require(self, action: Action, target: SingleT) -> Permit[SingleT]:
        """See `Authorize.require`."""
        return self.authorize.require(self, action, target)

    def permit(self, action: Action, target: SingleT) -> Permit[SingleT] | None:
        """See `Authorize.permit`."""
        return self.authorize.permit(self, action, target)

    def scope(self, action: Action) -> Permit[SessionsTarget]:
        """See `Authorize.scope`."""
        return self.authorize.scope(self, action)

    async def again(self) -> Turn:
        """The same person's turn, verified anew. Raises Unauthenticated where the credential or the profile is another
        by now."""
        again = await self.renew()
        if again.requester.profile.id != self.requester.profile.id:
            raise Unauthenticated("Your account changed while this was saved.", reason="profile_changed")
        return again

    async def confirm(self, permit: Permit[SingleTarget]) -> None:
        """Asks everything that gave `permit` once more, just before its effect can no longer be taken back.

        Raises Unauthenticated where the credential or the profile is another by now, NotFound where the policy is, or
        where the agent is gone.
        """
        again = await self.again()
        target = permit.target
        if isinstance(target, MemoryTarget) and again.agent(target.agent) is None:
            raise NotFound
        again.require(permit.decision.question.action, target)
