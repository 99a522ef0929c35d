"""Turns a document into the fault that publishing it would lock everybody out of changing it again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from gateway.errors import Fault
from gateway.model import ANY_AGENT, Action, Chat, Question, Relation, Resource, Whose
from gateway.policy.documents import Document
from gateway.policy.rows import ALLOW, ANY, Row
from gateway.policy.snapshot import Snapshot
from gateway.policy.tokens import fault

_KEEPERS: Final = ("role:owner", "role:admin")
_PUBLISH: Final = Question(
    agent=ANY_AGENT,
    resource=Resource.ADMIN_POLICY,
    relation=Relation.SELF,
    whose=Whose.OWN,
    chat=Chat.PRIVATE,
    action=Action.PUBLISH,
)
_ANY_TIME: Final = datetime.min.replace(tzinfo=UTC)


def publishable(document: Document) -> tuple[Fault, ...]:
    """Empty where somebody with role:owner or role:admin could publish the next version, else the fault `lockout`.

    For publishing only: such a document can be linted, tested and previewed. An allow that ends doesn't count, and a
    deny that ends does, so that time alone can't lock the door.
    """
    lasting = replace(document, rows=tuple(_lasting(document.rows)))
    snapshot = Snapshot(lasting, 0, _ANY_TIME)
    if any(snapshot.decide(frozenset({role, ANY}), _PUBLISH, _ANY_TIME).allowed for role in _KEEPERS):
        return ()
    message = (
        "With this document nobody who is owner or admin could publish the next one. Keep a row like: "
        "p, role:admin, *, admin/policy, self, own, private, publish, allow"
    )
    return (fault("lockout", message),)


def _lasting(rows: tuple[Row, ...]) -> Iterator[Row]:
    for row in rows:
        if row.until is None:
            yield row
        elif row.effect != ALLOW:
            yield replace(row, until=None)
