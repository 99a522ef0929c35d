"""Runs the examples of docs/cli.md on the demo, and compares what they print with what the page says."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from gateway.cli import build
from tests.cli.test_command_line import commands
from tests.terminal import ROOT, Terminal

PAGE = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
ANYTHING = "…"


@dataclass
class Example:
    """A command of the page and what it says that comes out; a line of `…` alone stands for any lines."""

    command: str
    output: list[str] = field(default_factory=list)

    @property
    def pattern(self) -> re.Pattern[str]:
        """What the real output must match, its runs of spaces taken for one."""
        lines = []
        for line in self.output:
            if line == ANYTHING:
                lines.append(r"(?:.*\n)*?")
            else:
                lines.append(re.escape(_squeezed(line)).replace(re.escape(ANYTHING), r"\S.*?") + r"\n")
        return re.compile("".join(lines))


def _squeezed(line: str) -> str:
    return " ".join(line.split())


def _examples() -> Iterator[Example]:
    for block in re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL):
        example: Example | None = None
        for line in block.splitlines():
            if line.startswith("$ "):
                if example is not None:
                    yield example
                example = Example(line[2:])
            elif example is not None:
                example.output.append(line)
        if example is not None:
            yield example


def _run(terminal: Terminal, command: str, variables: dict[str, str]) -> str:
    """Everything that the command prints."""
    for name, value in variables.items():
        command = command.replace(f"${name}", value)
    words = shlex.split(command)
    who = {} if words[0] == "gateway" else dict([words.pop(0).split("=", 1)])
    target = words.index(">") if ">" in words else len(words)
    answer = terminal.run(*words[1:target], env=who)
    if target < len(words):
        Path(words[target + 1]).write_text(answer.out, encoding="utf-8")
        return answer.err
    return answer.out + answer.err


def test_every_example_prints_what_the_page_says(terminal: Terminal) -> None:
    """docs/cli.md documents each command with an example; in order, since one stands on another."""
    shutil.copytree(ROOT / "policies", "policies")
    people = {name.upper(): secret for name, secret in terminal.demo.secrets.items()}
    variables = {**people, "SESSION": terminal.demo.private, "GROUP": terminal.demo.group}
    for example in _examples():
        printed = _run(terminal, example.command, variables)
        real = "".join(f"{_squeezed(line)}\n" for line in printed.splitlines())
        assert example.pattern.fullmatch(real), f"{example.command}\n{printed}"
        for name, kind in (("DECISION", "dec"), ("TOKEN", "tok")):
            if found := re.search(rf"{kind}_[0-9A-Z]{{26}}", printed):
                variables[name] = found[0]


def test_the_page_has_an_example_of_every_command() -> None:
    """`serve` does not end by itself; its own test runs what it prints."""
    shown = [example.command for example in _examples()]

    assert [name for name, _ in commands(build()) if not any(f"gateway {name}" in one for one in shown)] == ["serve"]
