"""A seeded random source into requests that exercise every rule of the oracle, and how often each one does."""

from __future__ import annotations

import re
import sys
from collections import Counter
from random import Random

from tests.oracle.decide import decide
from tests.oracle.facts import owner_of, participants_of, root_of, session_in
from tests.oracle.policies import MEMORY_ACTIONS, OFFICE_ACTIONS, OFFICE_RESOURCES, SESSION_ACTIONS
from tests.oracle.world import (
    STRANGER,
    OnFile,
    OnNewSession,
    OnOffice,
    OnSession,
    Request,
    Session,
    Target,
    World,
)
from tests.oracle.worlds import make_world, personal_paths, team_paths

EXISTING = tuple(action for action in SESSION_ACTIONS if action not in ("create", "enter", "spawn"))


def make_request(rng: Random, world: World) -> Request:
    """One question: mostly of somebody who could have a right to the answer."""
    tenant = rng.choice(world.tenants).name
    who = make_requester(rng, world, tenant)
    mine = [session for session in world.sessions if session.tenant == tenant]
    near = [session for session in mine if is_near(world, session, who)] or mine
    origin = None
    if rng.random() < 0.6:
        origin = rng.choice(near if rng.random() < 0.8 else mine).id
    if origin is not None and rng.random() < 0.12:
        return Request(tenant=tenant, who=who, action="enter", target=OnSession(origin), origin=origin)
    action, target = make_target(rng, world, tenant, who, origin, near)
    tainted = origin is not None and rng.random() < 0.08
    return Request(tenant=tenant, who=who, action=action, target=target, origin=origin, tainted=tainted)


def make_requester(rng: Random, world: World, tenant: str) -> str:
    """Mostly a person in good standing."""
    people = [person for person in world.people if person.tenant == tenant]
    standing = [person for person in people if person.merged_into is None and not person.disabled]
    luck = rng.random()
    if luck < 0.02:
        return STRANGER
    if luck < 0.04:
        return rng.choice(world.people).id
    return rng.choice(people if luck < 0.1 else standing or people).id


def is_near(world: World, session: Session, who: str) -> bool:
    """Whether the person owns the session's tree or takes part in it."""
    return owner_of(world, session) == who or who in [one.person for one in participants_of(world, session)]


def make_target(
    rng: Random, world: World, tenant: str, who: str, origin: str | None, near: list[Session]
) -> tuple[str, Target]:
    """An action and what it is done to."""
    agents = [agent.name for agent in world.agents if agent.tenant == tenant]
    luck = rng.random()
    if luck < 0.08:
        action = "create" if origin is None else "spawn"
        kinds = ("direct", "group", "channel", "cron") if origin is None else ("subagent", "subagent", "direct")
        return action, OnNewSession(rng.choice(agents), rng.choice(kinds))
    if luck < 0.45:
        return rng.choice(MEMORY_ACTIONS), make_file_target(rng, world, tenant, who, origin, agents)
    if luck < 0.55:
        return rng.choice(OFFICE_ACTIONS), OnOffice(rng.choice(OFFICE_RESOURCES[:-1]))
    return rng.choice(EXISTING), OnSession(make_session_target(rng, world, tenant, origin, near))


def make_session_target(rng: Random, world: World, tenant: str, origin: str | None, near: list[Session]) -> str:
    """One's own, one in the origin's tree, any of the tenant, and now and then another tenant's."""
    luck = rng.random()
    if luck < 0.04:
        return rng.choice(world.sessions).id
    if luck < 0.3:
        return rng.choice([session for session in world.sessions if session.tenant == tenant]).id
    if luck < 0.6 and origin is not None:
        root = root_of(world, session_in(world, origin)).id
        return rng.choice([session for session in world.sessions if root_of(world, session).id == root]).id
    return rng.choice(near).id


def make_file_target(rng: Random, world: World, tenant: str, who: str, origin: str | None, agents: list[str]) -> OnFile:
    """A file of the agent at hand, now and then of another one or of another tenant's."""
    agent = rng.choice(agents)
    if origin is not None and rng.random() < 0.85:
        agent = session_in(world, origin).agent
    if rng.random() < 0.03:
        other = rng.choice(world.agents)
        return OnFile(other.tenant, other.name, rng.choice(team_paths()))
    if rng.random() < 0.55:
        return OnFile(tenant, agent, "MEMORY.md" if rng.random() < 0.25 else rng.choice(team_paths()))
    person = who
    if rng.random() < 0.25:
        person = rng.choice([one.id for one in world.people if one.tenant == tenant])
    return OnFile(tenant, agent, rng.choice(personal_paths(person)))


# ── coverage ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def shares(seed: int, worlds: int, each: int) -> dict[str, tuple[int, int]]:
    """For each action, how often it was asked and how often allowed; under "because …" how often each rule decided."""
    asked: Counter[str] = Counter()
    allowed: Counter[str] = Counter()
    for number in range(worlds):
        rng = Random(f"{seed}:{number}")
        world = make_world(rng)
        for _ in range(each):
            request = make_request(rng, world)
            answer = decide(world, request)
            rule = re.sub(r"^line \d+", "a row", answer.why.split(":")[0])
            for name in (request.action, f"because {rule}"):
                asked[name] += 1
                allowed[name] += answer.allowed
    return {name: (count, allowed[name]) for name, count in sorted(asked.items())}


def main() -> None:
    """`python -m tests.oracle.generate [worlds]` prints the share of allows for each action and rule."""
    worlds = int(sys.argv[1]) if len(sys.argv) > 1 else 2_000
    for name, (count, allows) in shares(1, worlds, 8).items():
        print(f"{name:44} {count:7} asked {allows / count:6.1%} allowed")


if __name__ == "__main__":
    main()
