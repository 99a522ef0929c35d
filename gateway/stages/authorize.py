"""Turns a wish (who, from where, what, on what) into a permit or a refusal: invariants first, then Casbin.

This is the only place that asks the policy and the only one that makes a `Permit` (design sections 3 and 7).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from datetime import datetime
from itertools import product
from typing import TypeVar

from gateway.errors import ToolNotAllowed
from gateway.keys import LONGEST_WORD, new_id
from gateway.model import (
    ANY_AGENT,
    OUTSIDE,
    Action,
    AgentName,
    Chat,
    Decision,
    Origin,
    Profile,
    Question,
    Relation,
    Requester,
    Resource,
    Scope,
    Session,
    Verdict,
    Whose,
)
from gateway.policy.invariants import TURN_TOKEN_ELSEWHERE, elsewhere, first_violation, scope_violation
from gateway.policy.permit import Permit, issue, issue_for_list
from gateway.policy.targets import FunctionTarget, SessionsTarget, SessionTarget, SingleTarget, Target, sandbox_excludes
from gateway.stages.refusals import not_allowed, refusal
from gateway.tools.registry import AnyOperation
from gateway.turn import Turn

SingleT = TypeVar("SingleT", bound=SingleTarget)
MOST_FUNCTIONS = 50_000

# Where somebody asks from who is inside a session of this kind.
_FROM_INSIDE = ((Resource.SESSION_PRIVATE, Chat.PRIVATE), (Resource.SESSION_SHARED, Chat.GROUP))

Cell = tuple[AgentName, Resource, Relation, Whose]


class AuthorizeStage:
    """Asks the snapshot that the turn was opened with, as of when it was, and notes every answer on its trail."""

    def __init__(self, observe: Callable[[Verdict], None]) -> None:
        """`observe` is told every verdict, for counting; it sees nothing else of the request."""
        self._observe = observe

    async def __call__(self, turn: Turn, operation: AnyOperation, arguments: object) -> Permit[Target]:
        """The permit that `operation` runs with. Raises ToolNotAllowed or NotFound where there is none, or where one of
        the further actions that it takes is refused."""
        if operation.action is Action.ENTER and turn.entered is not None:
            return turn.entered
        for action in (operation.action, *operation.also):
            self.function(turn, action, operation.family)
        target = await operation.find(turn, arguments)
        if target is None:
            return self.scope(turn, operation.action)
        permit = self.require(turn, operation.action, target)
        for action in operation.also:
            self.require(turn, action, target)
        return permit

    def bearer(self, turn: Turn, operation: AnyOperation) -> None:
        """Refuses a turn token what no agent's runtime runs, before anything is opened. Raises ToolNotAllowed.

        What it may run it runs in its own session alone: that is an invariant, so that it holds in each decision.
        """
        if turn.requester.principal.turn is None or operation.by_turn_token:
            return
        question = Question(
            ANY_AGENT, operation.family[0], Relation.SELF, Whose.OWN, turn.origin.chat, operation.action
        )
        subjects = turn.requester.subjects_on(ANY_AGENT)
        verdict = Verdict(False, TURN_TOKEN_ELSEWHERE, None)
        self._note(turn, question, verdict, subjects, operation.name, turn.at)
        raise ToolNotAllowed(
            "A turn token runs the tools of its session and posts messages into it, and nothing else. "
            "Use a credential of your own for this."
        )

    def require(self, turn: Turn, action: Action, target: SingleT) -> Permit[SingleT]:
        """A permit for `action` on `target`. Raises ToolNotAllowed for a function, NotFound for anything else."""
        decision = self._decide_on(turn, action, target)
        if not decision.verdict.allowed:
            raise refusal(target, action, decision.verdict.code)
        return issue(decision, turn.requester, turn.origin, target)

    def permit(self, turn: Turn, action: Action, target: SingleT) -> Permit[SingleT] | None:
        """A permit for `action` on `target`, or None where it is refused; noted either way."""
        decision = self._decide_on(turn, action, target)
        return issue(decision, turn.requester, turn.origin, target) if decision.verdict.allowed else None

    def answer(self, turn: Turn, asked: Requester, origin: Origin, action: Action, target: SingleTarget) -> Decision:
        """What `asked` would be answered from `origin`, for somebody who may know that. It is no permit: nothing runs
        by it, and its record says of whom it speaks."""
        question = target.question(asked, origin, action)
        subjects = asked.subjects_on(question.agent)
        verdict = self._verdict(turn, asked, origin, target, question, subjects)
        session = target.name if isinstance(target, SessionTarget) else None
        decision = self._note(turn, question, verdict, subjects, target.name, turn.at, session)
        turn.trail.noted(decision.id, {"about": asked.profile.id})
        return decision

    def weigh(self, turn: Turn, asked: Requester, origin: Origin, action: Action, target: SingleTarget) -> Verdict:
        """As `answer`, and noted nowhere: for a list of answers, like the rows of a list."""
        question = target.question(asked, origin, action)
        return self._verdict(turn, asked, origin, target, question, asked.subjects_on(question.agent))

    def scope_of(self, turn: Turn, asked: Requester, action: Action, origin: Origin = OUTSIDE) -> Scope:
        """The sessions on which `asked` may do `action` from `origin`; noted nowhere, like `weigh`."""
        return Scope(asked.profile.id, origin, self._cells(turn, asked, origin, action))

    def scope_inside(self, turn: Turn, asked: Requester, action: Action) -> Scope:
        """The sessions that `asked` may enter and do `action` to from inside; noted nowhere, like `weigh`."""
        return Scope(asked.profile.id, OUTSIDE, frozenset(self._cells_inside(turn, asked, action)))

    def answer_function(
        self, turn: Turn, asked: Requester, action: Action, family: tuple[Resource, ...], name: str
    ) -> Decision:
        """Whether the roles of `asked` could ever allow `action` on something of `family`, on any agent; see `answer`.
        The record names what is asked for by `name`."""
        subjects = asked.subjects_on(ANY_AGENT)
        question = Question(ANY_AGENT, family[0], Relation.SELF, Whose.OWN, Chat.PRIVATE, action)
        # Of what a function may be about nothing is known, so only what holds for whoever asks can be broken.
        anything = FunctionTarget(turn.tenant, Resource.GATEWAY, name)
        code = first_violation(asked, OUTSIDE, anything, question._replace(resource=Resource.GATEWAY))
        if code is None and not any(
            self._could_ever(turn, asked, agent, action, family) for agent in (ANY_AGENT, *turn.state.agents)
        ):
            code = "function_lacking"
        verdict = Verdict(code is None, code or "allowed", None)
        decision = self._note(turn, question, verdict, subjects, name, turn.at)
        turn.trail.noted(decision.id, {"about": asked.profile.id})
        return decision

    def _decide_on(self, turn: Turn, action: Action, target: SingleTarget) -> Decision:
        requester, name, session = turn.requester, target.name, None
        if isinstance(target, SessionTarget):
            session = name
            turn.trail.reached(target.facts.session.agent, session)
        question = target.question(requester, turn.origin, action)
        subjects = requester.profile.subjects_on(question.agent)
        verdict = self._verdict(turn, requester, turn.origin, target, question, subjects)
        return self._note(turn, question, verdict, subjects, name, turn.at, session)

    def scope(self, turn: Turn, action: Action) -> Permit[SessionsTarget]:
        """A permit for a list; each (agent, resource, relation, whose) in it was decided like a single read."""
        target = SessionsTarget(turn.tenant, tuple(turn.state.agents))
        question = Question(
            ANY_AGENT, Resource.SESSION_SHARED, Relation.SAME_AGENT, Whose.OTHER, turn.origin.chat, action
        )
        now = turn.at
        code = scope_violation(turn.requester, Resource.SESSION_SHARED, action)
        code = code or elsewhere(turn.requester, turn.origin)
        cells = frozenset[Cell]() if code else self._cells(turn, turn.requester, turn.origin, action)
        verdict = Verdict(bool(cells), code or ("allowed" if cells else "no_matching_row"), None)
        subjects = turn.requester.subjects_on(ANY_AGENT)
        decision = self._note(turn, question, verdict, subjects, f"{target.name} ({len(cells)} cells)", now)
        scope = Scope(turn.requester.profile.id, turn.origin, cells)
        return issue_for_list(decision, turn.requester, turn.origin, target, scope)

    def function(self, turn: Turn, action: Action, family: tuple[Resource, ...]) -> None:
        """Refuses a function that the roles lack altogether, before any target is looked at (design section 7).

        What it says depends on the person's roles alone, so it reveals nothing of any session or file.
        """
        # A profile is one object as long as nothing of it changes; comparing all its roles costs more than the rest.
        profile, functions = turn.requester.profile, turn.state.functions
        key = (id(profile), turn.requester.principal.scopes, action, family)
        known = functions.get(key)
        if known is None or known[0] is not profile:
            known = self._look_up(turn, action, family, key)
        if known[1]:
            return
        question = Question(ANY_AGENT, family[0], Relation.SELF, Whose.OWN, turn.origin.chat, action)
        subjects = turn.requester.subjects_on(ANY_AGENT)
        code = scope_violation(turn.requester, family[0], action) or "function_lacking"
        self._note(turn, question, Verdict(False, code, None), subjects, turn.operation, turn.at)
        raise not_allowed(action)

    def _look_up(self, turn: Turn, action: Action, family: tuple[Resource, ...], key: Hashable) -> tuple[Profile, bool]:
        """Whether any agent's rows could ever allow it; remembered with the state that it is true of."""
        functions = turn.state.functions
        if len(functions) >= MOST_FUNCTIONS:
            functions.clear()
        agents = (ANY_AGENT, *turn.state.agents)
        known = any(self.could_ever(turn, agent, action, family) for agent in agents)
        functions[key] = turn.requester.profile, known
        return functions[key]

    def could_ever(self, turn: Turn, agent: AgentName, action: Action, family: tuple[Resource, ...]) -> bool:
        """Whether any row could ever let the requester do `action` on something of `family` on this agent."""
        return self._could_ever(turn, turn.requester, agent, action, family)

    def _could_ever(
        self, turn: Turn, who: Requester, agent: AgentName, action: Action, family: tuple[Resource, ...]
    ) -> bool:
        subjects, now = who.subjects_on(agent), turn.at
        return any(
            scope_violation(who, resource, action) is None
            and turn.state.snapshot.could_ever(subjects, agent, resource, action, now)
            for resource in family
        )

    def _cells(self, turn: Turn, requester: Requester, origin: Origin, action: Action) -> frozenset[Cell]:
        return frozenset(
            (agent, resource, relation, whose)
            for agent in turn.state.agents
            for resource, relation, whose in turn.state.snapshot.cells(
                requester.subjects_on(agent), agent, origin.chat, action, turn.at
            )
            if is_in_reach(origin.session, agent, relation, whose)
        )

    def _cells_inside(self, turn: Turn, asked: Requester, action: Action) -> Iterator[Cell]:
        """As a list from outside names them; each is asked about as it stands to itself, and its child as a child."""
        stands = Relation.CHILD if action is Action.SPAWN else Relation.SELF
        for agent, (resource, chat), whose in product(turn.state.agents, _FROM_INSIDE, Whose):
            subjects = asked.subjects_on(agent)
            asks = ((Action.ENTER, Relation.SELF), (action, stands))
            if all(
                turn.state.snapshot.decide(
                    subjects, Question(agent, resource, relation, whose, chat, one), turn.at
                ).allowed
                for one, relation in asks
            ):
                yield agent, resource, Relation.SAME_AGENT if whose is Whose.OTHER else Relation.SELF, whose

    def _note(
        self,
        turn: Turn,
        question: Question,
        verdict: Verdict,
        subjects: frozenset[str],
        target: str,
        now: datetime,
        session: str | None = None,
    ) -> Decision:
        state = turn.state
        name = target[:LONGEST_WORD]  # of what is missing it is what the caller called it
        decision = Decision(
            new_id("dec", now), question, verdict, subjects, name, state.epoch, state.snapshot.version, session
        )
        turn.trail.decided(decision)
        self._observe(verdict)
        return decision

    def _verdict(
        self,
        turn: Turn,
        requester: Requester,
        origin: Origin,
        target: SingleTarget,
        question: Question,
        subjects: frozenset[str],
    ) -> Verdict:
        """Invariants first, then Casbin."""
        code = first_violation(requester, origin, target, question)
        return turn.state.snapshot.decide(subjects, question, turn.at) if code is None else Verdict(False, code, None)


def is_in_reach(here: Session | None, agent: AgentName, relation: Relation, whose: Whose) -> bool:
    """Whether a target that `agent` answers for can stand in `relation` to the origin, and its sandbox lets it."""
    if here is None:
        return relation is (Relation.SAME_AGENT if whose is Whose.OTHER else Relation.SELF)
    if sandbox_excludes(here, relation):
        return False
    if relation is Relation.CHILD_CROSS:
        return agent == here.root_agent
    if relation is Relation.OTHER_AGENT:
        return agent != here.agent
    return agent == here.agent
