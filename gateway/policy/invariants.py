"""The refusals that no policy row can lift; they come before Casbin (design section 7).

Each returns its reason code or None; `first_violation` asks them in order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gateway.model import Action, Chat, Origin, Question, Relation, Requester, Resource, Whose
from gateway.policy.targets import (
    PERSONAL_RESOURCES,
    FunctionTarget,
    MemoryTarget,
    MissingTarget,
    NewSessionTarget,
    PolicyTarget,
    SessionTarget,
    SingleTarget,
    sandbox_excludes,
)

_READS = frozenset({Action.LOAD, Action.GET, Action.SEARCH})
_LONGTERM = frozenset({Resource.MEMORY_LONGTERM, Resource.PERSONAL_LONGTERM})
_DIRECT_WRITES = frozenset({Action.APPEND, Action.EDIT})

TURN_TOKEN_ELSEWHERE = "turn_token_elsewhere"  # noqa: S105 - a reason, not a secret
TAINTED_TURN = "tainted_turn"

Check = Callable[[Requester, Origin, SingleTarget, Question], "str | None"]


def first_violation(requester: Requester, origin: Origin, target: SingleTarget, question: Question) -> str | None:
    """The reason code of the first invariant that the request breaks, or None where it breaks none."""
    for check in _CHECKS_OF[type(target)]:
        code = check(requester, origin, target, question)
        if code is not None:
            return code
    return None


def scope_violation(requester: Requester, resource: Resource, action: Action) -> str | None:
    """A credential reaches only the areas it was made for; one without scopes reaches nothing. Asking for decisions is
    an area of its own: a token for it does nothing else, and one for `gateway` doesn't do it."""
    scopes = requester.principal.scopes
    area = str(Action.DECIDE) if action is Action.DECIDE else resource.partition("/")[0]
    if "*" in scopes or area in scopes:
        return None
    return "scope_missing"


def elsewhere(requester: Requester, origin: Origin) -> str | None:
    """A turn token is good inside the session that it is bound to, in the incarnation that the turn began in."""
    bound, here = requester.principal.turn, origin.session
    if bound is None:
        return None
    same = here is not None and (here.id, here.incarnation, here.agent) == (
        bound.session,
        bound.incarnation,
        bound.agent,
    )
    return None if same else TURN_TOKEN_ELSEWHERE


def _always(requester: Requester, origin: Origin, target: SingleTarget, question: Question) -> str | None:
    """What holds for every kind of target, in one function, since it is asked for every decision there is."""
    profile = requester.profile
    if not target.tenant == requester.tenant == profile.tenant:
        return "tenant_mismatch"
    if profile.merged_into is not None or profile.disabled:
        return "profile_retired"
    return (
        scope_violation(requester, question.resource, question.action)
        or elsewhere(requester, origin)
        or (_tainted_turn(target, question) if origin.tainted else None)
    )


def _tainted_turn(target: SingleTarget, question: Question) -> str | None:
    """Before `_missing`, since this refusal is told: it must not say whether what it is about is there."""
    # A child's task is text that is sent elsewhere, to a turn that nobody would know to be tainted.
    spawns = question.action is Action.SPAWN or (isinstance(target, NewSessionTarget) and target.parent is not None)
    refused = (
        spawns
        or question.action is Action.REMEMBER
        or (question.action is Action.SEND and question.relation is not Relation.SELF)
        or (question.action is Action.EDIT and question.resource is Resource.PERSONAL_INSTRUCTIONS)
        or (question.action is Action.APPEND and question.resource is Resource.MEMORY_DAILY)
    )
    return TAINTED_TURN if refused else None


def _missing(_requester: Requester, _origin: Origin, target: SingleTarget, _question: Question) -> str | None:
    return "target_missing" if isinstance(target, MissingTarget) else None


def _incognito(_requester: Requester, origin: Origin, target: SingleTarget, question: Question) -> str | None:
    if not isinstance(target, SessionTarget) or not target.facts.session.incognito:
        return None
    inside = origin.session is not None and origin.session.id == target.facts.session.id
    # Being inside is not enough: a row that lets a supervisor enter any session must not open this one.
    return None if inside and question.whose is Whose.OWN else "incognito_session"


def _longterm(_requester: Requester, origin: Origin, _target: SingleTarget, question: Question) -> str | None:
    """Root MEMORY.md is read from private sessions alone, and no `MEMORY.md` is written but by its one writer."""
    if question.resource not in _LONGTERM:
        return None
    shared = question.resource is Resource.MEMORY_LONGTERM
    if shared and question.action in _READS and origin.chat is not Chat.PRIVATE:
        return "longterm_in_shared_session"
    return "longterm_single_writer" if question.action in _DIRECT_WRITES else None


def _personal(requester: Requester, _origin: Origin, target: SingleTarget, question: Question) -> str | None:
    """A person's own file is theirs alone. It stands to them as `self` on every agent, so no row could keep the runtime
    of one agent from what they wrote for another."""
    if question.resource not in PERSONAL_RESOURCES:
        return None
    bound = requester.principal.turn
    if bound is not None and isinstance(target, MemoryTarget) and target.agent != bound.agent:
        return TURN_TOKEN_ELSEWHERE
    own = isinstance(target, MemoryTarget) and target.owner == requester.profile.id
    return None if own else "personal_of_another"


def _sandbox(_requester: Requester, origin: Origin, target: SingleTarget, question: Question) -> str | None:
    if origin.session is None or not isinstance(target, SessionTarget | NewSessionTarget):
        return None
    return "sandboxed_session" if sandbox_excludes(origin.session, question.relation) else None


# In this order for every kind of target, each without the checks that could say nothing of it.
_CHECKS_OF: Mapping[type[SingleTarget], tuple[Check, ...]] = {
    MissingTarget: (_always, _missing),
    SessionTarget: (_always, _incognito, _sandbox),
    NewSessionTarget: (_always, _sandbox),
    MemoryTarget: (_always, _personal, _longterm),
    FunctionTarget: (_always, _personal, _longterm),
    PolicyTarget: (_always, _personal, _longterm),
}
