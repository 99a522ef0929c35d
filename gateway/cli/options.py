"""The options that every command shares, and how a noun gathers its commands."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Config = Annotated[
    Path | None,
    typer.Option("--config", help="The settings file. Without it: GATEWAY_CONFIG, else gateway.toml in this folder."),
]
TenantName = Annotated[
    str | None, typer.Option("--tenant", help="The organisation. Without it: the only one there is.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the object of the REST interface.")]
AgentName = Annotated[str | None, typer.Option("--agent", help="Only this agent.")]
Limit = Annotated[int, typer.Option("--limit", min=1, max=200, help="How many at most.")]
Cursor = Annotated[str | None, typer.Option("--cursor", help="Go on from here: what an earlier list printed.")]
PersonReference = Annotated[str, typer.Argument(metavar="PERSON", help="An id (prf_…), an email or a unique name.")]


def noun(name: str, summary: str) -> typer.Typer:
    """An empty group of commands."""
    return typer.Typer(name=name, help=summary, no_args_is_help=True, rich_markup_mode=None)
