"""`gateway policy pull`: the document in force becomes a file, and nothing that lies there is lost by it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import typer

from gateway.cli import output, row_differences
from gateway.cli.failures import refusals
from gateway.cli.options import AsJson, Config, TenantName
from gateway.cli.policy_files import Base, Place, place_at
from gateway.cli.policy_in_git import FOLDER, Where, in_force
from gateway.cli.running import at_desk
from gateway.errors import Conflict, Invalid
from gateway.operations.policy import InForce
from gateway.policy.differences import Differences, differences
from gateway.policy.document_files import text_of, unix
from gateway.policy.documents import parse


def pull(
    path: Where = FOLDER,
    force: Annotated[
        bool, typer.Option("--force", help="Also over changes that were not pushed: they are lost.")
    ] = False,
    config: Config = None,
    tenant: TenantName = None,
    as_json: AsJson = False,
) -> None:
    """Writes the document in force into a file as it is, and beside it which version that is."""
    with refusals():
        place = place_at(path)
        held, base = place.held(), None if force else place.pulled()
        found = at_desk(config, tenant, in_force)
        taken = _take(place, held, base, found, force=force)
        output.show(as_json, taken.shape(), lambda _shown: taken.tell())


@dataclass(frozen=True, slots=True, kw_only=True)
class _Taken:
    """What a pull came to."""

    place: Place
    now: Base
    written: bool  # the document; where only the base was behind, it holds that version already
    before: Base | None
    own_changes: bool
    found: Differences | None

    def shape(self) -> dict[str, Any]:
        """The object that `--json` prints."""
        return {
            "file": str(self.place.document),
            **self.now.model_dump(),
            "written": self.written,
            "own_changes": self.own_changes,
            "differences": None if self.found is None else row_differences.shape(self.found),
        }

    def tell(self) -> None:
        """Prints it for people."""
        document, version = self.place.document, self.now.version
        if self.own_changes:
            output.say(f"Nothing new: version {version} is in force. {document} has changes that are not pushed.")
        elif not self.written and self.before is not None and self.before.is_version_of(self.now):
            output.say(f"Nothing new: version {version} is in force, and {document} holds it.")
        else:
            output.say(f"{document} holds version {version} of {self.now.tenant}, epoch {self.now.epoch}.")
            if self.found is not None:
                row_differences.tell(self.found)


def _take(place: Place, held: bytes | None, base: Base | None, found: InForce, *, force: bool) -> _Taken:
    """Raises Conflict where the document holds what nobody published and what would be lost."""
    now, data = Base.of(found), found.version.text.encode()
    same = held is not None and unix(held) == unix(data)
    own = held is not None and not same and (base is None or base.tenant != now.tenant or not base.is_text(held))
    waiting = own and not force and base is not None and base.is_version_of(now)
    if own and not force and not waiting:
        raise _would_be_lost(place, base, now)
    written = not waiting and (not same or (force and held != data))
    if written or (not waiting and (base is None or not base.is_version_of(now))):
        place.keep(found, document=written)
    return _Taken(
        place=place,
        now=now,
        written=written,
        before=base,
        own_changes=waiting,
        found=_since(place, held, found) if written else None,
    )


def _would_be_lost(place: Place, base: Base | None, now: Base) -> Conflict:
    if base is None:
        error = Conflict(f"{place.document} was not pulled, and differs from version {now.version}, which is in force.")
        error.add_note("Move it away, or name another folder. --force writes over it.")
    elif base.tenant != now.tenant:
        error = Conflict(f"{place.document} was pulled from {base.tenant}, and this is {now.tenant}.")
        error.add_note("Keep each in a folder of its own. --force writes over it.")
    else:
        error = Conflict(
            f"{place.document} has changes that are not pushed. It stands on version {base.version}, and version "
            f"{now.version} is in force."
        )
        error.add_note("Keep them on a branch of their own, pull where there are none, and merge the two in Git.")
        error.add_note(f"What is yours: gateway policy diff {place.document} --version {base.version}")
        error.add_note("--force writes over them.")
    return error


def _since(place: Place, held: bytes | None, found: InForce) -> Differences | None:
    """What changed in the document; None where there was none, or nothing that could be read as one."""
    if held is None:
        return None
    try:
        return differences(parse(text_of(held, place.document)), parse(found.version.text))
    except Invalid:
        return None
