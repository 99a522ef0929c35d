"""What a request wants to reach, and the question that Casbin is asked about it (design section 7)."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.model import (
    ANY_AGENT,
    Action,
    AgentName,
    Kind,
    Origin,
    ProfileId,
    Question,
    Relation,
    Requester,
    Resource,
    Session,
    SessionFacts,
    TenantId,
    Whose,
)
from gateway.policy.drafts import Draft
from gateway.policy.relations import answering_agent, relation_of, whose_of, whose_to

PERSONAL_RESOURCES = frozenset(
    {Resource.PERSONAL_INSTRUCTIONS, Resource.PERSONAL_LONGTERM, Resource.PERSONAL_DAILY},
)


@dataclass(frozen=True, slots=True)
class SessionTarget:
    """A session that is there."""

    facts: SessionFacts

    @property
    def tenant(self) -> TenantId:
        """The tenant that holds the session."""
        return self.facts.session.tenant

    @property
    def name(self) -> str:
        """What the audit calls it."""
        return self.facts.session.key

    def question(self, requester: Requester, origin: Origin, action: Action) -> Question:
        """Asks about the session by its relation to the origin and by whose its root is."""
        session = self.facts.session
        whose = whose_to(self.facts, requester)
        relation = relation_of(origin, session, whose)
        return Question(
            answering_agent(session, relation), session_resource(session.private), relation, whose, origin.chat, action
        )


@dataclass(frozen=True, slots=True)
class NewSessionTarget:
    """A session that is about to be made: by a person, or as a child of `parent`."""

    tenant: TenantId
    agent: AgentName
    kind: Kind
    private: bool
    parent: SessionFacts | None

    @property
    def name(self) -> str:
        """What the audit calls it; it has no key yet."""
        return f"new {self.kind} on {self.agent}"

    def question(self, requester: Requester, origin: Origin, action: Action) -> Question:
        """A root is the requester's own; a child stands to the origin as it will once it is there."""
        resource = session_resource(self.private)
        if self.parent is None or action is not Action.SPAWN:
            return Question(self.agent, resource, Relation.SELF, Whose.OWN, origin.chat, action)
        parent = self.parent.session
        whose = whose_of(self.parent, requester.profile.id)
        crosses = self.agent != parent.agent
        relation = Relation.CHILD_CROSS if crosses else Relation.CHILD
        return Question(parent.root_agent if crosses else self.agent, resource, relation, whose, origin.chat, action)


@dataclass(frozen=True, slots=True)
class MemoryTarget:
    """A memory file of an agent: the agent's, or the person's whose id its path holds."""

    tenant: TenantId
    agent: AgentName
    resource: Resource
    owner: ProfileId | None
    path: str

    @property
    def name(self) -> str:
        """What the audit calls it."""
        return f"{self.agent}/{self.path}"

    def question(self, requester: Requester, origin: Origin, action: Action) -> Question:
        """One's own file, the agent's, another agent's, or another person's."""
        relation, whose = self._stands_to(requester.profile.id, origin)
        return Question(self.agent, self.resource, relation, whose, origin.chat, action)

    def _stands_to(self, requester: ProfileId, origin: Origin) -> tuple[Relation, Whose]:
        if self.owner == requester:
            return Relation.SELF, Whose.OWN
        # A personal file without an owner is nobody's, and so never the requester's.
        if self.owner is not None or self.resource in PERSONAL_RESOURCES:
            return Relation.SAME_AGENT, Whose.OTHER
        if origin.session is None or origin.session.agent == self.agent:
            return Relation.SAME_AGENT, Whose.SHARED
        return Relation.OTHER_AGENT, Whose.SHARED


@dataclass(frozen=True, slots=True)
class FunctionTarget:
    """A function of the gateway itself: an admin's, or one that everybody has for their own profile."""

    tenant: TenantId
    resource: Resource
    name: str
    agent: AgentName = ANY_AGENT

    def question(self, requester: Requester, origin: Origin, action: Action) -> Question:
        """A function is always the person's own."""
        return Question(self.agent, self.resource, Relation.SELF, Whose.OWN, origin.chat, action)


@dataclass(frozen=True, slots=True)
class PolicyTarget(FunctionTarget):
    """The policy as somebody wants it, on the agent that all its changes are about; no draft where it is on top of a
    version that is not there."""

    draft: Draft | None = None


@dataclass(frozen=True, slots=True)
class MissingTarget:
    """A session or file that is not there: denied like one that may not be seen, and answered with the same bytes."""

    tenant: TenantId
    resource: Resource
    name: str
    agent: AgentName = ANY_AGENT

    def question(self, requester: Requester, origin: Origin, action: Action) -> Question:
        """What would have been asked of somebody else's; it is never put to Casbin."""
        return Question(self.agent, self.resource, Relation.SAME_AGENT, Whose.OTHER, origin.chat, action)


@dataclass(frozen=True, slots=True)
class SessionsTarget:
    """All the sessions that an action is allowed on, for a list or a search; `agents` are the tenant's."""

    tenant: TenantId
    agents: tuple[AgentName, ...]
    name: str = "sessions"


SingleTarget = SessionTarget | NewSessionTarget | MemoryTarget | FunctionTarget | MissingTarget
Target = SingleTarget | SessionsTarget


def session_resource(private: bool) -> Resource:
    """The resource of a session, by what it is and not by where it is asked from."""
    return Resource.SESSION_PRIVATE if private else Resource.SESSION_SHARED


def sandbox_excludes(here: Session, relation: Relation) -> bool:
    """Whether a sandboxed session's `tree` leaves a relation out, whatever the policy allows (design section 7)."""
    return here.sandboxed and relation not in (Relation.SELF, Relation.CHILD, Relation.CHILD_CROSS)
