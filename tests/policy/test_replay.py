"""Recorded decisions put to two documents, and what changes for people, in words."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import gateway.policy.invariants
from gateway.model import (
    ANY_AGENT,
    Action,
    AgentName,
    Chat,
    Profile,
    ProfileId,
    Question,
    Relation,
    Resource,
    RoleAssignment,
    TenantId,
    Whose,
)
from gateway.policy.ahead import RowsBySubject
from gateway.policy.comparison import Change
from gateway.policy.documents import parse
from gateway.policy.flips import MOST, MOST_EXAMPLES, Count, summarised
from gateway.policy.plain import PlainEnforcer
from gateway.policy.population import affected, by_credential, named_in, sessions_in
from gateway.policy.replay import OF_ROWS, Flip, RightsThen, look_back, periods, replay
from gateway.policy.rights import Rights
from gateway.ports import Recorded
from tests.policy.test_differential import MOMENTS, documents, random_pair

NOW = MOMENTS[0]
PLAIN = Recorded(
    profile="prf_a",
    subjects=frozenset({"*", "role:member"}),
    agent="flight",
    resource="session/private",
    relation="self",
    whose="own",
    chat="private",
    action="history",
    operation="messages.list",
    code="allowed",
    session="agent:flight:direct:prf_a",
)
OWN = "p, role:member, {agent}, session/private, self, own, private, history, allow"


def rights(*rows: str) -> Rights:
    """What these rows allow."""
    return Rights(parse("\n".join(rows)), NOW)


def test_no_code_of_an_invariant_is_one_of_the_rows() -> None:
    """Issue: flips of an invariant cannot occur. Whatever code the invariants name is read from their source."""
    source = Path(str(gateway.policy.invariants.__file__)).read_text(encoding="utf-8")
    codes = set(re.findall(r'"([a-z]+(?:_[a-z]+)+)"', source))
    assert {"tenant_mismatch", "longterm_in_shared_session", "target_missing"} <= codes
    assert codes.isdisjoint(OF_ROWS)


def test_every_decision_is_counted_once_under_what_became_of_it() -> None:
    """Flips, decisions that stay, lists, what an invariant refused, and what can't be read."""
    counts = Counter(
        {
            PLAIN: 3,
            PLAIN._replace(agent="hotel", code="no_matching_row"): 2,
            PLAIN._replace(agent=ANY_AGENT): 5,
            PLAIN._replace(code="incognito_session"): 7,
            PLAIN._replace(action="fly"): 11,
            PLAIN._replace(resource=None): 13,
        }
    )

    found = replay(counts, rights(OWN.format(agent="flight")), rights(OWN.format(agent="hotel")))

    assert {(one.recorded.agent, one.gained, one.times) for one in found.flips} == {
        ("flight", False, 3),
        ("hotel", True, 2),
    }
    assert (found.replayed, found.lists, found.unreadable) == (5, 5, 24)
    assert found.by_code == {"incognito_session": 7}


def test_a_replay_finds_what_a_plain_enforcer_would_answer_otherwise() -> None:
    """Ours: random documents, the decisions of the first put to the second."""
    flipped = 0
    drawn = list(documents("replay", 41))[1:]
    for (dice, first), (_, second) in zip(drawn[::2], drawn[1::2], strict=True):
        before, after = PlainEnforcer(first, NOW), PlainEnforcer(second, NOW)
        expected: dict[Recorded, bool] = {}
        counts: Counter[Recorded] = Counter()
        for _ in range(30):
            subjects, question = random_pair(dice, dice.choice((first, second)))
            could, can = before.decide(subjects, question), after.decide(subjects, question)
            words: dict[str, Any] = {name: str(value) for name, value in question._asdict().items()}
            recorded = PLAIN._replace(subjects=subjects, code=could.code, **words)
            counts[recorded] += 1
            if could.allowed != can.allowed:
                expected[recorded] = can.allowed
        found = replay(counts, Rights(first, NOW), Rights(second, NOW))
        assert {one.recorded: one.gained for one in found.flips} == expected
        flipped += len(expected)
    assert flipped > 20


def test_looking_back_asks_the_document_as_it_stood_at_that_moment() -> None:
    """Rows end by themselves: what a document answered last week is not what it answers today."""
    ended = allowed_before = 0
    for dice, document in documents("look back", 40):
        begins = periods(document, MOMENTS[0], MOMENTS[-1])
        assert begins == sorted({MOMENTS[0]} | {row.until for row in document.rows if row.until in MOMENTS[1:]})
        then = [PlainEnforcer(document, begin) for begin in begins]
        before, counts, expected = RightsThen(RowsBySubject(document), begins), Counter[Recorded](), {}
        for _ in range(30):
            subjects, question = random_pair(dice, document)
            period, code = dice.randrange(len(begins)), dice.choice(sorted(OF_ROWS))
            words: dict[str, Any] = {name: str(value) for name, value in question._asdict().items()}
            recorded = PLAIN._replace(subjects=subjects, code=code, **words)._replace(period=period)
            could = then[period].decide(subjects, question).allowed
            counts[recorded] += 1
            if could != (code == "allowed"):
                expected[recorded] = code == "allowed"
            ended += could != then[-1].decide(subjects, question).allowed
            allowed_before += could
        assert {one.recorded: one.gained for one in look_back(counts, before).flips} == expected
    assert min(ended, allowed_before) > 20


def test_what_changes_on_every_agent_is_said_once() -> None:
    """Ours: an admin reads it on a phone."""
    member = (RoleAssignment(role="member", agent=ANY_AGENT),)
    alice = Profile(id=ProfileId("prf_a"), tenant=TenantId("acme"), name="alice", kind="person", roles=member)
    nobody = replace(alice, id=ProfileId("prf_b"), roles=())
    everywhere = Change(rights(), rights(OWN.format(agent="*")), ["flight", "hotel"])
    somewhere = Change(
        rights(),
        rights(OWN.format(agent="*"), OWN.format(agent="flight").replace("history", "list")),
        ["flight", "hotel"],
    )

    (one,) = affected(everywhere, [(alice, 4), (nobody, 2)])
    (other,) = affected(somewhere, [(alice, 1)])

    assert (one.people, [(each.agent, each.actions) for each in one.gains], one.losses) == (
        4,
        [("*", ("history",))],
        (),
    )
    assert [(each.agent, each.actions) for each in other.gains] == [("*", ("history",)), ("flight", ("list",))]
    assert named_in({"user:prf_b", "role:member", "*", "user:prf_a"}) == ["prf_a", "prf_b"]


def test_whoever_is_stored_nowhere_is_looked_at_too() -> None:
    """A guest, and somebody whose role comes with their credential: nobody of a class would say what they gain."""
    somebody = by_credential(
        TenantId("acme"), {"role:nurse", "role:member", "role:guest", "user:prf_a", "*"}, {"member"}
    )
    assert [
        (one.kind, sorted(one.subjects_on(AgentName("flight")) & {"*", "role:guest", "role:nurse"})) for one in somebody
    ] == [
        ("guest", ["*", "role:guest"]),
        ("person", ["*", "role:nurse"]),
    ]
    assert not [one for one in somebody if one.subjects_on(AgentName("flight")) & {"user:prf_a", "role:member"}]


def test_of_many_flips_the_largest_are_said_and_the_counts_are_of_all() -> None:
    """Ours: an admin reads it on a phone, and a draft that closes everything flips each decision of the week."""
    question = Question(
        AgentName("flight"), Resource.SESSION_PRIVATE, Relation.SELF, Whose.OWN, Chat.PRIVATE, Action.HISTORY
    )
    flips = [
        Flip(PLAIN._replace(profile=f"prf_{number:03d}", session=None), question, number % 2 == 0, number + 1)
        for number in range(MOST + 9)
    ]
    flips.append(Flip(PLAIN, question, False, 1))

    found = summarised(flips)

    assert found.gains == sum(one.times for one in flips if one.gained)
    assert found.losses == sum(one.times for one in flips if not one.gained)
    assert [one.name for one in found.by_person] == [f"prf_{number:03d}" for number in range(MOST + 8, 8, -1)]
    assert [(one.gains, one.losses) for one in found.by_person[:2]] == [(MOST + 9, 0), (0, MOST + 8)]
    assert (found.by_tool, found.by_agent, found.by_resource) == tuple(
        [Count(name, found.gains, found.losses)] for name in ("messages.list", "flight", "session/private")
    )
    assert found.by_session == [Count(str(PLAIN.session), 0, 1)]
    assert [one.times for one in found.examples] == sorted((one.times for one in flips), reverse=True)[:MOST_EXAMPLES]
    assert summarised([]).examples == []


def test_the_kinds_of_sessions_that_change_are_named_with_how_many_people() -> None:
    """Issue: which sessions. Those of most people first; what is no session is not among them."""
    members, nurses = (
        Profile(
            id=ProfileId(f"prf_{role}"),
            tenant=TenantId("acme"),
            name="",
            kind="person",
            roles=(RoleAssignment(role=role, agent=ANY_AGENT),),
        )
        for role in ("member", "nurse")
    )
    before = rights("p, role:member, flight, session/private, self, own, private, *, allow")
    after = rights(
        "p, role:nurse, flight, session/private, self, own, private, history, allow",
        "p, role:nurse, hotel, session/shared, agent, any, private, history, allow",
        "p, role:nurse, hotel, memory/daily, agent, any, private, load, allow",
    )

    found = sessions_in(affected(Change(before, after, ["flight", "hotel"]), [(members, 4), (nurses, 0)]))

    assert [(one.agent, one.resource, one.whose, one.gaining, one.losing) for one in found] == [
        ("flight", "session/private", "own", 0, 4),
        *(("hotel", "session/shared", whose, 0, 0) for whose in ("other", "own", "shared")),
    ]
