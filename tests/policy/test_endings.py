"""Which rows end by themselves soon."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from gateway.policy.documents import parse
from gateway.policy.endings import SOON, ending
from gateway.policy.rows import written

NOW = datetime(2030, 1, 1, tzinfo=UTC)
ROW = "p, role:member, {agent}, session/private, agent, any, private, history, allow"


def test_the_rows_that_still_count_and_end_soon_are_named_the_soonest_first() -> None:
    """Issue, "scheduled expiry": what has ended is no news, and what ends in a year is none yet."""
    ends = {
        "late": NOW + SOON,
        "later": NOW + SOON + timedelta(seconds=1),
        "now": NOW,
        "past": NOW - timedelta(days=1),
        "soon": NOW + timedelta(seconds=1),
        "too": NOW + timedelta(seconds=1),
    }
    rows = [f"{ROW.format(agent=agent)}, {written(until)}" for agent, until in ends.items()]
    document = parse("\n".join([ROW.format(agent="never"), *rows]))

    assert [row.agent for row in ending(document, NOW)] == ["soon", "too", "late"]
    assert [row.agent for row in ending(document, NOW, timedelta(days=1))] == ["soon", "too"]
    assert ending(parse(""), NOW) == ()
