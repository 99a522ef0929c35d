"""`gateway tenants`: the organisations on this machine, which only its operator founds."""

from __future__ import annotations

from typing import Annotated

import typer

from gateway.app import Gateway
from gateway.cli import output
from gateway.cli.failures import refusals
from gateway.cli.options import AsJson, Config, noun
from gateway.cli.running import Desk, as_operator
from gateway.identity.credentials import Credentials
from gateway.identity.people import add_first_owner, check_first_owner
from gateway.model import Tenant, TenantId
from gateway.operations.people_arguments import NewToken, OfPerson, TokenBody
from gateway.policy.shipped import shipped
from gateway.tools.arguments import parse
from gateway.web.api import shapes

FIRST_TOKEN = "first owner"  # noqa: S105 - the name of a token, not one


def build() -> typer.Typer:
    """The commands."""
    commands = noun("tenants", "Organisations. Each has its own people, agents, policy and audit.")
    commands.command("list")(list_tenants)
    commands.command("add")(add_tenant)
    return commands


def list_tenants(config: Config = None, as_json: AsJson = False) -> None:
    """Lists the organisations here."""
    with refusals():
        found = as_operator(config, _all)
        listed = {"items": [_shape(one) for one in found], "next_cursor": None}
        output.show(as_json, listed, _print_all)


def add_tenant(
    name: Annotated[str, typer.Argument(help="a-z, 0-9, '-' and '_'.")],
    owner: Annotated[str, typer.Option("--owner", help="The email of its first owner.")],
    owner_name: Annotated[str | None, typer.Option("--name", help="What the first owner is called.")] = None,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Founds an organisation with the shipped policy, and prints an access token for its first owner, once."""
    with refusals():
        called = owner_name if owner_name is not None else owner.partition("@")[0]
        check_first_owner(name=called, email=owner)

        async def found(gateway: Gateway) -> dict[str, object]:
            return await _found(gateway, name, owner, called)

        output.show(as_json, as_operator(config, found), _print_new)


async def _all(gateway: Gateway) -> list[Tenant]:
    return list(await gateway.stores.tenants.all())


async def _found(gateway: Gateway, name: str, email: str, called: str) -> dict[str, object]:
    tenant = await gateway.founder.found(name, policy=shipped("default.csv"))
    profile = await add_first_owner(gateway.stores.identities, gateway.clock, tenant, name=called, email=email)
    # The token goes through the pipeline, so that the new tenant's audit begins with it.
    desk = Desk(gateway, Credentials(operator_of=tenant))
    made: NewToken = await desk.ask(
        gateway.catalogue.people.create_token, lambda: OfPerson(profile.id, parse(TokenBody, {"name": FIRST_TOKEN}))
    )
    added = await gateway.stores.tenants.find(TenantId(tenant))
    assert added is not None  # noqa: S101 - it was founded above
    return {**_shape(added), "owner": shapes.profile(profile), "token": shapes.new_token(made)}


def _shape(tenant: Tenant) -> dict[str, object]:
    return {"name": tenant.id, "epoch": tenant.epoch, "demo": tenant.demo}


def _print_all(listed: dict[str, list[dict[str, object]]]) -> None:
    output.table(("tenant", "epoch", "demo"), [tuple(one.values()) for one in listed["items"]])


def _print_new(made: dict[str, dict[str, object]]) -> None:
    output.say(
        f"The tenant {made['name']} is there. Its first owner is {made['owner']['name']}, {made['owner']['id']}."
    )
    output.say(f"Their access token, shown this once: {made['token']['secret']}")
