"""`gateway sessions`: the sessions that whoever asks may see."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from gateway.cli import output
from gateway.cli.failures import refusals
from gateway.cli.options import AgentName, AsJson, Config, Cursor, Limit, TenantName, noun
from gateway.cli.running import Desk, at_desk
from gateway.model import Relation, SessionFacts
from gateway.operations.sessions import Listing, OnSession
from gateway.ports import Page
from gateway.stages.open_session import Entry
from gateway.web.api import shapes
from gateway.web.api.shapes import SessionShape

Reference = Annotated[str, typer.Argument(metavar="SESSION", help="A session's key, or its id (ses_…).")]
_PAGE = 200
_BELOW = (Relation.CHILD, Relation.CHILD_CROSS)  # on the same agent, on others


def build() -> typer.Typer:
    """The commands."""
    commands = noun("sessions", "Conversations. You see those that the policy lets you see.")
    commands.command("list")(list_sessions)
    commands.command("show")(show_session)
    commands.command("tree")(tree)
    return commands


def list_sessions(
    agent: AgentName = None,
    kind: Annotated[str | None, typer.Option("--kind", help="direct, group, channel, subagent or cron.")] = None,
    relation: Annotated[str | None, typer.Option("--relation", help="self (yours) or same_agent (others').")] = None,
    query: Annotated[str | None, typer.Option("--query", help="A part of the title.")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
    config: Config = None,
    tenant: TenantName = None,
    as_json: AsJson = False,
) -> None:
    """Lists the sessions that you may see, newest first."""
    wanted = Listing(agent=agent, kind=kind, relation=relation, query=query, limit=limit, cursor=cursor)
    with refusals():
        page = at_desk(config, tenant, lambda desk: desk.ask(desk.catalogue.sessions.list, lambda: wanted))
        output.show(as_json, shapes.page(page, shapes.session), _print_page)


def show_session(session: Reference, config: Config = None, tenant: TenantName = None, as_json: AsJson = False) -> None:
    """Shows one session."""
    with refusals():
        facts = at_desk(
            config, tenant, lambda desk: desk.ask(desk.catalogue.sessions.show, lambda: OnSession(session, None))
        )
        output.show(as_json, shapes.session(facts), lambda shown: output.facts(shown.items()))


def tree(session: Reference, config: Config = None, tenant: TenantName = None, as_json: AsJson = False) -> None:
    """Shows a session with its children, and theirs: those that you may see from inside it."""

    async def ask(desk: Desk) -> list[SessionFacts]:
        top = await desk.ask(desk.catalogue.sessions.show, lambda: OnSession(session, None))
        return [top, *await _below(desk, session)]

    with refusals():
        output.show(as_json, _nested(at_desk(config, tenant, ask)), lambda shown: _print_tree(shown, 0))


async def _below(desk: Desk, session: str) -> list[SessionFacts]:
    """Every session below this one that may be seen from inside it."""
    found: list[SessionFacts] = []
    for relation in _BELOW:
        cursor: str | None = None
        while True:
            page = await _children(desk, session, relation, cursor)
            found += page.items
            cursor = page.next_cursor
            if cursor is None:
                break
    return found


async def _children(desk: Desk, session: str, relation: Relation, cursor: str | None) -> Page[SessionFacts]:
    wanted = Listing(agent=None, kind=None, relation=relation, query=None, limit=_PAGE, cursor=cursor)
    page: Page[SessionFacts] = await desk.ask(desk.catalogue.sessions.list, lambda: wanted, entry=Entry(session))
    return page


def _nested(found: Sequence[SessionFacts]) -> dict[str, Any]:
    """Each session with its children; one whose parent may not be seen hangs from the nearest above that may."""
    by_path = sorted(found, key=lambda facts: (facts.session.path.count("/"), facts.session.id))
    nodes: dict[str, dict[str, Any]] = {}
    for facts in by_path:
        node = nodes[facts.session.id] = {**shapes.session(facts), "children": []}
        above = [one for one in reversed(facts.session.path.split("/")[:-2]) if one in nodes]
        if above:
            nodes[above[0]]["children"].append(node)
    return nodes[found[0].session.id]


def _print_page(listed: dict[str, Any]) -> None:
    output.table(
        ("key", "kind", "title", "owner", "last message"),
        [(one["key"], one["kind"], one["title"], one["owner"], one["last_message_at"]) for one in listed["items"]],
    )
    output.more(listed["next_cursor"])


def _print_tree(node: SessionShape, depth: int) -> None:
    title = f"  {node['title']}" if node["title"] else ""
    output.say(f"{'  ' * depth}{node['key']}  {node['kind']}{title}")
    for child in node["children"]:  # type: ignore[typeddict-item] # `_nested` has added it
        _print_tree(child, depth + 1)
