"""A world and a request into the answer that people must get, straight from the tables of the design.

This is the oracle of the property test: naive and slow on purpose, and it shares no line with what it checks.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.oracle.facts import (
    chat_of,
    is_private,
    memory_relation,
    person_in,
    person_of_path,
    relation_of,
    resource_of,
    root_of,
    session_in,
    subjects_on,
    whose_of,
)
from tests.oracle.rows import MODES, Bare, ask
from tests.oracle.world import (
    GUEST,
    Answer,
    OnFile,
    OnNewSession,
    OnOffice,
    OnSession,
    Request,
    Session,
    World,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What the world says about one request."""

    agent: str  # whose rows are asked: the target's, or the tree root's for `child_cross`
    resource: str
    relation: str
    whose: str
    chat: str


def decide(world: World, request: Request) -> Answer:
    """The invariants in their order, then the sandbox, then the rows."""
    refused = before_facts(world, request)
    if refused is not None:
        return Answer(False, refused)
    facts = facts_of(world, request)
    if facts is None:
        return Answer(False, "no such memory")
    refused = invariant(world, request, facts)
    if refused is not None:
        return Answer(False, refused)
    if outside_sandbox(world, request, facts):
        return Answer(False, "sandboxed: outside the tree")
    question = Bare(
        subjects=subjects_on(world, request.tenant, request.who, facts.agent),
        agent=facts.agent,
        resource=facts.resource,
        relation=facts.relation,
        whose=facts.whose,
        chat=facts.chat,
        action=request.action,
    )
    allowed, why = ask(policy_of(world, request.tenant), question, world.now)
    return Answer(allowed, f"{why}: {facts}")


def policy_of(world: World, tenant: str) -> str:
    """The document of the tenant."""
    for one in world.tenants:
        if one.name == tenant:
            return one.policy
    raise LookupError(tenant)


def origin_of(world: World, request: Request) -> Session | None:
    """The session the request is made from."""
    return None if request.origin is None else session_in(world, request.origin)


def before_facts(world: World, request: Request) -> str | None:
    """ "other tenant; neither profile nor guest; retired profile" """
    origin = origin_of(world, request)
    if origin is not None and origin.tenant != request.tenant:
        return "other tenant"
    if isinstance(request.target, OnSession) and session_in(world, request.target.session).tenant != request.tenant:
        return "other tenant"
    if isinstance(request.target, OnFile) and request.target.tenant != request.tenant:
        return "other tenant"
    if request.who == GUEST:
        return None
    person = person_in(world, request.tenant, request.who)
    if person is None:
        return "neither profile nor guest"
    if person.merged_into is not None or person.disabled:
        return "retired profile"
    return None


def facts_of(world: World, request: Request) -> Facts | None:
    """Agent, resource, relation, whose and chat of a request; None where a path is no memory."""
    origin = origin_of(world, request)
    chat = chat_of(world, origin)
    target = request.target
    if isinstance(target, OnSession):
        return facts_of_session(world, origin, session_in(world, target.session), request.who, chat)
    if isinstance(target, OnNewSession):
        return facts_of_new_session(world, origin, target, request.who, chat)
    if isinstance(target, OnFile):
        resource = resource_of(target.path)
        if resource is None:
            return None
        relation, whose = memory_relation(origin, target, request.who)
        return Facts(agent=target.agent, resource=resource, relation=relation, whose=whose, chat=chat)
    # "admin/* and gateway: (self, own)"
    return Facts(agent="*", resource=target.resource, relation="self", whose="own", chat=chat)


def facts_of_session(world: World, origin: Session | None, target: Session, who: str, chat: str) -> Facts:
    """A session that is there."""
    relation = relation_of(world, origin, target, who)
    # "agent is the target's; for child_cross it is the tree root's, since a parent answers for its children"
    agent = root_of(world, target).agent if relation == "child_cross" else target.agent
    return Facts(
        agent=agent,
        resource="session/private" if is_private(world, target) else "session/shared",
        relation=relation,
        whose=whose_of(world, target, who),
        chat=chat,
    )


def facts_of_new_session(world: World, origin: Session | None, target: OnNewSession, who: str, chat: str) -> Facts:
    """A session that is to be: one's own from outside, a child of the origin from inside."""
    if origin is None:
        resource = "session/private" if target.kind == "direct" else "session/shared"
        return Facts(agent=target.agent, resource=resource, relation="self", whose="own", chat=chat)
    private = is_private(world, origin) and target.kind in ("direct", "subagent")
    crosses = target.agent != origin.agent
    return Facts(
        agent=root_of(world, origin).agent if crosses else target.agent,
        resource="session/private" if private else "session/shared",
        relation="child_cross" if crosses else "child",
        whose=whose_of(world, origin, who),
        chat=chat,
    )


def invariant(world: World, request: Request, facts: Facts) -> str | None:
    """ "Invariants come before Casbin, in code, and no row can lift them", in the order of the design."""
    target = request.target
    if facts.resource == "memory/longterm" and facts.chat == "group" and request.action in ("load", "get", "search"):
        return "root MEMORY.md from a shared session"
    if isinstance(target, OnFile) and person_of_path(target.path) not in (None, request.who):
        return "another person's personal files"
    if isinstance(target, OnSession):
        session = session_in(world, target.session)
        # "Itself" is the person whose it is, inside it: a row on `any` must not let another person in.
        if session.incognito and (request.origin != session.id or facts.whose != "own"):
            return "an incognito session to anybody but itself"
    if facts.resource in ("memory/longterm", "memory/personal/longterm") and request.action in ("append", "edit"):
        return "a write to a MEMORY.md that is not Deep's"
    if request.tainted and taint_bars(request, facts):
        return "a tainted turn"
    return None


def taint_bars(request: Request, facts: Facts) -> bool:
    """ "a tainted turn that writes instructions, remembers, appends to the team or sends elsewhere" """
    if request.action == "edit" and facts.resource == "memory/personal/instructions":
        return True
    if request.action == "remember":
        return True
    if request.action == "append" and facts.resource == "memory/daily":
        return True
    if request.action == "spawn":  # a child's task is sent elsewhere
        return True
    return request.action == "send" and facts.relation != "self"


def outside_sandbox(world: World, request: Request, facts: Facts) -> bool:
    """ "the relations that a policy allows are intersected with `tree`", where the target is a session."""
    origin = origin_of(world, request)
    if origin is None or not origin.sandboxed:
        return False
    if isinstance(request.target, OnFile | OnOffice):
        return False
    return facts.relation not in MODES["tree"]


def decide_inside(world: World, request: Request) -> Answer:
    """What a caller meets who names a session to work in: they must be let into it first, then the question itself."""
    if request.origin is not None:
        entry = Request(
            tenant=request.tenant,
            who=request.who,
            action="enter",
            target=OnSession(request.origin),
            origin=request.origin,
        )
        let_in = decide(world, entry)
        if not let_in.allowed:
            return Answer(False, f"may not enter: {let_in.why}")
    return decide(world, request)


def visible(world: World, tenant: str, person: str, origin: str | None, action: str) -> set[str]:
    """The ids of the sessions that `action` is allowed on: "{ x | `list` is allowed on x }"."""
    return {
        session.id
        for session in world.sessions
        if decide(
            world,
            Request(tenant=tenant, who=person, action=action, target=OnSession(session.id), origin=origin),
        ).allowed
    }
