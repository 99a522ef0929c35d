"""`gateway policy explain`: why a decision was as it was, or what somebody would be answered, by which rows."""

from __future__ import annotations

from typing import Annotated

import typer

from gateway.cli import output
from gateway.cli.failures import refusals
from gateway.cli.options import AsJson, Config, TenantName
from gateway.cli.references import person_id
from gateway.cli.running import Desk, at_desk
from gateway.operations.explaining import Explained
from gateway.operations.questions import ExplainBody
from gateway.tools.arguments import parse
from gateway.web.api import shapes_explain
from gateway.web.api.shapes_explain import ExplainShape, ReadingShape

_KNOWN_BY = {
    "record": "by which it was decided",
    "time": "in force at that time; the record is older than versions in records",
    "force": "in force now",
}


def explain(
    decision: Annotated[
        str | None, typer.Argument(metavar="[DECISION]", help="dec_…, as answers and refusals name it.")
    ] = None,
    person: Annotated[
        str | None, typer.Option("--person", help="Asks about somebody: an id (prf_…), an email or a unique name.")
    ] = None,
    action: Annotated[str | None, typer.Option("--action", help="As a policy row names it: history, get …")] = None,
    session: Annotated[str | None, typer.Option("--session", help="About a session, by key or id.")] = None,
    memory: Annotated[str | None, typer.Option("--memory", help="About a file: flight/MEMORY.md.")] = None,
    tool: Annotated[str | None, typer.Option("--tool", help="About a tool: memory_get.")] = None,
    source: Annotated[
        str | None, typer.Option("--from", help="The session that they ask from. Without it: from outside any.")
    ] = None,
    agent: Annotated[str | None, typer.Option("--agent", help="About the facts of a row: the agent,")] = None,
    resource: Annotated[str | None, typer.Option("--resource", help="the resource: session/private …,")] = None,
    relation: Annotated[str | None, typer.Option("--relation", help="how it stands: self, same_agent …,")] = None,
    whose: Annotated[str | None, typer.Option("--whose", help="whose it is: own, shared, other,")] = None,
    chat: Annotated[str | None, typer.Option("--chat", help="and where from: private, group.")] = None,
    config: Config = None,
    tenant: TenantName = None,
    as_json: AsJson = False,
) -> None:
    """Says why: the rows that matched, those that nearly did, and what would have to be otherwise."""
    said = {
        "decision": decision,
        "action": action,
        "session": session,
        "memory": memory,
        "tool": tool,
        "from": source,
        "agent": agent,
        "resource": resource,
        "relation": relation,
        "whose": whose,
        "chat": chat,
    }
    words = {name: word for name, word in said.items() if word is not None}

    async def ask(desk: Desk) -> Explained:
        if person is not None:
            words["person"] = await person_id(desk, person)
        body = parse(ExplainBody, words)
        found: Explained = await desk.ask(desk.catalogue.explain.choose(body), lambda: body)
        return found

    with refusals():
        output.show(as_json, shapes_explain.explained(at_desk(config, tenant, ask)), _print)


def _print(one: ExplainShape) -> None:
    output.say(f"{'Allowed' if one['allowed'] else 'Denied'}: {one['code']}")
    question = one["question"]
    about: list[tuple[str, object]] = [("person", one["person"]), ("target", one["target"]), ("from", one["from"])]
    if question is not None:
        asked = ("agent", "action", "resource", "relation", "whose", "chat")
        about += list(zip(asked, (question[name] for name in asked), strict=True))  # type: ignore[literal-required]  # the names stand one line above
    about += [("subjects", one["subjects"]), ("epoch", one["epoch"]), ("decision", one["decision"])]
    if one["record"] is not None:
        about.append(("at", one["record"]["at"]))
    output.facts(about)
    then = one["then"]
    if then is not None:
        _print_reading(then)
    if then is None or then["version"] != one["now"]["version"] or one["answers_otherwise_now"]:
        _print_reading(one["now"])
    if one["subjects_now"] is not None:
        output.say()
        output.say(f"Their roles are others by now: {', '.join(one['subjects_now'])}")
    if one["answers_otherwise_now"]:
        output.say(f"Today the same facts would be {'allowed' if one['now']['allowed'] else 'denied'}.")


def _print_reading(one: ReadingShape) -> None:
    output.say()
    output.say(f"Version {one['version']}, {_KNOWN_BY[one['known_by']]}: {one['says']}")
    if one["matched"]:
        output.say("Rows that matched:")
        for row in one["matched"]:
            output.say(f"  line {row['line']}: {row['row']}{_through(row['through'])}")
    if one["near"]:
        output.say("Rows that nearly did:")
        for near in one["near"]:
            output.say(f"  line {near['line']}: {near['row']}")
            asked = "they hold" if near["field"] == "subject" else "asked was"
            output.say(f"    {near['field']}: the row says {near['says']}, {asked} {near['asked']}")
    if one["more"]:
        output.say(f"  and {one['more']} more")


def _through(steps: list[str]) -> str:
    return "" if len(steps) == 1 else f"  (through {' → '.join(steps)})"
