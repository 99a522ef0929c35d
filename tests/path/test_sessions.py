"""What people do with sessions over HTTP: keys, kinds, trees, people, endings (design section 6)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import httpx2
import pytest

from gateway.model import Message, ProfileId, Session, SessionFacts, SessionId, TenantId
from gateway.policy.shipped import shipped
from gateway.ports import Page
from tests.clock import SettableClock
from tests.house import House

MISSING = "ses_00000000000000000000000000"


async def create(home: House, who: str, **body: object) -> httpx2.Response:
    """A creating call."""
    return await home.post(who, "/v1/agents/flight/sessions", body)


async def contents(home: House, who: str, session: str) -> list[str]:
    """What somebody reads in a session."""
    answer = await home.get(who, f"/v1/sessions/{session}/messages")
    assert answer.status_code == 200, answer.text
    return [one["content"] for one in answer.json()["items"]]


async def listed(home: House, who: str, query: str = "", *, at: str = "/v1/sessions") -> list[str]:
    """The keys of a list, all its pages, three a page."""
    found: list[str] = []
    cursor = ""
    while True:
        answer = await home.get(who, f"{at}?limit=3{query}{cursor}")
        assert answer.status_code == 200, answer.text
        found += [one["key"] for one in answer.json()["items"]]
        if answer.json()["next_cursor"] is None:
            return found
        cursor = f"&cursor={answer.json()['next_cursor']}"


# ── keys and kinds ───────────────────────────────────────────────────────────────────────────────────────────────────


async def test_each_kind_has_a_key_of_its_own_shape_and_holds_its_creator(home: House) -> None:
    """Design section 6: keys as in OpenClaw; a name that a caller chooses lives under their own id."""
    alice = home.id("alice")
    private = await create(home, "alice", kind="direct")
    again = await create(home, "alice", kind="direct", title="ignored, it is there")
    shapes = {
        "agent:flight:explicit:": await create(home, "alice", kind="direct", name="notes"),
        "agent:flight:dashboard:incognito-": await create(home, "alice", kind="direct", incognito=True),
        "agent:flight:web:group:": await create(home, "alice", kind="group"),
        "agent:flight:web:channel:": await create(home, "alice", kind="channel"),
        "agent:flight:cron:": await create(home, "alice", kind="cron"),
        "agent:flight:subagent:": await create(home, "alice", kind="subagent", parent=home.private("alice")),
    }

    assert private.json()["key"] == home.private("alice")
    assert (private.status_code, again.status_code) == (201, 200)
    assert again.json() == private.json()
    for prefix, answer in shapes.items():
        assert answer.status_code == 201, answer.text
        assert answer.json()["key"].startswith(prefix)
        assert answer.json()["creator"] == answer.json()["owner"] == alice
        assert answer.headers["location"] == f"/v1/sessions/{answer.json()['id']}"
    assert shapes["agent:flight:explicit:"].json()["key"] == f"agent:flight:explicit:{alice}:notes"


@pytest.mark.parametrize(
    ("body", "field", "rule"),
    [
        ({"kind": "lounge"}, "kind", "unknown_kind"),
        ({"kind": "Direct"}, "kind", "unknown_kind"),
        ({}, "kind", "missing"),
        ({"kind": "direct", "name": "../x"}, "name", "name"),
        ({"kind": "direct", "name": "a:b"}, "name", "name"),
        ({"kind": "subagent"}, "parent", "subagent_has_parent"),
        ({"kind": "group", "title": "x" * 201}, "title", "too_long"),
        ({"kind": "group", "incognito": True}, "incognito", "private_only"),
        ({"kind": "direct", "participants": ["prf_00000000000000000000000000"]}, "participants", "one_person"),
        ({"kind": "group", "participants": ["prf_00000000000000000000000000"]}, "participants", "unknown_person"),
        ({"kind": "group", "participants": [f"prf_{n}" for n in range(200)]}, "participants", "too_many"),
        ({"kind": "group", "key": "agent:flight:direct:x"}, "key", "extra_forbidden"),
        ({"kind": "group", "owner": "prf_00000000000000000000000000"}, "owner", "extra_forbidden"),
        ({"kind": "group", "sandboxed": "yes"}, "sandboxed", "bool_type"),
    ],
)
async def test_a_creating_call_that_breaks_a_rule_makes_nothing(
    home: House, body: dict[str, object], field: str, rule: str
) -> None:
    """Design section 6: an unknown kind is refused; section 12: bad input changes nothing and names field and rule."""
    answer = await create(home, "alice", **body)

    assert answer.status_code == 422, answer.text
    assert [(one["field"], one["rule"]) for one in answer.json()["errors"]] == [(field, rule)]
    assert await listed(home, "alice") == []


async def test_all_faults_come_at_once(home: House) -> None:
    """Design section 12: a problem document names every field."""
    answer = await create(home, "alice", kind="direct", name="NO", title="x" * 300, participants=["a"])
    fields = {one["field"] for one in answer.json()["errors"]}
    assert {"participants", "name"} <= fields


async def test_nobody_can_squat_anothers_name(home: House) -> None:
    """Design section 6; a 409 tells only about one's own sessions."""
    first = await create(home, "alice", kind="group", name="desk")
    others = await create(home, "bob", kind="group", name="desk")
    again = await create(home, "alice", kind="direct", name="desk")
    squat = await create(home, "bob", kind="group", name=f"{home.id('alice').lower()}")

    assert (first.status_code, others.status_code, again.status_code) == (201, 201, 409)
    assert first.json()["key"] != others.json()["key"]
    assert home.id("alice") not in others.json()["key"]
    assert squat.json()["key"].startswith(f"agent:flight:explicit:{home.id('bob')}:")
    assert again.json()["code"] == "conflict"


async def test_a_parent_that_is_not_yours_is_missing(home: House) -> None:
    """Issue, "where it would go wrong": a child is no way to what the session itself may not."""
    parent = await home.open("alice")

    theirs = await create(home, "bob", kind="subagent", parent=parent)
    nobodys = await create(home, "bob", kind="subagent", parent=MISSING)
    wrong_kind = await create(home, "bob", kind="group", parent=parent)
    mine = await create(home, "alice", kind="group", parent=parent)

    assert theirs.status_code == nobodys.status_code == wrong_kind.status_code == 404
    assert theirs.json() | {"request_id": ""} == nobodys.json() | {"request_id": ""}
    assert mine.json()["errors"][0]["rule"] == "subagent_has_parent"


async def test_two_first_uses_at_once_open_one_private_session(home: House) -> None:
    """Design section 6: a person's private session with an agent is one."""
    answers = await asyncio.gather(*(create(home, "alice", kind="direct") for _ in range(8)))

    assert {one.json()["id"] for one in answers} == {answers[0].json()["id"]}
    assert sorted(one.status_code for one in answers) == [200] * 7 + [201]


# ── trees ────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_tree_holds_children_at_any_depth_and_on_other_agents(home: House) -> None:
    """Design section 6, lineage is the whole chain; openclaw#55983, #56019: and nothing else of that agent."""
    await home.add_agent("hotel")
    root = await home.open("alice")
    child = await home.open("alice", "subagent", parent=root, name="scout")
    deep = await home.open("alice", "subagent", parent=child, agent="hotel", title="Rooms")
    deeper = await home.open("alice", "subagent", parent=deep, agent="hotel")
    elsewhere = await home.open("alice", agent="hotel")

    assert child == f"agent:flight:explicit:{home.id('alice')}:scout"
    for one in (child, deep, deeper):
        shown = (await home.get("alice", f"/v1/sessions/{one}")).json()
        assert shown["owner"] == home.id("alice")
        assert shown["private"] is True
    from_root = await home.tool("alice", root, "sessions_list")
    assert {one["key"] for one in from_root.json()["result"]["sessions"]} == {root, child, deep, deeper}
    assert (await home.tool("alice", root, "sessions_history", sessionKey=deeper)).status_code == 200
    # From inside, `other_agent` is in no row of a member; from outside it is simply their own.
    assert (await home.tool("alice", root, "sessions_history", sessionKey=elsewhere)).status_code == 404
    assert (await home.get("alice", f"/v1/sessions/{elsewhere}/messages")).status_code == 200
    # A child sees itself and its agent, not its parent's agent.
    inside = {one["key"] for one in (await home.tool("alice", deep, "sessions_list")).json()["result"]["sessions"]}
    assert inside == {deep, deeper, elsewhere}
    for who in ("bob", "erin"):
        assert (await home.get(who, f"/v1/sessions/{deeper}")).status_code in (403, 404)


async def test_a_tree_has_a_greatest_depth(home: House) -> None:
    """Ours: a lineage that grows without end would make each look-up longer."""
    session = await home.open("alice")
    for _ in range(31):
        session = await home.open("alice", "subagent", parent=session)

    answer = await create(home, "alice", kind="subagent", parent=session)

    assert answer.status_code == 409
    assert "32 sessions deep" in answer.json()["detail"]


async def test_a_child_of_a_group_is_shared_and_everybodys_in_it(home: House) -> None:
    """Design section 6: a child belongs to whom its tree's root belongs, and its people are those of its root."""
    group = await home.open("alice", "group", participants=[home.id("bob")])
    child = await home.open("bob", "subagent", parent=group)
    shown = (await home.get("alice", f"/v1/sessions/{child}")).json()

    assert shown["private"] is False
    assert shown["owner"] == home.id("alice")
    assert shown["creator"] == home.id("bob")
    assert set(shown["participants"]) == {home.id("alice"), home.id("bob")}
    assert (await home.get("carol", f"/v1/sessions/{child}")).status_code == 404
    refused = await create(home, "bob", kind="subagent", parent=group, participants=[home.id("carol")])
    assert refused.json()["errors"][0]["rule"] == "one_person"
    changed = await home.send("alice", "PATCH", f"/v1/sessions/{child}", {"participants": [home.id("alice")]})
    given = await home.send("alice", "PUT", f"/v1/sessions/{child}/owner", {"profile": home.id("bob")})
    assert (changed.status_code, given.status_code) == (409, 409)


async def test_a_sandboxed_session_reaches_its_tree_alone(home: House) -> None:
    """Design section 7: relations intersected with `tree`, for its children too; OpenClaw widens a `self` there."""
    other = await home.open("alice")
    await home.say("alice", other, "needle elsewhere")
    boxed = await home.open("alice", name="boxed", sandboxed=True)
    child = await home.open("alice", "subagent", parent=boxed)

    for here, sees in ((boxed, {boxed, child}), (child, {child})):
        rows = (await home.tool("alice", here, "sessions_list")).json()["result"]["sessions"]
        assert {one["key"] for one in rows} == sees
        assert (await home.tool("alice", here, "sessions_history", sessionKey=other)).status_code == 404
        found = (await home.tool("alice", here, "sessions_search", query="needle")).json()["result"]["results"]
        assert found == []
    assert (await home.get("alice", f"/v1/sessions/{child}")).json()["sandboxed"] is True
    assert (await home.tool("alice", other, "sessions_history", sessionKey=boxed)).status_code == 200


async def test_an_incognito_session_is_seen_from_inside_itself_alone(home: House) -> None:
    """Design section 7, invariants: never in a list or a search, whoever asks and wherever from but itself."""
    secret = await home.open("alice", incognito=True)
    await home.say("alice", secret, "needle of mine")
    main = await home.open("alice")

    assert secret not in await listed(home, "alice")
    for who, from_where in (("alice", main), ("dana", await home.open("dana"))):
        rows = (await home.tool(who, from_where, "sessions_list")).json()["result"]["sessions"]
        assert secret not in {one["key"] for one in rows}
        found = (await home.tool(who, from_where, "sessions_search", query="needle")).json()["result"]["results"]
        assert found == []
        assert (await home.tool(who, from_where, "sessions_history", sessionKey=secret)).status_code == 404
    assert (await home.get("dana", f"/v1/sessions/{secret}/messages")).status_code == 404
    inside = await home.tool("alice", secret, "sessions_history", sessionKey="current")
    assert [one["content"] for one in inside.json()["result"]["messages"]] == ["needle of mine"]
    hits = (await home.tool("alice", secret, "sessions_search", query="needle")).json()["result"]["results"]
    assert [one["sessionKey"] for one in hits] == [secret]
    child = await home.open("alice", "subagent", parent=secret)
    assert child not in await listed(home, "alice")


async def test_the_owner_of_an_incognito_session_reaches_it_by_its_key_and_nobody_else_does(home: House) -> None:
    """Design section 7: there is nowhere but inside it; so its owner can read, empty and remove it over REST too."""
    secret = await home.open("alice", incognito=True)
    await home.say("alice", secret, "needle of mine")
    path = f"/v1/sessions/{secret}"

    assert await contents(home, "alice", secret) == ["needle of mine"]
    assert (await home.get("alice", path)).json()["incognito"] is True
    for who in ("bob", "dana"):
        for method, at in (("GET", ""), ("GET", "/messages"), ("POST", "/archive"), ("POST", "/reset"), ("DELETE", "")):
            assert (await home.send(who, method, f"{path}{at}")).status_code == 404, (who, method, at)
    assert (await home.post("alice", f"{path}/reset")).status_code == 200
    assert await contents(home, "alice", secret) == []
    assert (await home.post("alice", f"{path}/archive")).status_code == 200
    assert (await home.send("alice", "DELETE", path)).status_code == 204
    assert (await home.get("alice", path)).status_code == 404


# ── people ───────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_who_joins_later_reads_from_their_joining_on(home: House) -> None:
    """Design section 6; leaving ends access at once, and who comes back starts anew."""
    group = await home.open("alice", "group")
    people = f"/v1/sessions/{group}"

    async def members(*names: str) -> None:
        ids = [home.id(name) for name in names]
        answer = await home.send("alice", "PATCH", people, {"participants": ids})
        assert answer.status_code == 200, answer.text
        assert set(answer.json()["participants"]) == set(ids)

    await home.say("alice", group, "needle before bob")
    assert (await home.get("bob", f"{people}/messages")).status_code == 404
    await members("alice", "bob")
    await home.say("alice", group, "needle with bob")
    assert await contents(home, "bob", group) == ["needle with bob"]
    assert await contents(home, "alice", group) == ["needle before bob", "needle with bob"]
    main = await home.open("bob")
    found = (await home.tool("bob", main, "sessions_search", query="NEEDLE")).json()["result"]["results"]
    assert [one["content"] for one in found] == ["needle with bob"]
    shown = await home.tool("bob", main, "sessions_list", messageLimit=5)
    rows = {one["key"]: one.get("messages") for one in shown.json()["result"]["sessions"]}
    assert [one["content"] for one in rows[group]] == ["needle with bob"]

    await members("alice")
    await home.say("alice", group, "needle without bob")
    assert (await home.get("bob", f"{people}/messages")).status_code == 404
    assert (await home.post("bob", f"{people}/messages", {"role": "user", "content": "hello?"})).status_code == 404
    assert group not in await listed(home, "bob")
    assert (await home.tool("bob", main, "sessions_search", query="needle")).json()["result"]["results"] == []

    await members("alice", "bob", "carol")
    await home.say("alice", group, "needle again")
    assert await contents(home, "bob", group) == await contents(home, "carol", group) == ["needle again"]


async def test_nobody_is_added_to_a_private_session_and_it_stays_its_persons(home: House) -> None:
    """Design section 6: that makes a new group session; a private session's owner can't be reassigned."""
    session = await home.open("alice")

    added = await home.send("alice", "PATCH", f"/v1/sessions/{session}", {"participants": [home.id("bob")]})
    titled = await home.send(
        "alice", "PATCH", f"/v1/sessions/{session}", {"title": "Ours", "participants": [home.id("bob")]}
    )
    given = await home.send("alice", "PUT", f"/v1/sessions/{session}/owner", {"profile": home.id("bob")})

    assert (added.status_code, titled.status_code, given.status_code) == (409, 409, 409)
    assert (await home.get("bob", f"/v1/sessions/{session}")).status_code == 404
    shown = (await home.get("alice", f"/v1/sessions/{session}")).json()
    assert (shown["title"], shown["participants"]) == (None, [home.id("alice")])


async def test_the_owner_takes_part_until_somebody_else_owns_it(home: House) -> None:
    """Design section 6: reassigning changes who is responsible, and reads as the policy says."""
    group = await home.open("alice", "group", participants=[home.id("bob")])
    path = f"/v1/sessions/{group}"

    without = await home.send("bob", "PATCH", path, {"participants": [home.id("bob")]})
    unknown = await home.send("alice", "PUT", f"{path}/owner", {"profile": "prf_00000000000000000000000000"})
    strangers = await home.send("alice", "PATCH", path, {"participants": [home.id("alice"), "prf_x"]})
    crowd = [home.id("alice"), *(f"prf_{n}" for n in range(200))]
    too_many = await home.send("alice", "PATCH", path, {"participants": crowd})
    given = await home.send("alice", "PUT", f"{path}/owner", {"profile": home.id("carol")})
    left = await home.send("carol", "PATCH", path, {"participants": [home.id("carol"), home.id("bob")]})

    assert without.status_code == 409
    assert unknown.json()["errors"][0]["field"] == "profile"
    assert strangers.json()["errors"][0]["rule"] == "unknown_person"
    assert too_many.json()["errors"][0]["rule"] == "too_many"
    assert (given.json()["owner"], left.status_code) == (home.id("carol"), 200)
    assert given.json()["creator"] == home.id("alice")
    assert (await home.get("alice", path)).status_code == 404
    assert await listed(home, "carol") == [group]


async def test_a_patch_changes_what_it_names_and_nothing_else(home: House) -> None:
    """Interface: a field that is not sent stays."""
    group = await home.open("alice", "group", participants=[home.id("bob")], title="First")
    path = f"/v1/sessions/{group}"

    empty = await home.send("alice", "PATCH", path, {})
    people_null = await home.send("alice", "PATCH", path, {"participants": None})
    long = await home.send("alice", "PATCH", path, {"title": "x" * 201})
    renamed = await home.send("bob", "PATCH", path, {"title": "Second"})
    both = await home.send("alice", "PATCH", path, {"title": "Third", "participants": [home.id("alice")]})
    cleared = await home.send("alice", "PATCH", path, {"title": None})

    assert [one.status_code for one in (empty, people_null, long)] == [422, 422, 422]
    assert (renamed.json()["title"], len(renamed.json()["participants"])) == ("Second", 2)
    assert (both.json()["title"], both.json()["participants"]) == ("Third", [home.id("alice")])
    assert cleared.json()["title"] is None


async def test_a_patch_of_a_title_and_people_is_refused_whole_or_done_whole(
    home: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Design section 12: both answers of the policy are on disk before it begins, and a refusal changed nothing."""
    group = await home.open("alice", "group", participants=[home.id("bob")], title="First")
    path, sessions = f"/v1/sessions/{group}", home.gateway.stores.sessions
    changing = sessions.set_title_and_participants
    decided: list[tuple[str | None, str | None]] = []

    async def looking(*arguments: Any, **named: Any) -> Any:
        found = await home.audit(kind="decision", person=home.id("alice"))
        decided.extend((one.record.action, one.record.effect) for one in found[-2:])
        return await changing(*arguments, **named)

    monkeypatch.setattr(sessions, "set_title_and_participants", looking)
    people = [home.id("alice"), home.id("carol")]
    policy = (await home.get("erin", "/v1/admin/policy")).json()
    bobs = f"p, user:{home.id('bob')}, flight, session/shared, all, any, *, participants, deny\n"
    text = f"{policy['text']}\n{bobs}"
    put = await home.send("erin", "PUT", "/v1/admin/policy", {"text": text, "base_version": 1, "comment": "Try."})
    assert put.status_code == 200, put.text

    long = await home.send("alice", "PATCH", path, {"title": "x" * 201, "participants": people})
    unknown = await home.send("alice", "PATCH", path, {"title": "Late", "participants": [*people, "prf_x"]})
    refused = await home.send("bob", "PATCH", path, {"title": "Late", "participants": [*people, home.id("bob")]})
    alone = await home.send("bob", "PATCH", path, {"title": "Second"})
    before = (await home.get("alice", path)).json()
    both = await home.send("alice", "PATCH", path, {"title": "Third", "participants": people})

    assert [one.status_code for one in (long, unknown, refused, alone, both)] == [422, 422, 404, 200, 200]
    assert (before["title"], set(before["participants"])) == ("Second", {home.id("alice"), home.id("bob")})
    assert (both.json()["title"], set(both.json()["participants"])) == ("Third", set(people))
    assert sorted(decided) == [("participants", "allow"), ("post", "allow")]


# ── messages and endings ─────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_person_writes_as_user_alone(home: House) -> None:
    """Design section 6: assistant, system and tool come from a runtime."""
    session = await home.open("alice")
    for role in ("assistant", "system", "tool", "User", "developer"):
        answer = await home.post("alice", f"/v1/sessions/{session}/messages", {"role": role, "content": "I am it"})
        assert answer.json()["errors"][0] | {"message": ""} == {"field": "role", "rule": "user_only", "message": ""}
    for content in ("", None, 7):
        answer = await home.post("alice", f"/v1/sessions/{session}/messages", {"role": "user", "content": content})
        assert answer.status_code == 422
    long = await home.post("alice", f"/v1/sessions/{session}/messages", {"role": "user", "content": "😀" * 100_001})
    assert long.json()["errors"][0]["rule"] == "too_long"
    named = await home.post(
        "alice", f"/v1/sessions/{session}/messages", {"role": "user", "content": "x", "sender": home.id("bob")}
    )
    assert named.status_code == 422
    assert await contents(home, "alice", session) == []

    sent = await home.post("alice", f"/v1/sessions/{session}/messages", {"role": "user", "content": "Hello"})
    assert (sent.status_code, sent.json()["sender"], sent.json()["name"]) == (201, home.id("alice"), "alice")


async def test_a_session_says_when_it_was_last_spoken_in(home: House, clock: SettableClock) -> None:
    """Interface, the session's `last_message_at`; also where the session was looked at before."""
    session = await home.open("alice")
    assert (await home.get("alice", f"/v1/sessions/{session}")).json()["last_message_at"] is None
    clock.advance(1)
    await home.say("alice", session, "Hello")
    assert (await home.get("alice", f"/v1/sessions/{session}")).json()["last_message_at"] == "2026-12-01T09:00:01Z"


async def test_messages_come_in_order_and_paged(home: House) -> None:
    """Interface, conventions; a cursor fits its own list alone."""
    session = await home.open("alice")
    for number in range(7):
        await home.say("alice", session, f"message {number}")

    pages: list[Sequence[str]] = []
    query = "?limit=3"
    while query:
        answer = (await home.get("alice", f"/v1/sessions/{session}/messages{query}")).json()
        pages.append([one["content"] for one in answer["items"]])
        query = f"?limit=3&cursor={answer['next_cursor']}" if answer["next_cursor"] else ""

    assert [len(page) for page in pages] == [3, 3, 1]
    assert [text for page in pages for text in page] == [f"message {number}" for number in range(7)]
    of_sessions = await home.get("bob", "/v1/sessions?limit=1")
    assert of_sessions.json()["next_cursor"] is None
    for bad in ("x", "c2Vzc2lvbnM6eA", "%F0%9F%98%80"):
        assert (await home.get("alice", f"/v1/sessions/{session}/messages?cursor={bad}")).status_code == 422
        assert (await home.get("alice", f"/v1/sessions?cursor={bad}")).status_code in (200, 422)
    for query in ("limit=0", "limit=201", "limit=x", "limit=1&limit=2", "order=desc"):
        assert (await home.get("alice", f"/v1/sessions/{session}/messages?{query}")).status_code == 422, query


async def test_an_archived_session_can_be_read_and_not_written(home: House) -> None:
    """Design section 6; repeating it changes nothing."""
    session = await home.open("alice")
    await home.say("alice", session, "Before")

    first = await home.post("alice", f"/v1/sessions/{session}/archive")
    second = await home.post("alice", f"/v1/sessions/{session}/archive")
    written = await home.post("alice", f"/v1/sessions/{session}/messages", {"role": "user", "content": "After"})

    assert first.json()["archived"] is second.json()["archived"] is True
    spawned = await home.tool("alice", session, "sessions_spawn", task="After")
    below = await create(home, "alice", kind="subagent", parent=session)

    assert (written.status_code, spawned.status_code, below.status_code) == (409, 409, 409)
    assert len((await home.get("alice", "/v1/sessions")).json()["items"]) == 1
    assert await contents(home, "alice", session) == ["Before"]
    assert (await home.post("alice", f"/v1/sessions/{session}/context")).status_code == 200
    bobs = await home.post("bob", f"/v1/sessions/{session}/messages", {"role": "user", "content": "After"})
    assert bobs.status_code == 404  # that it is archived is not theirs to know


async def test_a_reset_empties_a_session_and_keeps_its_id_and_its_tree(home: House) -> None:
    """Design section 6: lineage survives reset and archive; a new incarnation starts."""
    session = await home.open("alice")
    child = await home.open("alice", "subagent", parent=session)
    await home.say("alice", session, "needle before")
    before = (await home.get("alice", f"/v1/sessions/{session}")).json()

    after = await home.post("alice", f"/v1/sessions/{session}/reset")
    assert after.status_code == 200
    assert await contents(home, "alice", session) == []
    await home.say("alice", session, "needle after")

    assert after.json()["id"] == before["id"]
    assert await contents(home, "alice", session) == ["needle after"]
    found = (await home.tool("alice", session, "sessions_search", query="needle")).json()["result"]["results"]
    assert [one["content"] for one in found] == ["needle after"]
    assert (await home.get("alice", f"/v1/sessions/{child}")).json()["parent"] == session
    status = (await home.tool("alice", session, "session_status")).json()["result"]
    assert (status["incarnation"], status["sessionId"]) == (2, before["id"])
    await home.post("alice", f"/v1/sessions/{session}/archive")
    rows = (await home.tool("alice", session, "sessions_list")).json()["result"]["sessions"]
    assert {one["key"] for one in rows} == {session, child}


@pytest.mark.parametrize("ends", ["reset", "delete"])
async def test_a_read_that_began_before_a_reset_fails_closed(
    home: House, monkeypatch: pytest.MonkeyPatch, ends: str
) -> None:
    """Design section 6: also a list that shows last messages, and a message on its way."""
    session = await home.open("alice")
    await home.say("alice", session, "Before")
    transcripts = home.gateway.stores.transcripts
    reads: dict[str, Any] = {name: getattr(transcripts, name) for name in ("history", "latest", "append")}

    async def end() -> None:
        if ends == "reset":
            await home.post("alice", f"/v1/sessions/{session}/reset")
        else:
            await home.send("alice", "DELETE", f"/v1/sessions/{session}")

    def overtaken(name: str) -> Any:
        async def read(*arguments: Any, **named: Any) -> Page[Message] | None:
            monkeypatch.undo()
            await end()
            result: Page[Message] | None = await reads[name](*arguments, **named)
            return result

        return read

    monkeypatch.setattr(transcripts, "history", overtaken("history"))
    assert (await home.get("alice", f"/v1/sessions/{session}/messages")).status_code == 404
    await home.open("alice")
    monkeypatch.setattr(transcripts, "latest", overtaken("latest"))
    rows = (await home.tool("alice", session, "sessions_list", messageLimit=3)).json()["result"]["sessions"]
    assert [one["messages"] for one in rows] == [[]]
    await home.open("alice")
    monkeypatch.setattr(transcripts, "append", overtaken("append"))
    late = await home.post("alice", f"/v1/sessions/{session}/messages", {"role": "user", "content": "Late"})
    assert late.status_code == 404
    await home.open("alice")
    assert await contents(home, "alice", session) == []


async def test_a_session_that_goes_in_the_middle_of_a_change_is_missing(
    home: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Design section 7: what is gone by then is answered like what was never there."""
    group = await home.open("alice", "group")
    store = home.gateway.stores.sessions
    facts = await store.find(home.tenant, group)
    assert facts is not None
    set_title = store.set_title

    async def overtaken(tenant: TenantId, session: SessionId, title: str | None, **expected: Any) -> Any:
        await store.delete(tenant, session, expected=None)
        return await set_title(tenant, session, title, **expected)

    monkeypatch.setattr(store, "set_title", overtaken)

    assert (await home.send("alice", "PATCH", f"/v1/sessions/{group}", {"title": "Late"})).status_code == 404


async def test_a_creation_that_is_overtaken_says_so(home: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """Design section 12: what is refused made nothing; the parent, or the session itself, went in the middle."""
    parent = await home.open("alice")
    store = home.gateway.stores.sessions
    making, looking = store.create, store.find

    async def after_the_parent(session: Session, people: Sequence[ProfileId]) -> SessionFacts:
        assert session.parent is not None
        await store.delete(home.tenant, session.parent, expected=None)
        return await making(session, people)

    async def after_somebody_else(session: Session, people: Sequence[ProfileId]) -> SessionFacts:
        await making(session, people)
        try:
            return await making(session, people)
        finally:
            await store.delete(home.tenant, session.id, expected=None)

    monkeypatch.setattr(store, "create", after_the_parent)
    orphan = await create(home, "alice", kind="subagent", parent=parent)
    monkeypatch.setattr(store, "create", after_somebody_else)
    gone_again = await create(home, "bob", kind="direct")
    monkeypatch.undo()

    assert (orphan.status_code, gone_again.status_code) == (409, 409)
    assert await looking(home.tenant, parent) is None
    assert await listed(home, "bob") == []


async def test_a_session_of_an_agent_that_is_gone_works_no_more(home: House) -> None:
    """Ours: what its files were is not guessed, and no other agent's are taken for them."""
    await home.add_agent("hotel")
    session = await home.open("alice", agent="hotel")
    await home.gateway.stores.database.write(
        lambda connection: connection.exec_driver_sql("DELETE FROM agents WHERE name = 'hotel'")
    )
    await home.publish(shipped("default.csv"))  # it raises the epoch

    assert (await home.post("alice", f"/v1/sessions/{session}/context")).status_code == 404
    assert (await home.tool("alice", session, "memory_append", scope="shared", text="x")).status_code == 404
    assert (await home.tool("alice", session, "personal_instructions", action="get")).status_code == 404
    read = await home.tool("alice", session, "memory_get", path="USER.md")
    assert read.json()["result"]["status"] == "not_found"
    assert await listed(home, "alice") == []


async def test_deleting_takes_the_tree_and_frees_the_name(home: House) -> None:
    """Design section 6, REST; the messages go with it."""
    root = await home.open("alice", name="desk")
    child = await home.open("alice", "subagent", parent=root)
    deep = await home.open("alice", "subagent", parent=child)
    await home.say("alice", deep, "needle")
    assert (await home.send("bob", "DELETE", f"/v1/sessions/{root}")).status_code == 404

    gone = await home.send("alice", "DELETE", f"/v1/sessions/{child}")
    assert (gone.status_code, gone.content) == (204, b"")
    for one in (child, deep):
        assert (await home.get("alice", f"/v1/sessions/{one}")).status_code == 404
    assert (await home.get("alice", f"/v1/sessions/{root}")).status_code == 200
    await home.send("alice", "DELETE", f"/v1/sessions/{root}")
    assert await listed(home, "alice") == []
    again = await home.open("alice", name="desk")
    assert again == root
    assert await contents(home, "alice", again) == []


# ── lists ────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_list_is_what_each_single_read_allows(home: House) -> None:
    """Design section 7: { x | `list` is allowed on x }; openclaw#114180: what is listed opens, and the reverse."""
    await home.add_agent("hotel")
    await home.add("lena", "supervisor", agent="hotel")
    ids = home.id
    sessions = [
        await home.open("alice"),
        await home.open("alice", agent="hotel"),
        await home.open("bob"),
        await home.open("carol", agent="hotel", name="own"),
        await home.open("alice", "group", participants=[ids("bob")]),
        await home.open("alice", "cron", agent="hotel"),
        await home.open("bob", "channel", participants=[ids("carol"), ids("dana")]),
        await home.open("dana"),
    ]
    sessions += [
        await home.open("alice", "subagent", parent=sessions[0], agent="hotel"),
        await home.open("bob", "subagent", parent=sessions[4]),
        await home.open("carol", "subagent", parent=sessions[6], agent="hotel"),
    ]
    for who in ("alice", "bob", "carol", "dana", "lena"):
        readable = [one for one in sessions if (await home.get(who, f"/v1/sessions/{one}")).status_code == 200]
        seen = await listed(home, who)
        assert sorted(seen) == sorted(readable), who
        by_agent = [
            key for agent in ("flight", "hotel") for key in await listed(home, who, at=f"/v1/agents/{agent}/sessions")
        ]
        assert sorted(by_agent) == sorted(readable), who
        for from_where in readable:
            if (await home.tool(who, from_where, "session_status")).status_code != 200:
                continue  # a supervisor reads and does not enter
            rows = (await home.tool(who, from_where, "sessions_list", limit=200)).json()["result"]["sessions"]
            single = [
                one
                for one in sessions
                if (await home.tool(who, from_where, "session_status", sessionKey=one)).status_code == 200
            ]
            assert sorted(row["key"] for row in rows) == sorted(single), (who, from_where)


async def test_a_list_is_newest_first_and_its_filters_only_narrow(home: House, clock: SettableClock) -> None:
    """evoila/meho#1797: caller filters can narrow but never replace the mandatory predicate."""
    await home.add_agent("hotel")
    mine: list[str] = []
    for kind, agent, more in (
        ("direct", "flight", {}),
        ("group", "flight", {"title": "Straße nach Berlin", "participants": [home.id("bob")]}),
        ("direct", "hotel", {}),
        ("cron", "flight", {}),
    ):
        mine.append(await home.open("alice", kind, agent=agent, **more))
        clock.advance(0.01)
    theirs = await home.open("bob", "group", title="Straße nach Rom")
    everything = await listed(home, "alice")

    assert everything == mine[::-1]
    assert theirs not in everything
    assert await listed(home, "alice", "&kind=group") == [mine[1]]
    assert await listed(home, "alice", "&q=STRASSE") == [mine[1]]
    assert await listed(home, "alice", "&q=%25") == []
    assert await listed(home, "alice", "&relation=self") == everything
    for relation in ("child", "child_cross", "same_agent", "other_agent"):
        assert await listed(home, "alice", f"&relation={relation}") == []
    assert await listed(home, "alice", at="/v1/agents/hotel/sessions") == [mine[2]]
    assert await listed(home, "alice", at="/v1/agents/nowhere/sessions") == []
    dana = await listed(home, "dana", "&relation=same_agent")
    assert sorted(dana) == sorted([mine[0], mine[2]])
    for query in ("kind=lounge", "relation=friend", "owner=x", "q=", "scope=all"):
        assert (await home.get("alice", f"/v1/sessions?{query}")).status_code == 422, query


async def test_anothers_cursor_shows_nothing_more(home: House, clock: SettableClock) -> None:
    """evoila/meho#1813: the place where a list goes on carries no rights."""
    bobs: list[str] = []
    for _ in range(3):
        bobs.append(await home.open("bob", "group"))
        clock.advance(0.01)
    cursor = (await home.get("bob", "/v1/sessions?limit=1")).json()["next_cursor"]

    seen = (await home.get("alice", f"/v1/sessions?cursor={cursor}")).json()
    mine = await home.open("alice")
    after = (await home.get("alice", f"/v1/sessions?cursor={cursor}")).json()

    assert (seen["items"], seen["next_cursor"]) == ([], None)
    assert mine not in {one["key"] for one in after["items"]}
    assert (await home.get("bob", f"/v1/sessions?cursor={cursor}")).json()["items"][0]["key"] == bobs[1]
