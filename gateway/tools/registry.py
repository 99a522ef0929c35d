"""What an operation is: one thing that a caller can do, with the action that the policy is asked about first.

Every route, tool and command is an operation of this shape; there is no other way to run anything (design section 3).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from gateway.model import Action, Resource
from gateway.policy.permit import Permit
from gateway.policy.targets import MissingTarget, Target
from gateway.tools.arguments import Arguments, parse, schema
from gateway.turn import Turn

ArgsT = TypeVar("ArgsT")
TargetT = TypeVar("TargetT", bound=Target)
ResultT = TypeVar("ResultT")

SESSIONS = (Resource.SESSION_PRIVATE, Resource.SESSION_SHARED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation(Generic[ArgsT, TargetT, ResultT]):
    """One thing a caller can do: `find` says what is asked about, `run` gets the permit and does it.

    `find` may look a target up but shows nothing of it; it returns a `MissingTarget` for what is not there, and
    None for a list of sessions, which is permitted by scope. With `absent`, a refusal is that result and not an error.
    `details` says what an effect will change, for the audit; it names ids and roles, and never text or secrets.
    """

    name: str  # "sessions.history": the audit's word for it
    summary: str
    action: Action
    also: tuple[Action, ...] = ()  # further actions on the same target, each of which must be allowed before it runs
    family: tuple[Resource, ...]  # what it may reach; says 403 for a role that lacks all of it
    find: Callable[[Turn, ArgsT], Awaitable[TargetT | MissingTarget | None]]
    run: Callable[[Permit[TargetT], Turn, ArgsT], Awaitable[ResultT]]
    absent: Callable[[ArgsT], ResultT] | None = None
    details: Callable[[Permit[TargetT], Turn, ArgsT], Awaitable[dict[str, object]]] | None = None
    effect: bool = False  # it changes something: the audit's intent is durable before it runs
    recorded_first: bool = False  # it changes nothing, and yet its decision is on disk before it runs
    inside: bool = False  # it is asked from inside the session that the path names
    raises_epoch: bool = False  # it changes who may do what; in force here before it is answered
    by_turn_token: bool = False  # an agent's runtime may run it with a turn token, in the session that this is bound to
    assembles: bool = False  # the turn's context is assembled before it runs


AnyOperation = Operation[Any, Any, Any]  # a table holds operations of every kind; each checks its own argument type


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """What a model may call by OpenClaw's name; some tools are one of several operations, by their arguments."""

    name: str
    description: str
    arguments: type[Arguments]
    operations: tuple[AnyOperation, ...]
    choose: Callable[[Any], AnyOperation]

    def parse(self, data: object) -> Arguments:
        """The arguments. Raises Invalid with every fault."""
        return parse(self.arguments, data)

    @property
    def input_schema(self) -> Mapping[str, object]:
        """The JSON schema of the arguments."""
        return schema(self.arguments)


def tool(operation: AnyOperation, arguments: type[Arguments]) -> Tool:
    """A tool that is one operation, which runtimes run too."""
    operation = replace(operation, by_turn_token=True)
    return Tool(
        name=operation.name,
        description=operation.summary,
        arguments=arguments,
        operations=(operation,),
        choose=lambda _arguments: operation,
    )


class Registry:
    """The tools by name, in a fixed order."""

    def __init__(self, tools: Sequence[Tool]) -> None:
        """Raises ValueError for what is there twice, or what no runtime may run: start-up fails (design section 8)."""
        self._tools = {tool.name: tool for tool in tools}
        self._by_arguments = {tool.arguments: tool for tool in tools}
        if not len(self._tools) == len(self._by_arguments) == len(tools):
            raise ValueError("two tools have one name or one kind of arguments")
        if not all(operation.by_turn_token for tool in tools for operation in tool.operations):
            raise ValueError("every operation of a tool says by_turn_token: tools are for runtimes")

    def find(self, name: str) -> Tool | None:
        """The tool of that name."""
        return self._tools.get(name)

    def of(self, arguments: Arguments) -> Tool:
        """The tool that these arguments were read for."""
        return self._by_arguments[type(arguments)]

    def all(self) -> Sequence[Tool]:
        """Every tool, in order."""
        return tuple(self._tools.values())
