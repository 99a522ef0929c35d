"""What admins do over HTTP: people, agents, policy; and that nobody raises themselves (design sections 5 to 7)."""

from __future__ import annotations

import asyncio
import threading
from datetime import timedelta
from typing import Any

import httpx2
import pytest

from gateway.policy.documents import Document, parse
from gateway.policy.rows import written
from gateway.policy.shipped import shipped
from tests.clock import SettableClock
from tests.house import House

POLICY = "/v1/admin/policy"
PEOPLE = "/v1/admin/people"
NOBODY = "prf_00000000000000000000000000"


async def put(home: House, text: str, base: int, who: str = "erin", comment: str = "Try.") -> httpx2.Response:
    """Publishes a document."""
    return await home.send(who, "PUT", POLICY, {"text": text, "base_version": base, "comment": comment})


# ── policy ───────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_published_policy_is_in_force_with_its_answer_and_can_be_taken_back(home: House) -> None:
    """Design section 7: base version, live at once, history, rollback, and the epoch on every answer."""
    session = await home.open("alice")
    shown = (await home.get("erin", POLICY)).json()
    assert shown["version"] == 1
    more = shown["text"] + "\np, role:member, *, session/private, agent, any, private, history, allow\n"
    assert (await home.get("bob", f"/v1/sessions/{session}/messages")).status_code == 404

    made = await put(home, more, 1)
    opened = await home.get("bob", f"/v1/sessions/{session}/messages")
    stale = await put(home, shown["text"], 1)
    back = await home.post("erin", f"{POLICY}/versions/1/rollback")
    closed = await home.get("bob", f"/v1/sessions/{session}/messages")

    assert (made.status_code, opened.status_code, stale.status_code) == (200, 200, 409)
    assert (back.status_code, closed.status_code) == (200, 404)
    assert made.json()["version"] == 2
    assert made.json()["epoch"] == int(made.headers["gateway-epoch"]) == int(opened.headers["gateway-epoch"])
    assert int(closed.headers["gateway-epoch"]) == back.json()["epoch"] > made.json()["epoch"]
    assert stale.json()["facts"]["version"] == 2
    assert (await home.get("erin", POLICY)).json()["text"] == shown["text"]
    history = (await home.get("erin", f"{POLICY}/versions?limit=2")).json()
    assert [one["version"] for one in history["items"]] == [3, 2]
    rest = (await home.get("erin", f"{POLICY}/versions?cursor={history['next_cursor']}")).json()
    assert [one["version"] for one in rest["items"]] == [1]
    assert "erin" in str(history["items"][0])
    for version, status in (("9", 404), ("x", 422), ("-1", 422), ("٣", 422), ("9" * 30, 422)):
        assert (await home.post("erin", f"{POLICY}/versions/{version}/rollback")).status_code == status, version
    record = (await home.audit(action="publish"))[-1].record
    assert (record.effect, record.profile) == ("allow", home.id("erin"))


async def test_a_request_during_a_publication_is_decided_by_one_policy_or_the_other(home: House) -> None:
    """pomerium#870, casbin#1116: no 5xx and never a third answer; the epoch of an answer says by which one."""
    session = await home.open("alice")
    path = f"/v1/sessions/{session}/messages"
    closed = shipped("default.csv")
    opened = closed + "\np, role:member, *, session/private, agent, any, private, history, allow\n"
    status_at = {int((await home.get("bob", path)).headers["gateway-epoch"]): 404}
    published = asyncio.Event()
    answers: list[httpx2.Response] = []

    async def publishing() -> None:
        for number in range(12):
            text = closed if number % 2 else opened
            made = await put(home, text, number + 1)
            assert made.status_code == 200, made.text
            status_at[made.json()["epoch"]] = 404 if number % 2 else 200
        published.set()

    async def reading() -> None:
        while not published.is_set():
            answers.append(await home.get("bob", path))

    await asyncio.gather(publishing(), *(reading() for _ in range(4)))

    assert {one.status_code for one in answers} == {200, 404}
    for one in answers:
        assert one.status_code == status_at[int(one.headers["gateway-epoch"])]


ROW = "p, role:member, *, session/*, agent, shared, private, *, allow"


@pytest.mark.parametrize(
    "line",
    [
        "p, role:member, *, session/*, everything, shared, private, *, allow",
        "p, role:member, *, session/*, agent, shared, private, *",
        "p, role:member, *, session/*, agent, shared, private, fly, allow",
        'p, role:member, *, "session/*) || True, agent, shared, private, *, allow',
        "p, role:member) or (1==1, *, session/*, agent, shared, private, *, allow",
        "p, member, *, session/*, agent, shared, private, *, allow",
        "p, user:role:admin, *, session/*, agent, shared, private, *, allow",
        "p, role:member, *, session/*, agent, shared, private, *, perhaps",
        "m = r.sub == p.sub || __import__('os')",
        "g, role:member",
        "p, role:member, *, session/*, agent, shared, private, *, allow, yesterday",
    ],
)
async def test_a_document_with_a_fault_changes_nothing(home: House, line: str) -> None:
    """Design section 7: every fault with its line, before Casbin sees it; agent-zero#1383."""
    text = shipped("default.csv") + f"\n{line}\n{ROW}\n{line}\n"
    number = text.splitlines().index(line) + 1

    answer = await put(home, text, 1)

    assert answer.status_code == 422, answer.text
    assert {one["line"] for one in answer.json()["errors"]} >= {number, number + 2}
    assert all(one["column"] >= 1 and one["rule"] and one["message"] for one in answer.json()["errors"])
    assert (await home.get("erin", POLICY)).json()["version"] == 1


async def test_nobody_is_locked_out_by_a_document(home: House) -> None:
    """Design section 7: an empty document denies all, so it can't be published; a stored one does deny all."""
    session = await home.open("alice")
    for text in ("", "# nothing\n", ROW, shipped("default.csv") + "\np, *, *, *, all, any, *, *, deny\n"):
        answer = await put(home, text, 1)
        assert answer.status_code == 422, text
        assert [one["rule"] for one in answer.json()["errors"]] == ["lockout"]
    for body in ({"text": ROW}, {"text": ROW, "base_version": "1", "comment": "x"}, {}):
        assert (await home.send("erin", "PUT", POLICY, body)).status_code == 422
    assert (await home.get("erin", POLICY)).json()["version"] == 1

    await home.publish("")

    for who, path in (("alice", f"/v1/sessions/{session}"), ("erin", POLICY), ("olga", PEOPLE), ("dana", "/v1/me")):
        answer = await home.get(who, path)
        assert answer.status_code == 403, (who, answer.text)
    assert {one.record.code for one in await home.audit(kind="decision", effect="deny")} == {"function_lacking"}


async def test_a_version_that_would_lock_everybody_out_is_not_gone_back_to(home: House) -> None:
    """Design section 7: a rollback publishes, and is checked like any other."""
    await home.publish("# nothing\n")
    await home.publish(shipped("default.csv"))

    refused = await home.post("erin", f"{POLICY}/versions/2/rollback")

    assert [one["rule"] for one in refused.json()["errors"]] == ["lockout"]
    assert (await home.get("erin", POLICY)).json()["version"] == 3


async def test_a_document_that_is_gone_from_the_store_is_an_outage(home: House) -> None:
    """Design section 12: never an empty answer."""
    assert (await home.get("erin", POLICY)).status_code == 200
    await home.gateway.stores.database.write(
        lambda connection: connection.exec_driver_sql("DELETE FROM policy_versions")
    )
    assert (await home.get("erin", POLICY)).status_code == 503


async def test_a_row_ends_by_itself(home: House, clock: SettableClock) -> None:
    """Design section 7: `until` ends a row; a snapshot knows its next expiry."""
    session = await home.open("alice")
    until = (clock.now() + timedelta(hours=1)).isoformat().replace("+00:00", "Z")
    row = f"p, user:{home.id('carol')}, flight, session/private, agent, any, private, read, allow, {until}\n"
    made = await put(home, shipped("default.csv") + "\n" + row, 1)
    assert made.status_code == 200, made.text
    path = f"/v1/sessions/{session}/messages"
    assert (await home.get("carol", path)).status_code == 200
    assert session in {one["key"] for one in (await home.get("carol", "/v1/sessions")).json()["items"]}
    clock.advance(3599)
    await home.gateway.epochs.poll()
    assert (await home.get("carol", path)).status_code == 200
    clock.advance(1)
    assert (await home.get("carol", path)).status_code == 404
    assert (await home.get("carol", "/v1/sessions")).json()["items"] == []
    assert (await home.get("alice", path)).status_code == 200


async def test_a_caller_can_ask_for_an_epoch_it_has_seen(home: House) -> None:
    """Design section 7, `min_epoch` waits for it or fails; never an older answer."""
    epoch = int((await home.get("alice", "/v1/me")).headers["gateway-epoch"])

    seen = await home.get("alice", "/v1/me", headers={"Gateway-Min-Epoch": str(epoch)})
    ahead = await home.get("alice", "/v1/me", headers={"Gateway-Min-Epoch": str(epoch + 1)})

    assert seen.status_code == 200
    assert (ahead.status_code, ahead.json()["code"]) == (503, "unavailable")
    assert ahead.headers["retry-after"]
    before = len(await home.audit(kind="access"))
    for odd in ("x", "-1", "1.5", "", "+1", "9" * 19):
        answer = await home.get("alice", "/v1/me", headers={"Gateway-Min-Epoch": odd})
        assert answer.json()["errors"][0]["field"] == "Gateway-Min-Epoch", odd
    assert (await home.get(None, "/v1/me", headers={"Gateway-Min-Epoch": "x"})).status_code == 401
    assert len(await home.audit(kind="access")) == before + 6


async def test_what_ends_by_itself_is_told_with_the_policy_and_ends_without_an_epoch(
    home: House, clock: SettableClock
) -> None:
    """Issue, "scheduled expiry": dana covers for alice this week, and nobody has to think of it on Sunday."""
    session = await home.open("alice")
    text = (await home.get("erin", POLICY)).json()["text"]
    until = clock.now() + timedelta(days=7)
    row = f"p, user:{home.id('bob')}, flight, session/private, agent, any, private, history, allow, {written(until)}"

    made = (await put(home, f"{text.rstrip()}\n{row}\n", 1)).json()
    shown = (await home.get("erin", POLICY)).json()
    listed = (await home.get("erin", f"{POLICY}/versions")).json()["items"]
    opened = await home.get("bob", f"/v1/sessions/{session}/messages")
    clock.advance(7 * 24 * 3600)
    await home.gateway.epochs.poll()
    closed = await home.get("bob", f"/v1/sessions/{session}/messages")
    later = (await home.get("erin", POLICY)).json()

    (ends,) = made["ends"]
    assert ends == {"line": text.rstrip().count("\n") + 2, "text": row, "until": written(until)}
    assert shown["ends"] == [ends]
    assert [(one["version"], one["next_end"]) for one in listed] == [(2, written(until)), (1, None)]
    assert (opened.status_code, closed.status_code) == (200, 404)
    assert opened.headers["gateway-epoch"] == closed.headers["gateway-epoch"]
    assert (later["ends"], later["version"]) == ([], 2)
    assert (await home.get("erin", f"{POLICY}/versions")).json()["items"][0]["next_end"] is None


async def test_rights_can_differ_by_agent_and_by_person(home: House) -> None:
    """openclaw#92917, #19564: per-agent and per-person override of the mode; design section 5, roles per agent."""
    await home.add_agent("hotel")
    await home.add("lena", "supervisor", agent="hotel")
    there, here = await home.open("alice", agent="hotel"), await home.open("alice")
    assert (await home.get("lena", f"/v1/sessions/{there}/messages")).status_code == 200
    assert (await home.get("lena", f"/v1/sessions/{here}/messages")).status_code == 404
    await home.publish(
        shipped("default.csv")
        + f"\np, user:{home.id('bob')}, flight, session/private, agent, any, private, read, allow\n"
        + f"p, user:{home.id('dana')}, hotel, session/private, all, any, private, read, deny\n"
    )
    assert (await home.get("bob", f"/v1/sessions/{here}/messages")).status_code == 200
    assert (await home.get("bob", f"/v1/sessions/{there}/messages")).status_code == 404
    assert (await home.get("dana", f"/v1/sessions/{here}/messages")).status_code == 200
    assert (await home.get("dana", f"/v1/sessions/{there}/messages")).status_code == 404
    assert (await home.get("carol", f"/v1/sessions/{here}/messages")).status_code == 404


async def test_a_document_is_read_off_the_event_loop(home: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: an admin's long document keeps nobody else waiting, when it is checked and when it is put in force."""
    threads: list[int] = []

    def noted(text: str) -> Document:
        threads.append(threading.get_ident())
        return parse(text)

    monkeypatch.setattr("gateway.operations.policy.parse", noted)
    monkeypatch.setattr("gateway.policy.states.parse", noted)
    refused = await put(home, "x\n" * 1_000, 1)
    assert (refused.status_code, len(refused.json()["errors"])) == (422, 101)
    assert (await put(home, (await home.get("erin", POLICY)).json()["text"] + "# again", 1)).status_code == 200
    assert (await home.post("erin", f"{POLICY}/versions/1/rollback")).status_code == 200
    assert (await home.get("bob", "/v1/me")).status_code == 200

    assert len(threads) >= 5
    assert threading.get_ident() not in threads


# ── people ───────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_an_admin_neither_raises_herself_nor_touches_somebody_with_more(home: House) -> None:
    """Design section 5, "nobody raises themselves"; olga, who is the owner, may."""
    before = {name: (await home.get("olga", f"{PEOPLE}/{home.id(name)}")).json() for name in ("erin", "olga")}
    erin, olga, alice = (f"{PEOPLE}/{home.id(name)}" for name in ("erin", "olga", "alice"))
    owner: dict[str, Any] = {"roles": [{"role": "owner"}]}
    admin: dict[str, Any] = {"roles": [{"role": "admin"}]}
    identity = {"issuer": "https://id.example", "subject": "erin"}
    for method, path, body in (
        ("PUT", f"{erin}/roles", owner),
        ("PUT", f"{erin}/roles", {"roles": [{"role": "admin"}, {"role": "supervisor"}]}),
        ("PUT", f"{olga}/roles", {"roles": []}),
        ("PATCH", olga, {"emails": ["erin@example.com"]}),
        ("PATCH", olga, {"disabled": True}),
        ("DELETE", olga, None),
        ("POST", f"{olga}/identities", identity),
        ("POST", f"{erin}/identities", identity),
        ("POST", f"{olga}/tokens", {"name": "mine"}),
        ("POST", f"{alice}/tokens", {"name": "mine"}),
        ("GET", f"{olga}/tokens", None),
        ("PUT", f"{alice}/roles", admin),
        ("POST", PEOPLE, {"name": "twin", **owner}),
    ):
        answer = await home.send("erin", method, path, body)
        assert answer.status_code == 403, (method, path, answer.text)
        assert answer.json()["code"] == "tool_not_allowed"
    after = {name: (await home.get("olga", f"{PEOPLE}/{home.id(name)}")).json() for name in ("erin", "olga")}
    assert after == before
    assert (await home.send("olga", "PUT", f"{alice}/roles", admin)).status_code == 200
    assert (await home.send("olga", "PUT", f"{olga}/roles", {"roles": []})).status_code == 409  # the last owner
    for who in ("alice", "bob", "dana", "audrey"):
        roles = await home.send(who, "PUT", f"{PEOPLE}/{home.id('bob')}/roles", owner)
        assert roles.status_code == 403


async def test_people_are_added_changed_linked_and_switched_off(home: House) -> None:
    """Interface, `/v1/admin/people`; bad input names every field and changes nothing."""
    made = await home.post(
        "erin", PEOPLE, {"name": "Frank", "emails": [" Frank@Example.COM "], "roles": [{"role": "member"}]}
    )
    frank = made.json()["id"]
    path = f"{PEOPLE}/{frank}"
    not_theirs = await home.post("erin", f"{path}/identities", {"issuer": "https://id.example", "subject": "f"})
    linked = await home.post("olga", f"{path}/identities", {"issuer": "https://id.example", "subject": "f"})
    taken = await home.post(
        "olga", f"{PEOPLE}/{home.id('bob')}/identities", {"issuer": "https://id.example", "subject": "f"}
    )
    held = await home.post("erin", PEOPLE, {"name": "Other", "emails": ["frank@example.com"]})
    not_changed = await home.send("erin", "PATCH", path, {"name": "Franka", "emails": []})
    renamed = await home.send("olga", "PATCH", path, {"name": "Franka", "emails": []})
    unlinked = await home.send("erin", "DELETE", f"{path}/identities", {"issuer": "https://id.example", "subject": "f"})
    again = await home.send("erin", "DELETE", f"{path}/identities", {"issuer": "https://id.example", "subject": "f"})
    off = await home.send("erin", "DELETE", path)
    service = await home.post("erin", PEOPLE, {"name": "Robot", "kind": "service", "roles": [{"role": "member"}]})
    robot = f"{PEOPLE}/{service.json()['id']}"
    token = await home.post("olga", f"{robot}/tokens", {"name": "deploy", "scopes": ["session"]})
    listed = (await home.get("erin", f"{robot}/tokens")).json()["items"]
    revoked = await home.send("erin", "DELETE", f"{robot}/tokens/{token.json()['id']}")

    assert (not_theirs.status_code, not_changed.status_code) == (403, 403)
    assert made.json()["emails"] == ["frank@example.com"]
    assert linked.json()["identities"] == [{"issuer": "https://id.example", "subject": "f"}]
    assert (taken.status_code, held.status_code) == (409, 409)
    assert (renamed.json()["name"], renamed.json()["emails"]) == ("Franka", [])
    assert (unlinked.status_code, again.status_code, off.status_code) == (204, 404, 204)
    assert (await home.get("erin", path)).json()["disabled"] is True
    assert (token.status_code, [one["name"] for one in listed], revoked.status_code) == (201, ["deploy"], 204)
    everybody: list[str] = []
    query = "?limit=4"
    while query:
        page = (await home.get("erin", f"{PEOPLE}{query}")).json()
        everybody += [one["id"] for one in page["items"]]
        query = f"?limit=4&cursor={page['next_cursor']}" if page["next_cursor"] else ""
    assert {home.id(name) for name in home.people} <= set(everybody)
    assert len(everybody) == len(set(everybody))
    faulty = await home.post(
        "erin", PEOPLE, {"name": " ", "emails": ["x"], "roles": [{"role": "role:admin", "agent": "A B"}], "kind": "god"}
    )
    assert {one["field"] for one in faulty.json()["errors"]} == {
        "name",
        "emails[0]",
        "roles[0].role",
        "roles[0].agent",
        "kind",
    }
    for missing in (f"{PEOPLE}/{NOBODY}", f"{PEOPLE}/x"):
        for method, body in (("GET", None), ("PATCH", {"name": "x"}), ("DELETE", None)):
            assert (await home.send("erin", method, missing, body)).status_code == 404


# ── agents ───────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_an_agent_gets_a_scaffolded_workspace_or_an_existing_folder(home: House) -> None:
    """Issue, "agents and workspaces": a memory policy that a model can follow; an existing folder is taken as it is."""
    folders = home.gateway.folders.root / home.tenant
    (folders / "openclaw").mkdir()
    (folders / "openclaw" / "SOUL.md").write_text("I am the old one.", encoding="utf-8")
    path = "/v1/admin/agents"

    made = await home.post("erin", path, {"name": "train", "title": "Train desk", "timezone": "Asia/Taipei"})
    taken_over = await home.post("erin", path, {"name": "old", "workspace": "openclaw"})
    same_name = await home.post("erin", path, {"name": "train", "workspace": "other"})
    same_folder = await home.post("erin", path, {"name": "other", "workspace": "openclaw"})
    faulty = await home.post("erin", path, {"name": "../x", "workspace": "/etc", "timezone": "Mars/Base"})

    assert (made.status_code, taken_over.status_code) == (201, 201)
    assert made.json() == {"id": "train", "name": "Train desk", "workspace": "train", "timezone": "Asia/Taipei"}
    assert "personal_instructions" in (folders / "train" / "AGENTS.md").read_text(encoding="utf-8")
    assert {one.name for one in (folders / "train").iterdir()} == {
        "AGENTS.md",
        "SOUL.md",
        "IDENTITY.md",
        "USER.md",
        "memory",
    }
    assert [one.name for one in (folders / "openclaw").iterdir()] == ["SOUL.md"]
    assert (same_name.status_code, same_folder.status_code) == (409, 409)
    assert {one["field"] for one in faulty.json()["errors"]} == {"name", "workspace", "timezone"}
    assert not (folders / "other").exists()
    assert {one["id"] for one in (await home.get("erin", path)).json()["items"]} == {"flight", "train", "old"}
    assert (await home.get("erin", f"{path}/train")).json() == made.json()
    assert (await home.get("erin", f"{path}/nowhere")).status_code == 404
    for who in ("alice", "dana", "audrey"):
        assert (await home.post(who, path, {"name": "mine"})).status_code == 403
    session = await home.open("alice", agent="train")  # usable with the answer, without a restart
    assert (await home.post("alice", f"/v1/sessions/{session}/context")).status_code == 200


async def test_an_agent_whose_folder_can_not_be_made_is_not_there(home: House) -> None:
    """Design section 12: what is refused changed nothing; it can be tried again."""
    folders = home.gateway.folders.root / home.tenant
    (folders / "train").write_text("a file, not a folder", encoding="utf-8")

    refused = await home.post("erin", "/v1/admin/agents", {"name": "train"})
    listed = (await home.get("erin", "/v1/admin/agents")).json()["items"]
    (folders / "train").unlink()
    again = await home.post("erin", "/v1/admin/agents", {"name": "train"})

    assert refused.status_code == 409
    assert [one["id"] for one in listed] == ["flight"]
    assert again.status_code == 201
