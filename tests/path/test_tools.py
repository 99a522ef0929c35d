"""What the tools take and give, over HTTP: OpenClaw's names and arguments, limits, and what is only ever one's own."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import httpx2
import orjson
import pytest

from gateway.backends.sql.database import Database
from gateway.backends.sql.identities import SqlIdentities
from gateway.errors import Unavailable
from gateway.model import AgentName
from gateway.policy.shipped import shipped
from gateway.workspace.files import FILE_LIMIT, Workspace
from gateway.workspace.paths import daily_path, instructions_path
from tests.clock import SettableClock
from tests.house import House

TODAY = "memory/2026-12-01.md"


def result(answer: httpx2.Response) -> dict[str, Any]:
    """What a tool returned."""
    assert answer.status_code == 200, answer.text
    body = answer.json()
    assert body["status"] == "ok"
    assert body["decision"] == answer.headers["gateway-decision"]
    found: dict[str, Any] = body["result"]
    return found


@pytest.mark.parametrize(
    ("tool", "arguments", "faults"),
    [
        ("sessions_list", {"limit": 0, "kinds": ["lounge"], "owner": "x"}, {"limit", "kinds[0]", "owner"}),
        (
            "sessions_list",
            {"limit": 201, "messageLimit": 21, "activeMinutes": 0},
            {"limit", "messageLimit", "activeMinutes"},
        ),
        ("sessions_list", {"limit": "5", "activeMinutes": 10**12}, {"limit", "activeMinutes"}),
        ("sessions_history", {}, {"sessionKey"}),
        ("sessions_history", {"sessionKey": "", "limit": 0}, {"sessionKey", "limit"}),
        ("sessions_search", {"query": "x" * 201}, {"query"}),
        ("sessions_search", {"query": "a b c d e f g h i"}, {"query"}),
        ("sessions_search", {"query": "\u00a8\u00af\u00b4\u00b8\u02d8\u02d9\u02da\u02db\u02dc"}, {"query"}),
        ("session_status", {"sessionKey": 5}, {"sessionKey"}),
        ("sessions_spawn", {"task": "", "label": ""}, {"task", "label"}),
        ("memory_get", {"path": "USER.md", "from": 0, "lines": 0}, {"from", "lines"}),
        ("memory_append", {"scope": "everybody", "text": ""}, {"scope", "text"}),
        ("memory_append", {"scope": "shared", "text": "x", "path": "MEMORY.md"}, {"path"}),
        ("memory_append", {"scope": "personal", "text": "x", "profileId": "prf_x"}, {"profileId"}),
        ("personal_instructions", {"action": "read"}, {"action"}),
        ("personal_instructions", {"action": "set"}, {"body"}),
        ("personal_instructions", {"action": "set", "content": "x"}, {"body"}),
        ("personal_instructions", {"action": "set", "content": "x", "expectedHash": "abc"}, {"expectedHash"}),
        ("personal_instructions", {"action": "get", "userId": "prf_x", "path": "x"}, {"userId", "path"}),
    ],
)
async def test_every_fault_of_the_arguments_is_named_at_once(
    home: House, tool: str, arguments: dict[str, Any], faults: set[str]
) -> None:
    """Design section 12: the field and the rule, and nothing changes; what was sent is not repeated."""
    session = await home.open("alice")

    answer = await home.tool("alice", session, tool, **arguments)

    assert answer.status_code == 422, answer.text
    assert {one["field"] for one in answer.json()["errors"]} == faults
    assert all(one["rule"] and one["message"] for one in answer.json()["errors"])
    assert not (home.workspace().root / "flight" / "users").exists()


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b'"x"', b"null", b"\xff", b'{"path": "\\ud800"}', b"{}{}"])
async def test_a_body_that_is_no_object_is_a_problem_document(home: House, content: bytes) -> None:
    """Interface: problem+json, whatever comes."""
    session = await home.open("alice")
    answer = await home.send("alice", "POST", f"/v1/sessions/{session}/tools/memory_get", content=content)
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["errors"][0]["field"] == "body"
    assert answer.headers["gateway-epoch"]  # it is known who asks


async def test_a_tool_that_is_not_there_is_told_apart_from_one_that_is_not_included(home: House) -> None:
    """Interface: `tool_not_allowed` names what the role lacks altogether; the list holds what it includes."""
    session = await home.open("alice")
    group = await home.open("alice", "group")
    unknown = await home.tool("alice", session, "memory_search", query="x")
    assert unknown.json()["errors"][0]["rule"] == "unknown_tool"
    names = {one["name"] for one in (await home.get("alice", "/v1/tools")).json()["items"]}
    assert names == {
        "sessions_list",
        "sessions_history",
        "sessions_search",
        "session_status",
        "sessions_spawn",
        "memory_get",
        "memory_append",
        "personal_instructions",
    }
    assert (await home.get("erin", "/v1/tools")).json()["items"] == []
    await home.publish(shipped("default.csv") + "\np, role:member, *, memory/daily, all, any, *, append, deny\n")
    left = {one["name"] for one in (await home.get("alice", "/v1/tools")).json()["items"]}
    assert left == names  # their own notes are left
    for where in (session, group):
        refused = await home.tool("alice", where, "memory_append", scope="shared", text="x")
        assert refused.status_code == 404
    for one in (await home.get("alice", "/v1/tools")).json()["items"]:
        assert one["input_schema"]["type"] == "object"
        assert one["input_schema"]["additionalProperties"] is False
        assert one["description"]
        assert one["actions"][0] == one["action"]


# ── sessions ─────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_history_never_overflows_a_model(home: House) -> None:
    """Reference, openclaw-visibility 1.6: 4,000 characters a message, 80 KiB in all, oldest dropped first."""
    session = await home.open("alice")
    for number in range(25):
        await home.say("alice", session, f"{number:02} " + "x" * 5_000)

    found = result(await home.tool("alice", session, "sessions_history", sessionKey="current"))
    paged = result(await home.tool("alice", session, "sessions_history", sessionKey="current", limit=2))
    second = result(
        await home.tool("alice", session, "sessions_history", sessionKey=session, limit=2, cursor=paged["nextCursor"])
    )

    assert len(orjson.dumps([one["content"] for one in found["messages"]])) < 90 * 1024
    assert (found["truncated"], found["droppedMessages"]) == (True, 25 - len(found["messages"]))
    assert found["messages"][-1]["content"].startswith("24 ")
    assert all(one["contentTruncated"] and len(one["content"]) < 4_100 for one in found["messages"])
    assert [one["content"][:2] for one in paged["messages"] + second["messages"]] == ["00", "01", "02", "03"]
    assert (paged["truncated"], paged["sessionKey"]) == (False, session)
    assert (await home.tool("alice", session, "sessions_history", sessionKey="current", cursor="x")).status_code == 422


async def test_current_and_main_are_this_session_and_the_persons_own(home: House) -> None:
    """OpenClaw's words; `main` is the requester's private session, whoever owns this one."""
    group = await home.open("alice", "group", participants=[home.id("bob")])
    before = await home.tool("bob", group, "session_status", sessionKey="main")
    mine = await home.open("bob")
    child = await home.open("bob", "subagent", parent=mine)

    here = result(await home.tool("bob", group, "session_status"))
    from_group = await home.tool("bob", group, "session_status", sessionKey="main")
    from_child = result(await home.tool("bob", child, "session_status", sessionKey="main"))

    assert (here["key"], here["kind"], here["private"]) == (group, "group", False)
    assert set(here["participants"]) == {home.id("alice"), home.id("bob")}
    assert before.status_code == from_group.status_code == 404  # not from a group
    assert from_child["key"] == mine


async def test_a_list_shows_last_messages_only_where_history_is_allowed(home: House) -> None:
    """Design section 7: reading the messages of a listed session is asked for by itself, like any history."""
    session = await home.open("alice")
    for number in range(4):
        await home.say("alice", session, f"message {number}")
    await home.publish(shipped("default.csv") + "\np, role:member, *, *, all, any, *, history, deny\n")
    hidden = result(await home.tool("alice", session, "sessions_list", messageLimit=2))["sessions"]
    await home.publish(shipped("default.csv"))
    plain = result(await home.tool("alice", session, "sessions_list"))["sessions"]
    shown = result(await home.tool("alice", session, "sessions_list", messageLimit=2))["sessions"]

    assert [one["messages"] for one in hidden] == [[]]
    assert "messages" not in plain[0]
    assert [one["content"] for one in shown[0]["messages"]] == ["message 2", "message 3"]
    assert (await home.tool("alice", session, "sessions_history", sessionKey=session)).status_code == 200


async def test_a_list_is_narrowed_by_kind_agent_title_and_age(home: House, clock: SettableClock) -> None:
    """OpenClaw's arguments; each only narrows."""
    await home.publish(shipped("default.csv") + "\np, role:member, *, session/*, all, shared, private, *, allow\n")
    await home.add_agent("hotel")
    old = await home.open("alice", "group", title="Old Desk")
    hotel = await home.open("alice", agent="hotel")
    clock.advance(3600)
    await home.gateway.epochs.poll()
    here = await home.open("alice")

    async def keys(**arguments: Any) -> list[str]:
        found = result(await home.tool("alice", here, "sessions_list", **arguments))
        assert found["count"] == len(found["sessions"])
        return sorted(one["key"] for one in found["sessions"])

    assert await keys() == sorted([old, hotel, here])
    assert await keys(kinds=["group", "cron"]) == [old]
    assert await keys(agentId="hotel") == [hotel]
    assert await keys(agentId="nowhere") == []
    assert await keys(search="old d") == [old]
    assert await keys(activeMinutes=30) == [here]
    await home.say("alice", old, "Still there?")
    assert await keys(activeMinutes=30) == sorted([old, here])
    first = result(await home.tool("alice", here, "sessions_list", limit=2))
    second = result(await home.tool("alice", here, "sessions_list", limit=2, cursor=first["nextCursor"]))
    assert (first["count"], second["count"], second["nextCursor"]) == (2, 1, None)


async def test_limited_by_policy_is_said_from_the_scope_alone(home: House) -> None:
    """Design section 7: never from hidden hits; it is the same where nothing is hidden at all."""
    session = await home.open("alice")
    alone = result(await home.tool("alice", session, "sessions_list"))
    searched = result(await home.tool("alice", session, "sessions_search", query="needle"))
    others = await home.open("bob")
    await home.say("bob", others, "needle")
    with_hidden = result(await home.tool("alice", session, "sessions_list"))
    searched_hidden = result(await home.tool("alice", session, "sessions_search", query="needle"))

    assert alone["visibility"] == with_hidden["visibility"]
    assert searched == searched_hidden
    assert alone["visibility"]["limited"] is True
    await home.publish(shipped("default.csv") + "\np, role:member, *, session/*, all, any, private, *, allow\n")
    everything = result(await home.tool("alice", session, "sessions_list"))
    found = result(await home.tool("alice", session, "sessions_search", query="needle"))
    assert "visibility" not in everything
    assert "visibility" not in found
    assert [one["sessionKey"] for one in found["results"]] == [others]
    await home.publish(shipped("default.csv") + "\np, role:member, *, *, all, any, *, list, deny\n")
    empty = result(await home.tool("alice", session, "sessions_list"))
    assert (empty["sessions"], empty["visibility"]["limited"]) == ([], True)
    assert (await home.get("alice", "/v1/sessions")).json() == {"items": [], "next_cursor": None}


async def test_a_search_in_no_scope_finds_nothing(home: House) -> None:
    """Design section 7: a scope is a WHERE clause; an empty one is not everything."""
    session = await home.open("alice")
    await home.say("alice", session, "needle")
    await home.publish(shipped("default.csv") + "\np, role:member, *, session/*, all, any, private, search, deny\n")
    found = result(await home.tool("alice", session, "sessions_search", query="needle"))
    assert (found["results"], found["visibility"]["limited"]) == ([], True)
    assert (await home.tool("alice", session, "sessions_search", query="needle", sessionKey="main")).status_code == 404


async def test_a_spawn_makes_a_child_with_its_task(home: House) -> None:
    """OpenClaw's `sessions_spawn`; the child is the tree's owner's."""
    session = await home.open("alice", sandboxed=True, name="boxed")

    made = result(
        await home.tool("alice", session, "sessions_spawn", task="Find gate 4.", label="Gate", sandboxed=False)
    )

    child = made["childSessionKey"]
    status = result(await home.tool("alice", session, "session_status", sessionKey=child))
    assert made["status"] == "accepted"
    assert (status["title"], status["parentKey"], status["sandboxed"]) == ("Gate", session, True)
    history = result(await home.tool("alice", session, "sessions_history", sessionKey=made["sessionId"]))
    assert [one["content"] for one in history["messages"]] == ["Find gate 4."]
    audit = [one.record for one in await home.audit(action="spawn")]
    assert [(one.effect, one.relation, one.whose) for one in audit] == [("allow", "child", "own")]


async def test_a_spawn_on_another_agent_needs_rights_there(home: House) -> None:
    """Issue, "where it would go wrong": a child is no way to an agent that the person may not use."""
    await home.add_agent("payroll")
    session = await home.open("alice")
    before = result(await home.tool("alice", session, "sessions_spawn", task="x", agentId="payroll"))
    await home.publish(shipped("default.csv") + "\np, role:member, payroll, *, all, any, *, *, deny\n")

    refused = await home.tool("alice", session, "sessions_spawn", task="x", agentId="payroll")
    over_rest = await home.post(
        "alice", "/v1/agents/payroll/sessions", {"kind": "subagent", "parent": session, "title": "x"}
    )

    assert before["status"] == "accepted"
    assert (refused.status_code, over_rest.status_code) == (404, 404)
    rows = result(await home.tool("alice", session, "sessions_list"))["sessions"]
    assert {one["key"] for one in rows} == {session, before["childSessionKey"]}
    record = (await home.audit(decision=refused.headers["gateway-decision"]))[0].record
    assert (record.action, record.agent, record.effect) == ("create", "payroll", "deny")


# ── memory ───────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_memory_get_reads_lines_of_what_the_role_may_read(home: House) -> None:
    """OpenClaw's `memory_get`: `from` and `lines`, and where to go on."""
    session = await home.open("alice")
    home.workspace().replace(TODAY, "".join(f"line {n}\n" for n in range(1, 301)))
    home.workspace().replace("DREAMS.md", "I dreamt.")

    first = result(await home.tool("alice", session, "memory_get", path=TODAY))
    part = result(await home.tool("alice", session, "memory_get", path=TODAY, **{"from": 299, "lines": 5}))
    past = result(await home.tool("alice", session, "memory_get", path=TODAY, **{"from": 900}))
    dreams = result(await home.tool("alice", session, "memory_get", path="DREAMS.md"))

    assert (first["lines"], first["nextFrom"], first["truncated"]) == (120, 121, True)
    assert (part["text"], part["from"], part["lines"]) == ("line 299\nline 300", 299, 2)
    assert (past["text"], past["lines"]) == ("", 0)
    assert dreams["text"] == "I dreamt."
    for path in ("AGENTS.md", "SOUL.md", "notes.txt", "memory/x.txt", "memory"):
        assert result(await home.tool("alice", session, "memory_get", path=path))["status"] == "not_found", path


async def test_a_file_that_can_not_be_read_safely_is_an_error_and_not_an_empty_text(home: House) -> None:
    """Design section 9: never a silent empty answer."""
    session = await home.open("alice")
    folder = home.workspace().root / "flight"
    (folder / "memory").mkdir(exist_ok=True)
    (folder / TODAY).symlink_to(folder / "AGENTS.md")
    (folder / "memory/odd.md").write_bytes(b"\xff")
    (folder / "memory/folder.md").mkdir()
    (folder / "memory/big.md").write_bytes(b"x" * (1024 * 1024 + 1))

    for path, code in (
        (TODAY, "conflict"),
        ("memory/odd.md", "conflict"),
        ("memory/folder.md", "conflict"),
        ("memory/big.md", "too_large"),
    ):
        found = result(await home.tool("alice", session, "memory_get", path=path))
        assert (found["status"], found["code"]) == ("error", code), found
        assert "text" not in found


async def test_a_note_goes_to_today_of_the_person_or_the_team_with_its_origin(
    home: House, clock: SettableClock
) -> None:
    """Design sections 8 and 9: kept outside the text, before the text; from a group for the team alone."""
    session = await home.open("alice")
    group = await home.open("alice", "group", participants=[home.id("bob")])
    mine = daily_path(clock.now().date(), home.id("alice"))
    await home.add("robot", "member", kind="service")

    own = result(await home.tool("alice", session, "memory_append", scope="personal", text="I sit at the window."))
    team = result(
        await home.tool("bob", group, "memory_append", scope="shared", text="Gate 4 is closed.\n# Not a head")
    )
    service = result(await home.tool("robot", await home.open("robot"), "memory_append", scope="shared", text="Robot."))
    from_group = await home.tool("alice", group, "memory_append", scope="personal", text="Mine.")

    assert (own["path"], team["path"], service["path"]) == (mine, TODAY, TODAY)
    assert from_group.status_code == 404
    text = home.workspace().read(TODAY).text
    assert text.startswith("# 2026-12-01\n")
    assert "\n- Gate 4 is closed.\n      # Not a head\n- Robot.\n" in text
    notes = home.gateway.stores.notes
    of_team = await notes.of_path(home.tenant, AgentName("flight"), TODAY)
    of_alice = await notes.of_path(home.tenant, AgentName("flight"), mine)
    assert {(one.provenance, one.author) for one in of_team} == {
        ("person", home.id("bob")),
        ("agent", home.id("robot")),
    }
    assert [(one.provenance, one.author) for one in of_alice] == [("person", home.id("alice"))]
    group_id = (await home.get("alice", f"/v1/sessions/{group}")).json()["id"]
    assert group_id in {one.session for one in of_team}
    assert "window" in home.workspace().read(mine).text
    for text in ("\x00", "   \n ", "\x1b[31m", "😀" * 2_001):
        refused = await home.tool("alice", session, "memory_append", scope="shared", text=text)
        assert refused.json()["errors"][0]["field"] == "text", text


async def test_a_full_note_gets_neither_an_entry_nor_the_origin_of_one(home: House) -> None:
    """What one person can pile up is bounded: an entry that is never written leaves no row behind."""
    session = await home.open("alice")
    full = "x" * (FILE_LIMIT - len("\n- 12345\n"))
    home.workspace().replace(TODAY, full)
    for _ in range(3):
        refused = await home.tool("alice", session, "memory_append", scope="shared", text="123456")
        assert refused.status_code == 413
    notes = home.gateway.stores.notes
    assert await notes.of_path(home.tenant, AgentName("flight"), TODAY) == []
    assert home.workspace().read(TODAY).text == full

    result(await home.tool("alice", session, "memory_append", scope="shared", text="12345"))
    assert len(await notes.of_path(home.tenant, AgentName("flight"), TODAY)) == 1


async def test_notes_at_once_are_all_there(home: House) -> None:
    """Design section 12: nothing acknowledged is lost."""
    session = await home.open("alice")
    bobs = await home.open("bob")

    answers = await asyncio.gather(
        *(
            home.tool(who, where, "memory_append", scope="shared", text=f"note {number} of {who}")
            for number in range(20)
            for who, where in (("alice", session), ("bob", bobs))
        )
    )

    assert {one.status_code for one in answers} == {200}
    lines = home.workspace().read(TODAY).text.splitlines()[2:]
    assert sorted(lines) == sorted(f"- note {n} of {who}" for n in range(20) for who in ("alice", "bob"))


# ── personal instructions ────────────────────────────────────────────────────────────────────────────────────────────


async def save(home: House, session: str, content: str, expected: str | None, who: str = "alice") -> dict[str, Any]:
    """A `set`."""
    return result(
        await home.tool(who, session, "personal_instructions", action="set", content=content, expectedHash=expected)
    )


async def test_of_two_first_saves_at_once_one_wins_and_the_other_is_told(home: House) -> None:
    """Design section 6: a stale hash is a conflict with the current hash and nothing is lost."""
    session = await home.open("alice")

    saved = await asyncio.gather(*(save(home, session, f"text {number}", None) for number in range(10)))

    won = [one for one in saved if one["status"] == "ok"]
    assert len(won) == 1
    assert {one["hash"] for one in saved} == {won[0]["hash"]}
    now = result(await home.tool("alice", session, "personal_instructions", action="get"))
    assert (now["content"], now["missing"]) == (won[0]["content"], False)


async def test_a_save_is_the_requesters_own_and_within_its_limit(home: House) -> None:
    """Design section 6: `null` for a new file; 4,000 UTF-16 units; openclaw#64528: never a default workspace."""
    await home.add_agent("hotel")
    session = await home.open("alice")
    before = result(await home.tool("alice", session, "personal_instructions", action="get"))
    first = await save(home, session, "Brief.", None)
    stale = await save(home, session, "Lost.", None)
    empty = await save(home, session, "", first["hash"])
    hotel = result(await home.tool("alice", session, "personal_instructions", action="get", agentId="hotel"))
    long = await home.tool(
        "alice", session, "personal_instructions", action="set", content="😀" * 2_001, expectedHash=empty["hash"]
    )
    fits = await save(home, session, "😀" * 2_000, empty["hash"])

    assert (before["missing"], before["hash"], before["content"]) == (True, None, "")
    assert (stale["status"], stale["hash"]) == ("conflict", first["hash"])
    assert (empty["status"], empty["missing"], hotel["missing"]) == ("ok", False, True)
    assert (long.status_code, long.json()["errors"][0]["field"]) == (422, "content")
    assert fits["status"] == "ok"
    assert home.workspace().read(instructions_path(home.id("alice"))).text == "😀" * 2_000
    assert not (home.workspace("hotel").root / "hotel" / "users").exists()


LOSSES = ["role", "policy", "disabled", "merged", "merged elsewhere", "token", "agent", "left the group", "unavailable"]


@pytest.mark.parametrize("loss", LOSSES)
async def test_rights_that_go_between_the_check_and_the_rename_save_nothing(
    home: House, monkeypatch: pytest.MonkeyPatch, loss: str
) -> None:
    """Design section 6: rights, merge and hash are checked again under the lock, just before the atomic rename."""
    group = await home.open("alice", "group", participants=[home.id("bob")])
    first = await save(home, group, "Kept.", None, who="bob")
    loop = asyncio.get_running_loop()
    replace = Workspace.replace
    stores = home.gateway.stores

    async def lose() -> None:
        if loss == "role":
            await stores.identities.set_roles(home.tenant, home.id("bob"), [])
        elif loss == "policy":
            await home.publish(shipped("default.csv") + "\np, role:member, *, memory/*, all, any, *, edit, deny\n")
        elif loss == "disabled":
            await stores.identities.change_profile(home.tenant, home.id("bob"), name=None, emails=None, disabled=True)
        elif loss == "merged":
            await stores.identities.merge(home.tenant, home.id("bob"), home.id("alice"), home.gateway.clock.now())
        elif loss == "merged elsewhere":  # by a process of which this one has heard nothing yet
            async with Database(home.gateway.settings.state.folder / "gateway.sqlite", readers=1) as database:
                now = home.gateway.clock.now()
                await SqlIdentities(database).merge(home.tenant, home.id("bob"), home.id("alice"), now)
        elif loss == "token":
            token = (await stores.identities.tokens(home.tenant, home.id("bob")))[0]
            await stores.identities.revoke_token(home.tenant, home.id("bob"), token.id, home.gateway.clock.now())
        elif loss == "agent":
            await stores.database.write(
                lambda connection: connection.exec_driver_sql("DELETE FROM agents WHERE name = 'flight'")
            )
            await home.publish(shipped("default.csv"))  # as every change of rights, it raises the epoch
        elif loss == "left the group":
            answer = await home.send("alice", "PATCH", f"/v1/sessions/{group}", {"participants": [home.id("alice")]})
            assert answer.status_code == 200
        else:

            async def away(_tenant: object) -> None:
                raise Unavailable("The store is away.")

            await home.publish(shipped("default.csv"))
            monkeypatch.setattr(stores.policies, "current", away)

    def overtaken(self: Workspace, path: str, text: str, *, before_rename: Any) -> Any:
        def first_lose() -> None:
            asyncio.run_coroutine_threadsafe(lose(), loop).result(5)
            before_rename()

        return replace(self, path, text, before_rename=first_lose)

    monkeypatch.setattr(Workspace, "replace", overtaken)
    saving = {"action": "set", "content": "Lost.", "expectedHash": first["hash"]}

    answer = await home.tool("bob", group, "personal_instructions", **saving)

    expected = {"disabled": 401, "merged": 401, "merged elsewhere": 401, "token": 401, "role": 403, "unavailable": 503}
    assert answer.status_code == expected.get(loss, 404), answer.text
    monkeypatch.undo()
    assert home.workspace().read(instructions_path(home.id("bob"))).text == "Kept."
    assert not list((home.workspace().root / "flight").rglob("*.tmp"))


async def test_a_note_is_not_written_once_the_right_to_it_is_gone(home: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """Design section 12: what is refused has not happened."""
    session = await home.open("alice")
    loop = asyncio.get_running_loop()
    replace = Workspace.replace

    def overtaken(self: Workspace, path: str, text: str, *, before_rename: Any) -> Any:
        lost = home.gateway.stores.identities.set_roles(home.tenant, home.id("alice"), [])
        asyncio.run_coroutine_threadsafe(lost, loop).result(5)
        return replace(self, path, text, before_rename=before_rename)

    monkeypatch.setattr(Workspace, "replace", overtaken)

    answer = await home.tool("alice", session, "memory_append", scope="shared", text="Lost.")

    assert answer.status_code == 403
    assert not (home.workspace().root / "flight" / TODAY).exists()


async def test_a_save_over_rest_is_of_the_agent_of_the_path(home: House) -> None:
    """Interface: `ETag` and `If-Match`, RFC 9110 section 13.1."""
    await home.add_agent("hotel")
    path = "/v1/agents/hotel/personal-instructions"

    made = await home.send("bob", "PUT", path, {"content": "Quiet room."}, headers={"If-None-Match": "*"})
    read = await home.get("bob", path)

    assert made.headers["etag"] == read.headers["etag"] == f'"{read.json()["sha256"]}"'
    assert read.json() == {**made.json(), "units": 11, "limit": 4000}
    assert read.headers["cache-control"] == "no-store"
    assert (await home.get("bob", "/v1/agents/flight/personal-instructions")).json()["sha256"] is None
    for headers in (
        {"If-Match": "abc"},
        {"If-Match": '"'},
        {"If-Match": "*"},
        {"If-None-Match": '"abc"'},
        {"If-Match": made.headers["etag"], "If-None-Match": "*"},
    ):
        answer = await home.send("bob", "PUT", path, {"content": "x"}, headers=headers)
        assert answer.status_code in (422, 428), (headers, answer.text)
    weak = await home.send("bob", "PUT", path, {"content": "x"}, headers={"If-Match": f"W/{made.headers['etag']}"})
    assert weak.status_code == 422
    assert (await home.get("bob", path)).json()["content"] == "Quiet room."
    for content in (None, 5, ["x"]):
        bad = await home.send("bob", "PUT", path, {"content": content}, headers={"If-Match": made.headers["etag"]})
        assert bad.status_code == 422


async def test_a_person_has_one_search_at_a_time_and_keeps_nobody_else_from_theirs(home: House) -> None:
    """Ours: each reads every text in reach, and one member is not to take all the store's readers."""
    alices, bobs = await home.open("alice"), await home.open("bob")
    await home.say("alice", alices, "oslo bag")
    for who, session in (("alice", alices), ("bob", bobs)):  # from now on all but the search is known
        assert (await home.tool(who, session, "sessions_search", query="oslo")).status_code == 200
    over = threading.Event()
    readers = [asyncio.ensure_future(home.gateway.stores.database.read(lambda _: over.wait(5))) for _ in range(4)]

    two = [asyncio.ensure_future(home.tool("alice", alices, "sessions_search", query="oslo")) for _ in range(2)]
    bob = asyncio.ensure_future(home.tool("bob", bobs, "sessions_search", query="oslo"))
    done, waiting = await asyncio.wait(two, return_when=asyncio.FIRST_COMPLETED, timeout=5)
    over.set()
    await asyncio.gather(*readers)

    refused, answered = (await done.pop()), (await waiting.pop())
    assert (refused.status_code, refused.json()["code"], refused.headers["retry-after"]) == (429, "rate_limited", "2")
    assert len(result(answered)["results"]) == 1
    assert (await bob).status_code == 200
    assert (await home.tool("alice", alices, "sessions_search", query="oslo")).status_code == 200
