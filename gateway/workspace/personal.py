"""Turns a profile into the instructions that this person wrote for an agent, and back (design section 6).

The profile is always the requester's; what a tool or a route was told otherwise has no way in here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gateway.errors import Invalid, PreconditionFailed
from gateway.model import ProfileId, TenantId
from gateway.workspace.files import FILE_LIMIT, FileText, Workspace
from gateway.workspace.locks import Locks, file_key
from gateway.workspace.paths import instructions_path
from gateway.workspace.problems import FileMissing, FileProblem
from gateway.workspace.units import units

INSTRUCTIONS_LIMIT = 4_000  # UTF-16 code units (reference/openclaw-visibility 2.4)


@dataclass(frozen=True, slots=True)
class Instructions:
    """A person's own `USER.md`. Where there is none, the content is empty and `sha256` is None."""

    content: str
    sha256: str | None
    units: int


def read_instructions(workspace: Workspace, profile: ProfileId) -> Instructions:
    """What the file holds now. Raises FileProblem as `instructions_in`."""
    path = instructions_path(profile)
    return instructions_in(workspace.read_many([path], limit=FILE_LIMIT)[path])


def instructions_in(found: FileText | FileProblem) -> Instructions:
    """What the file held, also where somebody made it too long for a turn by hand, so that it can be mended.

    Raises:
        FileProblem: there is a file and it can't be used; never shown as an empty one.

    """
    if isinstance(found, FileMissing):
        return Instructions("", None, 0)
    if isinstance(found, FileProblem):
        raise found
    return Instructions(found.text, found.sha256, units(found.text))


def save_instructions(
    workspace: Workspace,
    locks: Locks,
    tenant: TenantId,
    profile: ProfileId,
    content: str,
    expected: str | None,
    recheck: Callable[[], None],
) -> Instructions:
    """Replaces the file, if it is still the one whose hash is `expected` (None: there is none yet). Empty is fine.

    `recheck` is called under the lock, just before the rename, to look again at everything that allowed this save
    (rights, merge, agent); what it raises goes up, and nothing is changed. The hash is compared after it once more, for
    somebody who edits the file by hand.

    Raises:
        Invalid: over 4,000 UTF-16 units, or not text.
        PreconditionFailed: another hash by now; it carries the current one.
        Unavailable: the lock was not free in time, or was lost.
        FileProblem: the file that is there, or the way to it, can't be used.

    """
    _require_fitting(content)

    def look_again() -> None:
        recheck()
        _require_current(workspace, profile, expected)
        held.check()  # last: all else may take longer than a lock lasts

    path = instructions_path(profile)
    with locks.hold(file_key(tenant, workspace.folder, path)) as held:
        _require_current(workspace, profile, expected)
        saved = workspace.replace(path, content, before_rename=look_again)
    return Instructions(content, saved.sha256, units(content))


def _require_fitting(content: str) -> None:
    if any("\ud800" <= character <= "\udfff" for character in content):
        raise Invalid.of("content", "text", "This holds half of a character (a lone surrogate). Remove it.")
    if units(content) > INSTRUCTIONS_LIMIT:
        raise Invalid.of("content", "length", f"Keep personal instructions within {INSTRUCTIONS_LIMIT:,} characters.")


def _require_current(workspace: Workspace, profile: ProfileId, expected: str | None) -> None:
    current = read_instructions(workspace, profile).sha256
    if current != expected:
        raise PreconditionFailed(
            "Your instructions changed since they were read. Read them again before saving.", current=current
        )
