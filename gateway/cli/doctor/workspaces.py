"""What the doctor looks at in an agent's workspace: what can't be used safely, and what is not there."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator

from gateway.cli.doctor.findings import Finding, fault, fine
from gateway.errors import GatewayError
from gateway.model import Agent
from gateway.workspace.files import Workspace
from gateway.workspace.paths import OURS, is_component
from gateway.workspace.problems import FileMissing, FileProblem

RULES = "AGENTS.md"
_AT_ONCE = 50  # texts in memory


def workspace(agent: Agent, place: Workspace) -> list[Finding]:
    """Every finding in one workspace. Blocks: call it in a thread."""
    check = f"workspace {agent.name}"
    try:
        found = list(_faults(check, agent, place))
    except GatewayError as error:
        todo = f"Put the folder {place.root / place.folder} back, or mount it."
        found = [fault(check, error.detail, todo, agent.tenant)]
    return found or [fine(check, f"{place.root / place.folder} can be used.", agent.tenant)]


def _faults(check: str, agent: Agent, place: Workspace) -> Iterator[Finding]:
    texts = []
    for path, wrong in _survey(place):
        if wrong is not None:
            yield fault(check, f"{path} {wrong}, and is never read.", "Put a plain file in its place.", agent.tenant)
        elif path.endswith(".md"):
            texts.append(path)
    rules = place.read_many([RULES])[RULES]
    if isinstance(rules, FileMissing):
        todo = "Write one: the agent has no rules without. `gateway agents add` makes a good first one for a new agent."
        yield fault(check, f"{RULES} is missing.", todo, agent.tenant)
    for path, problem in _unreadable(place, texts):
        yield fault(check, f"{path}: {problem.detail}", "Until then it is left out.", agent.tenant)


def _survey(place: Workspace) -> Iterator[tuple[str, str | None]]:
    """Each entry with what is wrong with it; nothing is opened, and no link is followed."""
    place.read_many([])  # the folder itself must be one; raises otherwise
    top = place.root / place.folder
    for folder, folders, files, descriptor in os.fwalk(top, follow_symlinks=False):
        for name in sorted((*folders, *files)):
            path = os.path.relpath(os.path.join(folder, name), top)  # noqa: PTH118 - names may be no valid Path
            if not name.startswith(OURS):
                yield path, _wrong(name, os.stat(name, dir_fd=descriptor, follow_symlinks=False))


def _wrong(name: str, status: os.stat_result) -> str | None:
    if stat.S_ISLNK(status.st_mode):
        return "is a link"
    if not is_component(name):
        return "has a name that no path may hold"
    if stat.S_ISDIR(status.st_mode):
        return None
    if not stat.S_ISREG(status.st_mode):
        return "is not a regular file"
    return "has a second name (a hard link)" if status.st_nlink > 1 else None


def _unreadable(place: Workspace, paths: list[str]) -> Iterator[tuple[str, FileProblem]]:
    for start in range(0, len(paths), _AT_ONCE):
        for path, found in place.read_many(paths[start : start + _AT_ONCE]).items():
            if isinstance(found, FileProblem):
                yield path, found
