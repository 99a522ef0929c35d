"""Long documents: read quickly and exactly as slowly, without the collector, and swapped with no third answer."""

from __future__ import annotations

import asyncio
import gc
import random
from collections.abc import Iterator

import pytest

from gateway.errors import Fault, Invalid
from gateway.model import Action, AgentName, Chat, Question, Relation, Resource, TenantId, Whose
from gateway.policy import documents as reading
from gateway.policy.collector import LONG, let_go, spared, without_full_walks
from gateway.policy.documents import parse
from gateway.policy.grammar import read_plain
from gateway.policy.snapshot import Snapshot
from tests.clock import SettableClock
from tests.house import House, turn_of
from tests.policy.test_differential import MOMENTS, documents, random_text

ODD = (" ", "\t", ",", "#", "\r", "é", "\x00", ", ", "p", "*", "P", "Z", "2030-02-31T00:00:00Z", "")


def _bent(dice: random.Random, text: str) -> str:
    """The text with a few letters put in or taken out, anywhere."""
    letters = list(text)
    for _ in range(dice.randrange(4)):
        if letters:
            letters[dice.randrange(len(letters))] = dice.choice((*ODD, "\n"))
    return "".join(letters)


@pytest.mark.parametrize("seed", range(60))
def test_a_line_that_is_read_quickly_is_read_as_it_would_be_slowly(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: the quick reader knows what is plain, and nothing else; faults and rows are the same without it."""
    dice = random.Random(f"plain/{seed}")
    texts = [_bent(dice, random_text(dice)) for _ in range(20)] + [random_text(dice)]
    quick = [reading._read(text) for text in texts]
    monkeypatch.setattr(reading, "read_plain", lambda _number, _line: None)
    slow = [reading._read(text) for text in texts]

    assert quick == slow


def test_what_we_write_is_plain() -> None:
    """Else the quick reader would read nothing."""
    written = [row.text for _, document in documents("written", 20) for row in document.rows]
    assert len(written) > 50
    assert all(read_plain(1, text) is not None for text in written)


def test_the_collector_waits_while_a_long_document_is_read_and_for_no_short_one() -> None:
    """Ours: it goes on whatever happens, and only when the last who asked is done."""
    with spared(LONG - 1):
        assert gc.isenabled()
    with spared(LONG), spared(LONG):
        assert not gc.isenabled()
    assert gc.isenabled()
    with pytest.raises(ZeroDivisionError), spared(LONG):
        1 / 0  # noqa: B018 - any fault
    assert gc.isenabled()
    faults: tuple[Fault, ...] = ()
    try:
        parse("p, nobody\n" * (LONG // 9))
    except Invalid as error:
        faults = error.faults
    assert len(faults) > 1
    assert gc.isenabled()


def test_what_is_old_is_left_alone_until_the_last_who_asked_is_done_and_the_young_never() -> None:
    """Ours: a preview makes hundreds of thousands of objects; cycles of other requests are found all the same."""
    usual = gc.get_threshold()
    with without_full_walks():
        with without_full_walks():
            assert gc.get_threshold()[:2] == usual[:2]
            assert gc.get_threshold()[2] > 1_000_000
        assert gc.get_threshold()[2] > 1_000_000
        assert gc.isenabled()
    assert gc.get_threshold() == usual
    with pytest.raises(ZeroDivisionError), without_full_walks():
        1 / 0  # noqa: B018 - any fault
    assert gc.get_threshold() == usual


def test_what_is_let_go_is_empty_afterwards() -> None:
    """Ours: a little at a time, whatever there is."""
    some, others = list(range(2_500)), {number: str(number) for number in range(2_500)}
    let_go(some)
    let_go(others)
    assert (some, others) == ([], {})


ASKED = Question(
    AgentName("flight"), Resource.SESSION_PRIVATE, Relation.SAME_AGENT, Whose.OTHER, Chat.PRIVATE, Action.HISTORY
)


async def test_a_swap_gives_the_old_or_the_new_answer_and_never_a_third(home: House, clock: SettableClock) -> None:
    """Issue: decisions that are made while documents are published one after the other."""
    row = "p, role:member, flight, session/private, agent, any, private, history, {effect}"
    keep = "p, role:admin, *, admin/policy, self, own, private, publish, allow\n"
    seen: set[tuple[int, bool]] = set()
    asked_for = acknowledged = 1
    done = False

    async def deciding() -> None:
        while not done:
            before = acknowledged
            state = (await turn_of(home, "alice")).state
            allowed = state.snapshot.decide(frozenset({"*", "role:member"}), ASKED, clock.now()).allowed
            assert before <= state.snapshot.version <= asked_for
            assert state.snapshot.version == 1 or allowed == (state.snapshot.version % 2 == 0)
            seen.add((state.snapshot.version, allowed))
            await asyncio.sleep(0)  # what is known is answered without a pause

    async def publishing() -> None:
        nonlocal asked_for, acknowledged, done
        for version in range(2, 12):
            asked_for = version  # from here on it may be in force
            await home.publish(keep + row.format(effect="allow" if version % 2 == 0 else "deny"))
            acknowledged = version  # from here on nothing older decides
            await turn_of(home, "alice")
        done = True

    await asyncio.gather(publishing(), *(deciding() for _ in range(4)))
    assert {version for version, _ in seen} >= {3, 5, 7, 9}


def _rows(count: int) -> Iterator[str]:
    return (f"p, user:prf_{number:026d}, *, session/*, all, any, *, read, allow" for number in range(count))


async def test_an_old_document_is_let_go_while_one_that_is_still_asked_stays_whole(home: House) -> None:
    """A turn that began before the swap is decided by the snapshot that it began with, to its end."""
    await home.publish("\n".join(_rows(3_000)))
    turn = await turn_of(home, "alice")
    await home.publish("\n".join(_rows(2)))
    assert (await turn_of(home, "alice")).state.snapshot.version == turn.state.snapshot.version + 1

    subjects = frozenset({"user:prf_" + "0" * 22 + "2999"})
    assert len(turn.state.snapshot.document.rows) == 3_000
    assert turn.state.snapshot.decide(subjects, ASKED, MOMENTS[0]).allowed
    assert not Snapshot(parse("\n".join(_rows(2))), 1, MOMENTS[0]).decide(subjects, ASKED, MOMENTS[0]).allowed
    assert turn.tenant == TenantId("acme")
