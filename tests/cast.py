"""The people and sessions that tests speak of: a tenant, another one, and a story that is always the same."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime

from gateway.model import (
    ANY_AGENT,
    AgentName,
    Kind,
    Participant,
    Principal,
    Profile,
    ProfileId,
    Requester,
    RoleAssignment,
    Session,
    SessionFacts,
    SessionId,
    TenantId,
)

ACME = TenantId("acme")
GLOBEX = TenantId("globex")
FLIGHT = AgentName("flight")
HOTEL = AgentName("hotel")
BEGAN = datetime(2026, 12, 1, 8, 0, tzinfo=UTC)

_LETTERS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def _ulid(word: str) -> str:
    """A well-formed ULID that is the same for the same word."""
    number = int.from_bytes(word.encode().ljust(16, b"\0")[:16], "big") >> 3
    digits = ""
    for _ in range(26):
        number, digit = divmod(number, 32)
        digits = _LETTERS[digit] + digits
    return digits


def profile_id(name: str) -> ProfileId:
    """The id of a person of the story."""
    return ProfileId(f"prf_{_ulid(name)}")


def person(name: str, *roles: str, tenant: TenantId = ACME, kind: str = "person") -> Profile:
    """A profile with roles on every agent, or on one where a role is written `role@agent`."""
    assignments = tuple(
        RoleAssignment(role=role.partition("@")[0], agent=AgentName(role.partition("@")[2] or ANY_AGENT))
        for role in roles
    )
    return Profile(id=profile_id(name), tenant=tenant, name=name, kind=kind, roles=assignments, created_at=BEGAN)


def requester(profile: Profile, *, scopes: Iterable[str] = ("*",), epoch: int = 1) -> Requester:
    """The profile as somebody who asks."""
    principal = Principal(
        tenant=profile.tenant,
        issuer="gateway",
        subject=profile.id,
        credential="access_token",
        scopes=frozenset(scopes),
    )
    return Requester(tenant=profile.tenant, profile=profile, principal=principal, epoch=epoch)


def root(
    name: str,
    *people: str,
    kind: Kind = Kind.DIRECT,
    agent: AgentName = FLIGHT,
    tenant: TenantId = ACME,
    incognito: bool = False,
    sandboxed: bool = False,
) -> SessionFacts:
    """A root session; the first of `people` owns it."""
    session_id = SessionId(f"ses_{_ulid(name)}")
    session = Session(
        tenant=tenant,
        id=session_id,
        key=f"agent:{agent}:test:{name}",
        agent=agent,
        kind=kind,
        private=kind is Kind.DIRECT and len(people) == 1,
        title=name,
        owner=profile_id(people[0]),
        creator=profile_id(people[0]),
        parent=None,
        parent_key=None,
        root=session_id,
        root_agent=agent,
        path=f"{session_id}/",
        incarnation=1,
        incognito=incognito,
        sandboxed=sandboxed,
        created_at=BEGAN,
        last_message_at=None,
        archived_at=None,
    )
    taking_part = tuple(Participant(profile=profile_id(one), joined_after=0, joined_at=BEGAN) for one in people)
    return SessionFacts(session=session, participants=taking_part)


def child(name: str, parent: SessionFacts, *, agent: AgentName | None = None) -> SessionFacts:
    """A child of `parent`, on its agent or another."""
    above, session_id = parent.session, SessionId(f"ses_{_ulid(name)}")
    session = replace(
        above,
        id=session_id,
        key=f"agent:{agent or above.agent}:test:{name}",
        agent=agent or above.agent,
        kind=Kind.SUBAGENT,
        title=name,
        parent=above.id,
        parent_key=above.key,
        path=f"{above.path}{session_id}/",
    )
    return SessionFacts(session=session, participants=parent.participants)
