"""Gathers the commands into one command line."""

from __future__ import annotations

import typer

from gateway.cli import agents, audit, context, keys, leak_test, people, policy, serve, sessions, tenants, tokens
from gateway.cli.doctor import command as doctor

_NOUNS = (tenants, agents, people, tokens, sessions, policy, audit, keys)


def build() -> typer.Typer:
    """The whole command line."""
    app = typer.Typer(
        name="gateway",
        help="One gateway in front of shared agents: everybody gets their own instructions and memory.",
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,  # its boxes repeat values, which may be secret
    )
    app.command("serve")(serve.serve)
    app.command("doctor")(doctor.doctor)
    app.command("leak-test")(leak_test.leak_test)
    app.command("context")(context.context)
    for noun in _NOUNS:
        app.add_typer(noun.build())
    return app


def main() -> None:
    """Runs the command line of this process and exits with its code (see docs/cli.md)."""
    build()()
