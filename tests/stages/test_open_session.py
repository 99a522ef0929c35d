"""Where a turn is made from, by what is stored and what is said of it (design section 6)."""

from __future__ import annotations

from itertools import product

import pytest

from gateway.model import Chat, Kind
from gateway.policy.relations import origin_of
from tests.cast import child, root

PRIVATE = {
    "direct": root("desk", "alice"),
    "subagent": child("scout", root("desk", "alice")),
}
SHARED = {
    "group": root("team", "alice", "bob", kind=Kind.GROUP),
    "channel": root("news", "alice", kind=Kind.CHANNEL),
    "cron": root("nightly", "alice", kind=Kind.CRON),
    "child of a group": child("helper", root("team", "alice", "bob", kind=Kind.GROUP)),
}
LOADS = {Kind.DIRECT: 3, Kind.GROUP: 2, Kind.CHANNEL: 2, Kind.CRON: 1, Kind.SUBAGENT: 0}
WORDS = [None, *Kind, "", "Direct", "main", "group ", "dm"]


@pytest.mark.parametrize(("name", "said"), list(product([*PRIVATE, *SHARED], WORDS)))
def test_what_is_said_of_a_turn_never_widens_it(name: str, said: str | None) -> None:
    """Design sections 2 and 6: an unknown kind is a group; the current turn's kind beats what is stored, downwards."""
    session = (PRIVATE | SHARED)[name].session

    origin = origin_of(session, said, tainted=False)

    assert origin.kind is not None
    assert LOADS[origin.kind] <= LOADS[session.kind]
    if said is not None:
        assert LOADS[origin.kind] <= LOADS.get(Kind(said), 2) if said in [*Kind] else LOADS[origin.kind] <= 2
    stays_private = name in PRIVATE and said in (None, "direct", "subagent")
    assert origin.chat is (Chat.PRIVATE if stays_private else Chat.GROUP)
    if said is None:
        assert origin.kind is session.kind


def test_a_tainted_turn_stays_tainted() -> None:
    """Design section 9: a tool result from the network taints the rest of its turn."""
    session = PRIVATE["direct"].session
    assert origin_of(session, None, tainted=True).tainted
    assert not origin_of(session, "group", tainted=False).tainted
