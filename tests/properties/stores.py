"""Puts a random world into real stores, in the order in which it came about: people join between messages."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from gateway.model import (
    Agent,
    AgentName,
    Kind,
    Profile,
    ProfileId,
    RoleAssignment,
    SessionId,
    TenantId,
)
from gateway.model import Session as StoredSession
from gateway.ports import Agents, Identities, MessageDraft, Policies, Sessions, Tenants, Transcripts
from tests.oracle.facts import is_private, lineage, root_of
from tests.oracle.world import Message, Participation, Person, Session, Tenant, World


@dataclass(frozen=True, slots=True, kw_only=True)
class Stores:
    """Where a world goes. `folder` says where the files of a tenant's agent lie."""

    tenants: Tenants
    identities: Identities
    agents: Agents
    sessions: Sessions
    transcripts: Transcripts
    policies: Policies
    folder: Callable[[str, str], Path]
    leave: Callable[[TenantId, SessionId, ProfileId], Awaitable[object]]  # what no change does to an owner


async def put_world(world: World, stores: Stores, announce: Callable[[Person], Awaitable[None]]) -> None:
    """Everything of the world; `announce` is told each profile once it is there, to link or to equip it.

    Whoever was merged away or is disabled by now took part until then."""
    for tenant in world.tenants:
        await stores.tenants.add(TenantId(tenant.name), demo=False, now=world.now)
        for person in (one for one in world.people if one.tenant == tenant.name):
            await stores.identities.add_profile(profile_of(person))
            await announce(person)
        await put_agents(world, tenant, stores)
        await put_conversations(world, tenant, stores)
        await put_endings(world, tenant, stores)
        await publish(world, tenant, stores)
    put_files(world, stores)


def profile_of(person: Person) -> Profile:
    """The stored form of a person, while they act."""
    return Profile(
        id=ProfileId(person.id),
        tenant=TenantId(person.tenant),
        name=person.name,
        kind=person.kind,
        roles=tuple(RoleAssignment(role=role.name, agent=AgentName(role.agent)) for role in person.roles),
    )


async def put_endings(world: World, tenant: Tenant, stores: Stores) -> None:
    """The merges and who was disabled."""
    for person in (one for one in world.people if one.tenant == tenant.name):
        if person.merged_into is not None:
            survivor = ProfileId(person.merged_into)
            assert await stores.identities.merge(TenantId(tenant.name), ProfileId(person.id), survivor, world.now)
        if person.disabled:
            await stores.identities.change_profile(
                TenantId(tenant.name), ProfileId(person.id), name=None, emails=None, disabled=True
            )


async def put_agents(world: World, tenant: Tenant, stores: Stores) -> None:
    """The agents, on UTC, each with a folder of its own name."""
    for agent in (one for one in world.agents if one.tenant == tenant.name):
        name = AgentName(agent.name)
        stored = Agent(tenant=TenantId(tenant.name), name=name, workspace=name, title=name, timezone="UTC")
        await stores.agents.add(stored, world.now)


async def publish(world: World, tenant: Tenant, stores: Stores) -> None:
    """The document, on top of whatever a new tenant has."""
    current = await stores.policies.current(TenantId(tenant.name))
    await stores.policies.publish(
        TenantId(tenant.name),
        tenant.policy,
        base_version=0 if current is None else current[0].version,
        comment="a random document",
        author="the property test",
        now=world.now,
    )


def put_files(world: World, stores: Stores) -> None:
    """The workspace files, as an operator would lay them there."""
    for agent in world.agents:
        stores.folder(agent.tenant, agent.name).mkdir(parents=True, exist_ok=True)
    for file in world.files:
        path = stores.folder(file.tenant, file.agent) / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(file.text, encoding="utf-8")


# ── conversations ────────────────────────────────────────────────────────────────────────────────────────────────────


async def put_conversations(world: World, tenant: Tenant, stores: Stores) -> None:
    """Sessions, then messages by number with the joinings and resets between them, then leavings and the archive."""
    sessions = [one for one in world.sessions if one.tenant == tenant.name]
    roots = [session for session in sessions if session.parent is None]
    for session in sessions:
        start = [ProfileId(one.person) for one in session.participants if one.joined_after == 0]
        await stores.sessions.create(stored_session(world, session), start)
    incarnations = {session.id: 1 for session in sessions}
    for message in (one for one in world.messages if one.tenant == tenant.name):
        await reset_up_to(incarnations, message.session, message.incarnation, tenant, stores)
        await put_message(world, message, stores)
        for root in roots:
            if message.number in [one.joined_after for one in root.participants]:
                await set_participants(world, root, joined_by(root, message.number), stores)
    for session in sessions:
        await reset_up_to(incarnations, session.id, session.incarnation, tenant, stores)
        if any(one.left for one in session.participants):
            await set_participants(world, session, [one for one in session.participants if not one.left], stores)
        if session.archived:
            await stores.sessions.archive(TenantId(tenant.name), SessionId(session.id), world.now, expected=None)


def joined_by(root: Session, number: int) -> list[Participation]:
    """Who takes part once that message is written."""
    return [one for one in root.participants if one.joined_after <= number]


async def set_participants(world: World, root: Session, rows: list[Participation], stores: Stores) -> None:
    """Those who stay keep their joining. An owner who takes no part, which no change makes, is taken out at the end.

    It is the owner as stored here: merges come later.
    """
    assert root.owner is not None
    owner = ProfileId(root.owner)
    taking_part = [ProfileId(one.person) for one in rows]
    people = taking_part if owner in taking_part else [*taking_part, owner]
    await stores.sessions.set_participants(TenantId(root.tenant), SessionId(root.id), people, world.now, expected=None)
    if owner not in taking_part:
        await stores.leave(TenantId(root.tenant), SessionId(root.id), owner)


async def reset_up_to(
    incarnations: dict[str, int], session: str, incarnation: int, tenant: Tenant, stores: Stores
) -> None:
    """Resets until the session is that incarnation."""
    while incarnations[session] < incarnation:
        await stores.sessions.reset(TenantId(tenant.name), SessionId(session), expected=None)
        incarnations[session] += 1


async def put_message(world: World, message: Message, stores: Stores) -> None:
    """One message; the store numbers them in this order."""
    draft = MessageDraft(
        id=message.id,
        session=SessionId(message.session),
        incarnation=message.incarnation,
        role=message.role,
        name=None,
        content=message.text,
        sender=None if message.sender is None else ProfileId(message.sender),
        member=None,
        created_at=world.now,
    )
    stored = await stores.transcripts.append(TenantId(message.tenant), draft)
    assert stored is not None, f"{message} was not taken"


def stored_session(world: World, session: Session) -> StoredSession:
    """The stored form of a session, with what it has of its root."""
    chain = lineage(world, session)
    root = root_of(world, session)
    assert root.owner is not None
    return StoredSession(
        tenant=TenantId(session.tenant),
        id=SessionId(session.id),
        key=session.key,
        agent=AgentName(session.agent),
        kind=Kind(session.kind),
        private=is_private(world, session),
        title=None,
        owner=ProfileId(root.owner),
        creator=ProfileId(session.creator),
        parent=None if session.parent is None else SessionId(session.parent),
        parent_key=None if session.parent is None else chain[1].key,
        root=SessionId(root.id),
        root_agent=AgentName(root.agent),
        path="".join(f"{one.id}/" for one in reversed(chain)),
        incarnation=1,
        incognito=session.incognito,
        sandboxed=session.sandboxed,
        created_at=world.now,
        last_message_at=None,
        archived_at=None,
    )
