"""The words of a question: who, what, on what and from where (`POST /v1/admin/policy/explain`)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Final, Self

from pydantic import AfterValidator, Field, model_validator

from gateway.keys import LONGEST_WORD
from gateway.model import Action, AgentName, Chat, Question, Relation, Resource, Whose
from gateway.operations.asking import OnMemory, OnSession, OnTool, Thing
from gateway.tools.arguments import Arguments

Word = Annotated[str, Field(min_length=1, max_length=LONGEST_WORD)]


def _one_of(words: Iterable[str]) -> AfterValidator:
    allowed = tuple(words)

    def check(word: str) -> str:
        if word not in allowed:
            raise ValueError(f"say one of {', '.join(allowed)}")
        return word

    return AfterValidator(check)


ActionWord = Annotated[str, _one_of(Action)]

_BARE: Final = ("agent", "resource", "relation", "whose", "chat")


class ExplainBody(Arguments):
    """A decision by its id; or a question: a person, an action, and one of `session`, `memory`, `tool` or the five
    facts that a policy row speaks of."""

    decision: Word | None = None
    person: Word | None = None
    action: ActionWord | None = None
    source: Annotated[Word | None, Field(alias="from")] = None
    kind: Word | None = None
    session: Word | None = None
    memory: Word | None = None
    tool: Word | None = None
    agent: Word | None = None
    resource: Annotated[str, _one_of(Resource)] | None = None
    relation: Annotated[str, _one_of(Relation)] | None = None
    whose: Annotated[str, _one_of(Whose)] | None = None
    chat: Annotated[str, _one_of(Chat)] | None = None

    @model_validator(mode="after")
    def _is_one_question(self) -> Self:
        if self.decision is not None:
            if self.model_fields_set - {"decision"}:
                raise ValueError("name a decision alone, or ask a question without one")
            return self
        if self.person is None:
            raise ValueError("name a 'decision', or ask about a 'person'")
        things = [self.session, self.memory, self.tool]
        bare = [getattr(self, name) for name in _BARE]
        named = sum(one is not None for one in things) + any(one is not None for one in bare)
        if named != 1:
            raise ValueError(f"ask about one thing: 'session', 'memory', 'tool', or {', '.join(_BARE)} together")
        if any(one is not None for one in bare) and (None in bare or self.source is not None or self.kind is not None):
            raise ValueError(f"a bare question needs all of {', '.join(_BARE)}, and no session to ask from")
        if self.action is None and self.tool is None:
            raise ValueError("say which 'action'")
        if self.kind is not None and self.source is None:
            raise ValueError("'kind' is of the turn in the session that 'from' names")
        if self.memory is not None and "/" not in self.memory:
            raise ValueError("'memory' is the agent and the path in its workspace: flight/MEMORY.md")
        return self

    @property
    def thing(self) -> Thing | None:
        """What it is about; None for a bare question."""
        if self.session is not None:
            return OnSession(self.session)
        if self.memory is not None:
            return memory(self.memory)
        return None if self.tool is None else OnTool(self.tool)

    @property
    def wanted(self) -> Action:
        """The action; of a tool its own, whatever is said here."""
        return Action(self.action) if self.action is not None else Action.READ

    @property
    def question(self) -> Question:
        """The bare question."""
        return Question(
            AgentName(self.agent or ""),
            Resource(self.resource or ""),
            Relation(self.relation or ""),
            Whose(self.whose or ""),
            Chat(self.chat or ""),
            self.wanted,
        )


def memory(word: str) -> OnMemory:
    """`flight/memory/2026-12-01.md`: an agent, and a path in its workspace."""
    agent, _, path = word.partition("/")
    return OnMemory(agent, path)
