"""What a tool must say of itself before it can be called (design section 8)."""

from __future__ import annotations

import inspect
from dataclasses import replace
from typing import Annotated, Any

import pytest
from pydantic import Field

from gateway.errors import Invalid
from gateway.model import Action, Resource
from gateway.tools.arguments import Arguments, parse, schema
from gateway.tools.registry import Operation, Registry, Tool, tool


class Words(Arguments):
    """Some arguments."""

    count: Annotated[int, Field(alias="howMany", ge=1)] = 1


class Others(Arguments):
    """Some others."""


async def find(*_: Any) -> None:
    """Nothing in particular."""
    return


def _tool(name: str, arguments: type[Arguments] = Words, **more: Any) -> Tool:
    declared = {"action": Action.LIST, "family": (Resource.SESSION_SHARED,), "find": find, "run": find, **more}
    return tool(Operation(name=name, summary="Does it.", **declared), arguments)


def test_a_tool_without_a_declared_action_does_not_come_into_being() -> None:
    """wso2/agent-manager#1380: it fails start-up."""
    needed = {
        name
        for name, parameter in inspect.signature(Operation).parameters.items()
        if parameter.default is inspect.Parameter.empty
    }
    assert {"action", "family", "find"} <= needed
    with pytest.raises(TypeError):
        Operation(name="x", summary="x", family=(Resource.GATEWAY,), find=find, run=find)  # type: ignore[call-arg]  # the point


def test_two_tools_of_one_name_or_one_kind_of_arguments_fail_the_start() -> None:
    """Ours: which one ran would depend on the order of two lines."""
    assert [one.name for one in Registry([_tool("one"), _tool("two", Others)]).all()] == ["one", "two"]
    for second in (_tool("one", Others), _tool("two", Words)):
        with pytest.raises(ValueError, match="two tools"):
            Registry([_tool("one"), second])


def test_a_tool_that_no_runtime_may_run_fails_the_start() -> None:
    """Design section 5.5: tools are what turn tokens are for; `tool` says so by itself, and a tool of several must."""
    one = _tool("one")
    operation = replace(one.operations[0], by_turn_token=False)
    with pytest.raises(ValueError, match="by_turn_token"):
        Registry([replace(one, operations=(operation,))])
    assert Registry([one]).find("one") is one


def test_arguments_are_read_strictly_and_described_by_the_names_callers_use() -> None:
    """Design section 8: names and arguments are OpenClaw's; no silent conversion."""
    one = _tool("one")
    registry = Registry([one])

    assert one.parse({"howMany": 2}) == Words(count=2)
    assert registry.of(Words()) is registry.find("one")
    assert registry.find("two") is None
    properties = one.input_schema["properties"]
    assert isinstance(properties, dict)
    assert set(properties) == {"howMany"}
    assert "title" not in schema(Others)
    for data, field in (({"howMany": "2"}, "howMany"), ({"x": 1}, "x"), ([], "body"), (None, "body"), ("x", "body")):
        with pytest.raises(Invalid) as refused:
            parse(Words, data)
        assert [fault.field for fault in refused.value.faults] == [field]
