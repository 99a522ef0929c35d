"""A `Permit`: the proof that the policy allowed one action on one target. Only `stages/authorize.py` makes one.

Every function that reads or changes something takes a permit, so there is no way to it around the policy: the type
checker refuses a call without one, making one elsewhere raises, and a test finds every module that imports `issue`.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from gateway.model import Decision, Origin, Requester, Scope
from gateway.policy.targets import SessionsTarget, SingleTarget, Target

TargetT = TypeVar("TargetT", bound=Target, covariant=True)


class _Seal:
    """What only this module holds."""


_SEAL = _Seal()


class Permit(Generic[TargetT]):
    """An allowed decision with everything it was made of; `scope` is there for lists alone."""

    __slots__ = ("decision", "origin", "requester", "scope", "target")

    def __init__(
        self,
        seal: _Seal,
        decision: Decision,
        requester: Requester,
        origin: Origin,
        target: TargetT,
        scope: Scope | None,
    ) -> None:
        if seal is not _SEAL:
            raise TypeError("only the authorize stage makes a permit")
        self.decision = decision
        self.requester = requester
        self.origin = origin
        self.target = target
        self.scope = scope


SingleT = TypeVar("SingleT", bound=SingleTarget)


def issue(decision: Decision, requester: Requester, origin: Origin, target: SingleT) -> Permit[SingleT]:
    """A permit for one target. Raises ValueError where the decision is not an allow."""
    if not decision.verdict.allowed:
        raise ValueError("a refused decision gives no permit")
    return Permit(_SEAL, decision, requester, origin, target, None)


def issue_for_list(
    decision: Decision, requester: Requester, origin: Origin, target: SessionsTarget, scope: Scope
) -> Permit[SessionsTarget]:
    """A permit for a list: it reaches what `scope` holds and nothing else, which may be nothing."""
    return Permit(_SEAL, decision, requester, origin, target, scope)
