"""Services, end to end: what a client's own token may do is what its scopes name, and without one it calls nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx2
import pytest
import pytest_asyncio

from gateway.errors import ToolNotAllowed
from gateway.identity.credentials import Credentials
from gateway.keys import new_id
from gateway.model import AuditRecord, Identity, RoleAssignment
from gateway.operations.audit import Reading
from gateway.pipeline import Call
from gateway.policy.shipped import shipped
from gateway.ports import AuditFilter
from gateway.settings import Settings, load
from gateway.stages.record_audit import Trail
from tests.clock import SettableClock
from tests.conftest import LogCapture
from tests.house import House, house
from tests.introspector import CLIENT, SECRET, LocalIntrospector
from tests.issuer import AUDIENCE, LocalIssuer
from tests.path.examples import NOBODY, Example, examples
from tests.state import state_of

ROLES = ("member", "supervisor", "auditor", "admin", "owner", "connector", "decider")
# So that it is the scopes that refuse, and not what the shipped rules give to no role.
EVERYTHING = shipped("default.csv") + "p, role:owner, *, *, all, any, *, *, allow\n"
KINDS = ("signed", "introspected", "access token")
OTHER_BODIES: dict[tuple[str, str], list[dict[str, Any]]] = {
    ("PATCH", "/v1/sessions/{session}"): [{"participants": []}, {"title": "both", "participants": []}],
    ("POST", "/v1/admin/people/{profile}/merge"): [{"into": NOBODY, "preview": True}],
}
TRUSTED = """
[[oidc.issuers]]
issuer = "{issuer.url}"
audience = "{audience}"
algorithms = ["ES256"]
tenant = "acme"
scopes = "person"

[[introspection.servers]]
endpoint = "{server.endpoint}"
issuer = "{server.url}"
audience = "{audience}"
client_id = "{client}"
client_secret_env = "ACME_INTROSPECTION"
tenant = "acme"
scopes = "person"
"""


@dataclass
class Robot:
    """A service that holds every role, with tokens of every kind."""

    home: House
    issuer: LocalIssuer
    server: LocalIntrospector
    session: str

    async def token(self, kind: str, *scopes: str) -> str:
        """A token that it got for itself. The settings for people (`scopes = "person"`) must not widen it."""
        named: dict[str, Any] = {"scope": " ".join(scopes)} if scopes else {}
        if kind == "signed":
            return self.issuer.mint("robot", client_id="robot", **named)
        if kind == "introspected":
            return self.server.issue(
                f"opaque-{'-'.join(scopes).replace('*', 'all')}", "robot", client_id="robot", **named
            )
        return await self.home.token("robot", scopes=scopes)

    def examples(self, logs: LogCapture) -> list[Example]:
        """A request for every operation; those that take something away come last."""
        words = {"session": self.session, "agent": "flight", "token": "tok_x", "version": "1"}
        made = list(examples(self.home, logs.loggers, profile=self.home.id("alice"), **words))
        for one in list(made):  # some rows run another operation for another body
            row = (one.endpoint.method, one.endpoint.path)
            made += [replace(one, body=body) for body in OTHER_BODIES.get(row, ())]
        child = {"kind": "subagent", "parent": self.session}
        made += [replace(one, body=child) for one in made if one.body == {"kind": "group"}]
        return sorted(made, key=lambda one: one.endpoint.method == "DELETE")

    async def send(self, token: str, one: Example) -> tuple[httpx2.Response, list[AuditRecord]]:
        """The answer, and what the audit keeps of the request."""
        headers = {**one.headers, "Authorization": f"Bearer {token}"}
        answer = await self.home.send(None, one.endpoint.method, one.path, one.body, headers=headers)
        records = [found.record for found in await self.home.audit()]
        return answer, [record for record in records[-20:] if record.request == answer.headers["x-request-id"]]

    async def exports(self, token: str) -> str:
        """Why `gateway audit export` with this token is refused."""
        export = self.home.gateway.catalogue.audit.export
        call = Call.of(Credentials.bearer(token), export, Reading(narrow=AuditFilter(), limit=1, cursor=None))
        request = new_id("req", self.home.gateway.clock.now())
        with pytest.raises(ToolNotAllowed):
            await self.home.gateway.pipeline.run(call, Trail(request, "cli", export.name))
        decision = (await self.home.audit(kind="decision"))[-1].record
        assert (decision.request, decision.operation) == (request, export.name)
        return decision.code


@pytest.fixture
def trusted(clock: SettableClock) -> Iterator[tuple[LocalIssuer, LocalIntrospector]]:
    """An issuer that signs, and a server that is asked."""
    with ExitStack() as stack:
        yield stack.enter_context(LocalIssuer(clock)), stack.enter_context(LocalIntrospector(clock))


@pytest_asyncio.fixture
async def robot(
    settings: Settings,
    tmp_path: Path,
    clock: SettableClock,
    logs: LogCapture,
    trusted: tuple[LocalIssuer, LocalIntrospector],
) -> AsyncIterator[Robot]:
    """A house with a service that an owner gave every role to."""
    issuer, server = trusted
    config = tmp_path / "services.toml"
    config.write_text(TRUSTED.format(issuer=issuer, server=server, audience=AUDIENCE, client=CLIENT), encoding="utf-8")
    ours = load(config, {"GATEWAY_STATE__FOLDER": str(settings.state.folder)})
    async with house(ours, clock, logs.loggers, environ={"ACME_INTROSPECTION": SECRET}) as home:
        await home.publish(EVERYTHING)
        profile = await home.add("robot", *ROLES, kind="service")
        for where in (issuer.url, server.url):
            identity = Identity(issuer=where, subject="robot", profile=profile.id)
            await home.gateway.stores.identities.link(home.tenant, identity, clock.now())
        session = await home.open("robot", "group", participants=[home.id("alice")])
        await home.say("alice", session, "the runway code is heliotrope")
        home.workspace().replace("USER.md", "the gate is vermilion")
        yield Robot(home, issuer, server, session)


@pytest.mark.parametrize("kind", KINDS)
async def test_a_token_with_no_scope_calls_nothing(robot: Robot, logs: LogCapture, kind: str) -> None:
    """Issue 3, "services": every operation of the catalogue is refused and audited, and nothing happens."""
    none, full = await robot.token(kind), await robot.token(kind, "*")
    everything = robot.examples(logs)
    await robot.send(none, everything[0])  # whatever a first use leaves behind
    before = await state_of(robot.home)
    reached = set()

    for one in everything:
        answer, records = await robot.send(none, one)
        assert (answer.status_code, answer.json()["code"]) == (403, "tool_not_allowed"), (one.path, answer.text)
        assert "heliotrope" not in answer.text
        assert "vermilion" not in answer.text
        access = [record for record in records if record.kind == "access"]
        decisions = [record for record in records if record.kind == "decision"]
        assert [record.effect for record in access] == ["deny"], one.path
        assert {(record.effect, record.code) for record in decisions} == {("deny", "scope_missing")}, one.path
        reached.add(access[0].operation)
    assert await robot.exports(none) == "scope_missing"  # the command line's alone: it has no route
    assert reached | {"audit.export"} == {one.name for one in robot.home.gateway.catalogue.all()}
    assert await state_of(robot.home) == before

    for one in everything:  # the same service, the same requests: it is the scope that was missing
        answer, _ = await robot.send(full, one)
        assert answer.status_code != 401, (one.path, answer.text)
        assert "your token does not include" not in answer.text, (one.path, answer.text)
    assert await state_of(robot.home) != before


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("area", ["session", "memory", "admin", "gateway"])
async def test_a_token_of_one_area_reaches_that_area_alone(
    robot: Robot, logs: LogCapture, kind: str, area: str
) -> None:
    """ibmi-mcp-server#189: scopes are enforced, not only parsed. What was allowed is read from the audit."""
    token = await robot.token(kind, area)
    allowed = set()

    for one in robot.examples(logs):
        answer, records = await robot.send(token, one)
        resources = {record.resource for record in records if record.kind == "decision" and record.effect == "allow"}
        assert {str(resource).partition("/")[0] for resource in resources} <= {area}, (one.path, resources)
        if answer.status_code < 300:
            allowed |= {record.operation for record in records if record.kind == "access"}
            assert area == "session" or "heliotrope" not in answer.text
            assert area == "memory" or "vermilion" not in answer.text
        else:
            assert answer.status_code != 401, one.path
    assert allowed
    families = {one.name: one.family for one in robot.home.gateway.catalogue.all()}
    for name in allowed:
        assert area in {resource.partition("/")[0] for resource in families[name]}, name


async def test_a_service_has_what_its_roles_give_within_its_scopes_and_never_more(robot: Robot) -> None:
    """Design section 7: scopes narrow; they give no role."""
    home = robot.home
    member = (RoleAssignment(role="member", agent="*"),)  # type: ignore[arg-type]  # a name of an agent is a string
    await home.gateway.stores.identities.set_roles(home.tenant, home.id("robot"), member)
    await home.publish(shipped("default.csv"))

    for kind in KINDS:
        headers = {"Authorization": f"Bearer {await robot.token(kind, 'admin', 'session')}"}
        assert (await home.get(None, "/v1/sessions", headers=headers)).status_code == 200
        assert (await home.get(None, "/v1/admin/people", headers=headers)).status_code == 403


async def test_a_person_in_a_services_clothes_and_a_service_nobody_linked_are_refused(robot: Robot) -> None:
    """Design section 5: a service is linked by hand, and never to a person; a group gives it nothing."""
    home = robot.home
    identity = Identity(issuer=robot.issuer.url, subject="alice", profile=home.id("alice"))
    await home.gateway.stores.identities.link(home.tenant, identity, home.gateway.clock.now())
    before = await state_of(home)

    async def status(token: str) -> int:
        return (await home.get(None, "/v1/me", headers={"Authorization": f"Bearer {token}"})).status_code

    assert await status(robot.issuer.mint("alice")) == 200
    assert await status(robot.issuer.mint("alice", client_id="alice", scope="*")) == 401
    assert await status(robot.issuer.mint("stranger", client_id="stranger", scope="*")) == 401
    assert await status(robot.server.issue("opaque", "stranger", client_id="stranger", scope="*")) == 401
    assert await state_of(home) == before
