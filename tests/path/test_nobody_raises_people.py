"""Nobody raises themselves by people: roles, links, tokens, merges, owners of sessions (design section 5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from gateway.identity.roles import role_of
from gateway.policy.shipped import shipped
from tests.clock import SettableClock
from tests.house import House

PEOPLE = "/v1/admin/people"
DEFAULT = shipped("default.csv")
READ = "session/private, agent, any, private, read"
KEEPER = "p, role:keeper, *, admin/people, self, own, private, *, allow"
SIGN_IN = {"issuer": "https://id.test", "subject": "x"}


def roles(*names: str) -> dict[str, Any]:
    """A body of roles: `supervisor`, `keeper@flight`."""
    split = (name.partition("@") for name in names)
    return {"roles": [{"role": role, "agent": agent or "*"} for role, _, agent in split]}


async def everything(home: House) -> tuple[object, ...]:
    """Whatever a change of people could change, past the operations."""
    found = await home.gateway.stores.policies.current(home.tenant)
    people = await home.gateway.stores.identities.people(home.tenant, limit=200, cursor=None)
    links = [await home.gateway.stores.identities.identities(home.tenant, one.id) for one in people.items]
    tokens = [await home.gateway.stores.identities.tokens(home.tenant, one.id) for one in people.items]
    return found and found[1], people.items, links, [[(one.id, one.revoked_at) for one in each] for each in tokens]


async def marks(home: House, answer: Any) -> Mapping[str, Any]:
    """What the audit notes of the decision that an answer names."""
    record = (await home.audit(kind="decision", decision=answer.headers["gateway-decision"]))[0].record
    return {name: value for name, value in record.details.items() if name in ("raises", "gains", "touches")}


async def notices(home: House, who: str) -> list[Any]:
    """What somebody is told, and that it is as many as they are told of."""
    found: list[Any] = (await home.get(who, "/v1/me/notices")).json()["items"]
    assert (await home.get(who, "/v1/me")).json()["notices"] == len(found)
    return found


@dataclass(frozen=True)
class Case:
    """A request about somebody that only an owner may make, under rows besides the default."""

    method: str
    path: str  # below /v1/admin/people, with names for ids
    body: object
    says: str
    rows: tuple[str, ...] = ()
    tells: str | None = None  # who is told, and by which code
    code: str = ""
    marked: bool = True  # an owner has more herself, and need not raise anybody by the same


CASES = {
    # by what a role comes to, and not by its name
    "a keeper's role, held by whoever gives it": Case(
        "PUT", "carol/roles", roles("member", "keeper"), "a part in running the place", (KEEPER,), "carol", "roles"
    ),
    "a role that everybody gives": Case(
        "PUT",
        "carol/roles",
        roles("member", "guest"),
        "a part in running the place",
        (KEEPER.replace("keeper", "guest"),),
        "carol",
        "roles",
    ),
    "a role that everybody gives, to a newcomer": Case(
        "POST", "", {"name": "twin", **roles("guest")}, "a part in running", (KEEPER.replace("keeper", "guest"),)
    ),
    "more to look at than she has": Case(
        "PUT",
        "carol/roles",
        roles("member", "guest"),
        "which you may not yourself",
        ("p, role:guest, *, admin/tenants, self, own, private, read, allow",),
        marked=False,
    ),
    "a keeper loses the role": Case("PUT", "kim/roles", roles("member"), "runs the place", (KEEPER,), "kim", "roles"),
    "a keeper is renamed": Case("PATCH", "kim", {"name": "K"}, "runs the place", (KEEPER,), "kim", "profile"),
    "a keeper by a row is switched off": Case(
        "DELETE", "bob", None, "runs the place", ("p, {bob}, *, admin/agents, self, own, private, edit, allow",)
    ),
    "a keeper's sign-in goes": Case(
        "DELETE", "kim/identities", {**SIGN_IN, "subject": "k"}, "runs the place", (KEEPER,), "kim", "unlinked"
    ),
    "a reader of more than she reads is renamed": Case(
        "PATCH",
        "bob",
        {"name": "B"},
        "more in running the place than you",
        ("p, {bob}, *, admin/tenants, self, own, private, read, allow",),
        marked=False,
    ),
    # ways in
    "a person's sign-in": Case("POST", "bob/identities", SIGN_IN, "a way to sign in", (), "bob", "linked"),
    "a person's email": Case("PATCH", "bob", {"emails": ["b@x.test"]}, "a way to sign in", (), "bob", "profile"),
    "a service with more by a row": Case(
        "POST", "plain/tokens", {"name": "t"}, "`list`, `history`", (f"p, {{plain}}, flight, {READ}, allow",)
    ),
    "a service with more later": Case(
        "POST",
        "plain/tokens",
        {"name": "t"},
        "may do what you may not",
        (f"p, {{plain}}, flight, {READ}, allow", f"p, {{plain}}, flight, {READ}, deny, 2099-01-01T00:00:00Z"),
    ),
    "a service with more than she by a deny": Case(
        "POST",
        "auditing/identities",
        SIGN_IN,
        "more in running the place than you",
        ("p, {erin}, *, admin/audit, self, own, private, export, deny",),
        marked=False,
    ),
    "a service with a role that means nothing yet": Case(
        "POST", "later/tokens", {"name": "t"}, "with the role cfo, which no row speaks of yet"
    ),
    "a service that takes part in sessions": Case("POST", "guest/tokens", {"name": "t"}, "takes part in sessions"),
    # services that are hers
    "more for a service of hers": Case(
        "PUT", "hers/roles", roles("member"), "a way in as the service hers", marked=False
    ),
    "a service of hers comes back with more": Case(
        "PATCH",
        "off",
        {"disabled": False},
        "a way in as the service off",
        (f"p, {{off}}, flight, {READ}, allow",),
        marked=False,
    ),
    # merges
    "a merge": Case("POST", "bob/merge", {"into": "{carol}"}, "A merge joins", (), "carol", "merged"),
}  # fmt: skip


@pytest.fixture
async def place(home: House, clock: SettableClock) -> House:
    """erin is an admin who is a keeper too, kim a keeper and no admin; and services of every kind."""
    identities = home.gateway.stores.identities
    await home.add("kim", "keeper", "member")
    for name, held in (
        ("plain", []),
        ("auditing", ["auditor"]),
        ("later", ["cfo"]),
        ("guest", []),
        ("hers", []),
        ("off", []),
    ):
        made = await home.post("olga", PEOPLE, {"name": name, "kind": "service", **roles(*held)})
        profile = await identities.profile(home.tenant, made.json()["id"])
        assert profile is not None
        home.people[name] = profile
    await home.open("alice", "group", participants=[home.id("guest")])
    for name in ("hers", "off"):
        assert (await home.post("erin", f"{PEOPLE}/{home.id(name)}/tokens", {"name": "t"})).status_code == 201
    assert (await home.send("erin", "DELETE", f"{PEOPLE}/{home.id('off')}")).status_code == 204
    keeper = {"issuer": "https://id.test", "subject": "k"}
    assert (await home.post("olga", f"{PEOPLE}/{home.id('kim')}/identities", keeper)).status_code == 200
    assert (
        await home.send("olga", "PUT", f"{PEOPLE}/{home.id('erin')}/roles", roles("admin", "keeper"))
    ).status_code == 200
    return home


async def ask(home: House, who: str, case: Case) -> Any:
    """Sends the request of a case."""
    first, _, rest = case.path.partition("/")
    path = "/".join(part for part in (PEOPLE, home.people[first].id if first else "", rest) if part)
    body = {"into": home.id("carol")} if case.path == "bob/merge" else case.body
    return await home.send(who, case.method, path, body)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
async def test_what_only_an_owner_may_is_refused_marked_and_told(
    place: House, clock: SettableClock, case: Case
) -> None:
    """Design section 5: compared by the decisions before and after; the owner can, it is marked, and it is told to whom
    it touches."""
    ids = {name: f"user:{profile.id}" for name, profile in place.people.items()}
    await place.publish("\n".join([DEFAULT, *(row.format(**ids) for row in case.rows)]))
    before = await everything(place)
    told = await notices(place, case.tells) if case.tells else []
    clock.advance(1)  # of two notices in one instant nobody knows which is older

    refused = await ask(place, "erin", case)

    assert (refused.status_code, refused.json()["code"]) == (403, "tool_not_allowed"), refused.text
    assert case.says in refused.json()["detail"]
    assert await everything(place) == before
    assert (await marks(place, refused))["raises"] is True

    allowed = await ask(place, "olga", case)

    assert allowed.status_code < 300, allowed.text
    assert ("raises" in await marks(place, allowed)) == case.marked
    assert await everything(place) != before
    if case.tells:
        newest, *rest = await notices(place, case.tells)
        assert rest == told
        assert (newest["code"], newest["by"]) == (case.code, place.id("olga"))
        assert newest["text"]


ALLOWED = {
    "a guest": Case("PUT", "carol/roles", roles("member", "guest"), ""),
    "a role on one agent that she holds on all": Case("PUT", "carol/roles", roles("member", "helper@flight"), ""),
    "a supervisor is renamed": Case("PATCH", "dana", {"name": "D"}, ""),
    "an auditor is renamed": Case("PATCH", "audrey", {"name": "A"}, ""),
    "an auditor is switched off": Case("DELETE", "audrey", None, ""),
    "whoever edits one agent's rows is switched off": Case(
        "DELETE", "bob", None, "", ("p, {bob}, flight, admin/policy, self, own, private, publish, allow",)
    ),
    "a service without rights": Case("POST", "plain/tokens", {"name": "t"}, ""),
    "a service that may less, whatever its role is called": Case("POST", "auditing/identities", SIGN_IN, ""),
    "a service of hers comes back": Case("PATCH", "off", {"disabled": False}, ""),
    "another token for a service of hers": Case("POST", "hers/tokens", {"name": "t"}, ""),
}


@pytest.mark.parametrize("case", ALLOWED.values(), ids=ALLOWED)
async def test_an_admin_looks_after_people(place: House, case: Case) -> None:
    """Design section 1; and nothing of that is marked or told."""
    ids = {name: f"user:{profile.id}" for name, profile in place.people.items()}
    erin = [role_of(name) for name in ("admin", "helper", "keeper")]
    await place.gateway.stores.identities.set_roles(place.tenant, place.id("erin"), erin)
    await place.publish("\n".join([DEFAULT, *(row.format(**ids) for row in case.rows)]))

    answer = await ask(place, "erin", case)

    assert answer.status_code < 300, answer.text
    assert await marks(place, answer) == {}
    for who in ("alice", "carol", "dana"):
        assert await notices(place, who) == []


async def test_an_owner_who_changes_herself_is_told_to_the_others_who_run_the_place(home: House) -> None:
    """Design section 5: she knows already; they are the ones who can ask."""
    before = {who: await notices(home, who) for who in ("olga", "erin", "alice")}

    made = await home.send("olga", "PUT", f"{PEOPLE}/{home.id('olga')}/roles", roles("owner", "supervisor"))

    assert made.status_code == 200
    found = await marks(home, made)
    assert found == {"raises": True, "touches": [home.id("olga")]}
    assert before == {who: [] for who in before}
    assert await notices(home, "olga") == []
    assert await notices(home, "alice") == []
    told = await notices(home, "erin")
    assert [(one["code"], one["about"]) for one in told] == [("owner_roles", "owner, supervisor")]
    assert "An owner changed their own roles" in told[0]["text"]


async def test_a_policy_that_raises_is_told_to_those_who_run_the_place_and_whom_it_names(home: House) -> None:
    """Design section 5: not to everybody whom a role may concern; that is what the history is for."""
    await home.add("frank", "admin")
    await home.add("robot", kind="service")
    nobody = "user:prf_7ZZZZZZZZZZZZZZZZZZZZZZZZZ"
    named = (f"p, user:{home.id(who)}, flight, {READ}, allow" for who in ("olga", "bob", "robot"))
    text = "\n".join([DEFAULT, *named, f"p, {nobody}, flight, {READ}, allow"])

    made = await home.send("olga", "PUT", "/v1/admin/policy", {"text": text, "base_version": 1, "comment": "Mine."})

    assert made.status_code == 200, made.text
    for who, told in (("erin", 1), ("frank", 1), ("bob", 1), ("olga", 0), ("alice", 0), ("dana", 0)):
        assert [one["about"] for one in await notices(home, who)] == ["version 2"] * told, who
    harmless = f"{text}\np, role:member, flight, {READ}, allow"
    assert (
        await home.send("olga", "PUT", "/v1/admin/policy", {"text": harmless, "base_version": 2, "comment": "Theirs."})
    ).status_code == 200
    assert len(await notices(home, "erin")) == 1


async def test_a_merge_takes_what_was_told_along(home: House) -> None:
    """Design section 5: one human is one profile; what the other one was told, they have not read."""
    linked = await home.post("olga", f"{PEOPLE}/{home.id('bob')}/identities", SIGN_IN)
    assert linked.status_code == 200
    assert [one["code"] for one in await notices(home, "bob")] == ["linked"]

    merged = await home.post("olga", f"{PEOPLE}/{home.id('bob')}/merge", {"into": home.id("alice")})

    assert merged.status_code == 200
    assert sorted(one["code"] for one in await notices(home, "alice")) == ["linked", "merged"]
    again = await home.post("olga", f"{PEOPLE}/{home.id('bob')}/merge", {"into": home.id("alice")})
    assert again.status_code == 200
    assert len(await notices(home, "alice")) == 2


# ── owners of sessions ───────────────────────────────────────────────────────────────────────────────────────────────


HANDS_OVER = "p, role:supervisor, *, session/shared, agent, any, private, owner, allow"
INVITES = "p, role:supervisor, *, session/shared, agent, any, private, participants, allow"
ALL_OF_IT = "p, role:supervisor, *, session/shared, all, any, *, *, allow"


@pytest.mark.parametrize(
    ("rows", "who", "becomes", "refused"),
    [
        ((HANDS_OVER,), "dana", "dana", True),
        ((HANDS_OVER,), "dana", "bob", False),
        ((HANDS_OVER, ALL_OF_IT), "dana", "dana", False),
        ((HANDS_OVER, f"{ALL_OF_IT}, 2099-01-01T00:00:00Z"), "dana", "dana", True),  # it would be for good
        ((), "alice", "bob", False),
        ((), "bob", "bob", False),  # he takes part, and may as much as an owner
        (("p, role:member, *, session/shared, all, own, private, export, allow",), "bob", "bob", False),
    ],
)
async def test_nobody_makes_themselves_the_owner_of_a_session_to_see_it(
    home: House, rows: tuple[str, ...], who: str, becomes: str, refused: bool
) -> None:
    """Design sections 5 and 6: reassigning changes who is responsible; by it nobody gets what the rows don't give."""
    await home.publish("\n".join([DEFAULT, *rows]))
    group = await home.open("alice", "group", participants=[home.id("bob")])
    await home.say("alice", group, "marked-secret")
    before = await home.gateway.stores.sessions.find(home.tenant, group)

    answer = await home.send(who, "PUT", f"/v1/sessions/{group}/owner", {"profile": home.id(becomes)})

    after = await home.gateway.stores.sessions.find(home.tenant, group)
    assert answer.status_code == (403 if refused else 200), answer.text
    assert (after == before) == (refused or becomes == "alice")
    assert "marked-secret" not in answer.text
    if refused:
        assert "You would gain" in answer.json()["detail"]
        assert await notices(home, "alice") == []


async def test_an_owner_of_the_organisation_may_and_those_who_take_part_are_told(
    home: House, clock: SettableClock
) -> None:
    """Design section 5: where the rows let an owner hand over sessions; it is marked, and told."""
    for row in (HANDS_OVER, INVITES):
        clock.advance(1)
        await home.publish("\n".join([DEFAULT, row.replace("supervisor", "owner"), "g, role:owner, role:member"]))
        group = await home.open("alice", "group", participants=[home.id("bob")])
        path, body = (
            (f"/v1/sessions/{group}/owner", {"profile": home.id("olga")})
            if row == HANDS_OVER
            else (f"/v1/sessions/{group}", {"participants": [home.id(one) for one in ("alice", "bob", "olga")]})
        )

        made = await home.send("olga", "PUT" if row == HANDS_OVER else "PATCH", path, body)

        assert made.status_code == 200, made.text
        assert (await marks(home, made))["raises"] is True
        code = "session_owner" if row == HANDS_OVER else "session_people"
        for who in ("alice", "bob"):
            assert (await notices(home, who))[0]["code"] == code
            assert group in (await notices(home, who))[0]["text"]
        assert await notices(home, "carol") == []


@pytest.mark.parametrize("also", [{}, {"title": "Ours"}])
async def test_nobody_invites_themselves_or_a_service_of_theirs(home: House, also: dict[str, str]) -> None:
    """Design section 6: who takes part reads. By a row that lets somebody invite, they get others in."""
    titles = INVITES.replace("participants", "post")
    await home.publish("\n".join([DEFAULT, INVITES, titles, "g, role:supervisor, role:admin"]))
    made = await home.post("dana", PEOPLE, {"name": "robot", "kind": "service", **roles("member")})
    robot = made.json()["id"]
    token = await home.post("dana", f"{PEOPLE}/{robot}/tokens", {"name": "t"})
    group = await home.open("alice", "group", participants=[home.id("bob")])
    before = await home.gateway.stores.sessions.find(home.tenant, group)
    people = [home.id("alice"), home.id("bob")]

    for one in (home.id("dana"), robot):
        answer = await home.send("dana", "PATCH", f"/v1/sessions/{group}", {"participants": [*people, one], **also})
        assert answer.status_code == 403, answer.text
        assert "would gain" in answer.json()["detail"]
    assert token.status_code == 201, token.text
    assert await home.gateway.stores.sessions.find(home.tenant, group) == before
    for who, more in (("dana", home.id("carol")), ("alice", robot), ("alice", home.id("dana"))):
        answer = await home.send(who, "PATCH", f"/v1/sessions/{group}", {"participants": [*people, more], **also})
        assert answer.status_code == 200, answer.text


async def test_a_session_counts_with_what_it_spawned_on_other_agents(home: House) -> None:
    """Design section 6: a child is whose its tree's root is, so its agent's rows open it to a new owner too."""
    await home.add_agent("hotel")
    on_flight = ALL_OF_IT.replace("*, session", "flight, session", 1)
    await home.publish("\n".join([DEFAULT, on_flight]))
    answers = []
    for with_child in (True, False):
        group = await home.open("alice", "group")
        if with_child:
            await home.open("alice", "subagent", agent="hotel", parent=group)
        path = f"/v1/sessions/{group}/owner"
        answers.append(await home.send("dana", "PUT", path, {"profile": home.id("dana")}))

    refused, allowed = answers
    assert (refused.status_code, allowed.status_code) == (403, 200), (refused.text, allowed.text)
    assert "of hotel in this session" in refused.json()["detail"]


async def test_what_can_not_be_given_to_anybody_is_a_conflict_as_before(home: House) -> None:
    """Design section 6: a private session's owner can't be reassigned, and nobody can be added to it."""
    await home.publish(
        "\n".join(
            [DEFAULT, HANDS_OVER.replace("session/shared", "session/*"), INVITES.replace("session/shared", "session/*")]
        )
    )
    private = await home.open("alice")
    owner = await home.send("dana", "PUT", f"/v1/sessions/{private}/owner", {"profile": home.id("dana")})
    people = [home.id("alice"), home.id("dana")]
    invited = await home.send("dana", "PATCH", f"/v1/sessions/{private}", {"participants": people})

    assert (owner.status_code, invited.status_code) == (409, 409)
