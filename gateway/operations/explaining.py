"""Explains a decision, or what a question would be answered, to who may read the policy (design section 7).

A recorded decision is explained under the document that it was made by, and then under the one in force.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from gateway.errors import Invalid, NotFound, Unavailable
from gateway.identity.emails import fold
from gateway.model import (
    Action,
    AuditRecord,
    Profile,
    Question,
    Resource,
    TenantId,
    Verdict,
)
from gateway.operations.asking import Asking, Wish
from gateway.operations.decisions_made import about, find_decision, is_of_a_list, question_of
from gateway.operations.found import function
from gateway.operations.questions import ExplainBody
from gateway.operations.somebody import as_requester
from gateway.policy.comparison import POSSIBLE
from gateway.policy.documents import Document, parse
from gateway.policy.explain import Explanation, explain, explain_function
from gateway.policy.in_words import INVARIANTS, change_in_words, function_in_words
from gateway.policy.permit import Permit
from gateway.policy.rights import Fact, holds
from gateway.policy.targets import FunctionTarget
from gateway.ports import Audit, Policies, PolicyVersion, StoredRecord
from gateway.tools.registry import AnyOperation, Operation
from gateway.turn import Turn

FUNCTION_LACKING: Final = "function_lacking"
_LIST: Final = (
    "This was a list or a search: each kind of session in it was decided by itself, and the target counts those that "
    "were allowed. Ask about one session to see its rows."
)
_NO_ROW_LIFTS: Final = "No row can lift this."
_UNASKED: Final = (
    "No request has these facts together, or what they ask for is refused whatever the rows say. The rows alone say: "
)
_ENTER_FIRST: Final = "They can't enter the session that they would ask from, so nothing can be asked from there. "


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What one version of the document says. `rows` is None where there are none to show, or they may not be shown."""

    version: int
    known_by: str  # "record", "time" (the record names no version), "force"
    verdict: Verdict
    rows: Explanation | None
    says: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """All that there is to say of a decision. `then` and `record` are there for a recorded one."""

    decision: str | None
    about: str | None  # the person
    source: str | None  # the session that it is asked from, as it was named
    target: str | None
    question: Question | None
    subjects: frozenset[str]
    epoch: int
    now: Reading
    then: Reading | None = None
    record: StoredRecord | None = None
    roles_now: frozenset[str] | None = None  # what the person holds today, where that is another set

    @property
    def verdict(self) -> Verdict:
        """The answer: the recorded one, where there is one."""
        return (self.then or self.now).verdict

    @property
    def otherwise(self) -> bool | None:
        """Whether the document in force would answer the recorded facts otherwise."""
        return None if self.then is None else self.then.verdict.allowed != self.now.verdict.allowed


class ExplainOperations:
    """Builds the two operations: of a question, for who reads the policy; of a record, for who reads the audit."""

    def __init__(self, asking: Asking, audit: Audit, policies: Policies) -> None:
        self._asking = asking
        self._audit = audit
        self._policies = policies
        self.question: AnyOperation = Operation(
            name="policy.explain",
            summary="Says what somebody would be answered, by which rows, and which nearly matched.",
            action=Action.READ,
            family=(Resource.ADMIN_POLICY,),
            find=_find_policy,
            run=self._run_question,
        )
        self.decision: AnyOperation = Operation(
            name="policy.explain_decision",
            summary="Says why a recorded decision was as it was, and whether it would be today.",
            action=Action.READ,
            family=(Resource.ADMIN_AUDIT,),
            find=_find_audit,
            run=self._run_decision,
            recorded_first=True,  # and with its record the one that is asked for
        )

    def choose(self, body: ExplainBody) -> AnyOperation:
        """Which of the two a body asks for."""
        return self.question if body.decision is None else self.decision

    # ── a question ───────────────────────────────────────────────────────────────────────────────────────────────────

    async def _run_question(self, _permit: Permit[FunctionTarget], turn: Turn, body: ExplainBody) -> Explained:
        """Raises Invalid for somebody who is not there."""
        person = await self._person(turn, body.person or "")
        asked = as_requester(turn, person)
        document, version = turn.state.snapshot.document, turn.state.snapshot.version
        thing = body.thing
        if thing is None:
            question = body.question
            subjects = asked.subjects_on(question.agent)
            rows = await asyncio.to_thread(explain, document, subjects, question, turn.at)
            says = change_in_words(question, rows)
            if not holds(POSSIBLE, Fact.of(question)):
                says = _UNASKED + says
            now = Reading(version=version, known_by="force", verdict=rows.verdict, rows=rows, says=says)
            return Explained(
                decision=None,
                about=person.id,
                source=None,
                target=None,
                question=question,
                subjects=subjects,
                epoch=turn.state.epoch,
                now=now,
            )
        wish = Wish(asked=asked, action=body.wanted, thing=thing, session=body.source, kind=body.kind)
        reply = await self._asking.put(turn, wish)
        decision = reply.decision
        now = await _reading(
            document, version, "force", decision.question, decision.subjects, decision.verdict, turn.at, show=True
        )
        if not reply.entered:
            now = replace(now, says=_ENTER_FIRST + now.says)
        return Explained(
            decision=decision.id,
            about=person.id,
            source=body.source,
            target=decision.target,
            question=decision.question,
            subjects=decision.subjects,
            epoch=decision.epoch,
            now=now,
        )

    async def _person(self, turn: Turn, reference: str) -> Profile:
        """Somebody by id; by email for who may also read about people."""
        found: Profile | None
        if "@" in reference and turn.permit(Action.READ, function(turn, Resource.ADMIN_PEOPLE)) is not None:
            found = await self._asking.with_email(turn.tenant, fold(reference))
        else:
            found = await self._asking.person(turn.tenant, reference)
        if found is None:
            raise Invalid.of("person", "known", "Nobody here has that id or email: GET /v1/admin/people lists them.")
        return found

    # ── a recorded decision ──────────────────────────────────────────────────────────────────────────────────────────

    async def _run_decision(self, _permit: Permit[FunctionTarget], turn: Turn, body: ExplainBody) -> Explained:
        """Raises NotFound where there is no such decision. Who may not read the policy is shown none of its rows."""
        stored = await find_decision(self._audit, turn.tenant, body.decision or "")
        record = stored.record
        show = turn.permit(Action.READ, function(turn, Resource.ADMIN_POLICY)) is not None
        question, subjects = question_of(record), frozenset(record.subjects)
        told = Verdict(record.effect == "allow", record.code, record.rule)
        version, known_by = await self._version(turn.tenant, record)
        document = await asyncio.to_thread(_document, version)
        is_list = question is None or is_of_a_list(record)
        then = await _reading(
            document, version.version, known_by, None if is_list else question, subjects, told, record.at, show=show
        )
        now = await self._today(turn, None if is_list else question, subjects, told, show=show)
        return Explained(
            decision=record.decision,
            about=about(record),
            source=record.session if record.session != record.target else None,
            target=record.target,
            question=question,
            subjects=subjects,
            epoch=record.epoch,
            now=now,
            then=then,
            record=stored,
            roles_now=await self._roles_now(turn, record, question, subjects),
        )

    async def _today(
        self, turn: Turn, question: Question | None, subjects: frozenset[str], told: Verdict, *, show: bool
    ) -> Reading:
        """The recorded facts under the document in force. What no row lifts stays refused: its facts are the same."""
        snapshot = turn.state.snapshot
        verdict = told
        if question is not None and told.code not in INVARIANTS:
            reads = explain_function if told.code == FUNCTION_LACKING else None
            if reads is None:
                rows = await asyncio.to_thread(explain, snapshot.document, subjects, question, turn.at)
                verdict = rows.verdict
            else:
                rows = await asyncio.to_thread(
                    reads, snapshot.document, subjects, question.resource, question.action, turn.at
                )
                verdict = told if not rows.matched else Verdict(True, "allowed", rows.matched[0].row.rule)
        return await _reading(
            snapshot.document, snapshot.version, "force", question, subjects, verdict, turn.at, show=show
        )

    async def _roles_now(
        self, turn: Turn, record: AuditRecord, question: Question | None, then: frozenset[str]
    ) -> frozenset[str] | None:
        person = await self._asking.person(turn.tenant, about(record) or "")
        if person is None or question is None:
            return None
        today = person.subjects_on(question.agent)
        return today if today != then else None

    async def _version(self, tenant: TenantId, record: AuditRecord) -> tuple[PolicyVersion, str]:
        """The document that the decision was made by. An old record does not say: the newest that was published by
        then."""
        if record.policy_version is not None:
            version = await self._policies.version(tenant, record.policy_version)
            if version is not None:
                return version, "record"
        cursor: str | None = None
        while True:
            page = await self._policies.history(tenant, limit=200, cursor=cursor)
            for one in page.items:
                if one.published_at <= record.at:
                    return one, "time"
            cursor = page.next_cursor
            if cursor is None:
                raise NotFound


def _document(version: PolicyVersion) -> Document:
    """Raises Unavailable for a text that was good once and can't be read now: its faults are not the asker's."""
    try:
        return parse(version.text)
    except Invalid:
        raise Unavailable(f"Version {version.version} of the policy can't be read by this gateway any more.") from None


async def _reading(
    document: Document,
    version: int,
    known_by: str,
    question: Question | None,
    subjects: frozenset[str],
    verdict: Verdict,
    at: datetime,
    *,
    show: bool,
) -> Reading:
    """A verdict with the rows that it stands on. A long document is read on another thread."""
    rows: Explanation | None
    if question is None:
        rows, says = None, _LIST
    elif verdict.code in INVARIANTS:
        rows, says = None, f"{INVARIANTS[verdict.code]} {_NO_ROW_LIFTS}"
    elif verdict.code == FUNCTION_LACKING or (verdict.allowed and verdict.rule is None):
        rows = await asyncio.to_thread(explain_function, document, subjects, question.resource, question.action, at)
        says = function_in_words(question.action, question.resource, rows)
    else:
        rows = await asyncio.to_thread(explain, document, subjects, question, at)
        says = change_in_words(question, rows)
    if not show:
        rows, says = None, f"{says} {_NO_ROWS}" if verdict.code in INVARIANTS or question is None else _NO_ROWS
    return Reading(version=version, known_by=known_by, verdict=verdict, rows=rows, says=says)


_NO_ROWS: Final = "The rows are shown to who may read the policy."


async def _find_policy(turn: Turn, _body: ExplainBody) -> FunctionTarget:
    return function(turn, Resource.ADMIN_POLICY)


async def _find_audit(turn: Turn, body: ExplainBody) -> FunctionTarget:
    return function(turn, Resource.ADMIN_AUDIT, body.decision)
