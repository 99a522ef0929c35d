"""Turns a creating call into a new session: its key, its privacy, its place in a tree (design section 6)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from gateway.errors import Conflict, Fault, Invalid
from gateway.keys import agent_in, direct_key, explicit_key, generated_key, is_name, new_id
from gateway.model import AgentName, Kind, ProfileId, Session, SessionFacts, SessionId, TenantId, Whose
from gateway.policy.relations import whose_of

ARCHIVED = "This session is archived. Open a new one to go on."
MAX_DEPTH = 32
MAX_PARTICIPANTS = 200
MAX_TITLE = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Creation:
    """What a creating call asks for. `parent` makes a child, which belongs to whom its root belongs."""

    tenant: TenantId
    agent: AgentName
    kind: Kind
    creator: ProfileId
    participants: frozenset[ProfileId] = frozenset()  # beside the creator
    parent: SessionFacts | None = None
    name: str | None = None
    title: str | None = None
    incognito: bool = False
    sandboxed: bool = False

    @property
    def private(self) -> bool:
        """A direct session with one person, and a child all of whose ancestors are private."""
        if self.parent is not None:
            return self.parent.session.private
        return self.kind is Kind.DIRECT and not self.participants - {self.creator}

    @property
    def opens_the_private_session(self) -> bool:
        """Whether this is the person's one private session with the agent, opened on first use."""
        return self.private and self.parent is None and self.name is None and not self.incognito


def check(creation: Creation) -> None:
    """Raises Invalid with every rule that the call breaks, and Conflict where its parent is archived or too deep."""
    faults = [fault for fault in (_about_kind(creation), _about_people(creation), _about_words(creation)) if fault]
    if faults:
        raise Invalid(faults)
    if creation.parent is not None and creation.parent.session.archived_at is not None:
        raise Conflict(ARCHIVED)
    if creation.parent is not None and creation.parent.session.path.count("/") >= MAX_DEPTH:
        raise Conflict(f"This tree is {MAX_DEPTH} sessions deep already. Spawn from one further up.")


def _about_kind(creation: Creation) -> Fault | None:
    if (creation.kind is Kind.SUBAGENT) != (creation.parent is not None):
        message = "A subagent needs a 'parent', and nothing else has one."
        return Fault(field="parent", rule="subagent_has_parent", message=message)
    if creation.incognito and not creation.private:
        return Fault(field="incognito", rule="private_only", message="Only a private session can be incognito.")
    return None


def _about_people(creation: Creation) -> Fault | None:
    others = creation.participants - {creation.creator}
    if others and creation.kind not in (Kind.GROUP, Kind.CHANNEL, Kind.CRON):
        message = "A direct session has one person, and a child those of its root. Open a group for several."
        return Fault(field="participants", rule="one_person", message=message)
    if len(others) >= MAX_PARTICIPANTS:
        message = f"At most {MAX_PARTICIPANTS} people take part in one session."
        return Fault(field="participants", rule="too_many", message=message)
    return None


def _about_words(creation: Creation) -> Fault | None:
    if creation.name is not None and not is_name(creation.name):
        message = "Use 1 to 64 of a-z, 0-9, '-' and '_', beginning with a letter or a digit."
        return Fault(field="name", rule="name", message=message)
    return _about_title(creation.title)


def check_title(title: str | None) -> None:
    """Raises Invalid for a title that is too long."""
    fault = _about_title(title)
    if fault is not None:
        raise Invalid([fault])


def _about_title(title: str | None) -> Fault | None:
    if title is not None and len(title) > MAX_TITLE:
        return Fault(field="title", rule="too_long", message=f"Keep the title within {MAX_TITLE} characters.")
    return None


def build(creation: Creation, now: datetime) -> Session:
    """The session as it will be stored."""
    session_id = SessionId(new_id("ses", now))
    parent = creation.parent.session if creation.parent else None
    return Session(
        tenant=creation.tenant,
        id=session_id,
        key=_key(creation, session_id),
        agent=creation.agent,
        kind=creation.kind,
        private=creation.private,
        title=creation.title,
        owner=parent.owner if parent else creation.creator,
        creator=creation.creator,
        parent=parent.id if parent else None,
        parent_key=parent.key if parent else None,
        root=parent.root if parent else session_id,
        root_agent=parent.root_agent if parent else creation.agent,
        path=f"{parent.path if parent else ''}{session_id}/",
        incarnation=1,
        # What a parent must not show its child must not show either, and its sandbox holds for both.
        incognito=creation.incognito or (parent is not None and parent.incognito),
        sandboxed=creation.sandboxed or (parent is not None and parent.sandboxed),
        created_at=now,
        last_message_at=None,
        archived_at=None,
    )


def names_another_agent(session: Session) -> bool:
    """Whether its parent is on another agent than itself."""
    return session.parent_key is not None and agent_in(session.parent_key) != session.agent


def as_known_to(reader: ProfileId, facts: SessionFacts) -> SessionFacts:
    """The facts as `reader` may see them: without a parent on another agent, unless the tree is theirs.

    A parent is as private as its child and whose that is, so the same rows decide on both where their agent is one.
    On another agent other rows do, and the parent's key says that there is such a session, and whose.
    """
    if not names_another_agent(facts.session) or whose_of(facts, reader) is not Whose.OTHER:
        return facts
    return replace(facts, session=replace(facts.session, parent_key=None))


def _key(creation: Creation, session_id: SessionId) -> str:
    if creation.opens_the_private_session:
        return direct_key(creation.agent, creation.creator)
    if creation.name is not None:
        return explicit_key(creation.agent, creation.creator, creation.name)
    ulid = session_id.removeprefix("ses_")
    return generated_key(creation.agent, creation.kind, ulid, incognito=creation.incognito)
