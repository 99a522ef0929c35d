"""Reads decisions back from the audit: what one was about, and for whom it was made."""

from __future__ import annotations

from gateway.errors import NotFound
from gateway.model import Action, AgentName, AuditRecord, Chat, Question, Relation, Resource, TenantId, Whose
from gateway.ports import Audit, AuditFilter, StoredRecord


async def find_decision(audit: Audit, tenant: TenantId, decision: str) -> StoredRecord:
    """The record of a decision. Raises NotFound."""
    narrow = AuditFilter(kind="decision", decision=decision)
    page = await audit.read(tenant, narrow, limit=1, cursor=None)
    if not page.items:
        raise NotFound
    return page.items[0]


def about(record: AuditRecord) -> str | None:
    """Whom a decision speaks of: who asked, but where it was asked about somebody else."""
    named = record.details.get("about")
    return named if isinstance(named, str) else record.profile


def is_of_a_list(record: AuditRecord) -> bool:
    """Whether the record sums up a list: its facts are of no one session."""
    return record.target is not None and record.target.startswith("sessions (") and record.target.endswith(" cells)")


def question_of(record: AuditRecord) -> Question | None:
    """The facts of a recorded decision; None for words that are no longer of the policy."""
    try:
        return Question(
            AgentName(record.agent or ""),
            Resource(record.resource or ""),
            Relation(record.relation or ""),
            Whose(record.whose or ""),
            Chat(record.chat or ""),
            Action(record.action or ""),
        )
    except ValueError:
        return None
