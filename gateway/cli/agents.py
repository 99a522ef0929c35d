"""`gateway agents`: the agents of an organisation, each with its workspace."""

from __future__ import annotations

from typing import Annotated

import typer

from gateway.cli import output
from gateway.cli.failures import refusals
from gateway.cli.options import AsJson, Config, TenantName, noun
from gateway.cli.running import at_desk
from gateway.operations.agents import AgentBody, OfAgent
from gateway.tools.arguments import parse
from gateway.web.api import shapes
from gateway.web.api.shapes import AgentShape

Name = Annotated[str, typer.Argument(metavar="AGENT", help="What paths and session keys call it.")]


def build() -> typer.Typer:
    """The commands."""
    commands = noun("agents", "Agents and their workspaces.")
    commands.command("list")(list_agents)
    commands.command("add")(add_agent)
    commands.command("show")(show_agent)
    return commands


def list_agents(
    mine: Annotated[bool, typer.Option("--mine", help="Those that you may use, not all there are.")] = False,
    config: Config = None,
    tenant: TenantName = None,
    as_json: AsJson = False,
) -> None:
    """Lists the agents."""
    with refusals():
        page = at_desk(
            config, tenant, lambda desk: desk.ask(desk.catalogue.me.agents if mine else desk.catalogue.agents.list)
        )
        output.show(as_json, shapes.page(page, shapes.agent), lambda shown: _print(shown["items"]))


def add_agent(
    name: Name,
    workspace: Annotated[
        str | None, typer.Option("--workspace", help="Its folder under the tenant's root; one there is taken as it is.")
    ] = None,
    title: Annotated[str | None, typer.Option("--title", help="What people call it.")] = None,
    timezone: Annotated[str, typer.Option("--timezone", help="Says what 'today' is for its daily notes.")] = "UTC",
    config: Config = None,
    tenant: TenantName = None,
    as_json: AsJson = False,
) -> None:
    """Adds an agent, with a new workspace or an existing OpenClaw folder."""
    wanted = {"name": name, "workspace": workspace, "title": title, "timezone": timezone}
    with refusals():
        agent = at_desk(
            config, tenant, lambda desk: desk.ask(desk.catalogue.agents.add, lambda: parse(AgentBody, wanted))
        )
        output.show(as_json, shapes.agent(agent), lambda shown: _print([shown]))


def show_agent(name: Name, config: Config = None, tenant: TenantName = None, as_json: AsJson = False) -> None:
    """Shows one agent."""
    with refusals():
        agent = at_desk(config, tenant, lambda desk: desk.ask(desk.catalogue.agents.show, lambda: OfAgent(name)))
        output.show(as_json, shapes.agent(agent), lambda shown: _print([shown]))


def _print(agents: list[AgentShape]) -> None:
    rows = [(one["id"], one["name"], one["workspace"], one["timezone"]) for one in agents]
    output.table(("agent", "name", "workspace", "time zone"), rows)
