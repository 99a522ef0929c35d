"""How a target stands to where a request is made from, and whose it is (design sections 6 and 7)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gateway.keys import guest_id
from gateway.model import ABOVE_ALL_MESSAGES, OUTSIDE, Chat, Kind, Origin, Participant, Relation, SessionFacts, Whose
from gateway.policy.relations import answering_agent, chat_of, readable_after, relation_of, whose_of, whose_to
from tests.cast import ACME, BEGAN, FLIGHT, HOTEL, child, person, profile_id, requester, root

MINE = root("mine", "alice")
CHILD = child("child", MINE)
GRANDCHILD = child("grandchild", CHILD)
ABROAD = child("abroad", MINE, agent=HOTEL)
BACK_HOME = child("back-home", ABROAD, agent=FLIGHT)
TEAM = root("team", "bob", "alice", kind=Kind.GROUP)
BOBS = root("bobs", "bob")
AT_HOTEL = root("at-hotel", "alice", agent=HOTEL)


@pytest.mark.parametrize(
    ("here", "target", "relation", "agent"),
    [
        pytest.param(MINE, MINE, Relation.SELF, FLIGHT, id="the session itself"),
        pytest.param(MINE, CHILD, Relation.CHILD, FLIGHT, id="a child"),
        pytest.param(MINE, GRANDCHILD, Relation.CHILD, FLIGHT, id="a child of a child is in the tree"),
        pytest.param(MINE, ABROAD, Relation.CHILD_CROSS, FLIGHT, id="a parent answers for a child on another agent"),
        pytest.param(MINE, BACK_HOME, Relation.CHILD, FLIGHT, id="a grandchild back on the same agent"),
        pytest.param(ABROAD, BACK_HOME, Relation.CHILD_CROSS, FLIGHT, id="the tree root's agent, not the parent's"),
        pytest.param(CHILD, MINE, Relation.SAME_AGENT, FLIGHT, id="a parent is not in its child's tree"),
        pytest.param(CHILD, BOBS, Relation.SAME_AGENT, FLIGHT, id="any other session of the agent"),
        pytest.param(MINE, AT_HOTEL, Relation.OTHER_AGENT, HOTEL, id="a session of another agent"),
        pytest.param(ABROAD, MINE, Relation.OTHER_AGENT, FLIGHT, id="a parent on another agent"),
        pytest.param(None, MINE, Relation.SELF, FLIGHT, id="outside: one's own"),
        pytest.param(None, TEAM, Relation.SELF, FLIGHT, id="outside: one that one takes part in"),
        pytest.param(None, BOBS, Relation.SAME_AGENT, FLIGHT, id="outside: another person's"),
        pytest.param(None, ABROAD, Relation.SELF, HOTEL, id="outside: one's own child, by its own agent"),
    ],
)
def test_a_target_stands_to_the_origin_by_its_lineage(
    here: SessionFacts | None, target: SessionFacts, relation: Relation, agent: str
) -> None:
    """Design section 7, `relation` and `whose` are facts."""
    origin = OUTSIDE if here is None else Origin(session=here.session, chat=Chat.PRIVATE, kind=here.session.kind)

    found = relation_of(origin, target.session, whose_of(target, profile_id("alice")))

    assert found is relation
    assert answering_agent(target.session, found) == agent


@pytest.mark.parametrize(
    ("target", "who", "whose"),
    [
        (MINE, "alice", Whose.OWN),
        (GRANDCHILD, "alice", Whose.OWN),
        (TEAM, "bob", Whose.OWN),
        (TEAM, "alice", Whose.SHARED),
        (child("spawned", TEAM), "alice", Whose.SHARED),
        (MINE, "bob", Whose.OTHER),
        (TEAM, "carol", Whose.OTHER),
    ],
)
def test_a_session_is_whose_its_root_is(target: SessionFacts, who: str, whose: Whose) -> None:
    """Design section 6: owner and participants of a child are those of its tree's root."""
    assert whose_of(target, profile_id(who)) is whose


def test_whatever_is_not_private_counts_as_a_group() -> None:
    """Design section 6: everything else (groups, channels, cron, unknown) is shared."""
    assert chat_of(MINE.session) is Chat.PRIVATE
    assert chat_of(TEAM.session) is Chat.GROUP
    assert chat_of(root("nightly", "alice", kind=Kind.CRON).session) is Chat.GROUP


def test_who_joins_later_reads_from_their_joining_on() -> None:
    """Design section 6. Whoever is no participant reads by a row that allows `any`, and from the first message; the
    owner of a shared session who does not take part has fallen out of it in some way, and reads nothing."""
    late = Participant(profile=profile_id("carol"), joined_after=41, joined_at=BEGAN)
    team = SessionFacts(session=TEAM.session, participants=(*TEAM.participants, late))

    assert readable_after(team, profile_id("bob")) == 0
    assert readable_after(team, profile_id("carol")) == 41
    assert readable_after(team, profile_id("dana")) == 0
    assert readable_after(replace(MINE, participants=()), MINE.session.owner) == 0
    assert readable_after(replace(TEAM, participants=()), TEAM.session.owner) == ABOVE_ALL_MESSAGES


def test_a_guest_takes_part_where_they_speak_and_reads_nothing_that_was_said() -> None:
    """Design section 5: whatever a row gives guests, it is in the one chat that the channel brought them from; and
    since nobody saw them joining there, no message is theirs to read."""
    guest = replace(person("U9", "guest", kind="guest"), id=guest_id(ACME, "channel:4:line7:support", "U9"))
    outside = requester(guest)
    here = replace(outside, principal=replace(outside.principal, place=TEAM.session.id))
    below = child("below", TEAM)

    assert [whose_to(one, here) for one in (TEAM, below, BOBS, MINE)] == [
        Whose.SHARED,
        Whose.SHARED,
        Whose.OTHER,
        Whose.OTHER,
    ]
    assert whose_to(TEAM, outside) is Whose.OTHER
    # A person whose turn a channel brought is where they take part, and nowhere by the place alone.
    carol = replace(requester(person("carol", "member")), principal=here.principal)
    assert whose_to(TEAM, carol) is Whose.OTHER
    assert readable_after(TEAM, guest.id) == ABOVE_ALL_MESSAGES
    assert readable_after(TEAM, profile_id("carol")) == 0
