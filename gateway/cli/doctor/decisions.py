"""What the doctor looks at in a policy: its faults, and whether slices decide as one plain Casbin enforcer does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from random import Random

from gateway.cli.doctor.findings import Finding, fault, fine, warning
from gateway.cli.failures import fault_line
from gateway.model import ANY_AGENT, Action, AgentName, Chat, Profile, Question, Relation, Resource, TenantId, Whose
from gateway.policy.documents import Document, lint, parse
from gateway.policy.plain import PlainEnforcer
from gateway.policy.rows import ACTION_WORDS, ANY, MODES, WHOSE, Row, covers_resource
from gateway.policy.snapshot import Snapshot
from gateway.ports import Clock

QUESTIONS = 400
LONGEST_S = 5.0  # a plain enforcer reads every row for every question


@dataclass(frozen=True, slots=True, kw_only=True)
class Population:
    """Who and what the questions are about: people as they are, on the agents that there are."""

    tenant: TenantId
    people: Sequence[Profile]
    agents: Sequence[AgentName]


def policy(text: str, population: Population, clock: Clock, chance: Random) -> list[Finding]:
    """Every finding about the document in force. Blocks: call it in a thread, which alone asks the snapshot."""
    tenant = population.tenant
    faults, warnings = lint(text, clock.now())
    todo = "Publish a document without it: gateway policy publish"
    return [
        *(fault("policy", fault_line(one), todo, tenant) for one in faults),
        *(warning("policy", fault_line(one), "See whether that is meant.", tenant) for one in warnings),
        *(() if faults else [_compared(parse(text), population, clock, chance)]),
    ]


def _compared(document: Document, population: Population, clock: Clock, chance: Random) -> Finding:
    """Decisions of both on a sample, as many as fit into the time."""
    now, begun = clock.now(), clock.monotonic()
    snapshot, plain = Snapshot(document, 0, now), PlainEnforcer(document, now)
    asked = 0
    for subjects, question in _questions(document.rows, population, now, chance):
        if clock.monotonic() - begun > LONGEST_S:
            break
        asked += 1
        ours, theirs = snapshot.decide(subjects, question, now), plain.decide(subjects, question)
        if ours.allowed != theirs.allowed:
            told = f"{', '.join(sorted(subjects))} asking {_words(question)}: {ours.allowed} and not {theirs.allowed}."
            todo = "Stop the gateway and report this: its decisions can't be trusted."
            return fault("decisions", told, todo, population.tenant)
    return fine("decisions", f"{asked} answers are those of a plain Casbin enforcer.", population.tenant)


def _questions(
    rows: Sequence[Row], population: Population, now: datetime, chance: Random
) -> Iterator[tuple[frozenset[str], Question]]:
    """Half are about what a row speaks of, since anything else is nearly always denied."""
    agents = (*population.agents, ANY_AGENT)
    live = [row for row in rows if row.live(now)]
    for number in range(QUESTIONS if population.people else 0):
        row = chance.choice(live) if live and number % 2 else None
        question = _question(row, agents, chance)
        yield _subjects(chance.choice(population.people), question.agent), question


def _question(row: Row | None, agents: Sequence[AgentName], chance: Random) -> Question:
    named = row is not None and row.agent != ANY
    return Question(
        agent=AgentName(row.agent) if row is not None and named else chance.choice(agents),
        resource=chance.choice([one for one in Resource if row is None or covers_resource(row.resource, one)]),
        relation=chance.choice(sorted(MODES[row.visibility]) if row else list(Relation)),
        whose=chance.choice(sorted(WHOSE[row.whose]) if row else list(Whose)),
        chat=Chat(row.chat) if row is not None and row.chat != ANY else chance.choice(list(Chat)),
        action=chance.choice([one for one in Action if row is None or row.action in ACTION_WORDS[one]]),
    )


def _subjects(person: Profile, agent: AgentName) -> frozenset[str]:
    """As `Requester.subjects_on` makes them."""
    roles = {f"role:{held.role}" for held in person.roles if held.agent in (agent, ANY_AGENT)}
    return frozenset({f"user:{person.id}", ANY} | roles)


def _words(question: Question) -> str:
    facts = (question.agent, question.resource, question.relation, question.whose, question.chat, question.action)
    return " ".join(str(fact) for fact in facts)
