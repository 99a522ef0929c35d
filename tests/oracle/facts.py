"""A world into the facts of a decision: lineage, whose, private or shared, what a path is (design sections 2 and 6).

Everything is worked out from the world each time, by loops; nothing is kept.
"""

from __future__ import annotations

import re

from tests.oracle.world import GUEST, STRANGER, OnFile, Participation, Person, Session, World

RULES = ("AGENTS.md", "SOUL.md", "IDENTITY.md")
DAY = r"\d{4}-\d{2}-\d{2}"


def person_in(world: World, tenant: str, who: str) -> Person | None:
    """The profile of that tenant with that id, a retired one too."""
    for person in world.people:
        if person.tenant == tenant and person.id == who:
            return person
    return None


def head(world: World, tenant: str, who: str) -> str:
    """The survivor of a merged profile: "alias resolution is one hop"."""
    person = person_in(world, tenant, who)
    if person is None or person.merged_into is None:
        return who
    return person.merged_into


def session_in(world: World, session: str) -> Session:
    """The session with that id; the world is known to hold it."""
    for one in world.sessions:
        if one.id == session:
            return one
    raise LookupError(session)


def lineage(world: World, session: Session) -> list[Session]:
    """From the session up to its root, itself first: "Lineage is the whole chain"."""
    chain = [session]
    while chain[-1].parent is not None:
        chain.append(session_in(world, chain[-1].parent))
    return chain


def root_of(world: World, session: Session) -> Session:
    """The top of the tree."""
    return lineage(world, session)[-1]


def owner_of(world: World, session: Session) -> str:
    """ "Owner and participants of a child are those of its tree's root." """
    root = root_of(world, session)
    assert root.owner is not None
    return head(world, root.tenant, root.owner)


def participants_of(world: World, session: Session) -> list[Participation]:
    """Who takes part now: "Leaving a group ends access"."""
    return [one for one in root_of(world, session).participants if not one.left]


def takes_part(world: World, session: Session, who: str) -> list[Participation]:
    """The person's own rows among the participants; two where two profiles were merged."""
    return [one for one in participants_of(world, session) if head(world, session.tenant, one.person) == who]


def personal_owner_of(world: World, session: Session) -> str:
    """Whose personal files a turn may load: the owner, or "the creator, where the owner is not a person"."""
    owner = person_in(world, session.tenant, owner_of(world, session))
    if owner is not None and owner.kind == "person":
        return owner.id
    return head(world, session.tenant, root_of(world, session).creator)


def is_private(world: World, session: Session) -> bool:
    """ "Private is a direct session with exactly one person, and a child all of whose ancestors are private.
    Everything else (groups, channels, cron, unknown) is shared" """
    if session.parent is None:
        people = {session.owner} | {one.person for one in participants_of(world, session)}
        return session.kind == "direct" and len(people) == 1
    if session.kind not in ("direct", "subagent"):
        return False
    return all(is_private(world, ancestor) for ancestor in lineage(world, session)[1:])


def chat_of(world: World, origin: Session | None) -> str:
    """ "private (outside any session too), group" """
    if origin is None or is_private(world, origin):
        return "private"
    return "group"


def relation_of(world: World, origin: Session | None, target: Session, who: str) -> str:
    """How the target stands to the session the request is made from, or to the person where there is none."""
    if origin is None:
        return "self" if whose_of(world, target, who) in ("own", "shared") else "same_agent"
    if origin.id == target.id:
        return "self"
    ancestors = [one.id for one in lineage(world, target)[1:]]
    if origin.id in ancestors:
        return "child" if target.agent == origin.agent else "child_cross"
    return "same_agent" if target.agent == origin.agent else "other_agent"


def whose_of(world: World, session: Session, who: str) -> str:
    """ "own, shared (the requester takes part in it), other" """
    if owner_of(world, session) == who:
        return "own"
    if takes_part(world, session, who):
        return "shared"
    return "other"


def subjects_on(world: World, tenant: str, who: str, agent: str) -> frozenset[str]:
    """ "`user:prf_…`, the roles held on that agent, `*`"; rows that name a retired id count for its survivor."""
    if who == GUEST:
        return frozenset({"role:guest", "*"})
    person = person_in(world, tenant, who)
    assert person is not None
    assert who != STRANGER
    names = {f"user:{other.id}" for other in world.people if other.tenant == tenant and other.merged_into == who}
    roles = {f"role:{role.name}" for role in person.roles if role.agent in ("*", agent)}
    return frozenset({f"user:{who}", "*"} | names | roles)


def resource_of(path: str) -> str | None:
    """Which memory a path of a workspace is; None is no memory at all."""
    if path in RULES:
        return "memory/rules"
    if path == "USER.md":
        return "memory/shared"
    if path == "MEMORY.md":
        return "memory/longterm"
    if path == "DREAMS.md":
        return "memory/dreams"
    if re.fullmatch(f"memory/{DAY}\\.md", path):
        return "memory/daily"
    if re.fullmatch(r"users/[^/]+/USER\.md", path):
        return "memory/personal/instructions"
    if re.fullmatch(r"users/[^/]+/MEMORY\.md", path):
        return "memory/personal/longterm"
    if re.fullmatch(f"users/[^/]+/memory/{DAY}\\.md", path):
        return "memory/personal/daily"
    return None


def person_of_path(path: str) -> str | None:
    """The id in `users/<id>/…`."""
    parts = path.split("/")
    return parts[1] if parts[0] == "users" else None


def memory_relation(origin: Session | None, target: OnFile, who: str) -> tuple[str, str]:
    """ "one's own (self, own); the agent's (same_agent, shared); another agent's (other_agent, shared); another
    person's (same_agent, other)" """
    person = person_of_path(target.path)
    if person is not None:
        return ("self", "own") if person == who else ("same_agent", "other")
    if origin is None or origin.agent == target.agent:
        return "same_agent", "shared"
    return "other_agent", "shared"


def people_count(world: World, tenant: str) -> int:
    """Unmerged, enabled people; "services and guests don't count"."""
    return sum(
        1
        for person in world.people
        if person.tenant == tenant and person.kind == "person" and person.merged_into is None and not person.disabled
    )
