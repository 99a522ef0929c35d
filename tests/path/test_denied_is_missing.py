"""Denied looks like missing, byte for byte, on every route and tool; nothing is read before it is asked for."""

from __future__ import annotations

import threading
from contextvars import ContextVar
from statistics import median
from time import perf_counter
from typing import Any

import pytest

from gateway.backends.sql.agents import SqlAgents
from gateway.backends.sql.audit import SqlAudit
from gateway.backends.sql.database import Database
from gateway.backends.sql.identities import SqlIdentities
from gateway.backends.sql.notes import SqlNotes
from gateway.backends.sql.policies import SqlPolicies
from gateway.backends.sql.sessions import SqlSessions
from gateway.backends.sql.transcripts import SqlTranscripts
from gateway.model import Action
from gateway.policy import permit
from gateway.policy.shipped import shipped
from gateway.stages import authorize
from gateway.workspace.files import Workspace
from gateway.workspace.folders import AgentFolders
from tests.conftest import LogCapture
from tests.house import House
from tests.path.examples import NO_SESSION, NO_TOKEN, NOBODY, TOOLS, Example, examples, is_content
from tests.path.test_story import same_answer

CLOSED = (
    "\np, role:member, payroll, *, all, any, *, *, deny\n"
    "p, role:clerk, payroll, session/*, agent, shared, private, *, allow\n"
    "p, role:clerk, payroll, memory/*, agent, shared, private, *, allow\n"
    "p, role:clerk, payroll, memory/personal/*, self, own, private, *, allow\n"
    "p, *, *, gateway, self, own, private, read, allow\n"
)


@pytest.mark.parametrize("how", ["private", "group", "child", "gone person", "id"])
async def test_a_session_that_is_not_yours_is_a_session_that_is_not_there(
    home: House, logs: LogCapture, how: str
) -> None:
    """Design section 7, on every route that names a session and with every tool from inside it."""
    if how == "group":
        session = await home.open("alice", "group", participants=[home.id("carol")])
    elif how == "child":
        session = await home.open("alice", "subagent", parent=await home.open("alice"))
    else:
        session = await home.open("alice")
    if how == "id":
        session = (await home.get("alice", f"/v1/sessions/{session}")).json()["id"]
    await home.say("alice", session, "the runway code is 4711")
    if how == "gone person":
        await home.gateway.stores.identities.change_profile(
            home.tenant, home.id("alice"), name=None, emails=None, disabled=True
        )
    words = {"agent": "flight", "profile": NOBODY, "token": NO_TOKEN, "version": "1"}
    theirs = [one for one in examples(home, logs.loggers, session=session, **words) if "{session}" in one.endpoint.path]
    nobodys = [
        one for one in examples(home, logs.loggers, session=NO_SESSION, **words) if "{session}" in one.endpoint.path
    ]
    assert len(theirs) >= 10 + len(TOOLS)

    for one, other in zip(theirs, nobodys, strict=True):
        refused, missing = await one.send(home, "bob"), await other.send(home, "bob")
        assert refused.status_code == 404, (one.path, refused.text)
        assert same_answer(refused, missing), (one.path, refused.text, missing.text)
        assert "runway" not in refused.text
    assert {one.record.effect for one in await home.audit(person=home.id("bob"))} == {"deny"}
    if how != "gone person":
        kept = (await home.get("alice", f"/v1/sessions/{session}/messages")).json()["items"]
        assert [message["content"] for message in kept] == ["the runway code is 4711"]


async def test_a_session_that_is_not_yours_is_missing_to_every_tool_that_names_one(home: House) -> None:
    """Design section 7; topoteretes/cognee#2845: access by name equals access by id."""
    session = await home.open("alice")
    await home.say("alice", session, "the runway code is 4711")
    by_id = (await home.get("alice", f"/v1/sessions/{session}")).json()["id"]
    here = await home.open("bob")
    names = [session, by_id, home.private("carol"), NO_SESSION, "x", "agent:", "\0", "MAIN", "сurrent"]

    for tool, arguments in (("sessions_history", {}), ("session_status", {}), ("sessions_search", {"query": "runway"})):
        answers = [await home.tool("bob", here, tool, **arguments, sessionKey=name) for name in names]
        assert answers[0].status_code == 404
        for name, answer in zip(names, answers, strict=True):
            assert same_answer(answers[0], answer), (tool, name, answer.text)
        mine = await home.tool("bob", here, tool, **arguments, sessionKey=here)
        assert mine.status_code == 200, mine.text


async def test_an_agent_that_is_not_yours_is_an_agent_that_is_not_there(home: House, logs: LogCapture) -> None:
    """Design section 7; a fault in the request tells of neither."""
    await home.add_agent("payroll")
    await home.publish(shipped("default.csv") + CLOSED)
    await home.add("paul", "clerk", agent="payroll")
    words = {"session": NO_SESSION, "profile": NOBODY, "token": NO_TOKEN, "version": "1"}

    def about(agent: str) -> list[Example]:
        found = examples(home, logs.loggers, agent=agent, **words)
        return [one for one in found if "{agent}" in one.endpoint.path and is_content(one.endpoint)]

    for one, other in zip(about("payroll"), about("nowhere"), strict=True):
        refused, missing = await one.send(home, "bob"), await other.send(home, "bob")
        assert same_answer(refused, missing), (one.path, refused.text, missing.text)
        allowed = await one.send(home, "paul")
        assert allowed.status_code in (200, 201), (one.path, allowed.text)
    faulty = {"kind": "direct", "name": "NO", "title": "x" * 300}
    here = await home.open("bob")
    for body in (faulty, faulty | {"kind": "lounge"}, {"kind": "subagent", "parent": here, "title": "x" * 300}):
        answers = [await home.post("bob", f"/v1/agents/{agent}/sessions", body) for agent in ("payroll", "nowhere")]
        assert same_answer(*answers), answers[0].text
    for tool, arguments in (
        ("sessions_spawn", {"task": "Look."}),
        ("sessions_spawn", {"task": "Look.", "label": "x" * 201}),
        ("sessions_list", {}),
        ("memory_get", {"path": "USER.md"}),
        ("personal_instructions", {"action": "get"}),
        ("personal_instructions", {"action": "set", "content": "x" * 5000, "expectedHash": None}),
    ):
        answers = [await home.tool("bob", here, tool, **arguments, agentId=agent) for agent in ("payroll", "nowhere")]
        assert same_answer(*answers), (tool, answers[0].text, answers[1].text)
    assert {one["id"] for one in (await home.get("bob", "/v1/agents")).json()["items"]} == {"flight"}
    assert {one["id"] for one in (await home.get("paul", "/v1/agents")).json()["items"]} == {"payroll"}


async def test_another_tenants_things_are_not_there(home: House) -> None:
    """Design sections 2 and 7: the tenant comes from the credential; MemTensor's unknown target is refused."""
    other = await home.gateway.founder.found("globex", policy=shipped("default.csv"))
    mallory = House(home.gateway, home.app, other)
    await mallory.add_agent("flight")
    await mallory.add("mallory", "owner", "supervisor")
    session = await home.open("alice", "group", participants=[home.id("bob")])
    token = (await home.get("alice", "/v1/me/tokens")).json()["items"][0]["id"]
    here = await mallory.open("mallory")

    for method, path, missing, body in (
        ("GET", f"/v1/sessions/{session}", f"/v1/sessions/{NO_SESSION}", None),
        ("GET", f"/v1/admin/people/{home.id('alice')}", f"/v1/admin/people/{NOBODY}", None),
        ("PATCH", f"/v1/admin/people/{home.id('alice')}", f"/v1/admin/people/{NOBODY}", {"name": "x"}),
        ("DELETE", f"/v1/me/tokens/{token}", f"/v1/me/tokens/{NO_TOKEN}", None),
        (
            "DELETE",
            f"/v1/admin/people/{home.id('alice')}/tokens/{token}",
            f"/v1/admin/people/{NOBODY}/tokens/{NO_TOKEN}",
            None,
        ),
    ):
        theirs = await mallory.send("mallory", method, path, body)
        nobodys = await mallory.send("mallory", method, missing, body)
        assert theirs.status_code == 404, (path, theirs.text)
        assert same_answer(theirs, nobodys), path
    added = await mallory.post(
        "mallory", "/v1/agents/flight/sessions", {"kind": "group", "participants": [home.id("alice")]}
    )
    assert added.json()["errors"][0]["rule"] == "unknown_person"
    assert (await mallory.get("mallory", "/v1/sessions")).json()["items"][0]["key"] == here
    audit = (await mallory.get("mallory", "/v1/admin/audit?limit=200")).json()["items"]
    assert {one["tenant"] for one in audit} == {"globex"}
    assert home.id("alice") not in {one["profile"] for one in audit}


async def test_a_file_that_is_not_yours_is_a_file_that_is_not_there(home: House) -> None:
    """Design section 7, invariants: another person's personal files, by every spelling."""
    session = await home.open("bob")
    theirs = f"users/{home.id('alice')}"
    for path in ("USER.md", "MEMORY.md", "memory/2026-12-01.md"):
        home.workspace().replace(f"{theirs}/{path}", "the runway code is 4711")
    await home.publish(shipped("default.csv") + "\np, role:member, *, *, all, any, *, *, allow\n")

    absent = (await home.tool("bob", session, "memory_get", path=f"users/{NOBODY}/USER.md")).json()["result"]
    for path in (
        f"{theirs}/USER.md",
        f"{theirs}/MEMORY.md",
        f"{theirs}/memory/2026-12-01.md",
        f"users/{home.id('bob')}/../{home.id('alice')}/USER.md",
        f"./{theirs}/USER.md",
        f"{theirs}//USER.md",
        f"{theirs.lower()}/USER.md",
        f"memory/../{theirs}/USER.md",
        f"{theirs}/memory",
        f"{theirs}",
        "users",
        "",
    ):
        read = await home.tool("bob", session, "memory_get", path=path)
        if path == "":
            assert read.status_code == 422
            continue
        assert {**read.json()["result"], "path": ""} == {**absent, "path": ""}, path
    mine = await home.tool("alice", await home.open("alice"), "memory_get", path=f"{theirs}/USER.md")
    assert "4711" in mine.text


# ── nothing is read before it is asked for ───────────────────────────────────────────────────────────────────────────

STORES: dict[type, tuple[str, ...]] = {
    SqlTranscripts: ("append", "history", "latest", "search"),
    SqlSessions: (
        "create",
        "list",
        "participants",
        "set_title",
        "set_participants",
        "set_title_and_participants",
        "set_owner",
        "archive",
        "reset",
        "delete",
    ),
    SqlPolicies: ("version", "history", "publish"),
    SqlAudit: ("read", "verify"),
    SqlNotes: ("add", "of_path"),
    SqlAgents: ("add",),
    SqlIdentities: (
        "people",
        "identities",
        "tokens",
        "add_profile",
        "change_profile",
        "set_roles",
        "link",
        "unlink",
        "add_token",
        "revoke_token",
    ),
    AgentFolders: ("read", "run"),
}


class Watch:
    """Which permits one request was given, and what it read with them."""

    def __init__(self) -> None:
        self.permits: ContextVar[set[Action] | None] = ContextVar("permits", default=None)
        self.touched: list[str] = []

    def begin(self) -> None:
        """Before each request."""
        self.permits.set(set())
        self.touched.clear()

    def given(self, action: Action) -> None:
        """A permit was issued."""
        held = self.permits.get()
        if held is not None:
            held.add(action)

    def touch(self, what: str) -> None:
        """A store or a folder is used: only with a permit, and not with that of having entered a session alone."""
        held = self.permits.get()
        if held is None:
            return
        assert held, f"{what} ran before the policy was asked"
        self.touched.append(what)


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Watch:
    """Every reading and writing of content under watch."""
    watching = Watch()
    for owner, methods in STORES.items():
        for method in methods:
            monkeypatch.setattr(owner, method, _watched(watching, f"{owner.__name__}.{method}", getattr(owner, method)))
    for name in ("issue", "issue_for_list"):
        monkeypatch.setattr(authorize, name, _issuing(watching, getattr(permit, name)))
    return watching


def _watched(watching: Watch, name: str, method: Any) -> Any:
    async def watched(*arguments: Any, **named: Any) -> Any:
        watching.touch(name)
        return await method(*arguments, **named)

    return watched


def _issuing(watching: Watch, make: Any) -> Any:
    def issuing(decision: Any, *arguments: Any) -> Any:
        made = make(decision, *arguments)
        watching.given(decision.question.action)
        return made

    return issuing


FOR_OTHERS = {  # an owner, the connector of an account, and a service that asks for decisions
    *(("POST", f"/access/v1/{one}") for one in ("evaluation", "evaluations")),
    *(("POST", f"/access/v1/search/{one}") for one in ("subject", "resource", "action")),
    ("POST", "/v1/admin/people/{profile}/identities"),
    ("POST", "/v1/admin/people/{profile}/merge"),
    ("POST", "/v1/admin/people/{profile}/tokens"),
    ("POST", "/v1/connectors/{channel}/members"),
    ("POST", "/v1/connectors/{channel}/turns"),
}


async def test_nothing_is_read_before_the_policy_is_asked(home: House, logs: LogCapture, watch: Watch) -> None:
    """Issue, "a second way in": every route and tool; what is refused reads nothing at all."""
    session = await home.open("alice", "group")
    await home.say("alice", session, "hello")
    words = {
        "session": session,
        "agent": "flight",
        "profile": home.id("carol"),
        "token": NO_TOKEN,
        "sign_in": NO_TOKEN,
        "version": "1",
    }
    refused_to = {"alice": 0, "bob": 0, "erin": 0}
    worked = set()
    # What ends the session comes last.
    order = sorted(examples(home, logs.loggers, **words), key=lambda one: one.endpoint.method == "DELETE")
    for who in ("bob", "erin", "alice"):
        for one in order:
            watch.begin()
            answer = await one.send(home, who)
            assert answer.status_code < 500, (who, one.path, answer.text)
            # A token, a sign-in or a decision that is not there is looked for by who may, and is then not found.
            missing = one.endpoint.method == "DELETE" and one.path.rpartition("/")[2] in (NO_TOKEN, "identities")
            missing |= answer.status_code == 404 and one.path.endswith("/explain")
            if answer.status_code in (403, 404) and not missing:
                assert watch.touched == [], (who, one.path)
                refused_to[who] += 1
            else:
                worked.add((one.endpoint.method, one.endpoint.path))
                if answer.status_code < 400 and not one.endpoint.operations[0].name.startswith(("me.", "tools.")):
                    held = watch.permits.get()
                    assert held, (who, one.path)
    assert refused_to["bob"] > 20
    assert refused_to["erin"] > 20
    assert {(one.endpoint.method, one.endpoint.path) for one in order} - worked == FOR_OTHERS


async def test_no_file_and_no_database_is_used_on_the_event_loop(
    home: House, logs: LogCapture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue, "where it would go wrong": one event loop blocked by files or SQLite; both are used from threads."""
    loop_thread = threading.get_ident()
    used: set[str] = set()

    def off_the_loop(owner: type, name: str) -> None:
        method = getattr(owner, name)

        def checked(*arguments: Any, **named: Any) -> Any:
            assert threading.get_ident() != loop_thread, f"{owner.__name__}.{name} ran on the event loop"
            used.add(name)
            return method(*arguments, **named)

        monkeypatch.setattr(owner, name, checked)

    session = await home.open("alice")
    for owner, names in ((Workspace, ("read", "read_many", "replace", "exists")), (Database, ("_read", "_write"))):
        for name in names:
            off_the_loop(owner, name)
    words = {"session": session, "agent": "flight", "profile": home.id("carol"), "token": NO_TOKEN, "version": "1"}
    order = sorted(examples(home, logs.loggers, **words), key=lambda one: one.endpoint.method == "DELETE")
    for who in ("alice", "bob", "olga"):
        for one in order:
            assert (await one.send(home, who)).status_code < 500, (who, one.path)

    assert used == {"read", "read_many", "replace", "exists", "_read", "_write"}


async def test_a_refusal_takes_no_longer_than_a_miss(home: House) -> None:
    """Issue: denied that differs from missing in the time taken, to the eye (an order of magnitude)."""
    session = await home.open("alice")
    for number in range(50):
        await home.say("alice", session, f"message {number} " + "x" * 5_000)

    async def took(reference: str) -> float:
        begun = perf_counter()
        assert (await home.get("bob", f"/v1/sessions/{reference}/messages")).status_code == 404
        return perf_counter() - begun

    denied, missing = [], []
    for _ in range(15):
        denied.append(await took(session))
        missing.append(await took(NO_SESSION))
    assert 0.1 < median(denied) / median(missing) < 10
