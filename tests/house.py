"""A real gateway for tests of the whole path: a store on disk, a workspace, people with tokens, a client for each."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import httpx2
from starlette.types import ASGIApp

from gateway.app import Gateway, compose, create_app
from gateway.identity.access_tokens import mint
from gateway.identity.credentials import Credentials
from gateway.keys import new_id
from gateway.logs import Loggers
from gateway.model import (
    ANY_AGENT,
    AccessToken,
    Agent,
    AgentName,
    Profile,
    ProfileId,
    RoleAssignment,
    TenantId,
)
from gateway.policy.shipped import shipped
from gateway.ports import AuditFilter, Clock, StoredRecord
from gateway.settings import Settings
from gateway.stages.record_audit import Trail
from gateway.turn import Turn
from gateway.workspace.files import Workspace
from gateway.workspace.scaffold import scaffold

CAST = {
    "alice": "member",
    "bob": "member",
    "carol": "member",
    "dana": "supervisor",
    "erin": "admin",
    "audrey": "auditor",
    "olga": "owner",
}
WHERE = "http://gateway.test"


@dataclass
class House:
    """A running gateway with one tenant and everybody in it."""

    gateway: Gateway
    app: ASGIApp
    tenant: TenantId
    people: dict[str, Profile] = field(default_factory=dict)
    secrets: dict[str, str] = field(default_factory=dict)

    def id(self, name: str) -> ProfileId:
        """The profile id of somebody."""
        return self.people[name].id

    def private(self, name: str, agent: str = "flight") -> str:
        """The key of somebody's private session."""
        return f"agent:{agent}:direct:{self.id(name)}"

    def workspace(self, agent: str = "flight") -> Workspace:
        """An agent's workspace on disk."""
        return Workspace(self.gateway.folders.root / self.tenant, agent)

    async def send(
        self,
        who: str | None,
        method: str,
        path: str,
        body: object = None,
        *,
        headers: Mapping[str, str] | Sequence[tuple[str, str]] | None = None,
        content: bytes | None = None,
    ) -> httpx2.Response:
        """One request, with the person's token where there is a person."""
        everything = list(headers.items() if isinstance(headers, Mapping) else headers or [])
        if who is not None:
            everything.append(("Authorization", f"Bearer {self.secrets[who]}"))
        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=self.app), base_url=WHERE) as client:
            return await client.request(method, path, json=body, content=content, headers=everything)

    async def get(self, who: str | None, path: str, **more: Any) -> httpx2.Response:
        """GET."""
        return await self.send(who, "GET", path, **more)

    async def post(self, who: str | None, path: str, body: object = None, **more: Any) -> httpx2.Response:
        """POST."""
        return await self.send(who, "POST", path, {} if body is None else body, **more)

    async def tool(self, who: str, session: str, tool: str, **arguments: object) -> httpx2.Response:
        """A tool call from inside a session."""
        return await self.post(who, f"/v1/sessions/{session}/tools/{tool}", arguments)

    async def open(self, who: str, kind: str = "direct", *, agent: str = "flight", **body: object) -> str:
        """Opens a session as somebody; its key."""
        answer = await self.post(who, f"/v1/agents/{agent}/sessions", {"kind": kind, **body})
        assert answer.status_code in (200, 201), answer.text
        return str(answer.json()["key"])

    async def say(self, who: str, session: str, content: str) -> None:
        """Posts a message."""
        answer = await self.post(who, f"/v1/sessions/{session}/messages", {"role": "user", "content": content})
        assert answer.status_code == 201, answer.text

    async def audit(self, **narrow: Any) -> list[StoredRecord]:
        """What the audit holds, oldest first; nothing waits, since reads are durable here."""
        page = await self.gateway.stores.audit.read(
            self.tenant, AuditFilter(**narrow), limit=1000, cursor=None, ascending=True
        )
        return list(page.items)

    async def add(self, name: str, *roles: str, kind: str = "person", agent: str = ANY_AGENT) -> Profile:
        """Somebody new, with a token."""
        now = self.gateway.clock.now()
        profile = Profile(
            id=ProfileId(new_id("prf", now)),
            tenant=self.tenant,
            name=name,
            kind=kind,
            emails=(f"{name}@example.com",),
            roles=tuple(RoleAssignment(role=role, agent=AgentName(agent)) for role in roles),
            created_at=now,
        )
        await self.gateway.stores.identities.add_profile(profile)
        self.people[name] = profile
        self.secrets[name] = await self.token(name)
        return profile

    async def token(self, name: str, *, scopes: Sequence[str] = ("*",)) -> str:
        """Another token of somebody, with these scopes."""
        secret, digest = mint()
        now = self.gateway.clock.now()
        token = AccessToken(
            id=new_id("tok", now),
            tenant=self.tenant,
            profile=self.id(name),
            name="test",
            scopes=frozenset(scopes),
            created_at=now,
            expires_at=now + timedelta(days=30),
        )
        await self.gateway.stores.identities.add_token(token, digest)
        return secret

    async def add_agent(self, name: str) -> None:
        """Another agent with a scaffolded workspace."""
        agent = Agent(tenant=self.tenant, name=AgentName(name), workspace=name, title=name, timezone="UTC")
        await self.gateway.stores.agents.add(agent, self.gateway.clock.now())
        scaffold(self.gateway.folders.root / self.tenant, name, agent.name, name)

    async def publish(self, text: str) -> None:
        """Puts a policy document in force, past the operations: for tests of what it then decides."""
        current = await self.gateway.stores.policies.current(self.tenant)
        await self.gateway.stores.policies.publish(
            self.tenant,
            text,
            base_version=current[0].version if current else 0,
            comment="test",
            author="test",
            now=self.gateway.clock.now(),
        )


@asynccontextmanager
async def house(
    settings: Settings,
    clock: Clock,
    loggers: Loggers,
    *,
    name: str = "acme",
    cast: Mapping[str, str] | None = None,
    environ: Mapping[str, str] | None = None,
) -> AsyncIterator[House]:
    """A tenant under the shipped default policy, with the agent `flight` and everybody of `CAST`."""
    durable = settings.model_copy(update={"audit": settings.audit.model_copy(update={"reads": "durable"})})
    gateway = compose(durable, loggers, clock=clock, environ=environ)
    async with gateway.running():
        tenant = await gateway.founder.found(name, policy=shipped("default.csv"))
        made = House(gateway, create_app(gateway, loggers, environ=environ or {}), tenant)
        await made.add_agent("flight")
        for person, role in (CAST if cast is None else cast).items():
            await made.add(person, role)
        yield made


async def turn_of(home: House, who: str) -> Turn:
    """A turn outside any session, by the first two stages."""
    pipeline = home.gateway.pipeline
    principal = await pipeline.authenticate(Credentials.bearer(home.secrets[who]))

    async def renew() -> Turn:
        return await turn_of(home, who)

    return await pipeline.resolve_profile(principal, Trail("req_1", "test", "test"), renew, None)
