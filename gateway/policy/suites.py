"""Turns a YAML file of expected answers into a report of the decisions that came out otherwise.

policy: ../default.csv          # or rows: with the document itself
now: 2030-01-01T00:00:00Z       # only where rows end
people:
  alice: [role:member]
cases:                          # who, agent, resource, relation, whose, chat, action, answer
  - [alice, flight, session/private, self, own, private, history, allow]
matrices:                       # who × what × action; a pair left out of `expected` must be denied
  - name: the team's memory
    what:
      in private: [flight, memory/longterm, same_agent, shared, private]
    actions: [load, get, remember]
    expected:
      in private: {alice: [load, get]}
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import yaml
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError, model_validator

from gateway.errors import Fault, Invalid
from gateway.model import Action, AgentName, Chat, Question, Relation, Resource, Whose
from gateway.policy.document_files import read_document
from gateway.policy.documents import parse
from gateway.policy.rows import ANY
from gateway.policy.snapshot import Snapshot

_CLOSED: Final = ConfigDict(extra="forbid", frozen=True)
_SUBJECT: Final = r"^(role:[a-z0-9][a-z0-9_-]{0,63}|user:prf_[0-9A-HJKMNP-TV-Z]{26})$"

Who = Annotated[str, Field(title="who", description="One of the people of this suite.")]
Agent = Annotated[str, Field(title="agent", description="The agent's name, or * for what runs the whole place.")]
Answer = Annotated[Literal["allow", "deny"], Field(title="answer", description="What the document has to answer.")]
Subject = Annotated[
    str,
    Field(
        pattern=_SUBJECT,
        description="A role that somebody holds (role:member), or who they are (user:prf_…). Everybody is * as well.",
    ),
]
What = Annotated[
    tuple[Agent, Resource, Relation, Whose, Chat],
    Field(description="What is asked about: agent, resource, relation, whose, and where it is asked from."),
]
Case = Annotated[
    tuple[Who, Agent, Resource, Relation, Whose, Chat, Action, Answer],
    Field(description="One question and its answer: who, agent, resource, relation, whose, chat, action, answer."),
]


class Matrix(BaseModel):
    """Every person of the suite, each thing named in `what`, each action: allowed exactly where `expected` says so."""

    model_config = _CLOSED

    name: str = Field(description="What this is about, for whoever reads it.")
    what: dict[str, What] = Field(description="What is asked about, by a name that `expected` uses.")
    actions: list[Action] = Field(description="What each person wants to do with each of these.")
    expected: dict[str, dict[str, list[Action]]] = Field(
        default={},
        description="By the names of `what`, then by person: the allowed actions. What is left out must be denied.",
    )

    @model_validator(mode="after")
    def _names_what_it_has(self) -> Matrix:
        unknown = set(self.expected) - set(self.what)
        unknown |= {
            str(action)
            for by_person in self.expected.values()
            for actions in by_person.values()
            for action in actions
            if action not in self.actions
        }
        if unknown:
            raise ValueError(f"expected names what the matrix does not hold: {', '.join(sorted(unknown))}")
        return self


class Suite(BaseModel):
    """One file of expected answers."""

    model_config = _CLOSED

    policy: str | None = Field(
        default=None, description="The document to ask: its path from the folder of this suite. Either this or `rows`."
    )
    rows: str | None = Field(default=None, description="The document itself. Either this or `policy`.")
    now: AwareDatetime | None = Field(
        default=None, description="When it is asked, for rows that end: 2030-01-01T00:00:00Z. Without it: now."
    )
    people: dict[str, list[Subject]] = Field(description="Who asks, by a name, and what each of them holds.")
    cases: list[Case] = Field(default=[], description="Single questions, each with its answer.")
    matrices: list[Matrix] = Field(default=[], description="Tables: every person, thing and action of each is asked.")

    @model_validator(mode="after")
    def _holds_together(self) -> Suite:
        if (self.policy is None) == (self.rows is None):
            raise ValueError("write either policy: with a path or rows: with the document itself")
        named = {case[0] for case in self.cases}
        named |= {who for matrix in self.matrices for by_person in matrix.expected.values() for who in by_person}
        if named - set(self.people):
            raise ValueError(f"these are not among the people: {', '.join(sorted(named - set(self.people)))}")
        if not self.cases and not self.matrices:
            raise ValueError("write cases or matrices; a suite without any proves nothing")
        return self


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One expected answer."""

    who: str
    question: Question
    allowed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteReport:
    """How many answers were checked, and a sentence for each that came out otherwise."""

    path: Path
    checks: int
    failures: tuple[str, ...]


def read_suite(path: Path) -> Suite:
    """The suite in a file. Raises Invalid with every fault of it."""
    try:
        found = yaml.load(path.read_text(encoding="utf-8"), Loader=_UniqueKeys)  # noqa: S506  # a SafeLoader
        return Suite.model_validate(found)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise Invalid.of(path.name, "yaml", f"This is not a YAML file: {error}") from error
    except OSError as error:
        raise Invalid.of(path.name, "readable", f"{path} can't be read: {error.strerror}.") from error
    except ValidationError as error:
        raise Invalid([_fault(path, one) for one in error.errors(include_url=False)]) from error


def run_suite(path: Path) -> SuiteReport:
    """Asks everything a suite expects. Raises Invalid for a suite or a document that has faults."""
    suite = read_suite(path)
    return check_suite(suite, path, document_of(suite, path))


def document_of(suite: Suite, path: Path) -> str:
    """The text of the document under test; `policy` is relative to the suite's own folder."""
    if suite.rows is not None:
        return suite.rows
    try:
        return read_document(path.parent / str(suite.policy))
    except Invalid as error:
        message = f"{suite.policy} can't be read from {path.name}: {error.faults[0].message}"
        raise Invalid.of("policy", "readable", message) from error


def check_suite(suite: Suite, path: Path, text: str) -> SuiteReport:
    """Asks the document in `text` everything the suite expects. Raises Invalid where the text has faults."""
    now = suite.now or datetime.now(UTC)
    snapshot = Snapshot(parse(text), 0, now)
    checks = tuple(checks_of(suite))
    failures = tuple(failure for check in checks for failure in _failures(snapshot, suite, check, now))
    return SuiteReport(path=path, checks=len(checks), failures=failures)


def checks_of(suite: Suite) -> Iterator[Check]:
    """Every expected answer, those left out of a matrix included."""
    for who, agent, resource, relation, whose, chat, action, answer in suite.cases:
        question = Question(AgentName(agent), resource, relation, whose, chat, action)
        yield Check(who=who, question=question, allowed=answer == "allow")
    for matrix in suite.matrices:
        for name, what in matrix.what.items():
            for who in suite.people:
                expected = matrix.expected.get(name, {}).get(who, ())
                yield from _row_of(matrix.actions, who, what, expected)


def subjects_of(suite: Suite, who: str) -> frozenset[str]:
    """The subject set of a person of the suite."""
    return frozenset({ANY, *suite.people[who]})


def _row_of(actions: Sequence[Action], who: str, what: What, expected: Sequence[Action]) -> Iterator[Check]:
    agent, *facts = what
    for action in actions:
        yield Check(who=who, question=_question(agent, facts, action), allowed=action in expected)


def _question(agent: str, facts: Sequence[Any], action: Action) -> Question:
    resource, relation, whose, chat = facts
    return Question(AgentName(agent), resource, relation, whose, chat, action)


def _failures(snapshot: Snapshot, suite: Suite, check: Check, now: datetime) -> Iterator[str]:
    verdict = snapshot.decide(subjects_of(suite, check.who), check.question, now)
    if verdict.allowed == check.allowed:
        return
    asked = check.question
    said = f"by {verdict.rule}" if verdict.rule else "because no row allows it"
    yield (
        f"{check.who} should be {'allowed' if check.allowed else 'denied'} {asked.action} on {asked.resource} "
        f"of {asked.agent} ({asked.relation}, {asked.whose}, from {asked.chat}), "
        f"but is {'allowed' if verdict.allowed else 'denied'} {said}."
    )


def _fault(path: Path, error: Any) -> Fault:
    place = ".".join(str(part) for part in error["loc"]) or path.name
    return Fault(field=place, rule=error["type"], message=error["msg"])


class _UniqueKeys(yaml.SafeLoader):
    """YAML lets a later key silently replace an earlier one; here that would drop a case."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        repeated = next((key for place, key in enumerate(keys) if key in keys[:place]), None)
        if repeated is not None:
            raise yaml.constructor.ConstructorError(None, None, f"{repeated} stands here twice", node.start_mark)
        return super().construct_mapping(node, deep)
