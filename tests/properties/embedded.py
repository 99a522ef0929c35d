"""The gateway as `app.py` composes it, on SQLite and a folder, put behind the words of the comparison.

Lists, messages, context and `memory_get` go over HTTP, in this process. Single questions go to `authorize` with the
real turn of the person, since most actions have no route that asks them without doing them.
"""

from __future__ import annotations

import io
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2

from gateway.app import Gateway, compose, create_app
from gateway.backends.sql.tables import participants
from gateway.errors import Unauthenticated
from gateway.identity.access_tokens import mint
from gateway.keys import new_id
from gateway.logs import configure
from gateway.model import (
    ANY_AGENT,
    AccessToken,
    Action,
    AgentName,
    Identity,
    Kind,
    Principal,
    ProfileId,
    Resource,
    SessionFacts,
    SessionId,
    TenantId,
)
from gateway.policy.relations import origin_of
from gateway.policy.targets import FunctionTarget, MemoryTarget, NewSessionTarget, SessionTarget, SingleTarget
from gateway.settings import Settings, State
from gateway.stages.record_audit import Trail
from gateway.turn import Turn
from tests.clock import SettableClock
from tests.oracle.facts import is_private, person_of_path, resource_of
from tests.oracle.world import GUEST, OnFile, OnNewSession, OnSession, Person, Request, World
from tests.oracle.worlds import NOW
from tests.properties.implementation import Given
from tests.properties.implementation import Turn as GivenTurn
from tests.properties.stores import Stores, profile_of, put_world

ISSUER = "https://issuer.example"
PAGE = 5  # small, so that lists and transcripts have more than one page


@asynccontextmanager
async def open_embedded(folder: Path) -> AsyncIterator[Embedded]:
    """A gateway with nothing in it, its clock standing at the moment of every world."""
    settings = Settings(state=State(folder=folder))
    loggers = configure(settings, io.BytesIO())
    gateway = compose(settings, loggers, clock=SettableClock(NOW))
    app = create_app(gateway, loggers)
    async with (
        gateway.running(),
        httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url="http://127.0.0.1") as client,
    ):
        yield Embedded(gateway, client)


class Embedded:
    """See `tests.properties.implementation.Implementation`."""

    def __init__(self, gateway: Gateway, client: httpx2.AsyncClient) -> None:
        self._gateway = gateway
        self._client = client
        self._secrets: dict[tuple[str, str], str] = {}
        self._worlds: dict[str, World] = {}

    async def put(self, world: World) -> None:
        """Stores, files, one token and one linked sign-in for each profile."""
        there = self._gateway.stores
        root = self._gateway.folders.root
        stores = Stores(
            tenants=there.tenants,
            identities=there.identities,
            agents=there.agents,
            sessions=there.sessions,
            transcripts=there.transcripts,
            policies=there.policies,
            folder=lambda tenant, agent: root / tenant / agent,
            leave=self._leave,
        )
        await put_world(world, stores, self._equip)
        self._worlds |= {tenant.name: world for tenant in world.tenants}

    async def _leave(self, tenant: TenantId, session: SessionId, person: ProfileId) -> None:
        row = (participants.c.tenant == tenant) & (participants.c.root == session) & (participants.c.profile == person)
        await self._gateway.stores.database.write(
            lambda connection: connection.execute(participants.delete().where(row))
        )

    async def _equip(self, person: Person) -> None:
        tenant, profile = TenantId(person.tenant), ProfileId(person.id)
        identity = Identity(issuer=ISSUER, subject=person.id, profile=profile)
        await self._gateway.stores.identities.link(tenant, identity, NOW)
        secret, digest = mint()
        token = AccessToken(
            id=new_id("tok", NOW),
            tenant=tenant,
            profile=profile,
            name="properties",
            scopes=frozenset({"*"}),
            created_at=NOW,
            expires_at=NOW + timedelta(days=1),
        )
        await self._gateway.stores.identities.add_token(token, digest)
        self._secrets[person.tenant, person.id] = secret

    # ── single questions ─────────────────────────────────────────────────────────────────────────────────────────────

    async def decide(self, request: Request) -> bool | None:
        """What `authorize` says to the person's turn; a sign-in that opens no turn is a refusal."""
        if request.who == GUEST:
            return None
        try:
            turn = await self._turn_of(request)
        except Unauthenticated:
            return False
        if request.origin is not None:
            origin = await self._session(request.tenant, request.origin)
            turn = replace(turn, origin=origin_of(origin.session, None, tainted=request.tainted))
        target = await self._target(request, turn)
        return turn.permit(Action(request.action), target) is not None

    async def _turn_of(self, request: Request) -> Turn:
        """The turn of the requester; of a merged profile as if it had been captured before the merge."""
        world = self._worlds[request.tenant]
        known = [one for one in world.people if one.tenant == request.tenant]
        captured = next((one for one in known if one.id == request.who and one.merged_into is not None), None)
        if captured is None or captured.merged_into is None:
            return await self._opened(request.tenant, request.who)
        turn = await self._opened(request.tenant, captured.merged_into)
        retired = replace(profile_of(captured), merged_into=ProfileId(captured.merged_into))
        return replace(turn, requester=replace(turn.requester, profile=retired))

    async def _opened(self, tenant: str, who: str) -> Turn:
        principal = Principal(
            tenant=TenantId(tenant), issuer=ISSUER, subject=who, credential="oidc", scopes=frozenset({"*"})
        )
        trail = Trail(new_id("req", NOW), "test", "properties")

        async def renew() -> Turn:
            return await self._opened(tenant, who)

        return await self._gateway.pipeline.resolve_profile(principal, trail, renew, None)

    async def _session(self, tenant: str, session: str) -> SessionFacts:
        facts = await self._gateway.stores.sessions.find(TenantId(tenant), session)
        assert facts is not None, f"{session} is not in the store"
        return facts

    async def _target(self, request: Request, turn: Turn) -> SingleTarget:
        """The target in the words of the gateway."""
        target, world = request.target, self._worlds[request.tenant]
        if isinstance(target, OnSession):
            tenant = next(one.tenant for one in world.sessions if one.id == target.session)
            return SessionTarget(await self._session(tenant, target.session))
        if isinstance(target, OnFile):
            resource, owner = resource_of(target.path), person_of_path(target.path)
            assert resource is not None
            profile = None if owner is None else ProfileId(owner)
            return MemoryTarget(
                TenantId(target.tenant), AgentName(target.agent), Resource(resource), profile, target.path
            )
        if isinstance(target, OnNewSession):
            return await self._new_session(request, target)
        return FunctionTarget(turn.tenant, Resource(target.resource), turn.operation, ANY_AGENT)

    async def _new_session(self, request: Request, target: OnNewSession) -> NewSessionTarget:
        parent, private = None, target.kind == "direct"
        if request.origin is not None:
            world = self._worlds[request.tenant]
            parent = await self._session(request.tenant, request.origin)
            above = next(one for one in world.sessions if one.id == request.origin)
            private = is_private(world, above) and target.kind in ("direct", "subagent")
        return NewSessionTarget(TenantId(request.tenant), AgentName(target.agent), Kind(target.kind), private, parent)

    # ── over HTTP ────────────────────────────────────────────────────────────────────────────────────────────────────

    async def visible(self, tenant: str, person: str, origin: str | None) -> set[str] | None:
        """`GET /v1/sessions`, or `sessions_list` from inside."""
        found: set[str] = set()
        cursor: str | None = None
        while True:
            more = {} if cursor is None else {"cursor": cursor}
            if origin is None:
                answer = await self._send(tenant, person, "GET", "/v1/sessions", params={"limit": PAGE, **more})
            else:
                answer = await self._tool(tenant, person, origin, "sessions_list", {"limit": PAGE, **more})
            if answer.status_code == 403 and "'list'" in answer.json()["detail"]:
                return set()  # the role lacks lists altogether
            if refused(answer):
                return set() if origin is None else None
            page = answer.json() if origin is None else answer.json()["result"]
            rows = page["items"] if origin is None else page["sessions"]
            found |= {row["id"] if origin is None else row["sessionId"] for row in rows}
            cursor = page["next_cursor"] if origin is None else page["nextCursor"]
            if cursor is None:
                return found

    async def messages(self, tenant: str, person: str, origin: str | None, session: str) -> list[str] | None:
        """`GET …/messages`, or `sessions_history` from inside."""
        found: list[str] = []
        cursor: str | None = None
        while True:
            more = {} if cursor is None else {"cursor": cursor}
            if origin is None:
                path = f"/v1/sessions/{session}/messages"
                answer = await self._send(tenant, person, "GET", path, params={"limit": PAGE, **more})
            else:
                arguments = {"sessionKey": session, "limit": PAGE, **more}
                answer = await self._tool(tenant, person, origin, "sessions_history", arguments)
            if refused(answer):
                return None
            page = answer.json() if origin is None else answer.json()["result"]
            found += [row["content"] for row in page["items" if origin is None else "messages"]]
            cursor = page["next_cursor"] if origin is None else page["nextCursor"]
            if cursor is None:
                return found

    async def context(self, tenant: str, person: str, session: str) -> GivenTurn | None:
        """`POST …/context`."""
        answer = await self._send(tenant, person, "POST", f"/v1/sessions/{session}/context", json={})
        if refused(answer):
            return None
        body = answer.json()
        manifest = [Given(one["path"], one["kind"], one["included"], one["reason"]) for one in body["manifest"]]
        return GivenTurn(tuple(manifest), body["text"])

    async def memory_get(self, tenant: str, person: str, session: str, path: str) -> str | None:
        """The tool `memory_get`."""
        answer = await self._tool(tenant, person, session, "memory_get", {"path": path})
        if refused(answer):
            return None
        result = answer.json()["result"]
        return str(result["text"]) if result["status"] == "ok" else None

    async def _tool(
        self, tenant: str, person: str, session: str, tool: str, arguments: dict[str, Any]
    ) -> httpx2.Response:
        return await self._send(tenant, person, "POST", f"/v1/sessions/{session}/tools/{tool}", json=arguments)

    async def _send(self, tenant: str, person: str, method: str, path: str, **more: Any) -> httpx2.Response:
        headers = {"Authorization": f"Bearer {self._secrets[tenant, person]}"}
        return await self._client.request(method, path, headers=headers, **more)


def refused(answer: httpx2.Response) -> bool:
    """Whether the answer is a refusal; anything else than that or a good answer fails the test."""
    if answer.status_code in (403, 404):
        return True
    assert answer.status_code == 200, (
        f"{answer.request.method} {answer.request.url}: {answer.status_code} {answer.text}"
    )
    return False
