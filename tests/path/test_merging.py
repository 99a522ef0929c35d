"""One human is one profile, end to end: over REST, with sessions, files and warm memories (design section 5)."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest

from gateway.model import Identity
from gateway.policy.shipped import shipped
from gateway.workspace.paths import instructions_path
from tests.house import House
from tests.path.test_overtaken import elsewhere

ISSUER = "https://id.example"


def at(session: str, more: str = "") -> str:
    """The path of a session."""
    return f"/v1/sessions/{quote(session, safe='')}{more}"


async def merge(home: House, who: str, retired: str, into: str, **more: object) -> Any:
    """A merge as somebody; the answer."""
    return await home.post(who, f"/v1/admin/people/{home.id(retired)}/merge", {"into": home.id(into), **more})


async def keys(home: House, who: str) -> set[str]:
    """What somebody's list shows."""
    return {one["key"] for one in (await home.get(who, "/v1/sessions")).json()["items"]}


async def test_an_owner_makes_one_person_of_two_and_it_is_said_and_recorded(home: House) -> None:
    """Interface: `POST …/merge {into}`; the audit names both ids; a member and an admin may not."""
    now = home.gateway.clock.now()
    identity = Identity(issuer=ISSUER, subject="bob-2", profile=home.id("bob"))
    await home.gateway.stores.identities.link(home.tenant, identity, now)
    private = {who: await home.open(who) for who in ("alice", "bob")}
    group = await home.open("bob", "group", participants=[home.id("alice")], title="Secret plans")

    for who, status in (("alice", 403), ("erin", 403), ("audrey", 403)):
        assert (await merge(home, who, "bob", "alice")).status_code == status
        assert (await merge(home, who, "bob", "alice", preview=True)).status_code == status
    assert (await home.get("bob", "/v1/me")).status_code == 200

    preview = await merge(home, "olga", "bob", "alice", preview=True)
    assert (await home.get("bob", "/v1/me")).status_code == 200
    done = await merge(home, "olga", "bob", "alice")
    again = await merge(home, "olga", "bob", "alice")

    assert [one.status_code for one in (preview, done, again)] == [200] * 3
    said = done.json()
    assert again.json() == said
    assert preview.json() == said | {"preview": True, "merged_at": None}
    assert "Secret plans" not in preview.text
    assert (said["retired"], said["survivor"], said["preview"]) == (home.id("bob"), home.id("alice"), False)
    assert said["identities"] == [{"issuer": ISSUER, "subject": "bob-2"}]
    assert said["emails"] == ["bob@example.com"]
    assert len(said["tokens_revoked"]) == 1
    assert said["roles_ended"] == [{"role": "member", "agent": "*"}]
    assert said["sessions"]["private"] == sorted(private.values())
    group_id = (await home.get("alice", at(group))).json()["id"]
    assert said["sessions"] == said["sessions"] | {"owned": 2, "shared": 0, "groups_of_both": [group_id]}
    assert int(done.headers["gateway-epoch"]) == int(again.headers["gateway-epoch"])
    assert int(done.headers["gateway-epoch"]) == int(preview.headers["gateway-epoch"]) + 1
    records = [one.record for one in await home.audit(action="merge", effect="allow", kind="decision")]
    merged = [one for one in records if one.operation == "people.merge" and one.details]
    assert merged[0].details == {"retired": home.id("bob"), "survivor": home.id("alice"), "raises": True}
    assert merged[0].target == home.id("bob")
    people = (await home.get("erin", "/v1/admin/people")).json()["items"]
    assert home.id("bob") not in [one["id"] for one in people]


@pytest.mark.parametrize(
    ("retired", "into", "status"),
    [
        ("alice", "alice", 422),
        ("alice", "nobody", 422),
        ("nobody", "alice", 404),
        ("alice", "robot", 409),
        ("robot", "alice", 409),
        ("olga", "alice", 409),
    ],
)
async def test_two_that_can_not_be_one_are_refused_over_rest(home: House, retired: str, into: str, status: int) -> None:
    """Bad input names the field and changes nothing."""
    await home.add("robot", kind="service")
    ids = {who: home.id(who) for who in ("alice", "robot", "olga")} | {"nobody": "prf_00000000000000000000000000"}
    before = (await home.get("erin", "/v1/admin/people")).json()
    path, body = f"/v1/admin/people/{ids[retired]}/merge", {"into": ids[into]}
    for asked in (body, {**body, "preview": True}):
        answer = await home.post("olga", path, asked)
        assert answer.status_code == status, answer.text
    if status == 422:
        assert answer.json()["errors"][0]["field"] == "into"
    assert (await home.post("olga", path, {})).status_code == 422
    assert (await home.get("erin", "/v1/admin/people")).json() == before


@pytest.mark.parametrize("where", ["here", "elsewhere"])
async def test_sessions_are_the_survivors_at_once_whatever_was_remembered(home: House, where: str) -> None:
    """Lists and single reads agree, from warm memories too; keys stay, and the survivor's own opens by default."""
    private = {who: await home.open(who) for who in ("alice", "bob", "carol")}
    child = await home.open("bob", "subagent", parent=private["bob"])
    group = await home.open("carol", "group", participants=[home.id("bob")])
    await home.say("bob", private["bob"], "only bob knows 4711")
    await home.say("bob", group, "hello")
    theirs = [private["bob"], child, group]
    for session in theirs:  # every memory is warm with what was true before
        assert (await home.get("alice", at(session))).status_code == 404
        assert (await home.get("bob", at(session))).status_code == 200
    assert await keys(home, "alice") == {private["alice"]}

    if where == "here":
        assert (await merge(home, "olga", "bob", "alice")).status_code == 200
    else:
        async with elsewhere(home) as other:
            await other.merge(home.id("bob"), home.id("alice"))
        await home.gateway.epochs.poll()

    assert await keys(home, "alice") == {private["alice"], *theirs}
    assert await keys(home, "carol") == {private["carol"], group}
    for session in theirs:
        assert (await home.get("alice", at(session))).status_code == 200
        assert (await home.get("carol", at(session))).status_code == (200 if session == group else 404)
    told = (await home.get("alice", at(private["bob"], "/messages"))).json()["items"]
    assert [(one["content"], one["sender"]) for one in told] == [("only bob knows 4711", home.id("bob"))]
    found = await home.tool("alice", private["alice"], "sessions_search", query="4711")
    assert [one["sessionKey"] for one in found.json()["result"]["results"]] == [private["bob"]]
    shown = (await home.get("carol", at(group))).json()
    assert sorted(shown["participants"]) == sorted([home.id("alice"), home.id("carol")])
    assert (await home.get("alice", at(private["bob"]))).json()["creator"] == home.id("bob")
    assert await home.open("alice") == private["alice"]
    await home.say("alice", private["bob"], "and alice, who is bob")
    assert (await home.get("bob", "/v1/me")).status_code == 401


async def test_files_are_not_combined_and_the_retired_ones_are_nobodys(home: House) -> None:
    """Design section 5: `users/<retired>/` stays where it is; no turn loads it and nobody reads it by its path."""
    for who in ("alice", "bob"):
        saved = await home.send(
            who,
            "PUT",
            "/v1/agents/flight/personal-instructions",
            {"content": f"I am {who}."},
            headers={"If-None-Match": "*"},
        )
        assert saved.status_code == 200, saved.text
    private = {who: await home.open(who) for who in ("alice", "bob")}
    assert (await merge(home, "olga", "bob", "alice")).status_code == 200

    for session in private.values():  # in the retired one's session too, the survivor's own file is the personal one
        text = (await home.post("alice", at(session, "/context"))).json()["text"]
        assert "I am alice." in text
        assert "I am bob." not in text
    for who in ("alice", "carol", "dana", "olga"):
        path = instructions_path(home.id("bob"))
        session = await home.open(who) if who in ("carol", "dana") else private["alice"]
        answer = await home.tool(who, session, "memory_get", path=path)
        assert "I am bob." not in answer.text
    assert home.workspace().read(instructions_path(home.id("bob"))).text == "I am bob."


async def test_a_save_of_what_was_read_before_the_merge_is_a_conflict(
    home: House,
) -> None:
    """Design section 6: the hash that was read is another file's; nothing is lost, and the current hash is told."""
    path = "/v1/agents/flight/personal-instructions"
    read = {}
    for who in ("alice", "bob"):
        await home.send(who, "PUT", path, {"content": f"I am {who}."}, headers={"If-None-Match": "*"})
        read[who] = (await home.get(who, path)).headers["etag"]
    assert (await merge(home, "olga", "bob", "alice")).status_code == 200
    home.secrets["bob"] = home.secrets["alice"]  # signs in again: as the survivor

    stale = await home.send("bob", "PUT", path, {"content": "Lost."}, headers={"If-Match": read["bob"]})

    assert (stale.status_code, stale.json()["code"]) == (412, "precondition_failed")
    assert home.workspace().read(instructions_path(home.id("alice"))).text == "I am alice."
    assert home.workspace().read(instructions_path(home.id("bob"))).text == "I am bob."


async def test_what_a_row_says_of_the_retired_profile_holds_for_the_survivor(home: House) -> None:
    """Design section 5: a deny that named bob is not lost by a merge."""
    deny = f"p, user:{home.id('bob')}, *, session/*, all, any, *, history, deny\n"
    await home.publish(shipped("default.csv") + deny)
    private = await home.open("alice")
    assert (await home.get("alice", at(private, "/messages"))).status_code == 200
    assert (await merge(home, "olga", "bob", "alice")).status_code == 200
    assert (await home.get("alice", at(private, "/messages"))).status_code == 404
    assert (await home.get("carol", at(await home.open("carol"), "/messages"))).status_code == 200


async def test_whoever_made_a_session_of_a_service_is_still_who_made_it(home: House) -> None:
    """Design section 6: personal files load for the creator where the owner is not a person; also after a merge."""
    robot = await home.add("robot", "member", kind="service")
    cron = await home.open("bob", "cron", participants=[robot.id])
    assert (await home.send("bob", "PUT", at(cron, "/owner"), {"profile": robot.id})).status_code == 200

    async def reasons(who: str) -> dict[str, str]:
        manifest = (await home.post(who, at(cron, "/context"))).json()["manifest"]
        return {one["kind"]: one["reason"] for one in manifest if one["kind"].startswith("personal")}

    before = await reasons("bob")
    assert (await merge(home, "olga", "bob", "alice")).status_code == 200
    assert await reasons("alice") == before
