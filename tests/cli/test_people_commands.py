"""`gateway tenants`, `people` and `token`: each good, each refused, and what a refusal left as it was."""

from __future__ import annotations

from typing import Any

from tests.terminal import Terminal


def _without_use(listed: dict[str, Any]) -> list[dict[str, Any]]:
    """Tokens without the time of their last use, which asking about them changes."""
    return [{**one, "last_used_at": None} for one in listed["items"]]


def test_a_tenant_is_founded_by_the_operator_alone_and_its_owner_gets_a_token_once(terminal: Terminal) -> None:
    """Design section 5: `gateway tenants add NAME --owner EMAIL` makes one, with its first owner."""
    refused = terminal.run("tenants", "add", "acme", "--owner", "alice@example.com", who="erin")
    assert (refused.code, refused.out) == (3, "")
    assert "Unset GATEWAY_TOKEN" in refused.err
    assert [one["name"] for one in terminal.run("tenants", "list", "--json").json["items"]] == ["demo"]

    made = terminal.run("tenants", "add", "acme", "--owner", "Alice@Example.com", "--name", "Alice", "--json")

    assert made.code == 0, made.err
    assert made.json["owner"]["name"] == "Alice"
    assert made.json["owner"]["emails"] == ["alice@example.com"]
    secret = made.json["token"]["secret"]
    as_owner = terminal.run("people", "list", "--json", env={"GATEWAY_TOKEN": secret})
    assert {one["name"] for one in as_owner.json["items"]} == {"Alice", "local operator"}
    assert secret not in terminal.run("token", "list", "Alice", "--tenant", "acme").out
    assert "demo" in terminal.run("tenants", "list").out


def test_a_tenant_that_cant_be_founded_leaves_nothing_behind(terminal: Terminal) -> None:
    """Wrong use is 2, a name that is taken is 1; neither founds half a tenant."""
    no_email = terminal.run("tenants", "add", "acme", "--owner", "nobody")
    no_name = terminal.run("tenants", "add", "Acme Ltd", "--owner", "alice@example.com")
    no_owner = terminal.run("tenants", "add", "acme", "--owner", "alice@example.com", "--name", "")
    taken = terminal.run("tenants", "add", "demo", "--owner", "alice@example.com")

    assert [answer.code for answer in (no_email, no_name, no_owner, taken)] == [2, 2, 2, 1]
    assert "  emails[0]: " in no_email.err
    assert [one["name"] for one in terminal.run("tenants", "list", "--json").json["items"]] == ["demo"]


def test_people_are_listed_added_and_given_roles(terminal: Terminal) -> None:
    """Interface: people list, add, roles; `--json` prints what the REST interface answers."""
    added = terminal.run("people", "add", "frank", "--email", "frank@example.com", "--role", "member@flight", "--json")
    assert added.code == 0, added.err
    roles = terminal.run("people", "roles", "frank", "--set", "member", "--set", "supervisor@flight", "--json")
    shown = terminal.run("people", "roles", "frank@example.com", "--json", who="erin")

    assert added.json["roles"] == [{"role": "member", "agent": "flight"}]
    assert {(one["role"], one["agent"]) for one in roles.json["roles"]} == {("member", "*"), ("supervisor", "flight")}
    assert shown.json == terminal.rest("GET", f"/v1/admin/people/{added.json['id']}", who="erin")
    assert "supervisor@flight" in terminal.run("people", "roles", added.json["id"]).out
    listed = terminal.run("people", "list", "--json", who="erin")
    assert listed.json == terminal.rest("GET", "/v1/admin/people", who="erin")
    assert terminal.run("people", "roles", "frank", "--none", "--json").json["roles"] == []
    first = terminal.run("people", "list", "--limit", "2")
    assert "--cursor " in first.out
    cursor = first.out.split("--cursor ")[1].strip()
    assert "carol" in terminal.run("people", "list", "--limit", "2", "--cursor", cursor, who="erin").out


def test_who_may_not_change_people_changes_nobody(terminal: Terminal) -> None:
    """Design section 5, "nobody raises themselves"; the refusal is exit code 3 and in the audit."""
    before = terminal.rest("GET", "/v1/admin/people", who="erin")
    tries = [
        ("alice", ("people", "list")),
        ("alice", ("people", "add", "frank")),
        ("alice", ("people", "roles", terminal.ids["alice"], "--set", "admin")),
        ("alice", ("people", "link", terminal.ids["bob"], "--issuer", "https://id.example.com", "--subject", "x")),
        ("alice", ("people", "unlink", terminal.ids["bob"], "--issuer", "https://id.example.com", "--subject", "x")),
        ("erin", ("people", "roles", "erin", "--set", "owner")),
        ("erin", ("people", "roles", "nobody-of-that-name")),
    ]
    for who, words in tries:
        answer = terminal.run(*words, who=who)
        assert (answer.code, answer.out) == (3, ""), words
        assert answer.err.startswith("gateway: "), words

    assert terminal.rest("GET", "/v1/admin/people", who="erin") == before
    assert terminal.operations().count(("people.roles", "deny")) == 2


def test_a_name_that_two_people_have_is_wrong_use_with_both_ids(terminal: Terminal) -> None:
    """By id, by email or by unique name."""
    other = terminal.run("people", "add", "alice", "--json").json["id"]

    answer = terminal.run("people", "roles", "alice")

    assert answer.code == 2
    assert other in answer.err
    assert terminal.ids["alice"] in answer.err
    assert terminal.run("people", "roles", other, "--json").json["id"] == other


def test_a_sign_in_is_linked_and_unlinked(terminal: Terminal) -> None:
    """Design section 5: an identity is (issuer, subject), byte for byte."""
    sign_in = ("--issuer", "https://id.example.com", "--subject", "00u1")
    linked = terminal.run("people", "link", "bob", *sign_in, "--json")
    taken = terminal.run("people", "link", "carol", *sign_in)
    assert linked.json["identities"] == [{"issuer": "https://id.example.com", "subject": "00u1"}]
    assert linked.json == terminal.rest("GET", f"/v1/admin/people/{terminal.ids['bob']}", who="erin")
    assert taken.code == 1

    gone = terminal.run("people", "unlink", "bob", *sign_in)
    again = terminal.run("people", "unlink", "bob", *sign_in, "--json")

    assert (gone.code, again.code, again.out) == (0, 3, "")
    assert terminal.run("people", "roles", "bob", "--json").json["identities"] == []


def test_only_the_operator_hands_out_tokens_of_other_people(terminal: Terminal) -> None:
    """A token speaks for its person: an admin can't make one, whoever owns the machine could anyway."""
    for who in ("erin", "alice"):
        refused = terminal.run("token", "create", terminal.ids["bob"], who=who)
        assert (refused.code, refused.out) == (3, ""), who
        assert "gwp_" not in refused.err
    assert len(terminal.run("token", "list", "bob", "--json").json["items"]) == 1

    made = terminal.run("token", "create", "bob", "--name", "laptop", "--days", "7", "--scope", "session", "--json")

    assert made.code == 0, made.err
    assert made.json["scopes"] == ["session"]
    whose = terminal.run("sessions", "list", "--json", env={"GATEWAY_TOKEN": made.json["secret"]})
    assert [one["key"] for one in whose.json["items"]] == [terminal.demo.group]
    assert ("people.tokens.create", "allow") in terminal.operations()
    listed = terminal.run("token", "list", "bob")
    assert "laptop" in listed.out
    assert "gwp_" not in listed.out


def test_everybody_makes_lists_and_revokes_their_own_tokens(terminal: Terminal) -> None:
    """Interface: token create, list, revoke; the secret is printed this once."""
    made = terminal.run("token", "create", "--name", "phone", who="alice")
    assert made.code == 0, made.err
    secret = made.out.splitlines()[-1]
    token = made.out.split(",")[0]
    listed = terminal.run("token", "list", "--json", who="alice")
    assert _without_use(listed.json) == _without_use(terminal.rest("GET", "/v1/me/tokens", who="alice"))
    assert terminal.run("sessions", "list", env={"GATEWAY_TOKEN": secret}).code == 0

    assert terminal.run("token", "revoke", token, who="bob").code == 3
    revoked = terminal.run("token", "revoke", token, who="alice")
    ended = terminal.run("sessions", "list", env={"GATEWAY_TOKEN": secret})

    assert revoked.code == 0
    assert (ended.code, ended.out) == (3, "")
    assert "GATEWAY_TOKEN" in ended.err
    assert secret not in ended.err


def test_the_operator_revokes_anybodys_token_and_has_none(terminal: Terminal) -> None:
    """The operator of the machine stands for no person."""
    token = terminal.run("token", "list", "bob", "--json").json["items"][0]["id"]
    for words in (("create",), ("list",), ("revoke", token)):
        answer = terminal.run("token", *words)
        assert (answer.code, answer.out) == (2, ""), words
        assert "Say whose token" in answer.err

    assert terminal.run("token", "revoke", token, "--person", "bob", "--json").out == ""

    assert terminal.run("sessions", "list", who="bob").code == 3
    assert terminal.run("token", "revoke", token, "--person", "bob").code == 3


def test_faults_of_a_token_are_all_named(terminal: Terminal) -> None:
    """Invalid prints every fault with its field; nothing is made."""
    answer = terminal.run("token", "create", "bob", "--name", " ", "--days", "900", "--scope", "everything")

    assert answer.code == 2
    for field in ("name: ", "expires_in_days: ", "scopes: "):
        assert f"  {field}" in answer.err
    assert len(terminal.run("token", "list", "bob", "--json").json["items"]) == 1


def test_an_owner_merges_two_people_and_the_dry_run_changes_nothing(terminal: Terminal) -> None:
    """Interface: people merge; `--json` is the answer of the REST interface, and the same one again."""
    before = terminal.rest("GET", "/v1/admin/people", who="erin")
    bob, carol = terminal.ids["bob"], terminal.ids["carol"]
    words = ("people", "merge", "bob", "--into", "carol")

    for refused in (terminal.run(*words, who="erin"), terminal.run(*words, "--dry-run", who="erin")):
        assert (refused.code, refused.out) == (3, "")
    preview = terminal.run(*words, "--dry-run", "--json")
    told = terminal.run(*words, "--dry-run")
    assert terminal.rest("GET", "/v1/admin/people", who="erin") == before

    assert preview.code == 0, preview.err
    assert (preview.json["retired"], preview.json["survivor"], preview.json["preview"]) == (bob, carol, True)
    assert told.out.startswith("Nothing was changed.")
    done = terminal.run(*words, "--json")
    again = terminal.run("people", "merge", bob, "--into", carol, "--json")
    assert (done.code, again.code, again.json) == (0, 0, done.json)
    assert done.json["emails"] == ["bob@example.com"]
    assert "stays" in terminal.run("people", "merge", bob, "--into", carol).out
    back = terminal.run("people", "merge", carol, "--into", bob)
    itself = terminal.run("people", "merge", carol, "--into", "carol")
    assert (back.code, itself.code) == (1, 2)
    listed = terminal.rest("GET", "/v1/admin/people", who="erin")["items"]
    assert bob not in [one["id"] for one in listed]
    assert terminal.run("people", "roles", "bob@example.com", "--json").json["id"] == carol
    assert ("people.merge", "deny") in terminal.operations()
