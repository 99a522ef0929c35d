"""Turns a refusal of the policy into what its caller is told: denied looks like missing, but for functions."""

from __future__ import annotations

from gateway.errors import GatewayError, NotFound, ToolNotAllowed
from gateway.model import Action
from gateway.policy.invariants import TAINTED_TURN
from gateway.policy.targets import FunctionTarget, SingleTarget

# What a tainted turn may not do, the person can do themselves, and the refusal says where (design section 9).
_TAINTED = (
    "This turn has read text from outside, which may be what asks for this, so it can't do it. "
    "The person can, with a credential of their own: {yourself}"
)
_SPAWN = "POST /v1/sessions/{session}/tools/sessions_spawn"
_YOURSELF = {
    Action.EDIT: "PUT /v1/agents/{agent}/personal-instructions",
    Action.APPEND: "POST /v1/sessions/{session}/tools/memory_append",
    Action.REMEMBER: "POST /v1/sessions/{session}/tools/memory_remember",
    Action.SEND: "POST /v1/sessions/{session}/messages",
    Action.SPAWN: _SPAWN,
    Action.CREATE: _SPAWN,  # of a child on another agent
}


def refusal(target: SingleTarget, action: Action, code: str) -> GatewayError:
    """What a caller is told of a refusal."""
    if code == TAINTED_TURN:
        return ToolNotAllowed(_TAINTED.format(yourself=_YOURSELF[action]))
    return not_allowed(action) if isinstance(target, FunctionTarget) else NotFound()


def not_allowed(action: Action) -> ToolNotAllowed:
    """A function that somebody lacks."""
    return ToolNotAllowed(f"Your role or your token does not include '{action}' here. An admin can change that.")
