"""Each request and each decision becomes a record whose every field says what its name says (design section 12)."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.errors import NotFound
from gateway.model import (
    Action,
    AuditRecord,
    Chat,
    Decision,
    Principal,
    Profile,
    ProfileId,
    Question,
    Relation,
    Requester,
    Resource,
    Verdict,
    Whose,
)
from gateway.stages.record_audit import RecordAudit, Trail
from tests.cast import ACME, FLIGHT
from tests.clock import SettableClock

ALICE = Profile(id=ProfileId("prf_alice"), tenant=ACME, name="alice", kind="person")
TOKEN = Principal(
    tenant=ACME,
    issuer="gateway",
    subject=ALICE.id,
    credential="access_token",
    scopes=frozenset({"*"}),
    credential_id="tok_1",
)
QUESTION = Question(FLIGHT, Resource.MEMORY_DAILY, Relation.SAME_AGENT, Whose.SHARED, Chat.GROUP, Action.APPEND)
SUBJECTS = frozenset({"role:member", "*", "user:prf_alice"})
ALLOWED = Decision("dec_1", QUESTION, Verdict(True, "allowed", "line 3: p, …"), SUBJECTS, "flight/memory", 7, 2, "key")
REFUSED = Decision("dec_2", QUESTION, Verdict(False, "no_matching_row", None), SUBJECTS, "elsewhere", 7, 2)


class Sink:
    """Keeps what it is given, in order."""

    def __init__(self) -> None:
        self.records: list[AuditRecord] = []

    async def record(self, *records: AuditRecord) -> None:
        self.records += records

    async def record_durably(self, *records: AuditRecord) -> None:
        self.records += records


def _nobody(code: str, surface: str) -> None:
    raise AssertionError(f"somebody is known here: {code} {surface}")


async def test_every_field_of_a_record_is_in_its_place(clock: SettableClock) -> None:
    """The records are made as tuples, so that nothing but this holds their order."""
    sink = Sink()
    record_audit = RecordAudit(sink, _nobody, clock, lambda _tenant: True)
    trail = Trail("req_1", "rest", "memory_append", principal=TOKEN, agent="flight", session="here", epoch=8)
    trail.requester = Requester(tenant=ACME, profile=ALICE, principal=TOKEN, epoch=8)

    async def path() -> object:
        trail.decided(ALLOWED)
        trail.noted("dec_1", {"tainted": True})
        await record_audit.intent(trail)
        trail.decided(REFUSED)
        raise NotFound

    with pytest.raises(NotFound):
        await record_audit(trail, path())

    of_all: dict[str, Any] = {
        "at": clock.now(),
        "tenant": ACME,
        "request": "req_1",
        "surface": "rest",
        "operation": "memory_append",
        "profile": "prf_alice",
        "principal": "access_token:tok_1",
    }
    of_decisions: dict[str, Any] = {
        "kind": "decision",
        "epoch": 7,
        "agent": "flight",
        "action": "append",
        "resource": "memory/daily",
        "relation": "same_agent",
        "whose": "shared",
        "chat": "group",
        "subjects": ("*", "role:member", "user:prf_alice"),
        "policy_version": 2,
    }
    assert sink.records == [
        AuditRecord(
            **of_all,
            **of_decisions,
            effect="allow",
            code="allowed",
            session="key",
            target="flight/memory",
            rule="line 3: p, …",
            decision="dec_1",
            details={"tainted": True},
        ),
        AuditRecord(
            **of_all,
            **of_decisions,
            effect="deny",
            code="no_matching_row",
            session="here",
            target="elsewhere",
            decision="dec_2",
        ),
        AuditRecord(
            **of_all,
            kind="access",
            epoch=8,
            effect="deny",
            code="not_found",
            agent="flight",
            session="here",
            decision="dec_2",
        ),
    ]
    assert {type(record) for record in sink.records} == {AuditRecord}
