"""AuthZEN 1.0, searches: a test for each rule of the certification scenario, and that each result is a permit."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import pytest

from gateway.policy.shipped import shipped
from tests.authzen.conftest import EVALUATION, SEARCH, Desk

WHAT = ("subject", "resource", "action")


def _user(desk: Desk, name: str) -> dict[str, str]:
    return {"type": "user", "id": desk.home.id(name)}


def _blank(desk: Desk, what: str) -> dict[str, Any]:
    """A well-formed search of each kind."""
    question = desk.question("alice")
    if what == "action":
        del question["action"]
    else:
        del question[what]["id"]
    return question


async def _found(desk: Desk, what: str, body: dict[str, Any]) -> list[str]:
    """Every result, page by page."""
    found: list[str] = []
    page: dict[str, Any] = body.get("page", {})
    for _ in range(50):
        answer = await desk.answer(f"{SEARCH}/{what}", {**body, "page": page})
        assert answer["page"]["count"] == len(answer["results"]) <= page.get("limit", 50)
        found += [one["name"] if what == "action" else one["id"] for one in answer["results"]]
        if not answer["page"]["next_token"]:
            return found
        page = {**page, "token": answer["page"]["next_token"]}
    raise AssertionError("the pages do not end")


async def test_4_2_1_who_may_do_it(desk: Desk) -> None:
    """Subjects of the type that was asked for; a subject id is ignored (4.2.3), a context accepted (4.2.2)."""
    answer = await desk.answer(f"{SEARCH}/subject", _blank(desk, "subject"))

    assert {one["type"] for one in answer["results"]} == {"user"}
    assert {one["id"] for one in answer["results"]} == {desk.home.id("alice"), desk.home.id("dana")}
    assert answer["page"]["next_token"] == ""
    with_id = {**_blank(desk, "subject"), "subject": _user(desk, "bob"), "context": {"time": "now"}}
    assert (await desk.answer(f"{SEARCH}/subject", with_id))["results"] == answer["results"]


async def test_4_3_1_on_what_somebody_may_do_it(desk: Desk) -> None:
    """Resources of the type that was asked for; a resource id is ignored (4.3.2)."""
    body = {**_blank(desk, "resource"), "subject": _user(desk, "bob")}
    answer = await desk.answer(f"{SEARCH}/resource", body)

    assert answer["results"] == [{"type": "session", "id": desk.group}]
    ignored = {**body, "resource": {"type": "session", "id": desk.private}}
    assert (await desk.answer(f"{SEARCH}/resource", ignored))["results"] == answer["results"]


async def test_4_4_1_what_somebody_may_do(desk: Desk) -> None:
    """Actions by name, from outside and from inside a session (4.4.2)."""
    dana = {**_blank(desk, "action"), "subject": _user(desk, "dana")}

    assert await _found(desk, "action", dana) == ["list", "history", "search", "status"]
    assert "post" in await _found(desk, "action", _blank(desk, "action"))
    inside = {**_blank(desk, "action"), "context": {"session": desk.group}}
    assert await _found(desk, "action", inside) == []


@pytest.mark.parametrize("what", WHAT)
async def test_4_5_a_page_is_no_longer_than_its_limit_and_the_pages_together_are_all(desk: Desk, what: str) -> None:
    """Sections 4.5.1 to 4.5.3, `token` as the standard and `next_token` as its drafts have it."""
    for _ in range(3):
        await desk.home.open("alice", "group")
    whole = await _found(desk, what, _blank(desk, what))
    assert len(whole) >= 2

    for limit in (1, 2, 7, 10_000):
        assert await _found(desk, what, {**_blank(desk, what), "page": {"limit": limit}}) == whole
    first = await desk.answer(f"{SEARCH}/{what}", {**_blank(desk, what), "page": {"limit": 1}})
    assert isinstance(first["page"]["next_token"], str)
    for name in ("token", "next_token"):
        body = {**_blank(desk, what), "page": {"limit": 1, name: first["page"]["next_token"]}}
        second = await desk.answer(f"{SEARCH}/{what}", body)
        assert [one.get("name", one.get("id")) for one in second["results"]] == whole[1:2]


@pytest.mark.parametrize("what", WHAT)
@pytest.mark.parametrize("page", [{"limit": 0}, {"limit": -1}, {"limit": "1"}, {"limit": True}, {"token": 7}, "x", []])
async def test_4_5_a_page_that_can_t_be_read_is_400(desk: Desk, what: str, page: Any) -> None:
    """Beside it one that can is answered, and an empty token is the first page."""
    assert (await desk.ask(f"{SEARCH}/{what}", {**_blank(desk, what), "page": page})).status_code == 400
    assert (await desk.ask(f"{SEARCH}/{what}", {**_blank(desk, what), "page": {"token": ""}})).status_code == 200


def _tampered(token: str) -> Iterator[str]:
    """Each character of a token turned into another, and other things that are none."""
    for at in range(len(token)):
        yield token[:at] + ("A" if token[at] != "A" else "B") + token[at + 1 :]
    yield from ("x", "AAAA", token + "=", token + "A", f" {token}", "é", base64.urlsafe_b64encode(b"0" * 40).decode())


@pytest.mark.parametrize("what", WHAT)
async def test_a_token_is_good_for_its_own_question_alone(desk: Desk, what: str) -> None:
    """Issue 4: opaque; of another question, another search or another tenant, or changed, it is 400."""
    await desk.home.open("alice", "group")
    body = {**_blank(desk, what), "page": {"limit": 1}}
    token = (await desk.answer(f"{SEARCH}/{what}", body))["page"]["next_token"]
    assert token

    for changed in _tampered(token):
        answer = await desk.ask(f"{SEARCH}/{what}", {**body, "page": {"limit": 1, "token": changed}})
        assert (answer.status_code, answer.json()["errors"][0]["field"]) == (400, "page.token"), changed
    other = {**body, "context": {"session": desk.group}, "page": {"token": token}}
    assert (await desk.ask(f"{SEARCH}/{what}", other)).status_code == 400
    for elsewhere in set(WHAT) - {what}:
        moved = {**_blank(desk, elsewhere), "page": {"token": token}}
        assert (await desk.ask(f"{SEARCH}/{elsewhere}", moved)).status_code == 400
    assert (await desk.ask(f"{SEARCH}/{what}", {**body, "page": {"token": token}})).status_code == 200


@pytest.mark.parametrize(
    ("what", "change"),
    [
        ("subject", {"subject": {"type": "spaceship"}}),
        ("subject", {"resource": {"type": "record", "id": "record-1"}}),
        ("subject", {"resource": {"type": "session", "id": "agent:flight:none"}}),
        ("subject", {"resource": {"type": "memory", "id": "flight/MEMORY.md"}}),
        ("subject", {"action": {"name": "can_read"}}),
        ("subject", {"action": {"name": "history", "properties": {"soft": True}}}),
        ("subject", {"context": {"session": "agent:flight:none"}}),
        ("resource", {"subject": {"type": "user", "id": "nonexistent-user"}}),
        ("resource", {"resource": {"type": "spaceship"}}),
        ("resource", {"context": {"session": "agent:flight:none"}}),
        ("resource", {"action": {"name": "fly"}}),
        ("action", {"subject": {"type": "user", "id": "nonexistent-user"}}),
        ("action", {"subject": {"type": "robot", "id": "x"}}),
        ("action", {"resource": {"type": "session", "id": "agent:flight:none"}}),
        ("action", {"resource": {"type": "tool", "id": "no_such_tool"}}),
    ],
)
async def test_4_6_what_is_not_there_or_not_known_finds_nothing(desk: Desk, what: str, change: dict[str, Any]) -> None:
    """200 and empty: an unknown id (4.6.1) and an unknown type (4.6.2)."""
    answer = await desk.answer(f"{SEARCH}/{what}", {**_blank(desk, what), **change})

    assert answer == {"results": [], "page": {"next_token": "", "count": 0}}
    assert await _found(desk, what, _blank(desk, what))


@pytest.mark.parametrize(
    ("what", "without"),
    [
        ("subject", "subject"),
        ("subject", "action"),
        ("subject", "resource"),
        ("subject", "subject.type"),
        ("subject", "resource.id"),
        ("subject", "action.name"),
        ("resource", "subject"),
        ("resource", "subject.id"),
        ("resource", "action"),
        ("resource", "resource"),
        ("resource", "resource.type"),
        ("action", "subject"),
        ("action", "subject.id"),
        ("action", "resource"),
        ("action", "resource.id"),
    ],
)
async def test_4_7_a_missing_field_is_400(desk: Desk, what: str, without: str) -> None:
    """Sections 4.7.1 and 4.7.2."""
    body = _blank(desk, what)
    entity, _, field = without.partition(".")
    if field:
        del body[entity][field]
    else:
        del body[entity]

    assert (await desk.ask(f"{SEARCH}/{what}", body)).status_code == 400


# ── what is found is what is decided ─────────────────────────────────────────────────────────────────────────────────

NAMES = ("alice", "bob", "carol", "dana", "erin", "audrey", "gate")
ACTIONS = ("history", "status", "enter", "post", "spawn", "archive", "send", "delete")


@pytest.fixture
async def house_full(desk: Desk) -> Desk:
    """Sessions of every kind, and rows that name people."""
    home = desk.home
    rows = [
        f"p, user:{home.id('carol')}, *, session/private, agent, any, private, status, allow",
        f"p, user:{home.id('bob')}, *, session/shared, agent, any, *, archive, deny",
        "p, role:supervisor, *, session/*, tree, any, *, enter, allow",
    ]
    await home.publish("\n".join([shipped("default.csv"), *rows]))
    await home.open("bob")
    await home.open("bob", incognito=True)
    await home.open("dana", "channel", participants=[home.id("alice")])
    await home.open("alice", parent=desk.group, kind="subagent")
    await home.open("alice", sandboxed=True, name="box")
    return desk


async def _everything(desk: Desk) -> list[str]:
    keys: list[str] = []
    for name in ("alice", "bob", "dana"):
        keys += [one["key"] for one in (await desk.home.get(name, "/v1/sessions")).json()["items"]]
    return sorted(set(keys))


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("inside", [False, True])
async def test_who_is_found_is_whoever_is_permitted(house_full: Desk, action: str, inside: bool) -> None:
    """Sections 8.1: each result is a permit; and nobody who would be permitted is left out, of everybody there is."""
    desk = house_full
    for key in await _everything(desk):
        question: dict[str, Any] = {"action": {"name": action}, "resource": {"type": "session", "id": key}}
        if inside:
            question["context"] = {"session": desk.group}
        found = await _found(desk, "subject", {**question, "subject": {"type": "user"}, "page": {"limit": 2}})
        permitted = [name for name in NAMES if await desk.decides({**question, "subject": _user(desk, name)})]
        assert sorted(found) == sorted(desk.home.id(name) for name in permitted), (key, action)


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("inside", [False, True])
async def test_what_is_found_is_what_is_permitted(house_full: Desk, action: str, inside: bool) -> None:
    """For each person all sessions that they may do it to, but incognito ones, which no list holds."""
    desk = house_full
    keys = [key for key in await _everything(desk) if "incognito" not in key]
    for name in ("alice", "bob", "dana", "carol"):
        question: dict[str, Any] = {"subject": _user(desk, name), "action": {"name": action}}
        if inside:
            question["context"] = {"session": desk.group}
        search = {**question, "resource": {"type": "session"}, "page": {"limit": 2}}
        permitted = [
            key for key in keys if await desk.decides({**question, "resource": {"type": "session", "id": key}})
        ]
        if action == "spawn" and inside:  # a child is found by the session that it would be a child of, from outside
            assert set(await _found(desk, "resource", search)) <= set(permitted)
            continue
        assert sorted(await _found(desk, "resource", search)) == permitted, (name, action)


@pytest.mark.parametrize("kind", ["memory", "tool"])
async def test_files_and_tools_are_found_like_sessions(house_full: Desk, kind: str) -> None:
    """Each result is a permit; a person's own files are found for them and for nobody else."""
    desk = house_full
    action = "get" if kind == "memory" else "run"
    for name in ("alice", "dana", "erin"):
        for context in ({}, {"session": desk.group}):
            question = {"subject": _user(desk, name), "action": {"name": action}, "context": context}
            found = await _found(desk, "resource", {**question, "resource": {"type": kind}, "page": {"limit": 3}})
            for one in found:
                assert await desk.decides({**question, "resource": {"type": kind, "id": one}}), one
            mine = [one for one in found if "users/" in one]
            assert all(desk.home.id(name) in one for one in mine)
            if kind == "memory" and not context:
                assert ("flight/MEMORY.md" in found) == (name != "erin")
    for one in ("flight/MEMORY.md", f"flight/users/{desk.home.id('bob')}/USER.md", "flight/AGENTS.md"):
        for doing in ("get", "load"):
            who = {
                "subject": {"type": "user"},
                "action": {"name": doing},
                "resource": {"type": "memory", "id": one},
            }
            found = await _found(desk, "subject", who)
            permitted = [name for name in NAMES if await desk.decides({**who, "subject": _user(desk, name)})]
            assert sorted(found) == sorted(desk.home.id(name) for name in permitted), (one, doing)
    tools = {"subject": {"type": "user"}, "action": {"name": "run"}, "resource": {"type": "tool", "id": "memory_get"}}
    assert set(await _found(desk, "subject", {**tools, "page": {"limit": 2}})) == {
        desk.home.id(name) for name in ("alice", "bob", "carol", "dana")
    }


async def test_a_search_is_one_record_and_its_tries_are_none(desk: Desk) -> None:
    """What was tried is no decision that somebody got; who looked for whom is on the record."""
    before = len(await desk.home.audit(kind="decision"))
    await desk.answer(f"{SEARCH}/action", _blank(desk, "action"))
    made = (await desk.home.audit(kind="decision"))[before:]

    assert [(one.record.operation, one.record.action, one.record.target) for one in made] == [
        ("authzen.search.action", "decide", f"user {desk.home.id('alice')}, session {desk.private}")
    ]
    await desk.answer(EVALUATION, desk.question())
    assert len(await desk.home.audit(kind="decision")) == before + 3
