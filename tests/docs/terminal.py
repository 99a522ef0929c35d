"""Turns the commands of a page into what they print: in a folder like a clone, beside a gateway started from it."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.docs.pages import ROOT

ADDRESS = "127.0.0.1:8080"  # where a reader's gateway listens
LONGEST_S = 60
_PEOPLE = re.compile(r"^(\w+) +\w+ +(gwp_\w+)$", re.MULTILINE)
_SESSIONS = re.compile(r"/v1/sessions/(\S+)")
_LISTENS = re.compile(r"listens on http://(\S+)")


@dataclass(frozen=True, slots=True)
class Terminal:
    """A shell in the clone; `told` is what a reader copies from the first start, by how a page writes it."""

    clone: Path
    address: str
    told: dict[str, str]

    def run(self, command: str) -> str:
        """What the command prints on both streams. Variables stay for the next one."""
        for written, copied in {**self.told, ADDRESS: self.address}.items():
            command = command.replace(written, copied)
        assert "=gwp_…" not in command, "a page asks its reader to copy a token that the first start does not print"
        state = self.clone / ".variables"
        script = f"set -a\n. {state}\n{command}\nexport -p >{state}\n"
        done = subprocess.run(
            ["sh", "-c", script],
            cwd=self.clone,
            env=_environment(self.clone),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=LONGEST_S,
            check=False,
        )
        return done.stdout.decode()


@contextmanager
def terminal(folder: Path) -> Iterator[Terminal]:
    """The demo, started as `scripts/serve` starts it, on a free port and with its state in `folder`."""
    clone = _clone(folder)
    command = [sys.executable, "-m", "gateway", "serve", "--config", "gateway.demo.toml", "--port", "0"]
    with subprocess.Popen(command, cwd=clone, env=_environment(clone), stdout=subprocess.PIPE) as served:
        assert served.stdout is not None
        told = ""
        while not (listens := _LISTENS.search(told)):
            line = served.stdout.readline().decode()
            assert line, f"the gateway did not start: {told}"
            told += line
        try:
            yield Terminal(clone, listens[1], _copied(told))
        finally:
            served.send_signal(signal.SIGTERM)
            served.wait(LONGEST_S)


def _clone(folder: Path) -> Path:
    """What a reader has in front of them, so that no example writes into the repository."""
    clone = folder / "clone"
    (clone / ".venv" / "bin").mkdir(parents=True)
    (clone / ".variables").touch()
    shutil.copy(ROOT / "gateway.demo.toml", clone)
    shutil.copytree(ROOT / "policies", clone / "policies")
    command = clone / ".venv" / "bin" / "gateway"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m gateway "$@"\n')
    command.chmod(0o755)
    return clone


def _environment(clone: Path) -> dict[str, str]:
    ours = {name: value for name, value in os.environ.items() if not name.startswith("GATEWAY_")}
    path = f"{clone / '.venv' / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    return {**ours, "PATH": path, "PYTHONPATH": str(ROOT), "LC_ALL": "C.UTF-8"}


def _copied(told: str) -> dict[str, str]:
    """`ALICE=gwp_…` and the keys of the two sessions, as the pages write them, with what was printed."""
    people = {f"{name.upper()}=gwp_…": f"{name.upper()}={secret}" for name, secret in _PEOPLE.findall(told)}
    keys = [key.removesuffix("/context") for key in _SESSIONS.findall(told)]
    return {
        **people,
        "PRIVATE=agent:flight:direct:prf_…": f"PRIVATE={keys[0]}",
        "GROUP=agent:flight:web:group:…": f"GROUP={keys[-1]}",
    }
