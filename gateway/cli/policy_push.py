"""`gateway policy push`: a reviewed file is linted, asked what its suites expect, and published on top of its base."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from gateway.cli import drafts, output, row_differences
from gateway.cli.failures import FOUND, refusals
from gateway.cli.options import AsJson, Config, TenantName
from gateway.cli.policy_files import Base, Place, place_at
from gateway.cli.policy_in_git import FOLDER, Where, document_in, in_force
from gateway.cli.running import Desk, at_desk
from gateway.errors import Conflict, Invalid
from gateway.operations.policy import InForce, PublishBody
from gateway.policy.differences import Differences, differences
from gateway.policy.document_files import unix
from gateway.policy.documents import lint, parse
from gateway.policy.lockout import publishable
from gateway.policy.suites import SuiteReport
from gateway.policy.tokens import FIELD
from gateway.tools.arguments import parse as arguments_of


def push(
    path: Where = FOLDER,
    comment: Annotated[
        str | None, typer.Option("--comment", help="What changes, for those who read the history.")
    ] = None,
    base: Annotated[
        int | None, typer.Option("--base", min=0, help="The version that it was made from. Without it: as pulled.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Everything but publishing, as for a review.")] = False,
    config: Config = None,
    tenant: TenantName = None,
    as_json: AsJson = False,
) -> None:
    """Publishes a document on top of the version that it was pulled as, once its suites pass."""
    with refusals(finding=FIELD):
        if comment is None and not dry_run:
            raise Invalid.of("--comment", "required", "Say what changes, for those who read the history.")
        place = place_at(path)
        text, stands_on = document_in(place), _stands_on(place, base)
        _lint(place, text)
        reports = _ask(place, text)
        if any(report.failures for report in reports):
            output.show(as_json, _pushed_shape(place, reports, None, None), lambda _shown: drafts.tell(reports))
            output.complain(f"gateway: Nothing was published: {place.document} does not answer what its suites expect.")
            raise typer.Exit(FOUND)
        draft = _Draft(place, text, stands_on, "" if comment is None else comment, dry_run)
        pushed = at_desk(config, tenant, draft.publish)
        if not dry_run:
            _keep(place, pushed.current)
        shown = _pushed_shape(place, reports, pushed, stands_on)
        output.show(as_json, shown, lambda _shown: _tell_pushed(place, reports, pushed, dry_run=dry_run))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pushed:
    """What a push came to: the version in force now, and the rows that it changed, if there was anything to push."""

    current: InForce
    published: bool
    found: Differences | None


@dataclass(frozen=True, slots=True)
class _Draft:
    """A document on its way to being published."""

    place: Place
    text: str
    stands_on: Base | int | None
    comment: str
    dry_run: bool

    async def publish(self, desk: Desk) -> _Pushed:
        """Raises Conflict, with what to do, where something else is in force than what the document stands on."""
        current = await in_force(desk)
        if unix(current.version.text.encode()) == self.text.encode():
            return _Pushed(current=current, published=False, found=None)
        version = self._base_version(Base.of(current))
        found = differences(parse(current.version.text), parse(self.text))
        if self.dry_run:
            return _Pushed(current=current, published=False, found=found)
        wanted = {"text": self.text, "base_version": version, "comment": self.comment}
        try:
            made = await desk.ask(desk.catalogue.policy.publish, lambda: arguments_of(PublishBody, wanted))
        except Conflict as error:  # somebody was quicker, after we looked
            raise self._overtaken(version, error.facts.get("version", "another")) from error
        return _Pushed(current=made, published=True, found=found)

    def _base_version(self, now: Base) -> int:
        base = self.stands_on
        if base is None:
            message = (
                f"Nothing says which version {self.place.document} was made from. Pull first, or name it: --base "
                f"{now.version} is in force"
            )
            raise Invalid.of("--base", "required", f"{message}.")
        if isinstance(base, int):
            if base != now.version:
                raise self._overtaken(base, now.version)
            return base
        if base.tenant != now.tenant:
            error = Conflict(f"{self.place.document} was pulled from {base.tenant}, and this is {now.tenant}.")
            error.add_note("If it is meant for both, name the version that it replaces there: --base VERSION")
            raise error
        if base.version != now.version:
            raise self._overtaken(base.version, now.version)
        if base.sha256 != now.sha256:
            error = Conflict(f"Version {now.version} here is not the text that {self.place.document} was pulled as.")
            error.add_note("Is this the gateway that you pulled from? If it is, pull again and look at what differs.")
            raise error
        return base.version

    def _overtaken(self, base: int, now: object) -> Conflict:
        error = Conflict(
            f"Nothing was published: {self.place.document} stands on version {base}, and version {now} is in force."
        )
        error.add_note("Keep your change on a branch, pull where there is none, merge the two in Git, and push again.")
        error.add_note(f"What is yours: gateway policy diff {self.place.document} --version {base}")
        return error


def _stands_on(place: Place, base: int | None) -> Base | int | None:
    return place.pulled() if base is None else base


def _lint(place: Place, text: str) -> None:
    """Tells the warnings; ends the command where there are faults."""
    faults, warnings = lint(text, datetime.now(UTC))
    drafts.complain_of(place.document, warnings, "warning")
    faults = faults or publishable(parse(text))
    if faults:
        drafts.complain_of(place.document, faults, "fault")
        output.complain(f"gateway: Nothing was published: {output.counted(len(faults), 'fault')}.")
        raise typer.Exit(FOUND)


def _ask(place: Place, text: str) -> list[SuiteReport]:
    reports = drafts.reports_about(place.document, place.suites, text)
    if not reports:
        message = f"No suite in {place.suites} names {place.document.name}, so nothing but its grammar was checked."
        output.complain(f"warning: {message}")
    return reports


def _keep(place: Place, current: InForce) -> None:
    """Says beside the document which version it is now, unless it belongs to another organisation.

    What is published stays so: not to be able to say it here takes nothing back.
    """
    now = Base.of(current)
    try:
        base = place.pulled()
        if base is None or (base.tenant == now.tenant and not base.is_version_of(now)):
            place.keep(current, document=False)
    except Invalid as error:
        output.complain(f"warning: {error.faults[0].message} Version {now.version} is in force: gateway policy pull")


def _pushed_shape(
    place: Place, reports: list[SuiteReport], pushed: _Pushed | None, stands_on: Base | int | None
) -> dict[str, Any]:
    changed = None if pushed is None or pushed.found is None else row_differences.shape(pushed.found)
    return {
        "file": str(place.document),
        "published": pushed is not None and pushed.published,
        "version": None if pushed is None else pushed.current.version.version,
        "epoch": None if pushed is None else pushed.current.epoch,
        "base": stands_on.version if isinstance(stands_on, Base) else stands_on,
        "suites": [drafts.report_shape(one) for one in reports],
        "differences": changed,
    }


def _tell_pushed(place: Place, reports: list[SuiteReport], pushed: _Pushed, *, dry_run: bool) -> None:
    drafts.tell(reports)
    version = pushed.current.version.version
    if pushed.found is None:
        output.say(f"Nothing to push: {place.document} is version {version}, which is in force.")
        return
    row_differences.tell(pushed.found)
    if dry_run:
        output.say(f"Nothing was published. It would be version {version + 1}.")
    else:
        output.say(f"Version {version} is in force, epoch {pushed.current.epoch}. Commit {place.base.name} too.")
