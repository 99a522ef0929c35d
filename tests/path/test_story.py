"""The main job, over HTTP: several people share one agent, and each turn gets exactly the memory it may see."""

from __future__ import annotations

from typing import Any

import httpx2

from gateway.workspace.paths import instructions_path
from tests.house import House

SECRET = "the runway code is 4711"


def _without_ids(answer: httpx2.Response) -> dict[str, Any]:
    body = dict(answer.json())
    ids = {name: body.pop(name) for name in ("request_id", "decision") if name in body}
    assert all(found.startswith(f"{name[:3]}_") for name, found in ids.items())
    return body


def same_answer(one: httpx2.Response, other: httpx2.Response) -> bool:
    """Whether two answers are the same bytes but for the ids of request and decision, headers included."""
    ids = {"x-request-id", "gateway-decision"}
    headers = [{k: v for k, v in answer.headers.items() if k not in ids} for answer in (one, other)]
    both_decided = ("gateway-decision" in one.headers) == ("gateway-decision" in other.headers)
    return (
        one.status_code == other.status_code
        and headers[0] == headers[1]
        and both_decided
        and _without_ids(one) == _without_ids(other)
        and len(one.content) == len(other.content)
    )


def manifest(answer: httpx2.Response) -> dict[str, str | None]:
    """Path to reason, None for what is in."""
    assert answer.status_code == 200, answer.text
    return {one["path"]: one["reason"] for one in answer.json()["manifest"]}


async def test_a_private_session_gets_the_shared_then_the_personal_instructions(home: House) -> None:
    """Design section 6: personal supplements the shared file and comes after it."""
    session = await home.open("alice")
    mine = instructions_path(home.id("alice"))
    home.workspace().replace("USER.md", "Everybody likes litres.")
    home.workspace().replace(mine, "Alice likes haiku.")
    home.workspace().replace("MEMORY.md", SECRET)

    answer = await home.post("alice", f"/v1/sessions/{session}/context")

    text = answer.json()["text"]
    assert text.index("likes litres") < text.index("likes haiku")
    assert SECRET in text
    assert manifest(answer)[mine] is None
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["gateway-decision"].startswith("dec_")
    assert int(answer.headers["gateway-epoch"]) == answer.json()["epoch"]


async def test_another_persons_session_is_answered_like_one_that_is_not_there(home: House) -> None:
    """Design section 7, "denied looks like missing", on every route of a session; alice herself is let in."""
    session = await home.open("alice")
    await home.say("alice", session, SECRET)
    missing = home.private("carol")
    routes: list[tuple[str, str, object]] = [
        ("GET", "", None),
        ("GET", "/messages", None),
        ("POST", "/messages", {"role": "user", "content": "hello"}),
        ("POST", "/context", {}),
        ("POST", "/tools/memory_get", {"path": "USER.md"}),
        ("POST", "/tools/sessions_history", {"sessionKey": "current"}),
        ("PATCH", "", {"title": "mine now"}),
        ("PATCH", "", {"participants": [home.id("bob")]}),
        ("PUT", "/owner", {"profile": home.id("bob")}),
        ("POST", "/archive", None),
        ("POST", "/reset", None),
        ("DELETE", "", None),
    ]
    for method, path, body in routes:
        theirs = await home.send("bob", method, f"/v1/sessions/{session}{path}", body)
        nobodys = await home.send("bob", method, f"/v1/sessions/{missing}{path}", body)
        assert theirs.status_code == 404, (method, path, theirs.text)
        assert same_answer(theirs, nobodys), (method, path)

    mine = await home.get("alice", f"/v1/sessions/{session}/messages")
    assert [one["content"] for one in mine.json()["items"]] == [SECRET]


async def test_a_group_never_gets_root_memory_and_the_manifest_says_why(home: House) -> None:
    """Design section 6, the table, and the first invariant of section 7."""
    group = await home.open("alice", "group", participants=[home.id("bob")])
    home.workspace().replace("MEMORY.md", SECRET)
    home.workspace().replace(instructions_path(home.id("alice")), "Alice likes haiku.")

    answer = await home.post("alice", f"/v1/sessions/{group}/context")
    read = await home.tool("alice", group, "memory_get", path="MEMORY.md")
    absent = await home.tool("alice", group, "memory_get", path="memory/2020-01-01.md")

    assert SECRET not in answer.text
    assert manifest(answer)["MEMORY.md"] == "group_session"
    assert manifest(answer)[instructions_path(home.id("alice"))] == "group_session"
    assert manifest(answer)["AGENTS.md"] is None
    assert read.json()["result"]["status"] == absent.json()["result"]["status"] == "not_found"
    assert SECRET not in read.text
    private = await home.open("alice")
    assert SECRET in (await home.tool("alice", private, "memory_get", path="MEMORY.md")).text


async def test_the_audit_tells_all_of_it(home: House) -> None:
    """One access record for each request, one decision record for each decision, with the reason of a refusal."""
    session = await home.open("alice")
    await home.post("alice", f"/v1/sessions/{session}/context")
    refused = await home.get("bob", f"/v1/sessions/{session}/messages")

    records = await home.audit(decision=refused.headers["gateway-decision"])

    decision = next(one.record for one in records if one.record.kind == "decision")
    access = next(one.record for one in records if one.record.kind == "access")
    assert (decision.profile, decision.effect, decision.code) == (home.id("bob"), "deny", "no_matching_row")
    assert (decision.relation, decision.whose, decision.chat) == ("same_agent", "other", "private")
    assert decision.target == session
    assert (access.operation, access.effect, access.code) == ("messages.list", "deny", "not_found")
    assert (await home.get("audrey", "/v1/admin/audit/verify")).json()["sound"] is True
    accesses = await home.audit(kind="access", person=home.id("alice"))
    assert [one.record.operation for one in accesses] == ["sessions.create", "context.assemble"]


async def test_only_ones_own_instructions_change_whoever_owns_the_session(home: House) -> None:
    """Design section 6: no argument can name another person; a stale hash is a conflict and nothing is lost."""
    group = await home.open("alice", "group", participants=[home.id("bob")])

    saved = await home.tool("bob", group, "personal_instructions", action="set", content="Bob.", expectedHash=None)
    stale = await home.tool("bob", group, "personal_instructions", action="set", content="Lost.", expectedHash=None)
    read = await home.get("bob", "/v1/agents/flight/personal-instructions")
    alices = await home.get("alice", "/v1/agents/flight/personal-instructions")

    assert saved.json()["result"]["status"] == "ok"
    assert stale.json()["result"] == {
        "status": "conflict",
        "error": stale.json()["result"]["error"],
        "hash": saved.json()["result"]["hash"],
    }
    assert read.json()["content"] == "Bob."
    assert alices.json() == {"content": "", "sha256": None, "units": 0, "limit": 4000}
    named = await home.tool("bob", group, "personal_instructions", action="get", profileId=home.id("alice"))
    assert named.status_code == 422


async def test_instructions_over_rest_need_the_hash_that_was_read(home: House) -> None:
    """Interface: 428 without it, 412 with the current hash for a stale one."""
    path = "/v1/agents/flight/personal-instructions"
    body = {"content": "Short answers."}

    without = await home.send("alice", "PUT", path, body)
    made = await home.send("alice", "PUT", path, body, headers={"If-None-Match": "*"})
    again = await home.send("alice", "PUT", path, body, headers={"If-None-Match": "*"})
    stale = await home.send("alice", "PUT", path, body, headers={"If-Match": f'"{"0" * 64}"'})
    right = await home.send("alice", "PUT", path, {"content": "Long."}, headers={"If-Match": made.headers["etag"]})

    assert without.status_code == 428
    assert made.status_code == 200
    assert (again.status_code, stale.status_code) == (412, 412)
    assert f'"{again.json()["current"]}"' == made.headers["etag"]
    assert right.json()["content"] == "Long."


async def test_a_supervisor_reads_a_private_session_and_does_not_write_into_it(home: House) -> None:
    """Design section 7, the shipped default in words; never from a group."""
    session = await home.open("alice")
    await home.say("alice", session, SECRET)
    group = await home.open("dana", "group", participants=[home.id("bob")])
    own = await home.open("dana")

    read = await home.get("dana", f"/v1/sessions/{session}/messages")
    inside = await home.tool("dana", own, "sessions_history", sessionKey=session)
    written = await home.post("dana", f"/v1/sessions/{session}/messages", {"role": "user", "content": "Hi"})
    from_group = await home.tool("dana", group, "sessions_history", sessionKey=session)

    assert SECRET in read.text
    assert SECRET in inside.text
    assert (written.status_code, from_group.status_code) == (404, 404)


async def test_an_admin_sees_no_content_and_an_auditor_no_more_than_the_audit(home: House) -> None:
    """Design section 7, the shipped default: a function that a role lacks altogether is named."""
    session = await home.open("alice")
    await home.say("alice", session, SECRET)

    for who in ("erin", "audrey"):
        refused = await home.get(who, f"/v1/sessions/{session}/messages")
        assert refused.status_code == 403
        assert refused.json()["code"] == "tool_not_allowed"
        listed = await home.get(who, "/v1/sessions")
        assert listed.status_code == 403
    assert (await home.get("erin", "/v1/admin/people")).status_code == 200
    assert (await home.get("audrey", "/v1/admin/people")).status_code == 403
    audit = await home.get("audrey", "/v1/admin/audit")
    assert audit.status_code == 200
    assert SECRET not in audit.text
