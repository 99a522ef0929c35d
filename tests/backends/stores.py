"""Turns a folder into all ports over one kind of store; the contract suites run on each factory named in conftest."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import URL

from gateway import ports
from gateway.backends.sql.agents import SqlAgents
from gateway.backends.sql.audit import SqlAudit
from gateway.backends.sql.channel_events import SqlChannelEvents
from gateway.backends.sql.checkpoints import audit_key
from gateway.backends.sql.database import Database
from gateway.backends.sql.identities import SqlIdentities
from gateway.backends.sql.notes import SqlNotes
from gateway.backends.sql.notices import SqlNotices
from gateway.backends.sql.policies import SqlPolicies
from gateway.backends.sql.postgres import PostgresDatabase
from gateway.backends.sql.sessions import SqlSessions
from gateway.backends.sql.sign_ins import SqlSignIns
from gateway.backends.sql.store import Store
from gateway.backends.sql.tainted_turns import SqlTaintedTurns
from gateway.backends.sql.tenants import SqlTenants
from gateway.backends.sql.transcripts import SqlTranscripts
from gateway.model import AgentName, AuditRecord, Kind, Profile, ProfileId, Session, SessionId, TenantId
from gateway.ports import MessageDraft
from tests.postgres import as_written, emptied

ACME, GLOBEX = TenantId("acme"), TenantId("globex")
FLIGHT, HOTEL = AgentName("flight"), AgentName("hotel")
ALICE, BOB, CAROL, DANA = (ProfileId(f"prf_{name}") for name in ("alice", "bob", "carol", "dana"))
NOW = datetime(2026, 12, 1, 9, 0, tzinfo=UTC)


@dataclass(frozen=True, kw_only=True)
class Stores:
    """The ports, and the epochs that the store announced in this process."""

    tenants: ports.Tenants
    identities: ports.Identities
    agents: ports.Agents
    sessions: ports.Sessions
    transcripts: ports.Transcripts
    policies: ports.Policies
    audit: ports.Audit
    notes: ports.Notes
    channel_events: ports.ChannelEvents
    sign_ins: ports.SignIns
    tainted_turns: ports.TaintedTurns
    notices: ports.Notices
    database: Store
    announced: list[tuple[TenantId, int]]

    def holds(self, words: str) -> bool:
        """Whether a text can be stored: no text of PostgreSQL's holds a NUL character, and it is refused there."""
        return "\0" not in words or not isinstance(self.database, PostgresDatabase)

    async def epoch(self, tenant: TenantId = ACME) -> int:
        """The epoch as the store has it now."""
        found = await self.tenants.find(tenant)
        assert found is not None
        return found.epoch


Factory = Callable[[Path], AbstractAsyncContextManager[Stores]]


@asynccontextmanager
async def sqlite_stores(folder: Path) -> AsyncIterator[Stores]:
    """All ports on a real SQLite file in `folder`."""
    async with Database(folder / "gateway.db", readers=2) as database:
        yield over(database, folder)


def postgres_stores(url: URL) -> Factory:
    """All ports on a real PostgreSQL; a folder that was not opened before finds the database empty."""

    @asynccontextmanager
    async def opened(folder: Path) -> AsyncIterator[Stores]:
        known = folder / "opened-before"
        if not known.exists():
            await emptied(url)
            known.touch()
        async with PostgresDatabase(as_written(url)) as database:
            yield over(database, folder)

    return opened


def over(database: Store, folder: Path) -> Stores:
    """All ports over a store that is open."""
    announced: list[tuple[TenantId, int]] = []
    database.when_epoch_rises(lambda tenant, epoch: announced.append((tenant, epoch)))
    return Stores(
        tenants=SqlTenants(database),
        identities=SqlIdentities(database),
        agents=SqlAgents(database),
        sessions=SqlSessions(database),
        transcripts=SqlTranscripts(database),
        policies=SqlPolicies(database),
        audit=SqlAudit(database, folder / "checkpoints", audit_key(folder)),
        notes=SqlNotes(database),
        channel_events=SqlChannelEvents(database),
        sign_ins=SqlSignIns(database),
        tainted_turns=SqlTaintedTurns(database),
        notices=SqlNotices(database),
        database=database,
        announced=announced,
    )


def a_profile(profile: ProfileId = ALICE, tenant: TenantId = ACME, **changed: Any) -> Profile:
    """A person."""
    fields: dict[str, Any] = {"name": profile.removeprefix("prf_").title(), "kind": "person", "created_at": NOW}
    return Profile(id=profile, tenant=tenant, **(fields | changed))


def a_session(name: str, owner: ProfileId = ALICE, parent: Session | None = None, **changed: Any) -> Session:
    """A private root of `owner`, or a child; `name` becomes its id and sorts as it does."""
    session_id = SessionId(f"ses_{name}")
    fields: dict[str, Any] = {
        "tenant": ACME,
        "agent": FLIGHT,
        "kind": Kind.SUBAGENT if parent else Kind.DIRECT,
        "private": parent.private if parent else True,
        "title": None,
        "creator": owner,
        "incarnation": 1,
        "incognito": False,
        "sandboxed": False,
        "created_at": NOW,
        "last_message_at": None,
        "archived_at": None,
    } | changed
    return Session(
        id=session_id,
        key=f"agent:{fields['agent']}:test:{name}",
        owner=parent.owner if parent else owner,
        parent=parent.id if parent else None,
        parent_key=parent.key if parent else None,
        root=parent.root if parent else session_id,
        root_agent=parent.root_agent if parent else fields["agent"],
        path=f"{parent.path if parent else ''}{session_id}/",
        **fields,
    )


def a_group(name: str, owner: ProfileId = ALICE, **changed: Any) -> Session:
    """A shared root."""
    return a_session(name, owner, kind=Kind.GROUP, private=False, **changed)


def a_draft(session: Session, content: str, number: int = 1, **changed: Any) -> MessageDraft:
    """A message of alice; `number` tells it from others in the same session."""
    fields: dict[str, Any] = {
        "id": f"msg_{session.id}_{number}",
        "session": session.id,
        "incarnation": session.incarnation,
        "role": "user",
        "name": None,
        "content": content,
        "sender": ALICE,
        "member": None,
        "created_at": NOW + timedelta(seconds=number),
    }
    return MessageDraft(**(fields | changed))


def a_record(number: int = 1, tenant: TenantId = ACME, **changed: Any) -> AuditRecord:
    """A decision; `number` tells it from others."""
    fields: dict[str, Any] = {
        "at": NOW + timedelta(milliseconds=number),
        "kind": "decision",
        "request": f"req_{number}",
        "surface": "rest",
        "operation": "sessions.history",
        "effect": "allow",
        "code": "allowed",
        "epoch": 3,
        "profile": ALICE,
        "agent": FLIGHT,
        "session": "agent:flight:direct:prf_alice",
        "action": "history",
        "subjects": ("*", "role:member"),
        "decision": f"dec_{number}",
        "details": {"z": 1, "a": {"y": [1, 2], "b": None}},
    }
    return AuditRecord(tenant=tenant, **(fields | changed))
