"""An incognito session is its owner's, by its own key, and is not there for anybody or anything else (design 7)."""

from __future__ import annotations

import pytest

from gateway.policy.shipped import shipped
from tests.house import House

MISSING = "ses_00000000000000000000000000"
ANYBODY = "\np, role:supervisor, *, session/*, all, any, *, *, allow\n"


@pytest.mark.parametrize("by", ["key", "id"])
async def test_its_owner_does_with_it_what_they_do_with_any_private_session(home: House, by: str) -> None:
    """docs/sessions-and-context.md: a request of its owner about it is made from inside it."""
    made = (await home.post("alice", "/v1/agents/flight/sessions", {"kind": "direct", "incognito": True})).json()
    at = f"/v1/sessions/{made[by]}"

    shown = await home.get("alice", at)
    await home.say("alice", made[by], "Only for me.")
    read = await home.get("alice", f"{at}/messages")
    named = await home.send("alice", "PATCH", at, {"title": "Mine"})
    emptied = await home.post("alice", f"{at}/reset")
    after_reset = await home.get("alice", f"{at}/messages")
    ended = await home.post("alice", f"{at}/archive")
    gone = await home.send("alice", "DELETE", at)

    assert (shown.status_code, shown.json()["key"], shown.json()["incognito"]) == (200, made["key"], True)
    assert [one["content"] for one in read.json()["items"]] == ["Only for me."]
    assert (named.status_code, named.json()["title"]) == (200, "Mine")
    assert (emptied.status_code, after_reset.json()["items"]) == (200, [])
    assert (ended.status_code, ended.json()["archived"]) == (200, True)
    assert gone.status_code in (200, 204)
    assert (await home.get("alice", at)).status_code == 404
    assert await home.gateway.stores.sessions.find(home.tenant, made["key"]) is None


async def test_a_child_of_it_is_its_owners_too_and_goes_with_it(home: House) -> None:
    """Design section 6: a child belongs to whom its tree's root belongs; it is incognito as its root is."""
    secret = await home.open("alice", incognito=True)
    child = await home.open("alice", "subagent", parent=secret)

    assert (await home.get("alice", f"/v1/sessions/{child}")).status_code == 200
    assert (await home.get("dana", f"/v1/sessions/{child}")).status_code == 404
    assert (await home.send("alice", "DELETE", f"/v1/sessions/{secret}")).status_code in (200, 204)
    assert (await home.get("alice", f"/v1/sessions/{child}")).status_code == 404


async def test_nobody_else_reaches_it_whatever_a_row_says(home: House) -> None:
    """Design section 7, invariants: no row can lift them; denied looks like missing, and nothing has happened."""
    await home.publish(shipped("default.csv") + ANYBODY)
    secret = await home.open("alice", incognito=True)
    open_one = await home.open("alice")
    for session in (secret, open_one):
        await home.say("alice", session, "Only for me.")
    at = f"/v1/sessions/{secret}"
    before = await home.gateway.stores.sessions.find(home.tenant, secret)

    assert (await home.get("dana", f"/v1/sessions/{open_one}/messages")).status_code == 200  # the row works
    for who in ("dana", "bob"):
        missing = await home.get(who, f"/v1/sessions/{MISSING}")
        asked = [
            await home.get(who, at),
            await home.get(who, f"{at}/messages"),
            await home.post(who, f"{at}/messages", {"role": "user", "content": "Hello?"}),
            await home.post(who, f"{at}/context"),
            await home.tool(who, secret, "sessions_history", sessionKey="current"),
            await home.send(who, "PATCH", at, {"title": "Seen"}),
            await home.post(who, f"{at}/archive"),
            await home.post(who, f"{at}/reset"),
            await home.send(who, "DELETE", at),
        ]
        assert [one.status_code for one in asked] == [404] * len(asked)
        assert all(one.json() | {"request_id": ""} == missing.json() | {"request_id": ""} for one in asked)

    assert await home.gateway.stores.sessions.find(home.tenant, secret) == before
    read = (await home.get("alice", f"{at}/messages")).json()["items"]
    assert [one["content"] for one in read] == ["Only for me."]


async def test_no_list_and_no_search_shows_it_not_even_to_its_owner(home: House) -> None:
    """Design section 7: it is never indexed; from another session it is not there for its owner either."""
    await home.publish(shipped("default.csv") + ANYBODY)
    secret = await home.open("alice", incognito=True)
    await home.say("alice", secret, "needle of mine")
    main = {who: await home.open(who) for who in ("alice", "dana")}
    assert (await home.get("alice", f"/v1/sessions/{secret}")).status_code == 200

    for who, here in main.items():
        assert secret not in (await home.get(who, "/v1/sessions?limit=200")).text
        assert secret not in (await home.tool(who, here, "sessions_list")).text
        assert "needle of mine" not in (await home.tool(who, here, "sessions_search", query="needle")).text
        for tool in ("sessions_history", "session_status"):
            assert (await home.tool(who, here, tool, sessionKey=secret)).status_code == 404
