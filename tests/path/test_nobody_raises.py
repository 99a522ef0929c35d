"""Nobody raises themselves by the policy: publish, rollback, and one agent's rows (design section 5)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import httpx2
import pytest

from gateway.keys import new_id
from gateway.model import RoleAssignment, SignIn
from gateway.policy.rows import written
from gateway.policy.shipped import shipped
from tests.clock import SettableClock
from tests.house import House

POLICY = "/v1/admin/policy"
PEOPLE = "/v1/admin/people"
READ = "session/private, agent, any, private, read"
DEFAULT = shipped("default.csv")


def rows(home: House, *added: str, clock: SettableClock | None = None, without: str = "") -> str:
    """The default without a row and with others, in which people and moments stand by name."""
    ids = {name: f"user:{profile.id}" for name, profile in home.people.items()}
    if clock is not None:
        ids["tomorrow"] = written(clock.now() + timedelta(days=1))
    assert without in DEFAULT
    return "\n".join([DEFAULT.replace(without, "") if without else DEFAULT, *(one.format(**ids) for one in added)])


async def put(home: House, who: str, text: str, *, base: int | None = None) -> httpx2.Response:
    """Publishes a document, on top of the one in force unless another is named."""
    base = (await version(home))[0] if base is None else base
    return await home.send(who, "PUT", POLICY, {"text": text, "base_version": base, "comment": "Try."})


async def version(home: House) -> tuple[int, int]:
    """The version and the epoch in force, past the operations."""
    found = await home.gateway.stores.policies.current(home.tenant)
    assert found is not None
    return found[0].version, found[1]


async def marks(home: House, action: str = "publish") -> dict[str, Any]:
    """What the audit notes of the last such decision about raising."""
    record = (await home.audit(kind="decision", action=action))[-1].record
    return {name: value for name, value in record.details.items() if name in ("raises", "gains", "touches")}


@dataclass(frozen=True)
class Case:
    """Rows that are added to the default, and what erin, the admin, is told where she may not."""

    rows: tuple[str, ...]
    says: str = ""
    before: tuple[str, ...] = ()  # what is in force besides the default
    without: str = ""
    who: str = "erin"


GAINS = {
    "their role reads": Case((f"p, role:admin, *, {READ}, allow",), "gain `list`, `history`, `search` and 1 more on"),
    "they read by name": Case((f"p, user:{{erin}}, flight, {READ}, allow".replace("user:", ""),), "of flight"),
    "everybody reads": Case((f"p, *, *, {READ}, allow",), "session/private (of other people) of every agent"),
    "their role holds another": Case(("g, role:admin, role:supervisor",), "You would gain"),
    "an action that nobody has": Case(("p, role:admin, *, admin/people, self, own, *, impersonate, allow",), "gain"),
    "a deny is taken away": Case(
        (f"p, role:admin, *, {READ}, allow",),
        "You would gain",
        before=(f"p, role:admin, *, {READ}, allow", f"p, {{erin}}, *, {READ}, deny"),
    ),
    "a deny ends": Case(
        (f"p, role:admin, *, {READ}, allow", f"p, role:admin, *, {READ}, deny, {{tomorrow}}"),
        "from 2",
    ),
    "what ends is made to last": Case(
        (f"p, role:admin, *, {READ}, allow",), "from 2", before=(f"p, role:admin, *, {READ}, allow, {{tomorrow}}",)
    ),
    "what only a claim gives stays": Case((f"p, role:member, *, {READ}, allow",), "gain", who="emma"),
    "a browser's role": Case((f"p, role:lead, flight, {READ}, allow",), "You would gain", who="eva"),
    "guests, which anybody can be": Case((f"p, role:guest, flight, {READ}, allow",), "A guest would gain"),
    "a service of theirs": Case((f"p, role:robots, flight, {READ}, allow",), "the service robot, which would gain"),
    "a service by a service": Case((f"p, {{second}}, flight, {READ}, allow",), "the service second, which would gain"),
    "a linked service": Case((f"p, {{client}}, flight, {READ}, allow",), "the service client, which would gain"),
    "a service of nobody knows whom": Case((f"p, {{old}}, flight, {READ}, allow",), "the service old, which would"),
    "a service that is switched off": Case((f"p, {{off}}, flight, {READ}, allow",), "the service off, which would"),
    "a merged service": Case((f"p, {{retired}}, flight, {READ}, allow",), "the service robot, which would gain"),
}  # fmt: skip
OTHERS = {
    "an owner loses": Case(("p, role:owner, *, admin/tenants, all, any, *, *, deny",), "takes rights from an owner"),
    "the admins lose": Case(("p, role:admin, *, admin/audit, all, any, *, read, deny",), "takes rights from an owner"),
    "everybody loses, they too": Case(("p, *, *, admin/people, all, any, *, export, deny",), "takes rights from"),
    "an admin loses by name": Case(("p, {frank}, *, admin/people, all, any, *, edit, deny",), "takes rights from"),
    "a row of an owner goes": Case((), "takes rights from", before=(f"p, {{olga}}, *, {READ}, allow",)),
    "a row of an owner ends": Case(
        (f"p, {{olga}}, *, {READ}, allow, {{tomorrow}}",), "takes rights", before=(f"p, {{olga}}, *, {READ}, allow",)
    ),
    "a keeper by another name loses": Case(
        (), "takes rights from", before=("p, role:keeper, *, admin/people, self, own, private, edit, allow",)
    ),
    "somebody else runs the place": Case(
        ("p, role:keeper, *, admin/people, self, own, private, edit, allow",),
        "gives role:keeper `edit` on admin/people",
    ),
    "somebody else does later": Case(
        (
            "p, role:keeper, *, admin/policy, self, own, private, publish, allow",
            "p, role:keeper, *, admin/policy, self, own, private, publish, deny, {tomorrow}",
            "p, role:keeper, flight, admin/policy, self, own, private, publish, allow",
        ),
        "gives role:keeper",
    ),
    "members become admins": Case(("g, role:member, role:admin",), "gives role:"),
    "somebody reads as others": Case(
        ("p, {bob}, *, gateway, self, own, private, impersonate, allow",), "`impersonate` on gateway"
    ),
}
ALLOWED = {
    "a comment": Case(("# nothing more",)),
    "members read": Case((f"p, role:member, *, {READ}, allow",)),
    "members see less": Case(("p, role:member, *, session/shared, agent, any, private, list, deny",)),
    "supervisors lose a row": Case((), without=f"p, role:supervisor, *, {READ}, allow"),
    "they lose by name": Case(("p, {erin}, *, admin/audit, self, own, private, read, deny",)),
    "an auditor by another name": Case(("p, role:checker, *, admin/audit, self, own, private, read, allow",)),
    "somebody edits one agent's rows": Case(("p, {bob}, flight, admin/policy, self, own, private, publish, allow",)),
    "and no longer": Case((), before=("p, {bob}, flight, admin/policy, self, own, private, publish, allow",)),
    "an agent's rows for nobody of hers": Case((f"p, role:lead, flight, {READ}, allow",)),
    "a service of somebody else": Case((f"p, {{stranger}}, flight, {READ}, allow",)),
    "what has ended": Case((f"p, role:admin, *, {READ}, allow, 2020-01-01T00:00:00Z",)),
    "what an invariant refuses": Case(("p, role:admin, *, memory/longterm, all, any, group, get, allow",)),
}


@pytest.fixture
async def place(home: House, clock: SettableClock) -> House:
    """Admins of every shape, and the services that they have a way in as."""
    await home.add("frank", "admin")
    emma, eva = await home.add("emma", "admin"), await home.add("eva", "admin")
    await _browser(home, clock, "emma", "supervisor")
    await _browser(home, clock, "eva", "lead")
    await home.gateway.stores.identities.set_roles(home.tenant, emma.id, [*emma.roles, _role("member")])
    assert eva.roles == (_role("admin"),)
    for name, roles in (("robot", ["robots"]), ("second", []), ("client", []), ("old", []), ("off", [])):
        await _service(home, name, *roles)
    await home.add("stranger", "supervisor", kind="service")  # its token is of nobody knows whom, and not of an admin
    await home.add("retired", kind="service")
    await home.gateway.stores.identities.merge(home.tenant, home.id("retired"), home.id("robot"), clock.now())
    for name in ("robot", "off"):
        made = await home.post("olga", f"{PEOPLE}/{home.id(name)}/tokens", {"name": "first"})
        await _as_made_by(home, made.json()["id"], "erin")
    made = await home.post("olga", f"{PEOPLE}/{home.id('second')}/tokens", {"name": "first"})
    await _as_made_by(home, made.json()["id"], "robot")
    await home.post("erin", f"{PEOPLE}/{home.id('client')}/identities", {"issuer": "https://id.test", "subject": "c"})
    made = await home.post("olga", f"{PEOPLE}/{home.id('old')}/tokens", {"name": "first"})
    await _as_made_by(home, made.json()["id"], None)
    await home.send("erin", "DELETE", f"{PEOPLE}/{home.id('off')}")
    return home


def _role(name: str) -> RoleAssignment:
    return RoleAssignment(role=name, agent="*")  # type: ignore[arg-type]  # every agent


async def _service(home: House, name: str, *roles: str) -> None:
    """A service without a token."""
    made = await home.post(
        "olga", PEOPLE, {"name": name, "kind": "service", "roles": [{"role": role} for role in roles]}
    )
    profile = await home.gateway.stores.identities.profile(home.tenant, made.json()["id"])
    assert profile is not None
    home.people[name] = profile


async def _as_made_by(home: House, token: str, maker: str | None) -> None:
    """As if `maker` had made the token, when they still could."""
    by = None if maker is None else home.id(maker)
    await home.gateway.stores.database.write(
        lambda connection: connection.exec_driver_sql("UPDATE access_tokens SET made_by = ? WHERE id = ?", (by, token))
    )


async def _browser(home: House, clock: SettableClock, who: str, role: str) -> None:
    """A browser that `who` is signed in with, whose issuer gives them a role."""
    now = clock.now()
    sign_in = SignIn(
        id=new_id("sgn", now),
        tenant=home.tenant,
        profile=home.id(who),
        issuer="https://id.test",
        subject=who,
        user_agent="",
        created_at=now,
        last_seen_at=now,
        expires_at=now + timedelta(hours=8),
        roles=(_role(role),),
    )
    await home.gateway.stores.sign_ins.add(sign_in, who.encode(), instead_of=None)


@pytest.mark.parametrize("case", [*GAINS.values(), *OTHERS.values()], ids=[*GAINS, *OTHERS])
async def test_an_admin_publishes_nothing_that_only_an_owner_may(
    place: House, clock: SettableClock, case: Case
) -> None:
    """Design section 5: compared by the decisions before and after, for all that they can call as; the owner can, and
    it is marked."""
    if case.before:
        await place.publish(rows(place, *case.before, clock=clock))
    text = rows(place, *case.rows, clock=clock, without=case.without)
    before = await version(place)

    refused = await put(place, case.who, text)

    assert (refused.status_code, refused.json()["code"]) == (403, "tool_not_allowed"), refused.text
    assert case.says in refused.json()["detail"]
    assert "An owner can publish it." in refused.json()["detail"]
    assert await version(place) == before
    assert (await place.audit(kind="access"))[-1].record.effect == "deny"
    assert (await marks(place))["raises"] is True

    assert (await put(place, "olga", text)).status_code == 200
    assert (await version(place))[0] == before[0] + 1


@pytest.mark.parametrize("case", ALLOWED.values(), ids=ALLOWED)
async def test_an_admin_decides_what_others_may(place: House, clock: SettableClock, case: Case) -> None:
    """Design section 1: that is what an admin is for; and it is not marked, for them and for the owner."""
    if case.before:
        await place.publish(rows(place, *case.before, clock=clock))
    text = rows(place, *case.rows, clock=clock, without=case.without)
    before = await version(place)

    made = await put(place, case.who, text)

    assert made.status_code == 200, made.text
    assert await marks(place) == {}
    assert (await version(place))[0] == before[0] + 1


async def test_an_owner_who_raises_herself_is_marked_with_what_she_gains(home: House) -> None:
    """Design section 5: the owner can, and each such change is marked in the audit."""
    assert (await put(home, "olga", rows(home, f"p, role:owner, *, {READ}, allow"))).status_code == 200
    found = await marks(home)
    assert found["raises"] is True
    assert found["gains"] == [
        f"`list`, `history`, `search` and 1 more on session/private ({whose}) of every agent"
        for whose in ("of other people", "yours or shared with you")
    ]
    row = "p, {frank}, *, admin/people, all, any, *, edit, deny"
    await home.add("frank", "admin")
    assert (await put(home, "olga", rows(home, row))).status_code == 200
    assert await marks(home) == {"raises": True, "touches": [home.id("frank")]}


async def test_a_rollback_is_compared_like_what_is_published(home: House) -> None:
    """Design section 5: by a version that is in force no more they may have had more."""
    await home.publish(rows(home, f"p, role:admin, *, {READ}, allow"))
    await home.publish(rows(home, f"p, role:member, *, {READ}, allow"))
    await home.publish(DEFAULT)
    before = await version(home)

    refused = await home.post("erin", f"{POLICY}/versions/2/rollback")

    assert (refused.status_code, refused.json()["code"]) == (403, "tool_not_allowed")
    assert await version(home) == before
    assert (await home.post("erin", f"{POLICY}/versions/3/rollback")).status_code == 200
    assert (await home.post("olga", f"{POLICY}/versions/2/rollback")).status_code == 200
    assert (await marks(home))["raises"] is True
    assert (await home.post("erin", f"{POLICY}/versions/1/rollback")).status_code == 403  # the admins lose
    assert (await home.post("olga", f"{POLICY}/versions/1/rollback")).status_code == 200


async def test_what_is_out_of_date_is_a_conflict_before_anything_is_compared(home: House) -> None:
    """Design section 7: publish with the version it was based on; what changed is to be looked at first."""
    raising = rows(home, f"p, role:admin, *, {READ}, allow")
    await home.publish(rows(home, "# again"))
    for base in (0, 1, 3, 99):
        answer = await put(home, "erin", raising, base=base)
        assert (answer.status_code, answer.json()["facts"]) == (409, {"version": 2}), base
    assert (await put(home, "erin", raising)).status_code == 403


# ── one agent's rows ─────────────────────────────────────────────────────────────────────────────────────────────────

LEAD = (
    "p, {bob}, flight, admin/policy, self, own, private, publish, allow",
    "p, {bob}, *, admin/policy, self, own, private, read, allow",
)


@pytest.mark.parametrize(
    ("changes", "allowed"),
    [
        ((f"p, role:helper, flight, {READ}, allow",), True),
        ((f"p, role:helper, flight, {READ}, allow", "p, {carol}, flight, memory/*, agent, any, *, read, deny"), True),
        ((f"p, role:helper, hotel, {READ}, allow",), False),
        ((f"p, role:helper, *, {READ}, allow",), False),
        ((f"p, role:helper, flight, {READ}, allow", f"p, role:helper, hotel, {READ}, allow"), False),
        (("g, role:lead, role:member",), False),
        (("# only a comment",), False),
        (("p, {bob}, *, admin/policy, self, own, private, publish, allow",), False),
        (("p, {carol}, flight, admin/policy, self, own, private, publish, allow",), False),
        (("p, {carol}, flight, admin/*, self, own, private, read, allow",), False),
        (("p, {carol}, flight, gateway, self, own, private, connect, allow",), False),
        (("p, {carol}, flight, *, all, any, private, read, allow",), False),
        ((f"p, {{bob}}, flight, {READ}, allow",), False),
        ((f"p, role:member, flight, {READ}, allow",), False),
        (("p, {olga}, flight, session/*, all, any, *, *, deny",), True),  # she has nothing there to lose
    ],
)
async def test_whoever_edits_the_rows_of_one_agent_edits_no_others(
    home: House, changes: tuple[str, ...], allowed: bool
) -> None:
    """Issue, "Delegation": an admin may grant another the right to edit the rows of one agent only."""
    await home.add_agent("hotel")
    text = rows(home, *LEAD)
    draft = rows(home, *LEAD, *changes)
    assert (await put(home, "bob", rows(home, f"p, role:helper, flight, {READ}, allow"))).status_code == 403
    # To look at the policy is no part of running the place, so an admin gives both.
    assert (await put(home, "erin", text)).status_code == 200
    before = await version(home)

    made = await put(home, "bob", draft)

    assert made.status_code == (200 if allowed else 403), made.text
    assert (await version(home) != before) == allowed
    if allowed:
        assert (await marks(home)) == {}
        assert (await home.audit(kind="decision", action="publish"))[-1].record.agent == "flight"
        await home.publish(text)
    assert (await home.get("bob", POLICY)).json()["text"] == text
    assert (await put(home, "carol", draft)).status_code == 403
    assert (await put(home, "olga", draft)).status_code == 200


async def test_an_admin_of_one_agent_edits_its_rows_and_nobody_elses(home: House) -> None:
    """Design section 5, roles per agent: by the shipped rows, which are for every agent, an admin is one there."""
    await home.add_agent("hotel")
    await home.add("lena", "admin", agent="flight")
    flight, hotel = (rows(home, f"p, role:helper, {agent}, {READ}, allow") for agent in ("flight", "hotel"))

    assert (await put(home, "lena", hotel)).status_code == 403
    assert (await put(home, "lena", rows(home, f"p, {{lena}}, flight, {READ}, allow"))).status_code == 403
    assert (await put(home, "lena", rows(home, f"p, role:admin, flight, {READ}, allow"))).status_code == 403
    assert (await version(home))[0] == 1
    assert (await put(home, "lena", flight)).status_code == 200
    assert (await home.get("lena", POLICY)).status_code == 403
    for version_there in (1, 9):  # going back to a version is reading it
        assert (await home.post("lena", f"{POLICY}/versions/{version_there}/rollback")).status_code == 403
    assert (await home.post("erin", f"{POLICY}/versions/9/rollback")).status_code == 404


async def test_the_faults_of_a_draft_are_told_to_whoever_may_publish_something(home: House) -> None:
    """Design section 7: lint says every fault; nobody else's rows are in it."""
    await home.publish(rows(home, *LEAD))
    for who, status in (("bob", 422), ("erin", 422), ("carol", 403)):
        assert (await put(home, who, "p, nobody")).status_code == status
