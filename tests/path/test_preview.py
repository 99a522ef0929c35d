"""What a draft would change: recorded decisions put again, and everybody who is there (design section 7)."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import httpx2
import pytest

from gateway.operations import population
from gateway.policy.shipped import shipped
from tests.clock import SettableClock
from tests.house import House

PREVIEW, WATCH, POLICY = "/v1/admin/policy/preview", "/v1/admin/policy/watch", "/v1/admin/policy"
DEFAULT = shipped("default.csv")
READS_ALL = "p, role:member, *, session/private, agent, any, private, history, allow"
NO_LONG_MEMORY = "p, role:member, *, memory/longterm, all, any, *, *, deny"


async def preview(home: House, *rows: str, text: str = DEFAULT, days: int = 7, who: str = "erin") -> Any:
    """The preview of the default with these rows."""
    answer = await home.post(who, PREVIEW, {"text": "\n".join([text, *rows]), "days": days})
    assert answer.status_code == 200, answer.text
    return answer.json()


async def some_past(home: House) -> str:
    """Alice's session, read by her, asked for by bob, listed by both; a memory file; what only an invariant refuses."""
    session = await home.open("alice")
    await home.say("alice", session, "My salary is 7.")
    group = await home.open("alice", "group", participants=[home.id("bob")])
    for _ in range(2):
        assert (await home.get("bob", f"/v1/sessions/{session}/messages")).status_code == 404
    assert (await home.get("alice", f"/v1/sessions/{session}/messages")).status_code == 200
    assert (await home.get("bob", "/v1/sessions")).status_code == 200
    assert (await home.tool("alice", session, "memory_get", path="MEMORY.md")).status_code == 200
    await home.tool("bob", group, "memory_get", path="MEMORY.md")  # never in a group, whatever the rows say
    assert (await home.get("bob", "/v1/admin/people")).status_code == 403
    return session


async def test_a_draft_is_tried_on_what_was_really_asked_and_on_everybody(home: House) -> None:
    """Issue: who gains, who loses, per person, agent and tool, with counts and examples; nothing is published."""
    session = await some_past(home)
    before = (await home.get("erin", POLICY)).json()

    gained = await preview(home, READS_ALL)
    lost = await preview(home, NO_LONG_MEMORY)
    same = await preview(home, "# A comment.")

    assert (gained["gains"], gained["losses"]) == (2, 0)
    assert gained["by_person"] == [{"profile": home.id("bob"), "name": "bob", "gains": 2, "losses": 0}]
    assert [one["name"] for one in gained["by_tool"]] == ["messages.list"]
    assert [one["name"] for one in gained["by_resource"]] == ["session/private"]
    (example,) = gained["examples"]
    assert (example["change"], example["times"], example["session"], example["name"]) == ("gain", 2, session, "bob")
    assert gained["by_session"] == [{"name": session, "gains": 2, "losses": 0}]
    (kind,) = gained["sessions"]
    assert (kind["agent"], kind["resource"], kind["whose"]) == ("*", "session/private", "other")
    assert (kind["sessions"], kind["newest"], kind["people_gaining"]) == (1, [session], 3)
    (members,) = gained["population"]
    assert (members["people"], members["roles"]) == (3, [{"role": "member", "agent": "*"}])
    assert members["gains"] == [
        {
            "agent": "*",
            "resource": "session/private",
            "relation": relation,
            "whose": "other",
            "chat": "private",
            "actions": ["history"],
        }
        for relation in ("self", "child", "same_agent")
    ]
    assert (gained["people_gaining"], gained["people_losing"]) == (3, 0)  # supervisors read these already

    assert (lost["gains"], lost["losses"]) == (0, 1)
    assert lost["examples"][0]["resource"] == "memory/longterm"
    assert lost["sessions"] == []
    assert lost["people_losing"] == 4  # a supervisor is a member too
    assert same["population"] == same["examples"] == same["by_tool"] == []
    assert (same["decisions"]["lists"] > 0, same["decisions"]["share"]) == (True, 1)
    assert (await home.get("erin", POLICY)).json() == before
    assert "salary" not in str(gained)


async def test_what_an_invariant_refused_can_not_flip(home: House) -> None:
    """Issue: flips of an invariant cannot occur, and a draft that allows everything opens nothing that they close."""
    await some_past(home)

    found = await preview(home, "p, *, *, *, all, any, *, *, allow", text="")

    assert {"longterm_in_shared_session", "function_lacking"} <= found["decisions"]["refused_anyway"].keys()
    assert all(one["resource"] != "memory/longterm" for one in found["examples"])
    everything = [one for each in found["population"] for one in each["gains"]]
    assert everything
    assert not [
        one
        for one in everything
        if one["resource"] == "memory/longterm" and one["chat"] == "group" and "get" in one["actions"]
    ]
    assert not [one for one in everything if one["resource"].startswith("memory/personal") and one["whose"] != "own"]


async def test_people_whom_a_row_names_are_looked_at_alone(home: House) -> None:
    """A class decides alike but for those; a row that names a merged profile is its survivor's."""
    await home.add("frank", "member")
    await home.gateway.stores.identities.merge(
        home.tenant, home.id("frank"), home.id("carol"), home.gateway.clock.now()
    )
    row = f"p, user:{home.id('frank')}, flight, session/private, agent, any, private, read, allow, 2026-12-08T00:00:00Z"

    found = await preview(home, row, "p, user:prf_00000000000000000000000000, *, session/*, all, any, *, *, allow")

    (carol,) = found["population"]
    assert (carol["profile"], carol["name"], carol["people"]) == (home.id("carol"), "carol", 1)
    assert {one["agent"] for one in carol["gains"]} == {"flight"}
    assert [one["until"] for one in found["ends"]] == ["2026-12-08T00:00:00Z"]


async def test_what_publishing_would_refuse_is_said_before(home: House) -> None:
    """Design section 5: whoever previews learns that an owner has to publish it, and what locks everybody out."""
    mine = f"p, user:{home.id('erin')}, *, session/private, agent, any, private, read, allow"

    gains = await preview(home, mine)
    locked = await preview(home, text="p, role:member, *, session/*, agent, shared, private, *, allow")

    assert "gain" in gains["only_an_owner"][0]
    assert gains["refused"] == []
    assert "nobody who is owner or admin" in locked["refused"][0]
    faulty = await home.post("erin", PREVIEW, {"text": "p, nobody\np, role:member"})
    assert faulty.status_code == 422
    assert [one["line"] for one in faulty.json()["errors"]] == [1, 2]
    for days in (0, 91):
        assert (await home.post("erin", PREVIEW, {"text": DEFAULT, "days": days})).status_code == 422
    for who in ("alice", "dana", "audrey"):
        for refused in (await home.post(who, PREVIEW, {"text": DEFAULT}), await home.get(who, WATCH)):
            assert refused.status_code == 403


async def test_only_the_days_that_are_asked_for_count(home: House, clock: SettableClock) -> None:
    """Issue: the last N days."""
    await some_past(home)
    clock.set(clock.now() + timedelta(days=3))
    await home.get("alice", "/v1/sessions")

    assert (await preview(home, READS_ALL, days=2))["gains"] == 0
    assert (await preview(home, READS_ALL, days=4))["gains"] == 2


async def test_a_watch_says_what_a_publishing_really_changed(home: House, clock: SettableClock) -> None:
    """Issue: flips seen since. The document before it is asked what was asked since."""
    session = await some_past(home)
    clock.advance(1)
    put = {"text": f"{DEFAULT}\n{READS_ALL}\n", "base_version": 1, "comment": "Open."}
    assert (await home.send("olga", "PUT", POLICY, put)).status_code == 200
    assert (await home.get("bob", f"/v1/sessions/{session}/messages")).status_code == 200

    seen = (await home.get("erin", WATCH)).json()

    assert (seen["version"], seen["base_version"], seen["gains"], seen["losses"]) == (2, 1, 1, 0)
    assert seen["by_person"][0]["name"] == "bob"
    assert (await home.get("erin", f"{WATCH}?version=2")).json()["gains"] == 1
    for version, status in (("1", 409), ("3", 404), ("0", 422), ("x", 422)):
        assert (await home.get("erin", f"{WATCH}?version={version}")).status_code == status


async def open_to_members(home: House, clock: SettableClock, rows: str = READS_ALL, base: int = 1) -> None:
    """The default with these rows is published, a second after whatever was before."""
    clock.advance(1)
    put = {"text": f"{DEFAULT}\n{rows}\n", "base_version": base, "comment": "Open."}
    answer = await home.send("olga", "PUT", POLICY, put)
    assert answer.status_code == 200, answer.text


async def asks_for(home: House, session: str, *statuses: int) -> None:
    """Bob asks for the messages of a session, and is answered like this."""
    for status in statuses:
        assert (await home.get("bob", f"/v1/sessions/{session}/messages")).status_code == status


async def test_a_watch_counts_what_its_version_decided_and_nothing_later(home: House, clock: SettableClock) -> None:
    """What was refused again after a rollback was not allowed because of the version before it."""
    session = await some_past(home)
    await open_to_members(home, clock)
    await asks_for(home, session, 200)
    opened = (await home.audit(kind="decision", code="allowed", session=session))[-1].record
    clock.advance(1)
    assert (await home.post("olga", f"{POLICY}/versions/1/rollback")).status_code == 200
    await asks_for(home, session, 404, 404, 404)

    opening, closing = [(await home.get("erin", f"{WATCH}?version={version}")).json() for version in (2, 3)]
    # Records of before versions were noted are told apart by when they were made; late ones by what they say.
    old = opened._replace(policy_version=None)
    late = old._replace(at=old.at + timedelta(seconds=2))
    await home.gateway.stores.audit.append([old, late, late._replace(policy_version=2)])
    with_old = (await home.get("erin", f"{WATCH}?version=2")).json()

    assert (opening["gains"], opening["losses"]) == (1, 0)
    assert opening["decisions"]["until"] == closing["decisions"]["since"]
    assert (closing["gains"], closing["losses"]) == (0, 3)
    assert (with_old["gains"], with_old["losses"]) == (3, 0)


async def test_a_watch_asks_the_rows_as_they_stood_then(home: House, clock: SettableClock) -> None:
    """What a row allowed until it ended was allowed by it; and what the row before it allowed as well is no change."""
    session = await some_past(home)
    ends = (clock.now() + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    await open_to_members(home, clock, f"{READS_ALL}, {ends}")
    await asks_for(home, session, 200)
    await open_to_members(home, clock, f"# The same.\n{READS_ALL}, {ends}", base=2)
    await asks_for(home, session, 200, 200)
    clock.set(clock.now() + timedelta(hours=2))
    await asks_for(home, session, 404)

    opening, same = [(await home.get("erin", f"{WATCH}?version={version}")).json() for version in (2, 3)]

    assert (opening["gains"], opening["losses"]) == (1, 0)
    assert (same["gains"], same["losses"]) == (0, 0)
    assert same["decisions"]["replayed"] >= 3


async def test_a_guest_and_whoever_has_a_role_by_their_credential_are_looked_at_too(home: House) -> None:
    """Nobody is stored as either, and they gain all the same: a guest first, whom nobody knows."""
    row = "p, {whom}, *, memory/longterm, all, any, private, get, allow"

    for whom, kind, roles in (("guest", "guest", ["guest"]), ("nurse", "person", ["nurse"])):
        (found,) = (await preview(home, row.format(whom=f"role:{whom}")))["population"]
        assert (found["kind"], found["people"], [one["role"] for one in found["roles"]]) == (kind, 0, roles)
        assert {one["resource"] for one in found["gains"]} == {"memory/longterm"}
    everybody = await preview(home, row.format(whom="*"))
    assert everybody["population"][0]["kind"] == "guest"
    assert everybody["people_gaining"] == sum(one["people"] for one in everybody["population"])


async def test_of_many_whom_rows_name_those_whose_rows_change_come_first(
    home: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A document may name more people than can be looked at one by one; who is left out is said."""
    last, *others = sorted((home.id(name) for name in ("alice", "bob", "carol")), reverse=True)
    row = "p, user:{one}, flight, session/private, agent, any, private, read, allow"
    named = "\n".join([DEFAULT, *(row.format(one=one) for one in others)])
    await home.publish(named)
    await home.gateway.epochs.poll()
    monkeypatch.setattr(population, "MOST_NAMED", 1)

    found = await preview(home, row.format(one=last), text=named)

    assert [(one["profile"], one["people"]) for one in found["population"]] == [(last, 1)]
    assert found["not_looked_at"] == 2


async def test_one_preview_of_an_organisation_runs_at_a_time(home: House) -> None:
    """Ours: each reads much; the second is told to wait, and the first is not disturbed."""
    answers: list[httpx2.Response] = await asyncio.gather(
        *(home.post("erin", PREVIEW, {"text": DEFAULT}) for _ in range(3))
    )
    assert sorted(answer.status_code for answer in answers) == [200, 429, 429]
    assert {answer.headers.get("Retry-After") for answer in answers if answer.status_code == 429} == {"10"}
    assert (await home.post("erin", PREVIEW, {"text": DEFAULT})).status_code == 200


async def test_a_draft_is_in_the_audit_by_its_hash_alone(home: House) -> None:
    """Design section 12: the audit names what was looked at, and holds no text."""
    await preview(home, READS_ALL)
    record = [one.record for one in await home.audit(kind="decision") if one.record.operation == "policy.preview"][-1]
    assert str(record.target).startswith("draft ")
    assert READS_ALL not in str(record)


@pytest.mark.parametrize("most", [1, 7, 40])
async def test_a_sample_is_fair_and_the_same_each_time(home: House, most: int) -> None:
    """Issue: a sample above so many. A share of them, by their places in the chain, and which share is said."""
    for _ in range(30):
        await home.get("alice", "/v1/me")
    audit, since = home.gateway.stores.audit, home.gateway.clock.now()

    whole = await audit.decisions(home.tenant, since, most=200_000)
    some, again = [await audit.decisions(home.tenant, since, most=most) for _ in range(2)]

    assert (whole.share, whole.seen) == (1, sum(whole.counts.values()) + whole.about_others)
    assert some == again
    assert some.share == min(1, most / whole.seen)
    assert abs(some.seen - min(most, whole.seen)) <= 3
    if some.share < 1:
        assert some.seen < whole.seen
