"""The rights of the document in force, kept as long as they are what it says."""

from __future__ import annotations

from dataclasses import replace

from gateway.policy.documents import parse
from gateway.policy.in_force import RightsInForce
from gateway.policy.rows import written
from gateway.policy.snapshot import Snapshot
from tests.cast import BEGAN
from tests.house import House, turn_of
from tests.policy.test_differential import MOMENTS


async def test_the_rights_in_force_are_those_of_the_version_and_of_the_moment(home: House) -> None:
    """Design section 7, `until`: a row ends by itself, also for those who compare."""
    state = (await turn_of(home, "alice")).state
    end = MOMENTS[1]
    text = f"p, *, *, session/*, all, any, *, read, allow, {written(end)}"
    state = replace(state, snapshot=Snapshot(parse(text), 7, MOMENTS[0]))
    kept = RightsInForce()

    before = await kept.of(state, MOMENTS[0])
    after = await kept.of(state, end)

    assert before.of(frozenset({"*"}), "flight")
    assert not after.of(frozenset({"*"}), "flight")
    assert await kept.of(state, MOMENTS[2]) is after
    newer = replace(state, snapshot=Snapshot(parse(""), 8, MOMENTS[0]))
    assert await kept.of(newer, MOMENTS[2]) is not after
    assert not before.hold_at(BEGAN)
