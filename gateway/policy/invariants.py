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


def scope_violation(requester: Requester, resource: Resource) -> str | None:
    """A credential reaches only the areas it was made for; one without scopes reaches nothing."""
    scopes = requester.principal.scopes
    if "*" in scopes or resource.partition("/")[0] in scopes:
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


def _other_tenant(requester: Requester, _origin: Origin, target: SingleTarget, _question: Question) -> str | None:
    return None if target.tenant == requester.tenant == requester.profile.tenant else "tenant_mismatch"


def _retired_profile(requester: Requester, _origin: Origin, _target: SingleTarget, _question: Question) -> str | None:
    retired = requester.profile.merged_into is not None or requester.profile.disabled
    return "profile_retired" if retired else None


def _scope(requester: Requester, _origin: Origin, _target: SingleTarget, question: Question) -> str | None:
    return scope_violation(requester, question.resource)


def _elsewhere(requester: Requester, origin: Origin, _target: SingleTarget, _question: Question) -> str | None:
    return elsewhere(requester, origin)


def _personal_elsewhere(requester: Requester, _origin: Origin, target: SingleTarget, question: Question) -> str | None:
    """A person's own file stands to them as `self` on every agent, so no row could keep the runtime of one agent from
    what they wrote for another."""
    bound = requester.principal.turn
    if bound is None or question.resource not in PERSONAL_RESOURCES or not isinstance(target, MemoryTarget):
        return None
    return None if target.agent == bound.agent else TURN_TOKEN_ELSEWHERE


def _missing(_requester: Requester, _origin: Origin, target: SingleTarget, _question: Question) -> str | None:
    return "target_missing" if isinstance(target, MissingTarget) else None


def _incognito(_requester: Requester, origin: Origin, target: SingleTarget, question: Question) -> str | None:
    if not isinstance(target, SessionTarget) or not target.facts.session.incognito:
        return None
    inside = origin.session is not None and origin.session.id == target.facts.session.id
    # Being inside is not enough: a row that lets a supervisor enter any session must not open this one.
    return None if inside and question.whose is Whose.OWN else "incognito_session"


def _longterm_from_group(
    _requester: Requester, origin: Origin, _target: SingleTarget, question: Question
) -> str | None:
    if question.resource is not Resource.MEMORY_LONGTERM or question.action not in _READS:
        return None
    return "longterm_in_shared_session" if origin.chat is not Chat.PRIVATE else None


def _personal_of_another(requester: Requester, _origin: Origin, target: SingleTarget, question: Question) -> str | None:
    if question.resource not in PERSONAL_RESOURCES:
        return None
    own = isinstance(target, MemoryTarget) and target.owner == requester.profile.id
    return None if own else "personal_of_another"


def _longterm_has_one_writer(
    _requester: Requester, _origin: Origin, _target: SingleTarget, question: Question
) -> str | None:
    writes = question.resource in _LONGTERM and question.action in _DIRECT_WRITES
    return "longterm_single_writer" if writes else None


def _tainted_turn(_requester: Requester, origin: Origin, target: SingleTarget, question: Question) -> str | None:
    """Before `_missing`, since this refusal is told: it must not say whether what it is about is there."""
    if not origin.tainted:
        return None
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


def _sandbox(_requester: Requester, origin: Origin, target: SingleTarget, question: Question) -> str | None:
    if origin.session is None or not isinstance(target, SessionTarget | NewSessionTarget):
        return None
    return "sandboxed_session" if sandbox_excludes(origin.session, question.relation) else None


_ALWAYS: tuple[Check, ...] = (_other_tenant, _retired_profile, _scope, _elsewhere)
_FILES: tuple[Check, ...] = (_personal_elsewhere, _longterm_from_group, _personal_of_another, _longterm_has_one_writer)
# In this order for every kind of target, each without the checks that could say nothing of it.
_CHECKS_OF: Mapping[type[SingleTarget], tuple[Check, ...]] = {
    MissingTarget: (*_ALWAYS, _tainted_turn, _missing),
    SessionTarget: (*_ALWAYS, _tainted_turn, _incognito, _sandbox),
    NewSessionTarget: (*_ALWAYS, _tainted_turn, _sandbox),
    MemoryTarget: (*_ALWAYS, _tainted_turn, *_FILES),
    FunctionTarget: (*_ALWAYS, _tainted_turn, *_FILES),
    PolicyTarget: (*_ALWAYS, _tainted_turn, *_FILES),
}
