"""What the doctor looks at in the keys of turn tokens: whether they can be used, by whom, and how old they are."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

from gateway.cli import output
from gateway.cli.doctor.findings import Finding, fault, fine, warning
from gateway.identity.turn_keys import DamagedKey, KeyFolder

CHECK = "keys"
OLD = timedelta(days=365)
_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_END_ALL = "Put it back from the backup, or end all turn tokens: gateway keys rotate --at-once"


def keys(state: Path, now: datetime) -> Iterator[Finding]:
    """Every finding about them."""
    folder = KeyFolder(state)
    try:
        exposed = list(_exposed(folder.path))
        found = folder.read(folder.names())
    except FileNotFoundError:
        yield fine(CHECK, "There are none for turn tokens yet; the next start makes one.")
        return
    except DamagedKey as error:
        yield fault(CHECK, f"{error}. No turn token is made or taken.", _END_ALL)
        return
    except OSError as error:
        yield fault(
            CHECK, f"{error.filename} can't be read: {error.strerror}.", f"See who owns it: ls -l {folder.path}"
        )
        return
    yield from exposed
    if not found:
        yield fault(
            CHECK, f"{folder.path} holds no key. No turn token is made or taken.", "Make one: gateway keys rotate"
        )
    elif now - found[0].made_at > OLD:
        age = output.counted((now - found[0].made_at).days, "day")
        yield warning(CHECK, f"Turn tokens are signed with a key that is {age} old.", "Make one: gateway keys rotate")
    elif not exposed:
        age = output.counted(max(0, (now - found[0].made_at).days), "day")
        yield fine(CHECK, f"Turn tokens are signed with a key that is {age} old.")


def _exposed(folder: Path) -> Iterator[Finding]:
    for path in (folder, *sorted(folder.iterdir())):
        mode = os.lstat(path).st_mode
        if mode & _OTHERS:
            right = "700" if stat.S_ISDIR(mode) else "600"
            message = f"{path} is not for its owner alone ({stat.S_IMODE(mode):04o})."
            yield fault(CHECK, message, f"Run: chmod {right} {path}")
