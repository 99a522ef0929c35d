"""`gateway policy preview` and `watch`: who gains and who loses what, before a draft is published and after."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gateway.cli import endings, output
from gateway.cli.failures import refusals
from gateway.cli.options import AsJson, Config, TenantName
from gateway.cli.running import at_desk
from gateway.operations.preview import PreviewBody, Watching
from gateway.policy.document_files import read_document
from gateway.policy.tokens import FIELD
from gateway.tools.arguments import parse
from gateway.web.api import shapes_preview
from gateway.web.api.shapes_preview import AffectedShape, ExampleShape, PreviewShape
from gateway.web.api.shapes_reach import WordsShape

_MOST_LINES = 10
_WHOSE = {"own": "their own", "shared": "shared with them", "other": "of other people"}
_FROM = {"private": "in private", "group": "from a group"}


def preview(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The draft.", exists=True, dir_okay=False)],
    days: Annotated[int, typer.Option("--days", help="How far back decisions are replayed.")] = 7,
    config: Config = None,
    tenant: TenantName = None,
    as_json: AsJson = False,
) -> None:
    """Says who would gain and who would lose what by FILE. Nothing is published."""
    with refusals(finding=FIELD):
        wanted = {"text": read_document(file), "days": days}
        found = at_desk(
            config, tenant, lambda desk: desk.ask(desk.catalogue.preview.preview, lambda: parse(PreviewBody, wanted))
        )
        output.show(as_json, shapes_preview.preview(found), _print)


def watch(
    version: Annotated[int | None, typer.Option("--version", help="Which version; else the one in force.")] = None,
    config: Config = None,
    tenant: TenantName = None,
    as_json: AsJson = False,
) -> None:
    """Says which decisions since a publishing came out otherwise because of it."""
    with refusals():
        found = at_desk(config, tenant, lambda desk: desk.ask(desk.catalogue.preview.watch, lambda: Watching(version)))
        output.show(as_json, shapes_preview.preview(found), _print)


def _print(found: PreviewShape) -> None:
    draft = found["version"] is None
    who = "Compared with" if draft else f"Version {found['version']}, compared with"
    output.say(f"{who} version {found['base_version']}:")
    output.say()
    _print_people(found)
    _print_sessions(found)
    _print_decisions(found)
    for ending in endings.sentences(found["ends"]):
        output.say(ending)
    for sentence in found["refused"]:
        output.say(f"Can't be published: {sentence}")
    for sentence in found["only_an_owner"]:
        output.say(f"An owner has to publish this: {sentence}")
    if draft:
        output.say("Nothing is published.")


def _print_people(found: PreviewShape) -> None:
    if not found["population"]:
        output.say("Nobody gains or loses anything.")
        return
    people = "person gains" if found["people_gaining"] == 1 else "people gain"
    loses = "loses" if found["people_losing"] == 1 else "lose"
    output.say(f"{found['people_gaining']} {people} something, {found['people_losing']} {loses} something.")
    for one in found["population"][:_MOST_LINES]:
        output.say(f"  {_called(one)}")
        for sign, changed in (("+", one["gains"]), ("-", one["losses"])):
            for each in changed[:_MOST_LINES]:
                output.say(f"    {sign} {_in_a_line(each)}")
            if len(changed) > _MOST_LINES:
                output.say(f"    {sign} and {len(changed) - _MOST_LINES} more (--json has all of them)")
    if found["not_looked_at"]:
        output.say(f"  {found['not_looked_at']} more people whom rows name were not looked at one by one.")


def _print_sessions(found: PreviewShape) -> None:
    for one in found["sessions"][:_MOST_LINES]:
        word = "private" if one["resource"] == "session/private" else "shared"
        agent = "all agents" if one["agent"] == "*" else one["agent"]
        there_are = output.counted(one["sessions"], f"{word} session")
        who = f"{one['people_gaining']} gain, {one['people_losing']} lose"
        output.say(f"On {there_are} of {agent} ({_WHOSE[one['whose']]}): {who}.")


def _called(one: AffectedShape) -> str:
    if one["profile"] is not None:
        return f"{one['name']} ({one['profile']})"
    held = ", ".join(
        each["role"] if each["agent"] == "*" else f"{each['role']}@{each['agent']}" for each in one["roles"]
    )
    if one["people"] == 0:  # they are stored nowhere
        return "Guests" if one["kind"] == "guest" else f"Whoever has {held} by their credential alone"
    what = "service" if one["kind"] == "service" else "person" if one["people"] == 1 else "people"
    return f"{one['people']} {what} with {held or 'no role'}"


def _in_a_line(one: WordsShape) -> str:
    agent = "every agent" if one["agent"] == "*" else one["agent"]
    whose = f" ({_WHOSE[one['whose']]})" if one["resource"].startswith("session/") else ""
    return f"{' '.join(one['actions'])} on {one['resource']}{whose} of {agent}, {one['relation']}, {_FROM[one['chat']]}"


def _print_decisions(found: PreviewShape) -> None:
    decisions = found["decisions"]
    sample = "" if decisions["share"] == 1 else f" (a sample: {decisions['share']:.1%} of all)"
    output.say(
        f"Of {decisions['replayed']} decisions since {decisions['since']}{sample}, "
        f"{found['gains']} would be allowed that were not, and {found['losses']} denied that were allowed."
        if found["version"] is None
        else f"Of {decisions['replayed']} decisions since then{sample}, "
        f"{found['gains']} were allowed and {found['losses']} denied because of it."
    )
    if found["by_tool"]:
        output.table(
            ("what was done", "gained", "lost"),
            [(one["name"], one["gains"], one["losses"]) for one in found["by_tool"]],
        )
    if found["by_person"]:
        output.table(
            ("by", "gained", "lost"),
            [(one["name"] or one["profile"], one["gains"], one["losses"]) for one in found["by_person"][:_MOST_LINES]],
        )
    for one in found["examples"][:_MOST_LINES]:
        output.say(f"  {_example(one)}")


def _example(one: ExampleShape) -> str:
    sign = "+" if one["change"] == "gain" else "-"
    where = one["session"] or one["resource"]
    who, what = one["name"] or one["profile"], f"{one['operation']} ({one['action']})"
    return f"{sign} {who}: {what} on {where}, {_times(one['times'])}"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
