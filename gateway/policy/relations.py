"""Facts about a target session, from lineage, root owner and participants alone (design sections 6 and 7)."""

from __future__ import annotations

from gateway.keys import is_guest_id
from gateway.model import (
    ABOVE_ALL_MESSAGES,
    AgentName,
    Chat,
    Kind,
    Origin,
    ProfileId,
    Relation,
    Requester,
    Session,
    SessionFacts,
    Whose,
)

# From the kind that loads the most to the one that loads the least (design section 6, the table).
_LOADS_LESS = (Kind.DIRECT, Kind.GROUP, Kind.CHANNEL, Kind.CRON, Kind.SUBAGENT)
_SHARED = frozenset({Kind.GROUP, Kind.CHANNEL, Kind.CRON})


def chat_of(session: Session) -> Chat:
    """Where a request from inside `session` is made from: whatever is not private is a group."""
    return Chat.PRIVATE if session.private else Chat.GROUP


def origin_of(session: Session, turn_kind: str | None, *, tainted: bool) -> Origin:
    """The origin inside `session`. What the current turn says may only narrow: it makes a private session a group for
    this turn, and never a group private; otherwise the word of a caller would open root MEMORY.md."""
    said = session.kind if turn_kind is None else _kind(turn_kind)
    chat = Chat.GROUP if said in _SHARED else chat_of(session)
    kind = said if said is session.kind else max(session.kind, said, key=_LOADS_LESS.index)
    return Origin(session=session, chat=chat, kind=kind, tainted=tainted)


def whose_of(facts: SessionFacts, requester: ProfileId) -> Whose:
    """Whose the session is to the requester; a child is whose its tree's root is."""
    if facts.session.owner == requester:
        return Whose.OWN
    if facts.participant(requester) is not None:
        return Whose.SHARED
    return Whose.OTHER


def whose_to(facts: SessionFacts, requester: Requester) -> Whose:
    """As `whose_of`. A guest, who is on no list, takes part in the one conversation that the channel brought them from:
    only so can the rule for guests leave everybody else's conversations out."""
    speaks_here = requester.principal.place == facts.session.root and is_guest_id(requester.profile.id)
    return Whose.SHARED if speaks_here else whose_of(facts, requester.profile.id)


def relation_of(origin: Origin, target: Session, whose: Whose) -> Relation:
    """How `target` stands to the session that the request is made from, or to the person when it is made from none."""
    here = origin.session
    if here is None:
        return Relation.SAME_AGENT if whose is Whose.OTHER else Relation.SELF
    if target.id == here.id:
        return Relation.SELF
    if target.descends_from(here):
        return Relation.CHILD if target.agent == here.agent else Relation.CHILD_CROSS
    return Relation.SAME_AGENT if target.agent == here.agent else Relation.OTHER_AGENT


def answering_agent(target: Session, relation: Relation) -> AgentName:
    """The agent whose rows decide: the target's, but a parent answers for its children on other agents."""
    return target.root_agent if relation is Relation.CHILD_CROSS else target.agent


def readable_after(facts: SessionFacts, requester: ProfileId) -> int:
    """The message number after which the requester may read: who joins later reads from their joining on.

    A private session is its owner's from the first message. So is any for whoever neither owns it nor takes part: they
    read by a row that allows `any`. The owner of a shared one takes part; where that is not so, they read nothing; nor
    does a guest, whom nobody saw joining.
    """
    participant = facts.participant(requester)
    if participant is not None:
        return participant.joined_after
    owns_shared = facts.session.owner == requester and not facts.session.private
    return ABOVE_ALL_MESSAGES if owns_shared or is_guest_id(requester) else 0


def _kind(word: str) -> Kind:
    """An unknown kind is treated as a group (design section 2)."""
    return Kind(word) if word in Kind.__members__.values() else Kind.GROUP
