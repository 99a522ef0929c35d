"""A parent on another agent is named to nobody but the people of its tree: its key says that it is there, and whose."""

from __future__ import annotations

from urllib.parse import quote

from tests.house import House

ROLE = "supervisor"


async def test_the_parent_on_another_agent_is_not_named_to_who_reads_the_child(home: House) -> None:
    """Found by `gateway leak-test`: sue supervises hotel alone, where alice's flight session has a child. She reads the
    child, and not that alice has a session with flight; alice is told it, and so is dana, of a child on one agent."""
    await home.add_agent("hotel")
    sue = await home.add("sue", ROLE, agent="hotel")
    private = await home.open("alice", title="Trip")
    across = await home.open("alice", "subagent", agent="hotel", parent=private)
    beside = await home.open("alice", "subagent", agent="hotel", parent=across)
    mine = await home.open("sue", agent="hotel")

    for path in ("/v1/sessions", "/v1/agents/hotel/sessions"):
        listed = await home.get("sue", path)
        parents = {one["key"]: one["parent"] for one in listed.json()["items"] if one["owner"] != sue.id}
        assert parents == {across: None, beside: across}
        assert private not in listed.text
    shown = await home.get("sue", f"/v1/sessions/{quote(across, safe='')}")
    assert shown.json()["parent"] is None
    for tool, arguments in (("sessions_list", {}), ("session_status", {"sessionKey": across})):
        answer = await home.tool("sue", mine, tool, **arguments)
        assert across in answer.text
        assert private not in answer.text

    assert (await home.get("alice", f"/v1/sessions/{quote(across, safe='')}")).json()["parent"] == private
    listed = await home.tool("alice", private, "sessions_list")
    found = {one["key"]: one["parentKey"] for one in listed.json()["result"]["sessions"]}
    assert found[across] == private


async def test_the_people_of_a_group_are_told_the_parent_of_its_children_on_every_agent(home: House) -> None:
    """Who takes part in a tree knows it, though somebody else opened it."""
    await home.add_agent("hotel")
    group = await home.open("alice", "group", participants=[home.id("bob")])
    across = await home.open("alice", "subagent", agent="hotel", parent=group)

    shown = await home.get("bob", f"/v1/sessions/{quote(across, safe='')}")
    assert shown.json()["parent"] == group
    listed = await home.tool("bob", group, "sessions_list")
    assert {one["key"]: one["parentKey"] for one in listed.json()["result"]["sessions"]} == {group: None, across: group}
