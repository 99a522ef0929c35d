"""`gateway policy`: the visibility policy in force, its versions, and why a decision was as it was."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from gateway.cli import drafts, endings, explaining, output, policy_diff, policy_pull, policy_push, preview, reach
from gateway.cli.failures import refusals
from gateway.cli.options import AsJson, Config, Cursor, Limit, TenantName, noun
from gateway.cli.running import at_desk
from gateway.operations.policy import OfVersion, PublishBody, Versions
from gateway.policy.document_files import read_document
from gateway.policy.tokens import FIELD
from gateway.tools.arguments import parse
from gateway.web.api import shapes
from gateway.web.api.shapes import PolicyShape


def build() -> typer.Typer:
    """The commands."""
    commands = noun("policy", "The visibility policy: who may see what.")
    commands.command("show")(show)
    commands.command("lint")(drafts.lint_path)
    commands.command("test")(drafts.run_suites)
    commands.command("publish")(publish)
    commands.command("history")(history)
    commands.command("rollback")(rollback)
    commands.command("explain")(explaining.explain)
    commands.command("preview")(preview.preview)
    commands.command("watch")(preview.watch)
    commands.command("who-can")(reach.who_can)
    commands.command("what-can")(reach.what_can)
    commands.command("pull")(policy_pull.pull)
    commands.command("diff")(policy_diff.diff)
    commands.command("push")(policy_push.push)
    commands.command("schema")(drafts.schema)
    return commands


def show(config: Config = None, tenant: TenantName = None, as_json: AsJson = False) -> None:
    """Prints the document in force, so that it can be saved, changed and published."""
    with refusals():
        found = at_desk(config, tenant, lambda desk: desk.ask(desk.catalogue.policy.show))
        output.show(as_json, shapes.policy(found), _print_document)


def publish(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The new document.", exists=True, dir_okay=False)],
    base: Annotated[int, typer.Option("--base", help="The version that it was made from.")],
    comment: Annotated[str, typer.Option("--comment", help="What changes, for those who read the history.")],
    config: Config = None,
    tenant: TenantName = None,
    as_json: AsJson = False,
) -> None:
    """Puts a document in force at once. Refused where it has faults, or another version was published meanwhile."""
    with refusals(finding=FIELD):
        wanted = {"text": read_document(file), "base_version": base, "comment": comment}
        made = at_desk(
            config, tenant, lambda desk: desk.ask(desk.catalogue.policy.publish, lambda: parse(PublishBody, wanted))
        )
        output.show(as_json, shapes.policy(made), _print_in_force)


def history(
    limit: Limit = 50,
    cursor: Cursor = None,
    config: Config = None,
    tenant: TenantName = None,
    as_json: AsJson = False,
) -> None:
    """Lists the published versions, newest first."""
    with refusals():
        page = at_desk(
            config, tenant, lambda desk: desk.ask(desk.catalogue.policy.history, lambda: Versions(limit, cursor))
        )
        output.show(as_json, shapes.page(page, shapes.listed_version), _print_history)


def rollback(
    version: Annotated[int, typer.Argument(metavar="VERSION", help="The version whose text comes back.")],
    config: Config = None,
    tenant: TenantName = None,
    as_json: AsJson = False,
) -> None:
    """Publishes the text of an earlier version once more, as a new one."""
    with refusals(finding=FIELD):
        made = at_desk(
            config, tenant, lambda desk: desk.ask(desk.catalogue.policy.rollback, lambda: OfVersion(version))
        )
        output.show(as_json, shapes.policy(made), _print_in_force)


def _print_document(shown: PolicyShape) -> None:
    output.complain(f"Version {shown['version']}, epoch {shown['epoch']}.")  # so that "> file" holds the text alone
    for sentence in endings.sentences(shown["ends"]):
        output.complain(sentence)
    output.say(shown["text"].removesuffix("\n"))


def _print_in_force(shown: PolicyShape) -> None:
    output.say(f"Version {shown['version']} is in force, epoch {shown['epoch']}.")
    for sentence in endings.sentences(shown["ends"]):
        output.say(sentence)


def _print_history(listed: dict[str, Any]) -> None:
    rows = [(one["version"], one["published_at"], one["author"], one["comment"]) for one in listed["items"]]
    output.table(("version", "published", "by", "comment"), rows)
    for one in listed["items"]:
        if one["next_end"] is not None:
            output.say(f"A row of version {one['version']} ends by itself at {one['next_end']}.")
    output.more(listed["next_cursor"])
