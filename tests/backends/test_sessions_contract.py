"""What every store of sessions and transcripts must do (ports.py, design section 6)."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from gateway.backends.sql import cursors
from gateway.errors import Conflict, Invalid
from gateway.model import (
    ANY_AGENT,
    OUTSIDE,
    AgentName,
    Chat,
    Origin,
    ProfileId,
    Relation,
    Resource,
    Scope,
    Session,
    SessionId,
    Whose,
)
from gateway.ports import SessionFilter
from tests.backends.stores import (
    ACME,
    ALICE,
    BOB,
    CAROL,
    DANA,
    FLIGHT,
    GLOBEX,
    HOTEL,
    NOW,
    Stores,
    a_draft,
    a_group,
    a_session,
)

BOTH = (Resource.SESSION_PRIVATE, Resource.SESSION_SHARED)
OWN_AND_SHARED = frozenset((FLIGHT, res, Relation.SELF, whose) for res in BOTH for whose in (Whose.OWN, Whose.SHARED))
ANYBODYS = frozenset((FLIGHT, res, Relation.SAME_AGENT, Whose.OTHER) for res in BOTH)


async def _ids(stores: Stores, person: ProfileId, narrow: SessionFilter | None = None) -> list[SessionId]:
    scope = Scope(person, OUTSIDE, OWN_AND_SHARED)
    page = await stores.sessions.list(ACME, scope, narrow or SessionFilter(), limit=50, cursor=None)
    return [one.id for one in page.items]


async def test_a_session_is_found_by_its_key_and_its_id_byte_for_byte_in_its_tenant_alone(stores: Stores) -> None:
    """ports.Sessions.find."""
    made = a_group("A", title="Flüge")
    facts = await stores.sessions.create(made, [ALICE, BOB, ALICE])
    assert (facts.session, [one.profile for one in facts.participants]) == (made, [ALICE, BOB])
    assert await stores.sessions.find(ACME, made.key) == facts
    assert await stores.sessions.find(ACME, made.id) == facts
    for reference in (made.key.upper(), made.key + " ", "ses_a", "ses_A\0", ""):
        if stores.holds(reference):
            assert await stores.sessions.find(ACME, reference) is None
        else:
            with pytest.raises(Invalid):
                await stores.sessions.find(ACME, reference)
    assert await stores.sessions.find(GLOBEX, made.id) is None


async def test_a_taken_key_and_a_parent_that_is_gone_are_conflicts_that_store_nothing(stores: Stores) -> None:
    """ports.Sessions.create."""
    root = a_session("A")
    await stores.sessions.create(root, [ALICE])
    with pytest.raises(Conflict):
        await stores.sessions.create(root, [ALICE])
    orphan = a_session("B", parent=root)
    await stores.sessions.delete(ACME, root.id, expected=None)
    with pytest.raises(Conflict):
        await stores.sessions.create(orphan, [])
    assert await stores.sessions.find(ACME, orphan.id) is None


async def test_a_child_has_the_people_and_the_owner_of_its_root_at_this_moment(stores: Stores) -> None:
    """Design section 6: owner and participants of a child are those of its tree's root."""
    root = a_group("A")
    await stores.sessions.create(root, [ALICE, BOB])
    child = a_session("B", parent=root, agent=HOTEL)
    await stores.sessions.set_owner(ACME, root.id, CAROL, NOW, expected=None)
    facts = await stores.sessions.create(child, [DANA])
    assert facts.session.owner == CAROL
    assert [one.profile for one in facts.participants] == [ALICE, BOB, CAROL]
    assert await _ids(stores, CAROL) == [root.id]
    page = await stores.sessions.list(
        ACME,
        Scope(CAROL, OUTSIDE, frozenset({(HOTEL, Resource.SESSION_SHARED, Relation.SELF, Whose.OWN)})),
        SessionFilter(),
        limit=5,
        cursor=None,
    )
    assert [one.id for one in page.items] == [child.id]


async def test_the_participants_of_many_roots_are_read_together(stores: Stores) -> None:
    """ports.Sessions.participants."""
    first, second = a_group("A"), a_group("B", BOB)
    await stores.sessions.create(first, [ALICE, BOB])
    await stores.sessions.create(second, [BOB])
    found = await stores.sessions.participants(ACME, [first.id, second.id, SessionId("ses_none")])
    people = {root: [one.profile for one in rows] for root, rows in found.items()}
    assert people == {first.id: [ALICE, BOB], second.id: [BOB], "ses_none": []}
    assert (await stores.sessions.participants(GLOBEX, [first.id]))[first.id] == ()


async def test_leaving_ends_access_and_who_joins_later_reads_from_their_joining_on(stores: Stores) -> None:
    """Design section 6, owner and participants."""
    root = a_group("A")
    child = a_session("B", parent=root)
    await stores.sessions.create(root, [ALICE, BOB])
    await stores.sessions.create(child, [])
    first = await stores.transcripts.append(ACME, a_draft(root, "before", 1))
    assert first is not None
    facts = await stores.sessions.set_participants(ACME, root.id, [ALICE, CAROL], NOW, expected=None)
    assert facts is not None
    assert {one.profile: one.joined_after for one in facts.participants} == {ALICE: 0, CAROL: first.number}
    await stores.transcripts.append(ACME, a_draft(root, "before and after", 2))
    assert await _ids(stores, BOB) == []
    assert await _ids(stores, CAROL) == [child.id, root.id]
    found = {}
    for person in (ALICE, BOB, CAROL):
        scope = Scope(person, OUTSIDE, OWN_AND_SHARED)
        hits = await stores.transcripts.search(ACME, scope, "before", session=None, limit=9)
        found[person] = [message.content for _, message in hits]
    assert found == {ALICE: ["before and after", "before"], BOB: [], CAROL: ["before and after"]}
    for missing in (child.id, SessionId("ses_none")):
        assert await stores.sessions.set_participants(ACME, missing, [ALICE], NOW, expected=None) is None
        assert await stores.sessions.set_owner(ACME, missing, ALICE, NOW, expected=None) is None


async def test_titles_archives_and_resets_change_what_they_name_and_nothing_else(stores: Stores) -> None:
    """ports.Sessions: archiving twice keeps the first time; a reset keeps the id and opens a new incarnation."""
    made = a_session("A")
    await stores.sessions.create(made, [ALICE])
    await stores.sessions.set_title(ACME, made.id, "Straße", expected=None)
    await stores.sessions.archive(ACME, made.id, NOW, expected=None)
    archived = await stores.sessions.archive(ACME, made.id, NOW + timedelta(days=1), expected=None)
    assert archived is not None
    assert archived.session.archived_at == NOW
    assert await _ids(stores, ALICE, SessionFilter(title="STRASSE", archived=True)) == [made.id]
    facts = await stores.sessions.reset(ACME, made.id, expected=None)
    assert facts is not None
    now = facts.session
    assert (now.title, now.archived_at, now.incarnation, now.key, now.path) == ("Straße", None, 2, made.key, made.path)
    assert await _ids(stores, ALICE, SessionFilter(title="STRASSEN")) == []
    await stores.sessions.set_title(ACME, made.id, None, expected=None)
    assert await _ids(stores, ALICE, SessionFilter(title="")) == []
    for gone in ("ses_none", "agent:flight:test:A"):
        assert await stores.sessions.set_title(ACME, SessionId(gone), "x", expected=None) is None


OVERTAKING = {
    "owner": lambda store, root: store.set_owner(ACME, root, BOB, NOW, expected=None),
    "participants": lambda store, root: store.set_participants(ACME, root, [ALICE, CAROL], NOW, expected=None),
    "archive": lambda store, root: store.archive(ACME, root, NOW, expected=None),
    "reset": lambda store, root: store.reset(ACME, root, expected=None),
    "delete": lambda store, root: store.delete(ACME, root, expected=None),
}


@pytest.mark.parametrize("overtaking", OVERTAKING)
async def test_a_change_that_was_permitted_by_what_no_longer_holds_writes_nothing(
    stores: Stores, overtaking: str
) -> None:
    """Design section 7: a request in flight undoes nothing that was answered meanwhile."""
    store, root = stores.sessions, a_group("A")
    before = await store.create(root, [ALICE, BOB])
    assert await store.set_title(ACME, root.id, "First", expected=before) is not None
    assert await store.set_title(ACME, root.id, "Second", expected=before) is not None  # a title decides nothing
    await OVERTAKING[overtaking](store, root.id)
    there = await store.find(ACME, root.id)

    late = [
        await store.set_title(ACME, root.id, "Late", expected=before),
        await store.set_participants(ACME, root.id, [ALICE, BOB], NOW, expected=before),
        await store.set_title_and_participants(ACME, root.id, "Late", [ALICE, BOB], NOW, expected=before),
        await store.set_owner(ACME, root.id, BOB, NOW, expected=before),
        await store.archive(ACME, root.id, NOW, expected=before),
        await store.reset(ACME, root.id, expected=before),
    ]

    assert late == [None] * 6
    assert await store.delete(ACME, root.id, expected=before) == 0
    assert await store.find(ACME, root.id) == there


async def test_nothing_is_opened_below_an_archived_session_until_it_is_reset(stores: Stores) -> None:
    """Interface: archived is no more messages; a child would be a way around it. Asked where it is written, too."""
    parent = a_session("A")
    await stores.sessions.create(parent, [ALICE])
    await stores.sessions.archive(ACME, parent.id, NOW, expected=None)
    with pytest.raises(Conflict):
        await stores.sessions.create(a_session("B", parent=parent), ())
    await stores.sessions.reset(ACME, parent.id, expected=None)
    child = await stores.sessions.create(a_session("B", parent=parent), ())
    assert child.session.parent == parent.id


async def test_the_owner_takes_part_as_long_as_they_own_it(stores: Stores) -> None:
    """Design section 6; and of a title and people that are changed at once, neither is where one can't be."""
    root = a_group("A")
    before = await stores.sessions.create(root, [ALICE, BOB])
    with pytest.raises(Conflict):
        await stores.sessions.set_participants(ACME, root.id, [BOB], NOW, expected=before)
    with pytest.raises(Conflict):
        await stores.sessions.set_title_and_participants(ACME, root.id, "x", [BOB], NOW, expected=before)
    assert await stores.sessions.find(ACME, root.id) == before
    after = await stores.sessions.set_title_and_participants(ACME, root.id, "x", [ALICE], NOW, expected=before)
    assert after is not None
    assert (after.session.title, [one.profile for one in after.participants]) == ("x", [ALICE])


async def test_a_message_of_somebody_who_took_part_needs_them_to_take_part_still(stores: Stores) -> None:
    """Design section 7: leaving ends access, for a message on its way too; who writes by a row for `any` still may."""
    root = a_group("A")
    child = a_session("B", parent=root)
    await stores.sessions.create(root, [ALICE, BOB])
    await stores.sessions.create(child, [])
    mine = {"sender": BOB, "member": BOB}
    assert await stores.transcripts.append(ACME, a_draft(root, "in time", 1, **mine)) is not None
    await stores.sessions.set_participants(ACME, root.id, [ALICE], NOW, expected=None)

    late = [await stores.transcripts.append(ACME, a_draft(one, "late", 2, **mine)) for one in (root, child)]
    good = [await stores.transcripts.append(ACME, a_draft(one, "mine", 3, member=ALICE)) for one in (root, child)]
    other = await stores.transcripts.append(ACME, a_draft(root, "any", 4, sender=BOB))

    assert late == [None, None]
    assert None not in (*good, other)


async def test_a_search_shows_nothing_of_a_shared_session_to_an_owner_who_fell_out_of_it(stores: Stores) -> None:
    """As `policy/relations.readable_after`: a private session is its owner's from the first message."""
    for one in (a_group("A"), a_session("B")):
        await stores.sessions.create(one, [])
        await stores.transcripts.append(ACME, a_draft(one, f"words of {one.kind}"))
    found = await stores.transcripts.search(ACME, Scope(ALICE, OUTSIDE, OWN_AND_SHARED), "words", session=None, limit=9)
    assert [message.content for _, message in found] == ["words of direct"]


async def test_a_deleted_session_takes_its_descendants_and_their_transcripts_along(stores: Stores) -> None:
    """ports.Sessions.delete; the rest of the tree stays, and no number is given twice."""
    root = a_group("A")
    child = a_session("B", parent=root)
    grandchild = a_session("C", parent=child)
    sibling = a_session("D", parent=root)
    for one in (root, child, grandchild, sibling):
        await stores.sessions.create(one, [ALICE])
        await stores.transcripts.append(ACME, a_draft(one, "text"))
    assert await stores.sessions.delete(ACME, child.id, expected=None) == 2
    assert await _ids(stores, ALICE) == [sibling.id, root.id]
    assert await stores.sessions.find(ACME, grandchild.id) is None
    assert await stores.transcripts.history(ACME, child.id, incarnation=1, after=0, limit=5, cursor=None) is None
    assert await stores.sessions.delete(ACME, root.id, expected=None) == 2
    assert await stores.sessions.delete(ACME, root.id, expected=None) == 0
    await stores.sessions.create(root, [ALICE])
    again = await stores.transcripts.append(ACME, a_draft(root, "text"))
    assert again is not None
    assert again.number == 5


async def test_a_filter_by_activity_counts_the_opening_where_nobody_wrote_yet(stores: Stores) -> None:
    """Ours: a session that was just opened is active."""
    old, new = a_session("A"), a_session("B", created_at=NOW + timedelta(hours=1))
    await stores.sessions.create(old, [ALICE])
    await stores.sessions.create(new, [ALICE])
    since = SessionFilter(active_since=NOW + timedelta(minutes=30))
    assert await _ids(stores, ALICE, since) == [new.id]
    await stores.transcripts.append(ACME, a_draft(old, "again", created_at=NOW + timedelta(minutes=31)))
    assert await _ids(stores, ALICE, since) == [new.id, old.id]


async def test_an_append_needs_the_session_open_and_in_the_same_incarnation(stores: Stores) -> None:
    """ports.Transcripts.append: checked in the same transaction."""
    made = a_session("A")
    await stores.sessions.create(made, [ALICE])
    stored = await stores.transcripts.append(ACME, a_draft(made, "one", 1))
    with pytest.raises(Conflict):
        await stores.transcripts.append(ACME, a_draft(made, "the same id", 1))
    assert await stores.transcripts.append(ACME, a_draft(made, "x", 2, incarnation=2)) is None
    assert await stores.transcripts.append(GLOBEX, a_draft(made, "x", 3)) is None
    await stores.sessions.archive(ACME, made.id, NOW, expected=None)
    assert await stores.transcripts.append(ACME, a_draft(made, "x", 4)) is None
    page = await stores.transcripts.history(ACME, made.id, incarnation=1, after=0, limit=9, cursor=None)
    assert page is not None
    assert page.items == (stored,)
    facts = await stores.sessions.find(ACME, made.id)
    assert facts is not None
    assert facts.session.last_message_at == NOW + timedelta(seconds=1)


async def test_appends_at_the_same_time_all_land_and_one_bad_one_hurts_no_other(stores: Stores) -> None:
    """Ours: appends are written together; each gets its own answer, and numbers follow the order of asking."""
    first, second = a_session("A"), a_session("B", BOB)
    await stores.sessions.create(first, [ALICE])
    await stores.sessions.create(second, [BOB])
    drafts = [a_draft(one, f"{number}", number) for number in range(20) for one in (first, second)]
    drafts.insert(10, a_draft(first, "an id that is taken", 0))
    drafts.insert(20, a_draft(first, "another incarnation", 99, incarnation=7))
    drafts.insert(30, a_draft(first, "half a pair \ud800", 98))
    results = await asyncio.gather(*(stores.transcripts.append(ACME, one) for one in drafts), return_exceptions=True)
    assert [index for index, one in enumerate(results) if isinstance(one, Conflict)] == [10]
    assert isinstance(results[30], Invalid)
    assert results[20] is None
    good = [one for index, one in enumerate(results) if index not in (10, 20, 30)]
    numbers = [one.number for one in good if one is not None and not isinstance(one, BaseException)]
    assert (len(numbers), numbers) == (40, sorted(set(numbers)))


async def test_history_pages_from_the_oldest_and_fails_closed_after_a_reset(stores: Stores) -> None:
    """Design section 6: a read that began before a reset fails closed."""
    made = a_session("A")
    await stores.sessions.create(made, [ALICE])
    for number in range(1, 6):
        await stores.transcripts.append(ACME, a_draft(made, f"text {number}", number))

    async def read(incarnation: int, after: int, cursor: str | None) -> Any:
        page = await stores.transcripts.history(
            ACME, made.id, incarnation=incarnation, after=after, limit=2, cursor=cursor
        )
        return page and ([one.number for one in page.items], page.next_cursor)

    numbers, cursor = await read(1, 1, None)
    assert numbers == [2, 3]
    assert await read(1, 1, cursor) == ([4, 5], None)
    latest = await stores.transcripts.latest(ACME, made.id, incarnation=1, after=3, limit=9)
    assert [one.number for one in latest or ()] == [4, 5]
    with pytest.raises(Invalid):
        await read(1, 0, "bad")
    await stores.sessions.reset(ACME, made.id, expected=None)
    assert await read(1, 1, cursor) is None
    assert await read(2, 0, None) == ([], None)
    assert await stores.transcripts.latest(ACME, made.id, incarnation=1, after=0, limit=9) is None


async def test_a_cursor_of_messages_tells_nothing_of_other_peoples_and_fits_its_own_session_alone(
    stores: Stores,
) -> None:
    """Design section 7: nobody learns how much is written in sessions that they may not read."""
    mine, theirs = a_session("A"), a_session("B", BOB)
    await stores.sessions.create(mine, [ALICE])
    await stores.sessions.create(theirs, [BOB])
    for number in range(1, 4):
        for one in (theirs, mine):
            await stores.transcripts.append(ACME, a_draft(one, f"text {number}", number))

    async def read(session: Session, cursor: str | None) -> Any:
        return await stores.transcripts.history(ACME, session.id, incarnation=1, after=0, limit=1, cursor=cursor)

    first, other = await read(mine, None), await read(theirs, None)
    second = await read(mine, first.next_cursor)

    assert cursors.read("history", first.next_cursor) == first.items[0].id
    assert [one.content for one in second.items] == ["text 2"]
    for cursor in (other.next_cursor, cursors.write("history", "2"), cursors.write("history", "msg_none")):
        with pytest.raises(Invalid):
            await read(mine, cursor)


async def test_a_page_of_long_messages_ends_early_and_goes_on_where_it_ended(stores: Stores) -> None:
    """Ours: 200 of the longest messages are no answer for one request; at least one comes with each page."""
    made = a_session("A")
    await stores.sessions.create(made, [ALICE])
    sizes = (1_900_000, 1_900_000, 500_000, 5_000_000, 5, 5)
    for number, size in enumerate(sizes, start=1):
        await stores.transcripts.append(ACME, a_draft(made, "\u00e9" * (size // 2) + "x" * (size % 2), number))

    pages, cursor = [], None
    for _ in range(4):
        page = await stores.transcripts.history(ACME, made.id, incarnation=1, after=0, limit=9, cursor=cursor)
        assert page is not None
        pages.append([one.number for one in page.items])
        cursor = page.next_cursor
    assert (pages, cursor) == ([[1, 2], [3], [4], [5, 6]], None)


async def _search(stores: Stores, query: str, session: Session | None = None) -> list[str]:
    scope = Scope(ALICE, OUTSIDE, OWN_AND_SHARED)
    only = session.id if session else None
    hits = await stores.transcripts.search(ACME, scope, query, session=only, limit=9)
    return [message.content for _, message in hits]


async def test_a_search_needs_every_word_whatever_its_case_width_or_script(stores: Stores) -> None:
    """ports.Transcripts.search: folded, plain "contains", so that scripts without spaces are found too."""
    made, other = a_session("A"), a_session("B", agent=FLIGHT)
    await stores.sessions.create(made, [ALICE])
    await stores.sessions.create(other, [ALICE])
    texts = ["Die STRASSE nach Köln", "台北到東京的航班", "ＡＢＣ flight", "100% sure_thing", "plain"]
    for number, text in enumerate(texts):
        await stores.transcripts.append(ACME, a_draft(made, text, number))
    await stores.transcripts.append(ACME, a_draft(other, "abc elsewhere"))
    assert await _search(stores, "straße KÖLN") == [texts[0]]
    assert await _search(stores, "straße Bonn") == []
    assert await _search(stores, "東京") == [texts[1]]
    assert await _search(stores, "abc") == ["abc elsewhere", texts[2]]
    assert await _search(stores, "abc", made) == [texts[2]]
    assert await _search(stores, "0% _") == [texts[3]]
    assert await _search(stores, "%") == [texts[3]]
    assert await _search(stores, "  ") == []
    await stores.sessions.reset(ACME, made.id, expected=None)
    assert await _search(stores, "abc") == ["abc elsewhere"]


async def test_a_search_through_everybodys_sessions_stops_at_its_limit_with_the_newest(stores: Stores) -> None:
    """Design section 7: a row for `any` lets a supervisor search; nothing of it reaches who has no such row."""
    here = a_session("A", DANA)
    await stores.sessions.create(here, [DANA])
    for number, owner in enumerate((ALICE, BOB, CAROL)):
        made = a_session(f"B{number}", owner)
        await stores.sessions.create(made, [owner])
        await stores.transcripts.append(ACME, a_draft(made, f"refund {number}", number))
    inside = Origin(session=here, chat=Chat.PRIVATE, kind=here.kind)
    wide = Scope(DANA, inside, ANYBODYS)
    hits = await stores.transcripts.search(ACME, wide, "refund", session=None, limit=2)
    assert [message.content for _, message in hits] == ["refund 2", "refund 1"]
    narrow = Scope(DANA, inside, OWN_AND_SHARED)
    assert await stores.transcripts.search(ACME, narrow, "refund", session=None, limit=2) == []
    assert await stores.transcripts.search(ACME, Scope(DANA, inside, frozenset()), "refund", session=None, limit=2) in (
        (),
        [],
    )


async def test_half_a_surrogate_pair_is_refused_and_nothing_is_stored(stores: Stores) -> None:
    """Ours: what can't be stored is the caller's fault, named, and no error of the store's own."""
    made = a_session("A")
    await stores.sessions.create(made, [ALICE])
    with pytest.raises(Invalid):
        await stores.sessions.set_title(ACME, made.id, "\ud800", expected=None)
    facts = await stores.sessions.find(ACME, made.id)
    assert facts is not None
    assert facts.session.title is None


async def test_one_joins_and_some_leave_whoever_else_does_at_the_same_time(stores: Stores) -> None:
    """What a channel reports of a chat: joining twice keeps the first, and what a leaver owned is the heir's."""
    root = a_group("A", BOB)
    child = a_session("B", parent=root)
    await stores.sessions.create(root, [BOB])
    await stores.sessions.create(child, [])
    first = await stores.transcripts.append(ACME, a_draft(root, "before", 1))
    assert first is not None
    joined = await stores.sessions.join(ACME, root.id, ALICE, NOW)
    await stores.transcripts.append(ACME, a_draft(root, "after", 2))
    again = await stores.sessions.join(ACME, root.id, ALICE, NOW)
    assert joined is not None
    assert again is not None
    people = {one.profile: one.joined_after for one in again.participants}
    assert people == {one.profile: one.joined_after for one in joined.participants} == {BOB: 0, ALICE: first.number}
    assert await _ids(stores, ALICE) == [child.id, root.id]

    await stores.sessions.set_owner(ACME, root.id, ALICE, NOW, expected=None)
    left = await stores.sessions.leave(ACME, root.id, [ALICE, CAROL], DANA, NOW)
    assert left is not None
    assert (left.session.owner, {one.profile for one in left.participants}) == (DANA, {BOB, DANA})
    assert await _ids(stores, ALICE) == []
    assert await _ids(stores, DANA) == [child.id, root.id]
    stayed = await stores.sessions.leave(ACME, root.id, [BOB], DANA, NOW)
    assert stayed is not None
    assert [one.profile for one in stayed.participants] == [DANA]
    for missing in (child.id, SessionId("ses_none")):
        assert await stores.sessions.join(ACME, missing, ALICE, NOW) is None
        assert await stores.sessions.leave(ACME, missing, [ALICE], DANA, NOW) is None


async def test_sessions_of_a_kind_are_counted_up_to_a_number_and_the_newest_are_named(stores: Stores) -> None:
    """ports.Sessions.tally: never another tenant's, and no incognito session by number or name."""
    made = [a_session(name) for name in "ABC"] + [a_session("D", agent=HOTEL), a_session("E", incognito=True)]
    group = a_group("G")
    for one in made:
        await stores.sessions.create(one, [ALICE])
    await stores.sessions.create(group, [ALICE, BOB])

    async def tally(agent: AgentName, private: bool, most: int = 10) -> tuple[int, tuple[str, ...]]:
        (found,) = await stores.sessions.tally(ACME, [(agent, private)], most=most, newest=2)
        assert (found.agent, found.private) == (agent, private)
        return found.sessions, found.newest

    a, b, c, d, _ = (one.key for one in made)
    assert a != b
    assert await tally(FLIGHT, True) == (3, (c, b))
    assert await tally(HOTEL, True) == (1, (d,))
    assert await tally(ANY_AGENT, True) == (4, (d, c))
    assert await tally(ANY_AGENT, True, most=2) == (2, (d, c))
    assert await tally(FLIGHT, False) == (1, (group.key,))
    assert await tally(HOTEL, False) == (0, ())
    (none,) = await stores.sessions.tally(GLOBEX, [(ANY_AGENT, True)], most=10, newest=2)
    assert (none.sessions, none.newest) == (0, ())
