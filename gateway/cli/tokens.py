"""`gateway token`: access tokens, whose secrets are shown once."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from gateway.cli import output
from gateway.cli.failures import refusals
from gateway.cli.options import AsJson, Config, TenantName, noun
from gateway.cli.references import person_id
from gateway.cli.running import Desk, at_desk
from gateway.errors import Invalid
from gateway.operations.me import OfToken
from gateway.operations.people_arguments import OfPerson, TokenBody
from gateway.tools.arguments import parse
from gateway.web.api import shapes
from gateway.web.api.shapes import TokenShape

OF_WHOM = "An id (prf_…), an email or a unique name; without it your own."
Whose = Annotated[str | None, typer.Argument(metavar="[PERSON]", help=OF_WHOM)]


def build() -> typer.Typer:
    """The commands."""
    commands = noun("token", "Access tokens: your own, or as the operator those of anybody.")
    commands.command("create")(create)
    commands.command("list")(list_tokens)
    commands.command("revoke")(revoke)
    return commands


def create(
    person: Whose = None,
    name: Annotated[str, typer.Option("--name", help="What it is for.")] = "command line",
    days: Annotated[int, typer.Option("--days", help="How long it is good, from 1 to 365 days.")] = 90,
    scope: Annotated[
        list[str],
        typer.Option("--scope", help="session, memory, admin, gateway, decide; may be given again. Without it all."),
    ] = [],  # noqa: B006 - typer copies it
    config: Config = None,
    tenant: TenantName = None,
    as_json: AsJson = False,
) -> None:
    """Makes an access token and prints its secret, once. Only the operator makes one for another person."""
    wanted = {"name": name, "expires_in_days": days, "scopes": scope or None}

    async def ask(desk: Desk) -> Any:
        if person is None:
            _check_is_somebody(desk)
            return await desk.ask(desk.catalogue.me.create_token, lambda: parse(TokenBody, wanted))
        profile = await person_id(desk, person)
        return await desk.ask(desk.catalogue.people.create_token, lambda: OfPerson(profile, parse(TokenBody, wanted)))

    with refusals():
        output.show(as_json, shapes.new_token(at_desk(config, tenant, ask)), _print_new)


def list_tokens(
    person: Whose = None, config: Config = None, tenant: TenantName = None, as_json: AsJson = False
) -> None:
    """Lists access tokens, without their secrets."""

    async def ask(desk: Desk) -> Any:
        if person is None:
            _check_is_somebody(desk)
            return await desk.ask(desk.catalogue.me.tokens)
        profile = await person_id(desk, person)
        return await desk.ask(desk.catalogue.people.tokens, lambda: OfPerson(profile, None))

    with refusals():
        page = at_desk(config, tenant, ask)
        output.show(as_json, shapes.page(page, shapes.token), lambda shown: _print_all(shown["items"]))


def revoke(
    token: Annotated[str, typer.Argument(metavar="TOKEN", help="The id of the token: tok_…")],
    person: Annotated[str | None, typer.Option("--person", help=OF_WHOM)] = None,
    config: Config = None,
    tenant: TenantName = None,
    as_json: AsJson = False,
) -> None:
    """Ends an access token at once. With --json it prints nothing, as the REST interface does."""

    async def ask(desk: Desk) -> None:
        if person is None:
            _check_is_somebody(desk)
            await desk.ask(desk.catalogue.me.revoke_token, lambda: OfToken(token))
            return
        profile = await person_id(desk, person)
        await desk.ask(desk.catalogue.people.revoke_token, lambda: OfPerson(profile, token))

    with refusals():
        at_desk(config, tenant, ask)
        if not as_json:
            output.say(f"{token} is good for nothing any more.")


def _check_is_somebody(desk: Desk) -> None:
    """The operator of the machine has no tokens of their own. Raises Invalid."""
    if desk.is_operator:
        message = "Say whose token: an id, an email or a name. Or set GATEWAY_TOKEN to be somebody yourself."
        raise Invalid.of("PERSON", "required", message)


def _print_new(token: TokenShape) -> None:
    output.say(f"{token['id']}, {token['name']}, is good until {token['expires_at']}. Its secret, shown this once:")
    output.say(token["secret"])


def _print_all(tokens: list[TokenShape]) -> None:
    rows = [(one["id"], one["name"], one["scopes"], one["expires_at"], one["last_used_at"]) for one in tokens]
    output.table(("id", "name", "scopes", "good until", "last used"), rows)
