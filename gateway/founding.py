"""Turns a name into a working tenant: its first policy, the local operator's profile, and its first people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from gateway.errors import Invalid
from gateway.identity.access_tokens import mint
from gateway.identity.reserved import OPERATOR_ISSUER
from gateway.keys import is_name, new_id
from gateway.model import (
    ANY_AGENT,
    AccessToken,
    Agent,
    AgentName,
    Identity,
    Profile,
    ProfileId,
    RoleAssignment,
    TenantId,
)
from gateway.ports import Agents, Clock, Identities, Policies, Tenants
from gateway.stages.authenticate import OPERATOR_SUBJECT
from gateway.workspace.folders import AgentFolders
from gateway.workspace.scaffold import copy_example

DEMO = TenantId("demo")
DEMO_AGENT = AgentName("flight")
DEMO_PEOPLE = (
    ("alice", "member"),
    ("bob", "member"),
    ("carol", "member"),
    ("dana", "supervisor"),
    ("erin", "admin"),
    ("audrey", "auditor"),
)
DEMO_TOKEN_LIFE = timedelta(days=90)


@dataclass(frozen=True, slots=True)
class Founder:
    """What it takes to found a tenant."""

    tenants: Tenants
    identities: Identities
    policies: Policies
    agents: Agents
    folders: AgentFolders
    clock: Clock

    async def found(self, name: str, *, policy: str, demo: bool = False) -> TenantId:
        """A tenant with a policy in force and a profile for whoever runs the command line on the machine.

        Raises Invalid for a name that can't be one, Conflict for one that is taken.
        """
        if not is_name(name):
            raise Invalid.of(
                "name", "name", "Use 1 to 64 of a-z, 0-9, '-' and '_', beginning with a letter or a digit."
            )
        tenant = TenantId(name)
        await self.tenants.add(tenant, demo=demo, now=self.clock.now())
        await self._furnish(tenant, policy)
        return tenant

    async def _furnish(self, tenant: TenantId, policy: str) -> None:
        """The local operator and the first policy, each unless it is there."""
        now = self.clock.now()
        if await self.identities.profile_of(tenant, OPERATOR_ISSUER, OPERATOR_SUBJECT) is None:
            operator = await self.add(tenant, "local operator", ["owner"], kind="service")
            identity = Identity(issuer=OPERATOR_ISSUER, subject=OPERATOR_SUBJECT, profile=operator.id)
            await self.identities.link(tenant, identity, now)
        if await self.policies.current(tenant) is None:
            await self.policies.publish(
                tenant, policy, base_version=0, comment="The first policy.", author="local operator", now=now
            )

    async def add(
        self, tenant: TenantId, name: str, roles: Sequence[str], *, emails: Sequence[str] = (), kind: str = "person"
    ) -> Profile:
        """A profile with these roles on every agent."""
        now = self.clock.now()
        profile = Profile(
            id=ProfileId(new_id("prf", now)),
            tenant=tenant,
            name=name,
            kind=kind,
            emails=tuple(emails),
            roles=tuple(RoleAssignment(role=role, agent=ANY_AGENT) for role in roles),
            created_at=now,
        )
        await self.identities.add_profile(profile)
        return profile

    async def found_demo(self, policy: str, example: Path) -> dict[str, str]:
        """The tenant `demo` with its agent and people; new tokens for them, by name.

        What a start that was killed has made already is left as it is. Raises Conflict for another tenant of its name.
        The workspace is a copy of `example`, which is never written.
        """
        there = await self.tenants.find(DEMO)
        if there is not None and there.demo:
            await self._furnish(DEMO, policy)
        else:
            await self.found(DEMO, policy=policy, demo=True)
        await self.folders.run(lambda: copy_example(example, self.folders.root / DEMO / DEMO_AGENT))
        now = self.clock.now()
        if await self.agents.find(DEMO, DEMO_AGENT) is None:
            agent = Agent(tenant=DEMO, name=DEMO_AGENT, workspace=DEMO_AGENT, title="Flight desk", timezone="UTC")
            await self.agents.add(agent, now)
        secrets: dict[str, str] = {}
        for name, role in DEMO_PEOPLE:
            email = f"{name}@example.com"
            profile = await self.identities.profile_with_email(DEMO, email)
            profile = profile or await self.add(DEMO, name, [role], emails=[email])
            secrets[name] = await self._token(profile, now)
        return secrets

    async def _token(self, profile: Profile, now: datetime) -> str:
        secret, digest = mint()
        token = AccessToken(
            id=new_id("tok", now),
            tenant=profile.tenant,
            profile=profile.id,
            name="demo",
            scopes=frozenset({"*"}),
            created_at=now,
            expires_at=now + DEMO_TOKEN_LIFE,
        )
        await self.identities.add_token(token, digest)
        return secret
