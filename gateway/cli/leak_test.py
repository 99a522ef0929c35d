"""`gateway leak-test`: who sees what under a policy, tried out on made-up people in a gateway that is thrown away."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from gateway.backends.local.clock import SystemClock
from gateway.cli import output
from gateway.cli.failures import FOUND, refusals
from gateway.cli.options import AsJson, Config, TenantName
from gateway.cli.running import at_desk, refuse_token
from gateway.errors import Invalid, Unavailable
from gateway.leak_test import run
from gateway.leak_test.asgi import Unanswered
from gateway.leak_test.cast import FEWEST
from gateway.leak_test.findings import Finding
from gateway.leak_test.planting import CouldNotPlant
from gateway.leak_test.report import KINDS, Cell, Report
from gateway.policy.document_files import read_document
from gateway.policy.shipped import shipped
from gateway.settings import load

_DEMO = "demo/visibility.csv"
_MOST_TOLD = 20


def leak_test(
    policy: Annotated[
        Path | None,
        typer.Option(
            "--policy", exists=True, dir_okay=False,
            help="A document. Without it: the one in force here, or the demo's where there is none.",
        ),
    ] = None,
    people: Annotated[
        int, typer.Option("--people", min=FEWEST, max=200, help="How many people have something to hide, at least.")
    ] = FEWEST,
    config: Config = None,
    tenant: TenantName = None,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Plants marked sessions and memory for made-up people in a scratch gateway, asks for everything as everybody, and
    fails on whatever reached somebody whom the policy keeps it from."""
    with refusals():
        refuse_token()
        name, text = _document(policy, config, tenant)
        report = _run(text, people)
    output.show(as_json, {"policy": name, **report.shape()}, lambda _shown: _print(name, report))
    if not report.clean:
        raise typer.Exit(FOUND)


def _run(text: str, people: int) -> Report:
    try:
        return asyncio.run(run.leak_test(text, SystemClock(), people=people))
    except Invalid as error:  # nobody sent a text: it is the file that was named, or what is in force
        raise Invalid([replace(fault, field="policy") for fault in error.faults]) from error
    except (CouldNotPlant, Unanswered) as error:
        raise Unavailable(f"The scratch gateway can't be used: {error}") from error


def _document(policy: Path | None, config: Path | None, tenant: str | None) -> tuple[str, str]:
    """The name and the text of the document to try."""
    if policy is not None:
        return str(policy), read_document(policy)
    settings = load(config, os.environ)
    if settings.database.url is None and not (settings.state.folder / "gateway.sqlite").exists():
        return "the demo's document", shipped(_DEMO)
    found = at_desk(config, tenant, lambda desk: desk.ask(desk.catalogue.policy.show))
    return f"version {found.version.version}, which is in force", found.version.text


# ── for people ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _print(name: str, report: Report) -> None:
    output.say(
        f"Under {name}: {report.people} people with {report.marks} marks, "
        f"{output.counted(len(report.callers), 'caller')}, {sum(report.requests.values()):,} requests to "
        f"{output.counted(len(report.requests), 'route')} in {report.seconds:.0f} s."
    )
    output.say()
    output.say("Whose things each caller was shown / was not, of all that were planted:")
    _matrix(report.matrix, report.victims)
    output.say()
    output.say("The same by what it is:")
    _matrix(report.kinds, KINDS)
    output.say()
    for title, findings in (("LEAK", report.leaks), ("LOST", report.lost)):
        _findings(title, findings)
    for what in report.not_driven:
        output.say(f"NOT TRIED: {what}. Say in gateway/leak_test/driving how it is asked for.")
    for what in report.blind:
        output.say(f"NOTHING SHOWN: {what}.")
    output.say(
        f"{report.shown} of {report.marks} marks were shown to somebody who may see them; {report.compared:,} refusals "
        f"were held against the answer to something that is not there."
    )
    output.say("Nothing leaked." if report.clean else _sum(report))


def _sum(report: Report) -> str:
    counts = ((len(report.leaks), "leak"), (len(report.lost), "thing lost"), (len(report.not_driven), "gap"))
    return f"{', '.join(f'{count} × {what}' for count, what in counts if count) or 'Nothing was proved'}."


def _matrix(matrix: Mapping[str, Mapping[str, Cell]], columns: Sequence[str]) -> None:
    nothing = Cell(0, 0, 0)
    rows = [(who, *(cells.get(column, nothing) for column in columns)) for who, cells in matrix.items()]
    output.table(("caller", *columns), rows)


def _findings(title: str, findings: Iterable[Finding]) -> None:
    told = _in_turns(findings)
    for one in told[:_MOST_TOLD]:
        output.say(f"{title}: {one}")
    if len(told) > _MOST_TOLD:
        output.say(f"{title}: and {len(told) - _MOST_TOLD} more; --json has them all.")


def _in_turns(findings: Iterable[Finding]) -> list[Finding]:
    """One of each caller, then a second of each: the few that are told are not all of the first one."""
    turns: Counter[str] = Counter()
    placed = []
    for one in findings:
        turns[one.who] += 1
        placed.append((turns[one.who], one))
    return [one for _, one in sorted(placed, key=lambda each: each[0])]
