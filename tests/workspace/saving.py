"""A process that saves one personal file again and again, and says on standard output what was acknowledged.

`saving.py ROOT LOCKS NAME SAVES [pause]`: each save adds one to this process's count in what it read. With `pause`, the
first save stops in the middle, with the lock held and the new text under its temporary name, until a line comes in.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path

from gateway.errors import PreconditionFailed
from gateway.model import ProfileId, TenantId
from gateway.workspace.files import Workspace
from gateway.workspace.locks import FileLocks
from gateway.workspace.personal import Instructions, read_instructions, save_instructions

TENANT = TenantId("acme")
ALICE = ProfileId("prf_01JD0000000000000000000000")


def counts(content: str) -> dict[str, int]:
    """How often each process saved; raises AssertionError for a torn text."""
    if not content:
        return {}
    whole, digest = content.rsplit("\n", 1)
    assert hashlib.sha256(whole.encode()).hexdigest() == digest, "torn"
    found: dict[str, int] = json.loads(whole.split("\n")[0])
    return found


def written(saves: dict[str, int], filler: str) -> str:
    """A text that holds the counts, is nearly as long as it may be, and shows when a part of it is another's."""
    first = json.dumps(saves)
    whole = f"{first}\n{filler * (3900 - len(first))}"
    return f"{whole}\n{hashlib.sha256(whole.encode()).hexdigest()}"


def save_once(workspace: Workspace, locks: FileLocks, name: str, *, pause: bool) -> tuple[Instructions, Instructions]:
    """One save on top of what is there; what was read and what was written. Raises PreconditionFailed."""

    def recheck() -> None:
        if pause:
            print("in the middle", flush=True)
            sys.stdin.readline()

    before = read_instructions(workspace, ALICE)
    saves = counts(before.content)
    saves[name] = saves.get(name, 0) + 1
    content = written(saves, name[-1])
    return before, save_instructions(workspace, locks, TENANT, ALICE, content, before.sha256, recheck)


def main(root: str, folder: str, name: str, wanted: str, pause: str = "") -> None:
    workspace, locks = Workspace(Path(root), "flight"), FileLocks(Path(folder), wait_s=100)
    print("ready", flush=True)
    sys.stdin.readline()
    conflicts = done = 0
    while done < int(wanted):
        try:
            before, after = save_once(workspace, locks, name, pause=bool(pause))
        except PreconditionFailed:
            conflicts += 1
            continue
        done += 1
        print(before.sha256, after.sha256, flush=True)
    print("conflicts", conflicts, file=sys.stderr)


if __name__ == "__main__":
    main(*sys.argv[1:])
