"""Turns a request into its audit records: one of access, and one for each decision that it took.

It wraps the whole path, so that a refusal at the first stage is recorded too. An effect's decisions are on disk before
it runs; those of reads are buffered for a moment (design section 12).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache, partial
from typing import Protocol

from gateway.errors import GatewayError, Unauthenticated
from gateway.model import AuditRecord, Decision, Principal, Requester, TenantId
from gateway.ports import Clock


class AuditSink(Protocol):
    """Where records go."""

    async def record(self, *records: AuditRecord) -> None:
        """Takes the records of a read; on disk within 50 ms. Raises Unavailable when they could be lost."""

    async def record_durably(self, *records: AuditRecord) -> None:
        """On disk when it returns. Raises Unavailable otherwise."""


@dataclass(slots=True)
class Trail:
    """What one request did so far. Mutable, and never shared between requests."""

    request: str
    surface: str
    operation: str
    principal: Principal | None = None
    requester: Requester | None = None
    agent: str | None = None
    session: str | None = None
    epoch: int = 0
    decisions: list[Decision] = field(default_factory=list)
    written: int = 0  # how many of `decisions` are on disk already
    details: dict[str, dict[str, object]] = field(default_factory=dict)  # by decision: what its effect will change
    denied: bool = False  # the request ended in a refusal that the caller sees as a result

    def decided(self, decision: Decision) -> None:
        """Notes one decision."""
        self.decisions.append(decision)

    def reached(self, agent: str, session: str) -> None:
        """Notes the session that the request is about; the first one stays."""
        self.agent = self.agent or agent
        self.session = self.session or session

    def noted(self, decision: str, details: dict[str, object]) -> None:
        """Adds to the record of a decision that is not written yet; ids and roles, never text or secrets."""
        self.details[decision] = self.details.get(decision, {}) | details

    @property
    def last_decision(self) -> str | None:
        """The id that the answer carries in `Gateway-Decision`."""
        return self.decisions[-1].id if self.decisions else None


class RecordAudit:
    """Runs the rest of the path and writes down what became of it."""

    def __init__(
        self,
        sink: AuditSink,
        refused_without_tenant: Callable[[str, str], None],
        clock: Clock,
        is_tenant: Callable[[TenantId], bool],
    ) -> None:
        """`refused_without_tenant` counts, by reason and surface, what belongs to no tenant's chain; a credential may
        be good and name a tenant that is not here, which must not begin a chain."""
        self._sink = sink
        self._is_tenant = is_tenant
        self._refused_without_tenant = refused_without_tenant
        self._clock = clock

    async def __call__(self, trail: Trail, path: Awaitable[object]) -> object:
        """The result of `path`. Whatever it raises is raised again once it is recorded."""
        try:
            result = await path
        except GatewayError as error:
            await self._finish(trail, _effect_of(error), _code_of(error))
            raise
        except BaseException:
            # A fault of ours or a cancelled request: what was decided by then is recorded all the same.
            await self._finish(trail, "error", "internal")
            raise
        await self._finish(trail, "deny" if trail.denied else "allow", "not_found" if trail.denied else "ok")
        return result

    async def intent(self, trail: Trail) -> None:
        """Puts the decisions of an effect on disk before it runs. Raises Unavailable, and then it must not run."""
        await self._sink.record_durably(*_pending(trail, self._clock.now()))

    async def _finish(self, trail: Trail, effect: str, code: str) -> None:
        principal = trail.principal
        if principal is None or not (trail.requester or self._is_tenant(principal.tenant)):
            self._refused_without_tenant(code, trail.surface)
            return
        now = self._clock.now()
        await self._sink.record(*_pending(trail, now), _access(trail, principal, effect, code, now))


# Both kinds in the order of the record's fields, as plain tuples: naming each field would cost three times as much, and
# this is done three times a request. `tests/stages/test_record_audit.py` holds each field in its place.

_record = partial(tuple.__new__, AuditRecord)
_NO_DETAILS: Mapping[str, object] = {}


def _access(trail: Trail, principal: Principal, effect: str, code: str, now: datetime) -> AuditRecord:
    requester = trail.requester
    return _record(
        (
            now,
            "access",
            principal.tenant,
            trail.request,
            trail.surface,
            trail.operation,
            effect,
            code,
            trail.epoch,
            requester.profile.id if requester else None,
            principal.called,
            trail.agent,
            trail.session,
            None,
            None,
            None,
            None,
            None,
            (),
            None,
            None,
            trail.last_decision,
            _NO_DETAILS,
            None,
        )
    )


def _pending(trail: Trail, now: datetime) -> list[AuditRecord]:
    """The decisions that are not written yet; they count as written."""
    decisions, trail.written = trail.decisions[trail.written :], len(trail.decisions)
    if not decisions:
        return []
    requester = trail.requester
    assert requester is not None  # noqa: S101 - nothing is decided before the requester is known
    tenant, profile, called = requester.tenant, requester.profile.id, requester.principal.called
    records = []
    for decision, question, verdict, subjects, target, epoch, version, session in decisions:
        agent, resource, relation, whose, chat, action = question
        records.append(
            _record(
                (
                    now,
                    "decision",
                    tenant,
                    trail.request,
                    trail.surface,
                    trail.operation,
                    "allow" if verdict.allowed else "deny",
                    verdict.code,
                    epoch,
                    profile,
                    called,
                    agent,
                    session or trail.session,  # found by the session it is about, wherever it was asked from
                    action,
                    resource,
                    relation,
                    whose,
                    chat,
                    _in_order(subjects),
                    target,
                    verdict.rule,
                    decision,
                    trail.details.get(decision, _NO_DETAILS),
                    version,
                )
            )
        )
    return records


@lru_cache(maxsize=1024)  # a profile's subjects are one object as long as nothing of it changes
def _in_order(subjects: frozenset[str]) -> tuple[str, ...]:
    return tuple(sorted(subjects))


def _effect_of(error: GatewayError) -> str:
    return "deny" if error.status in (401, 403, 404) else "error"


def _code_of(error: GatewayError) -> str:
    return error.reason if isinstance(error, Unauthenticated) else error.code
