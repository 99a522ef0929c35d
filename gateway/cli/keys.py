"""`gateway keys`: what the gateway signs turn tokens with, which only the operator of the machine changes."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from gateway.backends.local.clock import SystemClock
from gateway.cli import output
from gateway.cli.failures import refusals
from gateway.cli.options import AsJson, Config, noun
from gateway.cli.running import refuse_token
from gateway.errors import Unavailable
from gateway.identity.turn_keys import DamagedKey, KeyFolder, Rotation
from gateway.settings import load
from gateway.web.api.shapes import time

AT_ONCE = "Drop every older key now, and with them all turn tokens that are out: for a key that somebody may have seen."


def build() -> typer.Typer:
    """The commands."""
    commands = noun("keys", "Signing keys of this gateway.")
    commands.command("rotate")(rotate)
    commands.callback()(_group)
    return commands


def _group() -> None:
    """Keeps `rotate` a word of its own while it is the only command."""


def rotate(
    at_once: Annotated[bool, typer.Option("--at-once", help=AT_ONCE)] = False,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Makes a new key for turn tokens; a running gateway takes it up within seconds, and older tokens run out."""
    with refusals():
        refuse_token()
        folder = load(config, os.environ).state.folder
        if not folder.is_dir():
            raise Unavailable(f"There is no state folder {folder}. The first `gateway serve` makes it.")
        output.show(as_json, _shape(_rotated(KeyFolder(folder), at_once)), _print)


def _rotated(folder: KeyFolder, at_once: bool) -> Rotation:
    try:
        return folder.rotate(SystemClock().now(), at_once=at_once)
    except DamagedKey as error:
        message = f"{error}. Put it back from the backup, or end all turn tokens: gateway keys rotate --at-once"
        raise Unavailable(message) from error
    except OSError as error:
        raise Unavailable(f"{folder.path} can't be used: {error.strerror}.") from error


def _shape(done: Rotation) -> dict[str, object]:
    kept = [{"kid": one.kid, "until": time(one.until)} for one in done.kept]
    return {"made": done.made, "kept": kept, "dropped": list(done.dropped)}


def _print(done: dict[str, object]) -> None:
    output.say(f"{done['made']} signs turn tokens from now on.")
    for one in done["kept"]:  # type: ignore[attr-defined]  # a list, as `_shape` made it
        output.say(f"{one['kid']} verifies until {one['until']}.")
    for kid in done["dropped"]:  # type: ignore[attr-defined]  # the same
        output.say(f"{kid} is gone.")
