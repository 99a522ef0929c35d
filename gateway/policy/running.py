"""What it means to run the place: the facts of `admin/*`, and reading as somebody else (design section 5).

Whoever may change people, agents or the policy everywhere has a reach that no role of sessions and files has, whatever
it is called: `admin` by the shipped rows, and any role that a tenant gives such rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from gateway.model import Action
from gateway.policy.ahead import RowsBySubject
from gateway.policy.comparison import POSSIBLE
from gateway.policy.rights import FactSet, facts_in, facts_of_row, set_of
from gateway.policy.rows import ALLOW, ANY

ADMIN: Final = "admin/"
_LOOKING: Final = (Action.READ, Action.EXPORT)

# What there is to do in running the place, and the part of it that changes something.
RUNNING: Final[FactSet] = set_of(
    fact for fact in facts_in(POSSIBLE) if fact.resource.startswith(ADMIN) or fact.action is Action.IMPERSONATE
)
POWER: Final[FactSet] = set_of(fact for fact in facts_in(RUNNING) if fact.action not in _LOOKING)


def powerful(rows: RowsBySubject, among: Iterable[str]) -> frozenset[str]:
    """Those of the subjects that some row gives a part of that power: to them, to a role they hold, or to everybody."""
    given = {row.subject for row in rows.document.rows if row.effect == ALLOW and facts_of_row(row) & POWER}
    return frozenset(one for one in among if rows.named({one, ANY}) & given)
