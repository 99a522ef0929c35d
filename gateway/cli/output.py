"""Turns objects into what a terminal, a pipe or a program reads: tables, plain columns, or JSON."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import orjson
import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

_UNLIMITED = 100_000  # columns of a pipe: nothing there is wrapped or cut
# What could move the cursor, paint the terminal or show another text than there is; titles are written by other people.
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    """The text with everything escaped that a terminal would obey; line ends and tabs stay."""
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def say(text: str = "") -> None:
    """Prints text for people on standard output."""
    typer.echo(printable(text))


def complain(text: str) -> None:
    """Prints text for people on standard error."""
    typer.echo(printable(text), err=True)


def show_json(value: object) -> None:
    """Prints one object, indented."""
    typer.echo(orjson.dumps(value, option=orjson.OPT_INDENT_2).decode())


def show(as_json: bool, value: Any, for_people: Callable[[Any], None]) -> None:
    """Prints an object as JSON, or hands it to what prints it for people."""
    if as_json:
        show_json(value)
    else:
        for_people(value)


def table(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Prints rows in columns. A terminal gets a line below the headers and long values folded; a pipe plain columns."""
    on_terminal = sys.stdout.isatty()
    console = Console(file=sys.stdout, width=None if on_terminal else _UNLIMITED, highlight=False)
    columns = Table(box=box.SIMPLE_HEAD if on_terminal else None, pad_edge=False)
    for header in headers:
        columns.add_column(Text(header), overflow="fold")
    for row in rows:
        columns.add_row(*(Text(_cell(value)) for value in row))
    with console.capture() as captured:
        console.print(columns)
    typer.echo("\n".join(line.rstrip() for line in captured.get().splitlines()))


def facts(pairs: Iterable[tuple[str, object]]) -> None:
    """Prints one object, a fact a line."""
    listed = [(name, _cell(value)) for name, value in pairs]
    width = max(len(name) for name, _ in listed)
    for name, value in listed:
        typer.echo(f"{name.ljust(width)}  {value}".rstrip())


def counted(number: int, thing: str) -> str:
    """`1 fault`, `2 faults`."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def more(cursor: str | None) -> None:
    """Says how to go on, where a list does."""
    if cursor is not None:
        say(f"There are more: --cursor {cursor}")


def _cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(_cell(one) for one in value) or "-"
    return printable(str(value)).replace("\n", "\\n").replace("\t", " ")
