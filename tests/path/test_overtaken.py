"""A merge between the last look at a request and what it does, for every operation that changes something.

Another process merges (its own connection to the store, of which this one has heard nothing yet) after the audit's
intent was written and before the operation runs. Nothing that the retired person asked for may land.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx2
import pytest
from sqlalchemy import select

from gateway.app import create_app
from gateway.backends.sql.acting import on_behalf_of
from gateway.backends.sql.database import Database
from gateway.backends.sql.identities import SqlIdentities
from gateway.backends.sql.tables import metadata
from gateway.identity.refusals import NOT_ACTIVE
from gateway.keys import new_id
from gateway.model import Identity, ProfileId, SignIn
from gateway.policy.shipped import shipped
from gateway.settings import Settings
from gateway.stages.call_tool import CallTool
from gateway.stages.record_audit import Trail
from tests.channels import channel_house, link, with_accounts
from tests.clock import SettableClock
from tests.conftest import LogCapture
from tests.house import House

ISSUER = "https://id.example"


@dataclass
class Scene:
    """Somebody who owns the tenant and chats, with something of every kind that a request can change."""

    home: House
    who: str
    private: str
    group: str
    colleague: ProfileId
    robot: ProfileId
    other_robot: ProfileId
    my_token: str
    my_browser: str
    robot_token: str
    policy: int

    async def ask(self, method: str, path: str, body: object = None, **headers: str) -> httpx2.Response:
        """A request of theirs."""
        return await self.home.send(self.who, method, path, body, headers=headers)

    async def on_group(self, method: str, more: str = "", body: object = None) -> httpx2.Response:
        """A request about the group."""
        return await self.ask(method, f"/v1/sessions/{quote(self.group, safe='')}{more}", body)

    async def on_robot(self, method: str, more: str = "", body: object = None) -> httpx2.Response:
        """A request about a service."""
        return await self.ask(method, f"/v1/admin/people/{self.robot}{more}", body)

    async def tool(self, name: str, **arguments: object) -> httpx2.Response:
        """A tool call from the private session."""
        return await self.home.tool(self.who, self.private, name, **arguments)


async def browser(home: House, who: str) -> str:
    """A browser that somebody signed in with; its id."""
    now = home.gateway.clock.now()
    sign_in = SignIn(
        id=new_id("sgn", now),
        tenant=home.tenant,
        profile=home.id(who),
        issuer=ISSUER,
        subject=who,
        user_agent="",
        created_at=now,
        last_seen_at=now,
        expires_at=now + timedelta(hours=1),
    )
    await home.gateway.stores.sign_ins.add(sign_in, who.encode(), instead_of=None)
    return sign_in.id


async def scene(home: House, who: str) -> Scene:
    """A new person and all of it."""
    await home.add(who, "owner", "member")
    colleague = await home.add(f"{who}-colleague", "member")
    robots = [await home.add(f"{who}-robot-{number}", kind="service") for number in (1, 2)]
    identities = home.gateway.stores.identities
    await identities.link(
        home.tenant, Identity(issuer=ISSUER, subject=f"{who}-there", profile=robots[0].id), home.gateway.clock.now()
    )
    mine = await identities.tokens(home.tenant, home.id(who))
    await home.token(who)
    (spare,) = [one for one in await identities.tokens(home.tenant, home.id(who)) if one not in mine]
    (of_robot,) = await identities.tokens(home.tenant, robots[0].id)
    current = await home.gateway.stores.policies.current(home.tenant)
    assert current is not None
    return Scene(
        home=home,
        who=who,
        private=await home.open(who),
        group=await home.open(who, "group", participants=[colleague.id]),
        colleague=colleague.id,
        robot=robots[0].id,
        other_robot=robots[1].id,
        my_token=spare.id,
        my_browser=await browser(home, who),
        robot_token=of_robot.id,
        policy=current[0].version,
    )


Request = Callable[[Scene], Awaitable[httpx2.Response]]
# One request for each operation with an effect; the same one lands where nobody is merged meanwhile.
REQUESTS: dict[str, Request] = {
    "sessions.create": lambda it: it.ask("POST", "/v1/agents/flight/sessions", {"kind": "group", "name": "new"}),
    "sessions.spawn": lambda it: it.ask(
        "POST", "/v1/agents/flight/sessions", {"kind": "subagent", "parent": it.private}
    ),
    "sessions.rename": lambda it: it.on_group("PATCH", body={"title": "ours"}),
    "sessions.participants": lambda it: it.on_group(
        "PATCH", body={"participants": [it.home.id(it.who), it.home.id("bob")]}
    ),
    "sessions.change": lambda it: it.on_group(
        "PATCH", body={"title": "ours", "participants": [it.home.id(it.who), it.home.id("bob")]}
    ),
    "sessions.owner": lambda it: it.on_group("PUT", "/owner", {"profile": it.colleague}),
    "sessions.archive": lambda it: it.on_group("POST", "/archive", {}),
    "sessions.reset": lambda it: it.on_group("POST", "/reset", {}),
    "sessions.delete": lambda it: it.on_group("DELETE"),
    "messages.post": lambda it: it.on_group("POST", "/messages", {"role": "user", "content": "hello"}),
    "sessions_spawn": lambda it: it.tool("sessions_spawn", task="Look it up."),
    "memory_append": lambda it: it.tool("memory_append", scope="shared", text=f"A decision of {it.who}."),
    "personal_instructions.set": lambda it: it.tool(
        "personal_instructions", action="set", content="Short.", expectedHash=None
    ),
    "me.tokens.create": lambda it: it.ask("POST", "/v1/me/tokens", {"name": "laptop"}),
    "me.tokens.revoke": lambda it: it.ask("DELETE", f"/v1/me/tokens/{it.my_token}"),
    "me.sign_ins.revoke": lambda it: it.ask("DELETE", f"/v1/me/sign-ins/{it.my_browser}"),
    "agents.add": lambda it: it.ask("POST", "/v1/admin/agents", {"name": it.who.lower()}),
    "people.add": lambda it: it.ask("POST", "/v1/admin/people", {"name": "New"}),
    "people.change": lambda it: it.on_robot("PATCH", body={"name": "Other"}),
    "people.disable": lambda it: it.on_robot("DELETE"),
    "people.roles": lambda it: it.on_robot("PUT", "/roles", {"roles": [{"role": "connector"}]}),
    "people.link": lambda it: it.on_robot("POST", "/identities", {"issuer": ISSUER, "subject": it.who}),
    "people.unlink": lambda it: it.on_robot("DELETE", "/identities", {"issuer": ISSUER, "subject": f"{it.who}-there"}),
    "people.merge": lambda it: it.on_robot("POST", "/merge", {"into": it.other_robot}),
    "people.tokens.create": lambda it: it.on_robot("POST", "/tokens", {"name": "robot"}),
    "people.tokens.revoke": lambda it: it.on_robot("DELETE", f"/tokens/{it.robot_token}"),
    "policy.publish": lambda it: it.ask(
        "PUT",
        "/v1/admin/policy",
        {"text": shipped("default.csv") + f"# {it.who}\n", "base_version": it.policy, "comment": "x"},
    ),
    "policy.rollback": lambda it: it.ask("POST", "/v1/admin/policy/versions/1/rollback", {}),
}
# Those of a connector, which acts for a chat.
CHAT = {"account": "support", "chat": {"kind": "group", "id": "C1"}}
OF_CONNECTORS: dict[str, tuple[str, dict[str, object]]] = {
    "connectors.turn": ("/v1/connectors/line/turns", {**CHAT, "sender": "U9", "text": "hello"}),
    "connectors.members": ("/v1/connectors/line/members", {**CHAT, "joined": ["U1"]}),
}
# Refused by the write itself, but for those that look again before: at the credential, gone too, or at the target.
OTHERWISE = {
    "personal_instructions.set": (401, "deny", "token_revoked"),
    "agents.add": (401, "deny", "token_revoked"),
    "me.tokens.create": (409, "error", "conflict"),
}
REFUSED = (401, "deny", "profile_retired")


class Elsewhere:
    """Another process on the same store."""

    def __init__(self, home: House, database: Database) -> None:
        self._home = home
        self._database = database
        self.identities = SqlIdentities(database)

    async def merge(self, retired: ProfileId, survivor: ProfileId) -> None:
        """Makes one of two."""
        now = self._home.gateway.clock.now()
        assert await self.identities.merge(self._home.tenant, retired, survivor, now) is not None

    async def everything(self) -> tuple[dict[str, set[Any]], dict[str, str]]:
        """Every row but the audit's and when a token was used, and every file of every workspace."""
        tables = [table for table in metadata.sorted_tables if table.name not in ("audit", "tenants")]

        def rows(connection: Any) -> dict[str, set[Any]]:
            return {
                table.name: {
                    tuple(row)
                    for row in connection.execute(select(*[one for one in table.c if one.name != "last_used_at"]))
                }
                for table in tables
            }

        root = self._home.gateway.folders.root
        files = {
            str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in root.rglob("*")
            if path.is_file()
        }
        return await self._database.read(rows), files


@asynccontextmanager
async def elsewhere(home: House) -> Any:
    """Opens it."""
    async with Database(home.gateway.settings.state.folder / "gateway.sqlite", readers=1) as database:
        yield Elsewhere(home, database)


class Gate:
    """Runs `meanwhile` once, between the next intent and its operation."""

    def __init__(self, home: House) -> None:
        self._intent = home.gateway.pipeline.record_audit.intent
        self.meanwhile: Callable[[], Awaitable[None]] | None = None
        self.passed: str | None = None

    async def __call__(self, trail: Trail) -> None:
        """The pipeline's intent, and then what happens meanwhile."""
        await self._intent(trail)
        self.passed = trail.operation
        if self.meanwhile is not None:
            meanwhile, self.meanwhile = self.meanwhile, None
            await meanwhile()


def gated(home: House, logs: LogCapture) -> tuple[House, Gate]:
    """The same house behind a gate."""
    gate, gateway = Gate(home), home.gateway
    call_tool = CallTool(gate, gateway.epochs.current, on_behalf_of)
    behind = replace(gateway, pipeline=replace(gateway.pipeline, call_tool=call_tool))
    return replace(home, gateway=behind, app=create_app(behind, logs.loggers)), gate


@pytest.mark.timeout(120)
async def test_nothing_that_a_merged_persons_running_request_asked_for_lands(home: House, logs: LogCapture) -> None:
    """Design section 5, "merge": captured authority of the retired profile fails closed, wherever it was merged."""
    behind, gate = gated(home, logs)
    effects = {one.name for one in home.gateway.catalogue.all() if one.effect}
    assert effects == {*REQUESTS, *OF_CONNECTORS}, "every operation with an effect needs a request here"
    async with elsewhere(home) as other:
        for number, (name, request) in enumerate(REQUESTS.items()):
            lands, lost = await scene(behind, f"lands{number}"), await scene(behind, f"lost{number}")
            stays = await home.add(f"stays{number}", "owner", "member")
            untouched = await other.everything()
            answer = await request(lands)
            assert answer.status_code in (200, 201, 204), (name, answer.text)
            assert gate.passed == name
            assert await other.everything() != untouched, name

            lost = replace(lost, policy=lost.policy + (name == "policy.publish"))
            after_merge: list[Any] = []

            async def merge(lost: Scene = lost, stays: ProfileId = stays.id, seen: list[Any] = after_merge) -> None:
                await other.merge(lost.home.id(lost.who), stays)
                seen.append(await other.everything())

            gate.meanwhile, gate.passed = merge, None
            answer = await request(lost)

            assert gate.passed == name
            assert await other.everything() == after_merge[0], name
            record = (await home.audit(person=home.id(lost.who)))[-1].record
            refused = OTHERWISE.get(name, REFUSED)
            assert (answer.status_code, record.effect, record.code) == refused, (name, answer.text)
            await home.gateway.epochs.poll()


async def test_a_disabled_persons_running_request_does_nothing_either(home: House, logs: LogCapture) -> None:
    """The same look in the transaction that writes; and a message beside theirs in one commit is not lost."""
    behind, gate = gated(home, logs)
    group = await home.open("alice", "group", participants=[home.id("bob")])
    async with elsewhere(home) as other:

        async def disable() -> None:
            await other.identities.change_profile(home.tenant, home.id("bob"), name=None, emails=None, disabled=True)

        gate.meanwhile = disable
        lost = await behind.post("bob", f"/v1/sessions/{group}/messages", {"role": "user", "content": "lost"})
    await home.say("alice", group, "kept")
    page = await home.get("alice", f"/v1/sessions/{group}/messages")

    assert (lost.status_code, lost.json()["detail"]) == (401, NOT_ACTIVE)
    assert [one["content"] for one in page.json()["items"]] == ["kept"]


@pytest.mark.parametrize("name", OF_CONNECTORS)
@pytest.mark.parametrize("merged", [False, True])
async def test_nothing_that_a_merged_connector_reports_lands(
    settings: Settings, clock: SettableClock, logs: LogCapture, tmp_path: Path, name: str, merged: bool
) -> None:
    """A connector is a service, and two services can be one too."""
    path, body = OF_CONNECTORS[name]
    async with channel_house(with_accounts(settings, tmp_path), clock, logs.loggers) as home, elsewhere(home) as other:
        behind, gate = gated(home, logs)
        await link(home, "alice", "U1")
        seen = [await other.everything()]

        async def merge() -> None:
            await other.merge(home.id("line"), home.id("sales"))
            seen.append(await other.everything())

        gate.meanwhile = merge if merged else None
        answer = await behind.post("line", path, body)

        assert gate.passed is not None
        assert (answer.status_code in (200, 204), answer.status_code == 401) == (not merged, merged), answer.text
        assert (await other.everything() == seen[-1]) is merged
