"""Explains to a person a decision about themselves, in words that show nothing of anybody else's (design section 7).

Missing and not yours are one answer here too: what is told of a refusal is what the refusal itself told.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Final

from pydantic import Field

from gateway.errors import Invalid, NotFound
from gateway.model import Action, AuditRecord, Resource
from gateway.operations.decisions_made import find_decision, is_of_a_list
from gateway.operations.me import FAMILY, of_oneself
from gateway.policy.documents import parse
from gateway.policy.in_words import INVARIANTS, row_for_its_person
from gateway.policy.invariants import TAINTED_TURN, TURN_TOKEN_ELSEWHERE
from gateway.policy.permit import Permit
from gateway.policy.rows import Row
from gateway.policy.targets import FunctionTarget
from gateway.ports import Audit
from gateway.tools.arguments import Arguments
from gateway.tools.registry import AnyOperation, Operation
from gateway.turn import Turn

NOT_FOUND: Final = "not_found"
_NOT_FOUND: Final = (
    "There is nothing under that name that you may use for this: it is missing, or it is not yours. "
    "The two look the same to everybody, so that nobody learns what others have."
)
_LACKING: Final = "Your roles don't include `{action}` here, whatever it is about. An admin can change that."
_LIST: Final = "This was a list or a search; it held what you may see from where you asked, and nothing else."
_ALLOWED: Final = "A row of the policy lets you do this."


class MyDecisionBody(Arguments):
    """`POST /v1/me/explain`."""

    decision: Annotated[str, Field(min_length=1, max_length=512)]


@dataclass(frozen=True, slots=True, kw_only=True)
class MyDecision:
    """What a person is told of a decision about themselves."""

    decision: str
    at: datetime
    operation: str
    action: str
    allowed: bool
    reason: str  # a code that the refusal itself told; `not_found` for all others
    says: str


class MyDecisions:
    """Builds the operation."""

    def __init__(self, audit: Audit) -> None:
        self._audit = audit
        self.explain: AnyOperation = Operation(
            name="me.explain",
            summary="Says why you were answered as you were.",
            action=Action.READ,
            family=FAMILY,
            find=_find,
            run=self._run,
            recorded_first=True,  # and with its record the one that is asked for
        )

    async def _run(self, permit: Permit[FunctionTarget], _turn: Turn, body: MyDecisionBody) -> MyDecision:
        """Raises NotFound for a decision that is not there or was about somebody else."""
        record = (await find_decision(self._audit, permit.requester.tenant, body.decision)).record
        me = permit.requester.profile
        # What somebody asks about another is no decision about themselves (`about`), though they made the request.
        if record.profile not in (me.id, *me.aliases) or "about" in record.details:
            raise NotFound
        return tell(record)


def tell(record: AuditRecord) -> MyDecision:
    """A recorded decision as its person may know it. The target is not in it: what they typed they know, and what it
    led to they may not."""
    allowed = record.effect == "allow"
    reason, says = ("allowed", _allowed(record)) if allowed else _denied(record)
    return MyDecision(
        decision=record.decision or "",
        at=record.at,
        operation=record.operation,
        action=record.action or "",
        allowed=allowed,
        reason=reason,
        says=says,
    )


def _allowed(record: AuditRecord) -> str:
    if is_of_a_list(record):
        return _LIST
    row = _row(record.rule or "")
    return _ALLOWED if row is None else row_for_its_person(row)


def _denied(record: AuditRecord) -> tuple[str, str]:
    code = record.code
    if code == "function_lacking" or _is_a_function(record):
        return "tool_not_allowed", _LACKING.format(action=record.action)
    # Of a file, where a turn token is good depends on whose agent it is; of all others on the token alone.
    elsewhere = code == TURN_TOKEN_ELSEWHERE and not (record.resource or "").startswith("memory/")
    if elsewhere or code in (TAINTED_TURN, "scope_missing"):
        return code, INVARIANTS[code]
    return NOT_FOUND, _NOT_FOUND


def _is_a_function(record: AuditRecord) -> bool:
    """Whether it was about something that is always there, so that its refusal names it."""
    about_one = record.code in INVARIANTS
    return not about_one and (record.resource == Resource.GATEWAY or (record.resource or "").startswith("admin/"))


def _row(rule: str) -> Row | None:
    """The row that a record names as `line N: p, …`."""
    try:
        return next(iter(parse(rule.partition(": ")[2]).rows), None)
    except Invalid:
        return None


async def _find(turn: Turn, _body: MyDecisionBody) -> FunctionTarget:
    return of_oneself(turn, Action.READ, None)
