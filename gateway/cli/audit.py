"""`gateway audit`: what was asked and what was answered, and whether anybody changed the record of it."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import orjson
import typer

from gateway.cli import output
from gateway.cli.failures import FOUND, refusals
from gateway.cli.options import AgentName, AsJson, Config, Cursor, Limit, TenantName, noun
from gateway.cli.references import person_id
from gateway.cli.running import Desk, at_desk
from gateway.errors import Invalid
from gateway.operations.audit import Reading
from gateway.ports import AuditFilter, Page, StoredRecord
from gateway.tools.arguments import parse
from gateway.web.api import shapes
from gateway.web.api.for_admins import AuditQuery
from gateway.web.api.shapes import AuditShape, VerifyShape

_PAGE = 200

Kind = Annotated[str | None, typer.Option("--kind", help="access (requests) or decision (answers of the policy).")]
Person = Annotated[str | None, typer.Option("--person", help="An id (prf_…), an email or a unique name.")]
Session = Annotated[str | None, typer.Option("--session", help="A session's key.")]
Action = Annotated[str | None, typer.Option("--action", help="As a policy row names it: history, load, edit …")]
Effect = Annotated[str | None, typer.Option("--effect", help="allow, deny or error.")]
Code = Annotated[str | None, typer.Option("--code", help="The reason: no_matching_row, not_found …")]
Decision = Annotated[str | None, typer.Option("--decision", help="dec_…")]
Since = Annotated[str | None, typer.Option("--from", help="From this time on: 2026-12-01T09:00:00Z.")]
Until = Annotated[str | None, typer.Option("--to", help="Before this time.")]


def build() -> typer.Typer:
    """The commands."""
    commands = noun("audit", "The audit: append-only, one chain an organisation.")
    commands.command("tail")(tail)
    commands.command("verify")(verify)
    commands.command("export")(export)
    return commands


def tail(
    kind: Kind = None,
    person: Person = None,
    agent: AgentName = None,
    session: Session = None,
    action: Action = None,
    effect: Effect = None,
    code: Code = None,
    decision: Decision = None,
    since: Since = None,
    until: Until = None,
    limit: Limit = 20,
    cursor: Cursor = None,
    config: Config = None,
    tenant: TenantName = None,
    as_json: AsJson = False,
) -> None:
    """Prints the newest records, the last one last; with --json newest first, as the REST interface does."""
    words = _words(kind, person, agent, session, action, effect, code, decision, since, until)

    async def ask(desk: Desk) -> Page[StoredRecord]:
        return await _read(desk, await _filter(desk, words), limit, cursor)

    with refusals():
        output.show(as_json, shapes.page(at_desk(config, tenant, ask), shapes.record), _print_page)


def verify(config: Config = None, tenant: TenantName = None, as_json: AsJson = False) -> None:
    """Reads the whole chain and its signed checkpoint, and names each record that was changed or is missing."""
    with refusals():
        report = at_desk(config, tenant, lambda desk: desk.ask(desk.catalogue.audit.verify))
    output.show(as_json, shapes.report(report), _print_report)
    if report.faults:
        raise typer.Exit(FOUND)


def export(
    target: Annotated[Path | None, typer.Option("--output", help="A new file; without it standard output.")] = None,
    kind: Kind = None,
    person: Person = None,
    agent: AgentName = None,
    session: Session = None,
    action: Action = None,
    effect: Effect = None,
    code: Code = None,
    decision: Decision = None,
    since: Since = None,
    until: Until = None,
    config: Config = None,
    tenant: TenantName = None,
    as_json: AsJson = False,
) -> None:
    """Writes every record up to now, oldest first, one JSON object a line (with --json too)."""
    words = _words(kind, person, agent, session, action, effect, code, decision, since, until)

    async def ask(desk: Desk, lines: BinaryIO) -> int:
        narrow = await _filter(desk, words)
        written = 0
        async for stored in _everything(desk, replace(narrow, until=narrow.until or desk.gateway.clock.now())):
            lines.write(orjson.dumps(shapes.record(stored)) + b"\n")
            written += 1
        return written

    with refusals():
        if target is None:
            at_desk(config, tenant, lambda desk: ask(desk, typer.get_binary_stream("stdout")))
            return
        with _new_file(target) as lines:
            written = at_desk(config, tenant, lambda desk: ask(desk, lines))
        output.complain(f"{target} holds {output.counted(written, 'record')}.")


def _words(*values: str | None) -> dict[str, str]:
    names = ("kind", "person", "agent", "session", "action", "effect", "code", "decision", "from", "to")
    return {name: value for name, value in zip(names, values, strict=True) if value is not None}


async def _filter(desk: Desk, words: dict[str, str]) -> AuditFilter:
    """The filter that these words mean. Raises Invalid as the REST interface does."""
    query = parse(AuditQuery, words)
    person = await person_id(desk, query.person) if query.person is not None else None
    since: datetime | None = query.since
    return AuditFilter(
        kind=query.kind,
        person=person,
        agent=query.agent,
        session=query.session,
        action=query.action,
        effect=query.effect,
        code=query.code,
        decision=query.decision,
        since=since,
        until=query.until,
    )


async def _read(desk: Desk, narrow: AuditFilter, limit: int, cursor: str | None) -> Page[StoredRecord]:
    wanted = Reading(narrow=narrow, limit=limit, cursor=cursor)
    page: Page[StoredRecord] = await desk.ask(desk.catalogue.audit.read, lambda: wanted)
    return page


async def _everything(desk: Desk, narrow: AuditFilter) -> AsyncIterator[StoredRecord]:
    """Every record, oldest first. The filter has an end, so that reading does not run after its own records."""
    cursor: str | None = None
    while True:
        page = await _export(desk, Reading(narrow=narrow, limit=_PAGE, cursor=cursor, ascending=True))
        for stored in page.items:
            yield stored
        cursor = page.next_cursor
        if cursor is None:
            return


async def _export(desk: Desk, wanted: Reading) -> Page[StoredRecord]:
    page: Page[StoredRecord] = await desk.ask(desk.catalogue.audit.export, lambda: wanted)
    return page


@contextmanager
def _new_file(target: Path) -> Iterator[BinaryIO]:
    """A file that was not there, for its owner alone; gone again if the export fails. Raises Invalid."""
    try:
        descriptor = os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    except OSError as error:
        raise Invalid.of("--output", "new_file", f"{target} can't be made: {error.strerror}.") from error
    with ExitStack() as undo:
        undo.callback(target.unlink, missing_ok=True)
        with os.fdopen(descriptor, "wb") as lines:
            yield lines
        undo.pop_all()


def _print_page(listed: dict[str, Any]) -> None:
    output.table(
        ("at", "effect", "code", "operation", "action", "target", "who", "decision"),
        [_row(one) for one in reversed(listed["items"])],
    )
    output.more(listed["next_cursor"])


def _row(one: AuditShape) -> tuple[object, ...]:
    about = one["target"] or one["session"]
    who = one["profile"] or one["principal"]
    return one["at"], one["effect"], one["code"], one["operation"], one["action"], about, who, one["decision"]


def _print_report(report: VerifyShape) -> None:
    for fault in report["faults"]:
        output.say(fault)
    state = "Nobody changed them" if report["sound"] else output.counted(len(report["faults"]), "fault")
    output.say(f"Read {output.counted(report['records'], 'record')}. {state}.")
