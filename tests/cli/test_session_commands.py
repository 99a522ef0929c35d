"""`gateway agents`, `sessions` and `context`: what somebody may see is printed, and what they may not is missing."""

from __future__ import annotations

from tests.terminal import Terminal

MISSING = "gateway: There is nothing here under that name that you may use.\n"


def test_agents_are_listed_added_and_shown(terminal: Terminal) -> None:
    """Interface: agents list, add, show; adding scaffolds a workspace, whose rules a context loads."""
    added = terminal.run("agents", "add", "hotel", "--title", "Hotel desk", "--timezone", "Asia/Taipei", "--json")
    assert added.code == 0, added.err
    assert added.json == {"id": "hotel", "name": "Hotel desk", "workspace": "hotel", "timezone": "Asia/Taipei"}
    assert (terminal.state / "workspaces" / "demo" / "hotel" / "AGENTS.md").exists()
    assert terminal.run("agents", "show", "hotel", "--json").json == added.json
    assert terminal.run("agents", "list", "--json", who="erin").json == terminal.rest(
        "GET", "/v1/admin/agents", who="erin"
    )
    assert terminal.run("agents", "list", "--mine", "--json", who="bob").json == terminal.rest(
        "GET", "/v1/agents", who="bob"
    )
    assert "Hotel desk" in terminal.run("agents", "list").out


def test_who_may_not_keep_agents_adds_none(terminal: Terminal) -> None:
    """`admin/agents` is an admin's; a missing agent is refused as well, and bad words are wrong use."""
    for words in (("list",), ("show", "flight"), ("add", "hotel")):
        answer = terminal.run("agents", *words, who="alice")
        assert (answer.code, answer.out) == (3, ""), words
    missing = terminal.run("agents", "show", "hotel")
    assert missing.code == 3
    faulty = terminal.run("agents", "add", "Hotel desk", "--timezone", "Mars/Olympus")
    assert (faulty.code, terminal.run("agents", "add", "flight").code) == (2, 1)
    assert "  name: " in faulty.err
    assert "  timezone: " in faulty.err

    assert [one["id"] for one in terminal.run("agents", "list", "--json").json["items"]] == ["flight"]
    assert not (terminal.state / "workspaces" / "demo" / "hotel").exists()


def test_sessions_are_listed_and_shown_to_those_who_take_part(terminal: Terminal) -> None:
    """Design section 7: a list is { x | `list` is allowed on x }; what is not yours looks like what is missing."""
    private, group = terminal.demo.private, terminal.demo.group
    alices = terminal.run("sessions", "list", "--json", who="alice")
    assert {one["key"] for one in alices.json["items"]} == {private, group}
    assert alices.json == terminal.rest("GET", "/v1/sessions", who="alice")
    groups = terminal.run("sessions", "list", "--kind", "group", "--agent", "flight", "--query", "late", who="alice")
    assert group in groups.out
    assert private not in groups.out
    shown = terminal.run("sessions", "show", private, "--json", who="alice")
    assert shown.json == terminal.rest("GET", f"/v1/sessions/{private}", who="alice")
    assert shown.json["id"] in terminal.run("sessions", "show", shown.json["id"], who="alice").out

    bobs = terminal.run("sessions", "list", "--json", who="bob")
    theirs = terminal.run("sessions", "show", private, who="bob")
    nobodys = terminal.run("sessions", "show", private[:-1] + "0", who="bob")

    assert {one["key"] for one in bobs.json["items"]} == {group}
    assert (theirs.code, theirs.out, nobodys.code, nobodys.out) == (3, "", 3, "")
    assert theirs.err.startswith(MISSING)
    assert nobodys.err.startswith(MISSING)
    assert terminal.run("sessions", "list").code == 3  # the operator has no sessions, and reads nobody's


def test_a_tree_shows_children_of_any_depth_and_on_other_agents(terminal: Terminal) -> None:
    """Design section 6: lineage is the whole chain."""
    terminal.run("agents", "add", "hotel")
    private = terminal.demo.private

    def spawn(parent: str, agent: str, title: str) -> str:
        body = {"kind": "subagent", "parent": parent, "title": title}
        made = terminal.rest("POST", f"/v1/agents/{agent}/sessions", who="alice", body=body)
        return str(made["key"])

    child = spawn(private, "flight", "seats")
    grandchild = spawn(child, "hotel", "beds")
    beside = spawn(private, "flight", "bags")

    found = terminal.run("sessions", "tree", private, "--json", who="alice")
    printed = terminal.run("sessions", "tree", private, who="alice")
    bobs = terminal.run("sessions", "tree", private, who="bob")

    assert found.code == 0, found.err
    children = {one["key"]: one for one in found.json["children"]}
    assert set(children) == {child, beside}
    assert [one["key"] for one in children[child]["children"]] == [grandchild]
    assert f"\n  {child}  subagent  seats\n    {grandchild}  subagent  beds\n" in printed.out
    assert (bobs.code, bobs.out) == (3, "")


def test_a_context_is_that_of_the_rest_interface(terminal: Terminal) -> None:
    """Design section 6: a private session has shared, then personal; a group no MEMORY.md, and says why."""
    private, group = terminal.demo.private, terminal.demo.group
    mine = terminal.run("context", private, "--json", who="alice")
    ours = terminal.run("context", group, who="alice")

    assert mine.json == terminal.rest("POST", f"/v1/sessions/{private}/context", who="alice", body={})
    assert mine.json["text"].index("service desk") < mine.json["text"].index("How to answer me")
    assert "out: group_session" in ours.out
    assert "Voucher instead of refund" in mine.json["text"]
    assert "Voucher instead of refund" not in ours.out
    refused = terminal.run("context", private, who="bob")
    assert (refused.code, refused.out) == (3, "")
    assert refused.err.startswith(MISSING)
    assert ("context.assemble", "deny") in terminal.operations()


def test_a_warning_of_a_context_is_printed(terminal: Terminal) -> None:
    """Design section 6: what can't be read safely is left out with a warning."""
    workspace = terminal.state / "workspaces" / "demo" / "flight"
    (workspace / "SOUL.md").unlink()
    (workspace / "SOUL.md").symlink_to("/etc/hostname")

    answer = terminal.run("context", terminal.demo.private, who="alice")

    assert "Warning: SOUL.md" in answer.out
    assert "out: unsafe_file" in answer.out
