"""`gateway policy diff`: what the rows of a file would change, against what is in force or any version."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from gateway.cli import drafts, output, row_differences
from gateway.cli.failures import FOUND, USAGE, refusals
from gateway.cli.options import AsJson, Config, TenantName
from gateway.cli.policy_files import Base, Place, place_at
from gateway.cli.policy_in_git import FOLDER, Where, document_in, in_force
from gateway.cli.running import Desk, at_desk
from gateway.errors import Invalid, NotFound
from gateway.operations.policy import InForce, OfVersion
from gateway.policy.differences import Differences, differences
from gateway.policy.document_files import unix
from gateway.policy.documents import Document, parse
from gateway.ports import PolicyVersion


def diff(
    path: Where = FOLDER,
    version: Annotated[
        int | None, typer.Option("--version", min=1, help="Against this version. Without it: the one in force.")
    ] = None,
    config: Config = None,
    tenant: TenantName = None,
    as_json: AsJson = False,
) -> None:
    """Says which rows a document adds, takes out and changes. Comments and order are no difference."""

    async def ask(desk: Desk) -> tuple[InForce, PolicyVersion]:
        current = await in_force(desk)
        if version is None or version == current.version.version:
            return current, current.version
        try:
            return current, await desk.ask(desk.catalogue.policy.version, lambda: OfVersion(version))
        except NotFound as error:
            error.add_note("The versions that there are: gateway policy history")
            raise

    with refusals():
        place = place_at(path)
        text, base = document_in(place), place.pulled()
        document = _parsed(place, text)
        current, against = at_desk(config, tenant, ask)
        if version is None:
            _warn_of_the_base(place, base, Base.of(current))
        found = differences(parse(against.text), document)
        shown = {
            "file": str(place.document),
            "tenant": against.tenant,
            "version": against.version,
            "in_force": current.version.version,
            "base": None if base is None else base.version,
            "same_text": unix(against.text.encode()) == text.encode(),
            **row_differences.shape(found),
        }
        output.show(as_json, shown, lambda _shown: _tell_difference(found, shown))
    if found:
        raise typer.Exit(FOUND)


def _parsed(place: Place, text: str) -> Document:
    """The document; ends the command as trouble where it holds faults, since 1 says that there is a difference."""
    try:
        return parse(text)
    except Invalid as error:
        drafts.complain_of(place.document, error.faults, "fault")
        faults = output.counted(len(error.faults), "fault")
        output.complain(f"gateway: {place.document} can't be compared: {faults}.")
        raise typer.Exit(USAGE) from error


def _warn_of_the_base(place: Place, base: Base | None, now: Base) -> None:
    if base is None or base.is_version_of(now):
        return
    if base.tenant != now.tenant:
        output.complain(f"warning: {place.document} was pulled from {base.tenant}, and this is {now.tenant}.")
        return
    output.complain(
        f"warning: {place.document} stands on version {base.version}, and version {now.version} is in force. "
        f"What others published since then looks here as if you took it back."
    )
    output.complain(f"  Your changes alone: gateway policy diff {place.document} --version {base.version}")


def _tell_difference(found: Differences, shown: dict[str, Any]) -> None:
    version = shown["version"]
    against = f"version {version}, which is in force" if version == shown["in_force"] else f"version {version}"
    if found:
        output.say(f"{shown['file']} against {against}:")
        row_differences.tell(found)
    elif shown["same_text"]:
        output.say(f"{shown['file']} is {against}.")
    else:
        output.say(f"Only comments or order differ between {shown['file']} and {against}.")
