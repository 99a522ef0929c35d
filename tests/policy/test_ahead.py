"""What somebody gains now or at any later moment, against documents compared moment by moment."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from datetime import timedelta

import pytest

from gateway.model import AgentName
from gateway.policy.ahead import Gain, Holder, RowsBySubject, everywhere, first_gain
from gateway.policy.comparison import POSSIBLE, Change, SubjectsOn
from gateway.policy.documents import Document, parse
from gateway.policy.rights import Rights
from gateway.policy.rows import EFFECTS, Row, written
from tests.policy.test_differential import AGENTS, MOMENTS, documents, random_subjects

NOW = MOMENTS[0]
LATER = written(MOMENTS[2])
READ = "session/private, agent, any, private, history"


def gain(before: str, after: str, *subjects: str) -> Gain | None:
    """What somebody who is these subjects everywhere gains."""
    held: SubjectsOn = lambda _agent: frozenset({"*", *subjects})  # noqa: E731 - a signature is longer than it
    was, becomes = (Holder(RowsBySubject(parse(text)), held) for text in (before, after))
    return first_gain([was], becomes, everywhere(["flight"], was.rows, becomes.rows), NOW)


ALLOW = f"p, role:lead, *, {READ}, allow"
DENY = f"p, role:lead, *, {READ}, deny"


@pytest.mark.parametrize(
    ("before", "after", "since"),
    [
        ("", ALLOW, MOMENTS[0]),
        (ALLOW, "", None),
        (ALLOW, ALLOW, None),
        ("", f"{ALLOW}, {LATER}", MOMENTS[0]),
        (f"{ALLOW}, {LATER}", ALLOW, MOMENTS[2]),  # a right for a while is made one for good
        (f"{ALLOW}, {LATER}", f"{ALLOW}, {written(MOMENTS[3])}", MOMENTS[2]),
        (ALLOW, f"{ALLOW}, {LATER}", None),
        ("", f"{ALLOW}\n{DENY}, {LATER}", MOMENTS[2]),  # planted: it begins when the deny ends
        ("", f"{ALLOW}\n{DENY}", None),
        (f"{ALLOW}\n{DENY}", f"{ALLOW}\n{DENY}, {LATER}", MOMENTS[2]),
        (f"{ALLOW}\n{DENY}, {LATER}", f"{ALLOW}\n{DENY}, {LATER}\n# again", None),
        (f"{ALLOW}\n{DENY}, {LATER}", f"{ALLOW}\n{DENY}, {written(MOMENTS[1])}", MOMENTS[1]),
        (f"{ALLOW}\n{DENY}, {LATER}", ALLOW, MOMENTS[0]),
        ("", f"{ALLOW}, {written(MOMENTS[0])}", None),  # it has ended
        ("", f"{ALLOW}, {LATER}\n{DENY}, {LATER}", None),
        ("", f"{ALLOW}, {LATER}\n{DENY}, {written(MOMENTS[1])}", MOMENTS[1]),
    ],
)
def test_a_gain_is_found_whenever_it_begins(before: str, after: str, since: object) -> None:
    """Design section 5 and 7: rows end by themselves, and what begins by that was given by whoever wrote it."""
    found = gain(before, after, "role:lead")

    assert (found.since if found else None) == since
    assert gain(before, after, "role:member") is None


def test_what_one_of_several_others_may_do_is_no_gain() -> None:
    """Ours: a service that may do what its maker may gives them nothing."""
    rows = RowsBySubject(parse(f"{ALLOW}, {LATER}\np, role:robot, flight, {READ}, allow"))
    lead, nobody, robot = (
        Holder(rows, lambda _agent, name=name: frozenset({f"role:{name}"}))  # type: ignore[misc] # bound at once
        for name in ("lead", "nobody", "robot")
    )

    alone = first_gain([nobody], robot, ["flight"], NOW)
    beside = first_gain([nobody, lead], robot, ["flight"], NOW)
    ends = parse(f"{ALLOW}\np, role:robot, flight, {READ}, allow, {LATER}")
    ended = first_gain([Holder(RowsBySubject(ends), lead.subjects_on)], robot, ["flight"], NOW)

    assert alone is not None
    assert (alone.since, set(alone.facts)) == (NOW, {"flight"})
    assert beside is not None
    assert (beside.since, set(beside.facts)) == (MOMENTS[2], {"flight"})
    assert ended is None


def drafts(seed: int) -> tuple[random.Random, Document, Document]:
    """A random document, and one made of it: rows end at other moments, some turned around, some gone."""
    _, (dice, document) = documents(f"ahead/{seed}", 2)  # the first is empty
    rows = {row.text: row for row in document.rows}
    texts = {_changed(dice, row) for row in rows.values() if dice.random() < 0.8}
    links = [f"g, {link.child}, {link.parent}" for link in document.links]
    return dice, document, parse("\n".join([*links, *sorted(texts)]))


def _changed(dice: random.Random, row: Row) -> str:
    if dice.random() < 0.3:
        row = replace(row, effect=dice.choice(EFFECTS))
    return replace(row, until=dice.choice((row.until, None, *MOMENTS))).text


def test_looking_ahead_is_comparing_at_every_moment() -> None:
    """Ours: for any two documents, the first of all moments at which whole sets of rights differ, and what they do."""
    seen: Counter[str] = Counter()
    for seed in range(200):
        dice, first, second = drafts(seed)
        by_agent = {agent: random_subjects(dice) for agent in (*AGENTS, "*")}
        before, after = (Holder(RowsBySubject(one), by_agent.__getitem__) for one in (first, second))

        found = first_gain([before], after, everywhere(AGENTS, before.rows, after.rows), NOW)

        expected = None
        for moment in MOMENTS:
            facts = Change(Rights(first, moment), Rights(second, moment), AGENTS).gains(by_agent.__getitem__)
            if facts:
                expected = Gain(moment, facts)
                break
        assert found == expected, (first.text, second.text)
        seen["never" if found is None else "now" if found.since == NOW else "later"] += 1
    assert min(seen[word] for word in ("never", "now", "later")) >= 5, seen


def test_a_long_document_is_walked_once() -> None:
    """Issue: 100,000 rows. Each ends at a moment of its own, and all of them are for the same people."""
    count = 100_000
    rows = [
        f"p, role:member, a{number % 500}, session/shared, agent, any, private, list, allow, "
        f"{written(NOW + timedelta(minutes=number + 1))}"
        for number in range(count)
    ]
    document = Document(text="", rows=parse("\n".join(rows)).rows, links=())
    before = RowsBySubject(document)
    after = RowsBySubject(Document(text="", rows=(*document.rows, *parse(f"{ALLOW}, {LATER}").rows), links=()))
    member: SubjectsOn = lambda _agent: frozenset({"role:member", "*"})  # noqa: E731 - as above
    lead: SubjectsOn = lambda _agent: frozenset({"role:member", "role:lead"})  # noqa: E731 - as above
    agents = [AgentName(f"a{number}") for number in range(500)]

    assert first_gain([Holder(before, member)], Holder(after, member), agents, NOW) is None
    found = first_gain([Holder(before, lead)], Holder(after, lead), agents, NOW, POSSIBLE)
    assert found is not None
    assert found.since == NOW
