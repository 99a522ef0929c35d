"""Facts about a target session, from lineage, root owner and participants alone (design sections 6 and 7)."""

from __future__ import annotations

from gateway.model import AgentName, Chat, Origin, ProfileId, Relation, Session, SessionFacts, Whose


def chat_of(session: Session) -> Chat:
    """Where a request from inside `session` is made from: whatever is not private is a group."""
    return Chat.PRIVATE if session.private else Chat.GROUP


def whose_of(facts: SessionFacts, requester: ProfileId) -> Whose:
    """Whose the session is to the requester; a child is whose its tree's root is."""
    if facts.session.owner == requester:
        return Whose.OWN
    if facts.participant(requester) is not None:
        return Whose.SHARED
    return Whose.OTHER


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

    Whoever reads as neither owner nor participant does so by a row that allows `any`, and from the first message.
    """
    participant = facts.participant(requester)
    return 0 if participant is None else participant.joined_after
