"""Random drafts by an admin with random roles: published where they raise nobody, and only there."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

from gateway.model import ANY_AGENT, AgentName, Profile, Question, RoleAssignment
from gateway.policy.comparison import POSSIBLE
from gateway.policy.documents import Document, parse
from gateway.policy.lockout import publishable
from gateway.policy.plain import PlainEnforcer
from gateway.policy.rights import FactSet, Rights, facts_in
from gateway.policy.rows import EFFECTS
from gateway.policy.running import POWER
from tests.clock import SettableClock
from tests.house import House
from tests.path.test_nobody_raises import put, version
from tests.policy.test_differential import MOMENTS, ROLES, random_text

Subjects = dict[str, frozenset[str]]

AGENTS = ("flight", "baggage", "unheard_of", ANY_AGENT)
KEEPERS = (
    "p, role:owner, *, admin/policy, self, own, private, publish, allow\n"
    "p, role:owner, *, admin/people, self, own, private, edit, allow\n"
)


def drafted(dice: random.Random, document: Document) -> str:
    """A few changes: rows gone, turned around, ending at another moment, and new ones."""
    kept = []
    for row in document.rows:
        text = row.text
        if dice.random() < 0.15 and row.subject != "role:owner":
            text = text.replace(f", {row.effect}", f", {dice.choice(EFFECTS)}")
        if dice.random() < 0.9 or row.subject == "role:owner":
            kept.append(text)
    links = [f"g, {link.child}, {link.parent}" for link in document.links if dice.random() < 0.9]
    more = [line for line in random_text(dice, 4).split("\n") if line.startswith("p") and dice.random() < 0.6]
    return "\n".join(dict.fromkeys([*links, *kept, *more]))


def everything(
    document: Document, subjects: dict[str, frozenset[str]], within: FactSet
) -> Iterator[dict[str, FactSet]]:
    """By moment what the subjects may do by agent."""
    for moment in MOMENTS:
        rights = Rights(document, moment)
        yield {agent: rights.of(held, agent) & within for agent, held in subjects.items()}


def rises(before: Document, after: Document, subjects: Subjects, within: FactSet = POSSIBLE) -> bool:
    """Whether somebody may do more at some moment."""
    pairs = zip(everything(before, subjects, within), everything(after, subjects, within), strict=True)
    return any(could[agent] & ~can[agent] for can, could in pairs for agent in subjects)


def being(subject: str, agents: tuple[str, ...] = AGENTS) -> dict[str, frozenset[str]]:
    """Somebody who is this and nobody else."""
    return dict.fromkeys(agents, frozenset({subject, "*"}))


def may_be_published(before: Document, after: Document, author: Profile) -> bool:
    """The rule of docs/identity.md, written down once more, moment by moment and subject by subject."""
    if rises(before, after, {agent: author.subjects_on(AgentName(agent)) for agent in AGENTS}):
        return False
    if rises(before, after, being("role:guest")):
        return False
    me = f"user:{author.id}"
    named = {row.subject for document in (before, after) for row in document.rows}
    everybody = named.union(ROLES, {"role:admin", "role:owner"}) - {me}
    nothing = parse("")
    for one in sorted(everybody):
        keeps = one in ("role:owner", "role:admin") or rises(nothing, before, being(one, (ANY_AGENT,)), POWER)
        if keeps and rises(after, before, being(one)):
            return False
        if one != "role:owner" and rises(before, after, being(one, (ANY_AGENT,)), POWER):
            return False
    return True


async def test_a_draft_is_published_where_it_raises_nobody_and_only_there(home: House, clock: SettableClock) -> None:
    """Design section 5: an oracle that looks at every right at every moment, and stock Casbin at some of them."""
    clock.set(MOMENTS[0])
    await home.gateway.epochs.poll()
    home.secrets["erin"] = await home.token("erin")
    stores, seen = home.gateway.stores, Counter[str]()
    for seed in range(100):
        dice = random.Random(f"drafts/{seed}")
        held = [
            RoleAssignment(role=role.removeprefix("role:"), agent=AgentName(dice.choice(AGENTS)))
            for role in dice.sample(ROLES, 2)
        ]
        author = await stores.identities.set_roles(home.tenant, home.id("erin"), held)
        assert author is not None
        publishes = f"p, user:{author.id}, *, admin/policy, self, own, private, publish, allow\n"
        before = parse(f"{KEEPERS}{publishes}{random_text(dice)}")
        after = parse(drafted(dice, before))
        may = PlainEnforcer(before, MOMENTS[0]).decide(author.subjects_on(ANY_AGENT), _publish())
        if publishable(after) or not may.allowed or (after.rows, after.links) == (before.rows, before.links):
            seen["skipped"] += 1
            continue
        await home.publish(before.text)
        at = await version(home)

        answer = await put(home, "erin", after.text)

        expected = may_be_published(before, after, author)
        assert answer.status_code == (200 if expected else 403), (before.text, after.text, answer.text)
        assert (await version(home))[0] == at[0] + expected
        seen["published" if expected else "refused"] += 1
        if expected:
            _casbin_agrees(dice, before, after, author)
    assert min(seen["published"], seen["refused"]) >= 15, seen


def _publish() -> Question:
    return next(
        Question(ANY_AGENT, *fact)
        for fact in facts_in(POWER)
        if (fact.resource, fact.action, fact.chat) == ("admin/policy", "publish", "private")
    )


def _casbin_agrees(dice: random.Random, before: Document, after: Document, author: Profile) -> None:
    moment = dice.choice(MOMENTS)
    was, now = PlainEnforcer(before, moment), PlainEnforcer(after, moment)
    for fact in dice.sample(list(facts_in(POSSIBLE)), 60):
        question = Question(AgentName(dice.choice(AGENTS)), *fact)
        subjects = author.subjects_on(question.agent)
        assert was.decide(subjects, question).allowed or not now.decide(subjects, question).allowed
