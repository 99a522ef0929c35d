"""The rules for changing who takes part in a session and who owns it (design section 6)."""

from __future__ import annotations

from collections.abc import Collection

from gateway.errors import Conflict, Invalid
from gateway.model import ProfileId, SessionFacts
from gateway.sessions.lineage import MAX_PARTICIPANTS


def check_participants(facts: SessionFacts, people: Collection[ProfileId]) -> None:
    """Raises Conflict for a private session, a child, or a list without the owner; Invalid for one too long."""
    session = facts.session
    if session.private:
        raise Conflict("Nobody can be added to a private session. Open a group with these people instead.")
    if session.parent is not None:
        raise Conflict("A child has the people of its tree's root. Change them there.")
    if session.owner not in people:
        raise Conflict("The owner takes part as long as they own it. Give it to somebody else first.")
    if len(people) > MAX_PARTICIPANTS:
        raise Invalid.of("participants", "too_many", f"At most {MAX_PARTICIPANTS} people take part in one session.")


def check_owner(facts: SessionFacts) -> None:
    """Raises Conflict where the session can't be given to somebody else."""
    if facts.session.private:
        raise Conflict("A private session belongs to its person for good.")
    if facts.session.parent is not None:
        raise Conflict("A child belongs to whom its tree's root belongs. Reassign that one.")
