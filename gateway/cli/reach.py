"""`gateway policy who-can` and `what-can`: who may do this, and what may this person do."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from gateway.cli import output
from gateway.cli.failures import refusals
from gateway.cli.options import AsJson, Config, Cursor, Limit, TenantName
from gateway.cli.references import person_id
from gateway.cli.running import Desk, at_desk
from gateway.model import AgentName
from gateway.operations.reach import Reach, WhatCanAsked, WhoCanAsked
from gateway.ports import Page
from gateway.tools.arguments import parse
from gateway.web.api import shapes_reach
from gateway.web.api.for_reach import WhatCanQuery, WhoCanQuery
from gateway.web.api.shapes_reach import ReachShape, WordsShape

_FROM = {"private": "in private", "group": "from a group"}


def who_can(
    action: Annotated[str, typer.Argument(metavar="ACTION", help="history, enter, get, load, …")],
    session: Annotated[str | None, typer.Option("--session", help="A session's key or id.")] = None,
    agent: Annotated[str | None, typer.Option("--agent", help="Whose memory it is.")] = None,
    resource: Annotated[str | None, typer.Option("--resource", help="memory/longterm, admin/policy, …")] = None,
    person: Annotated[str | None, typer.Option("--person", help="Whose personal file it is.")] = None,
    inside: Annotated[str | None, typer.Option("--inside", help="The session that they would ask from.")] = None,
    chat: Annotated[str, typer.Option("--chat", help="For memory: private, or group.")] = "private",
    limit: Limit = 50,
    cursor: Cursor = None,
    config: Config = None,
    tenant: TenantName = None,
    as_json: AsJson = False,
) -> None:
    """Lists the people who may do ACTION to a session, or to a kind of memory of an agent."""

    async def ask(desk: Desk) -> Page[Any]:
        whose = None if person is None else await person_id(desk, person)
        given = {"action": action, "session": session, "agent": agent, "resource": resource, "person": whose}
        words = {name: word for name, word in (given | {"inside": inside, "chat": chat}).items() if word is not None}
        query = parse(WhoCanQuery, words)
        found: Page[Any] = await desk.ask(desk.catalogue.reach.who_can, lambda: WhoCanAsked(query, limit, cursor))
        return found

    with refusals():
        output.show(as_json, shapes_reach.who_can(at_desk(config, tenant, ask)), _print_people)


def what_can(
    person: Annotated[str, typer.Argument(metavar="PERSON", help="An id, an email, or a name.")],
    action: Annotated[str, typer.Option("--action", help="What the sessions are listed by.")] = "history",
    agent: Annotated[str | None, typer.Option("--agent", help="On this agent alone.")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
    config: Config = None,
    tenant: TenantName = None,
    as_json: AsJson = False,
) -> None:
    """Says what PERSON may do with each kind of thing, and to which sessions they may do ACTION."""

    async def ask(desk: Desk) -> Reach:
        words = {"person": await person_id(desk, person), "action": action} | ({"agent": agent} if agent else {})
        query = parse(WhatCanQuery, words)
        asked = WhatCanAsked(
            person=query.person,
            action=query.action,
            agent=None if query.agent is None else AgentName(query.agent),
            limit=limit,
            cursor=cursor,
        )
        found: Reach = await desk.ask(desk.catalogue.reach.what_can, lambda: asked)
        return found

    with refusals():
        output.show(as_json, shapes_reach.what_can(at_desk(config, tenant, ask)), _print_reach)


def _print_people(listed: dict[str, Any]) -> None:
    rows = [(one["profile"]["name"], one["profile"]["id"], one["whose"], one["rule"]) for one in listed["items"]]
    if not rows:
        output.say("Nobody.")
    else:
        output.table(("name", "id", "whose it is to them", "by"), rows)
    output.more(listed["next_cursor"])


def _print_reach(reach: ReachShape) -> None:
    if not reach["abilities"]:
        output.say(f"{reach['profile']['name']} may do nothing.")
        return
    output.table(("agent", "what", "whose", "asked", "actions"), [_row(one) for one in reach["abilities"]])
    output.say()
    if not reach["items"]:
        output.say(f"No session is open to {reach['profile']['name']} for '{reach['action']}'.")
        return
    output.say(f"Sessions for '{reach['action']}':")
    output.table(("key", "whose", "by"), [(one["key"], one["whose"], one["rule"]) for one in reach["items"]])
    output.more(reach["next_cursor"])


def _row(one: WordsShape) -> tuple[str, ...]:
    what = f"{one['resource']} ({one['relation']})"
    return one["agent"], what, one["whose"], _FROM[one["chat"]], " ".join(one["actions"])
