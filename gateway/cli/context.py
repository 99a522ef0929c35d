"""`gateway context SESSION`: what a turn in this session would see, and why."""

from __future__ import annotations

from gateway.cli import output
from gateway.cli.failures import refusals
from gateway.cli.options import AsJson, Config, TenantName
from gateway.cli.running import at_desk
from gateway.cli.sessions import Reference
from gateway.operations.context import ContextBody, OfSession
from gateway.stages.open_session import Entry
from gateway.web.api import shapes
from gateway.web.api.shapes import ContextShape


def context(
    session: Reference,
    config: Config = None,
    tenant: TenantName = None,
    as_json: AsJson = False,
) -> None:
    """Assembles what a turn of yours in this session would see: which files are in, which are out and why, the text."""
    with refusals():
        found = at_desk(
            config,
            tenant,
            lambda desk: desk.ask(
                desk.catalogue.context,
                lambda: OfSession(session, ContextBody()),
                entry=Entry(session),
            ),
        )
        output.show(as_json, shapes.context(found), _print)


def _print(shown: ContextShape) -> None:
    rows = [
        (one["path"], one["kind"], "in" if one["included"] else f"out: {one['reason']}", one["units"], one["truncated"])
        for one in shown["manifest"]
    ]
    output.say(f"{shown['session']}, epoch {shown['epoch']}")
    output.table(("file", "kind", "", "units", "cut"), rows)
    for warning in shown["warnings"]:
        output.say(f"Warning: {warning}")
    output.say()
    output.say(shown["text"])
