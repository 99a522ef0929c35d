"""`gateway people`: who is here, what they hold, how they sign in."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from gateway.cli import output
from gateway.cli.failures import refusals
from gateway.cli.options import AsJson, Config, Cursor, Limit, PersonReference, TenantName, noun
from gateway.cli.references import person_id
from gateway.cli.running import Desk, at_desk
from gateway.operations.people_arguments import IdentityBody, Listing, MergeBody, OfPerson, PersonBody, RolesBody
from gateway.tools.arguments import Arguments, parse
from gateway.tools.registry import AnyOperation
from gateway.web.api import shapes
from gateway.web.api.shapes import IdentityShape, MergeShape, PersonShape, ProfileShape, RoleShape

Issuer = Annotated[
    str | None,
    typer.Option("--issuer", help="Who vouches for the sign-in: the `iss` of its tokens.", show_default=False),
]
Subject = Annotated[
    str | None, typer.Option("--subject", help="Who they are there: the `sub` of its tokens.", show_default=False)
]
Channel = Annotated[str | None, typer.Option("--channel", help="Instead: a channel, like line.", show_default=False)]
Account = Annotated[
    str | None, typer.Option("--account", help="The account there, as the settings name it.", show_default=False)
]
Sender = Annotated[str | None, typer.Option("--sender", help="The channel's id of the person.", show_default=False)]
ROLE_HELP = "A role on all agents, or on one: member, supervisor@flight."


def build() -> typer.Typer:
    """The commands."""
    commands = noun("people", "People and services: their roles and their sign-ins.")
    commands.command("list")(list_people)
    commands.command("add")(add_person)
    commands.command("link")(link)
    commands.command("unlink")(unlink)
    commands.command("merge")(merge)
    commands.command("roles")(roles)
    return commands


def list_people(
    limit: Limit = 50,
    cursor: Cursor = None,
    config: Config = None,
    tenant: TenantName = None,
    as_json: AsJson = False,
) -> None:
    """Lists the people and services."""
    with refusals():
        page = at_desk(
            config, tenant, lambda desk: desk.ask(desk.catalogue.people.list, lambda: Listing(limit, cursor))
        )
        output.show(as_json, shapes.page(page, shapes.profile), _print_page)


def add_person(
    name: Annotated[str, typer.Argument(help="What they are called.")],
    email: Annotated[list[str], typer.Option("--email", help="An email of theirs; may be given again.")] = [],  # noqa: B006 - typer copies it
    role: Annotated[list[str], typer.Option("--role", help=f"{ROLE_HELP} May be given again.")] = [],  # noqa: B006 - typer copies it
    service: Annotated[bool, typer.Option("--service", help="A service, not a person.")] = False,
    config: Config = None,
    tenant: TenantName = None,
    as_json: AsJson = False,
) -> None:
    """Adds a person."""
    wanted = {
        "name": name,
        "emails": email,
        "roles": [_role(one) for one in role],
        "kind": "service" if service else "person",
    }
    with refusals():
        person = at_desk(
            config, tenant, lambda desk: desk.ask(desk.catalogue.people.add, lambda: parse(PersonBody, wanted))
        )
        output.show(as_json, shapes.person(person), _print_one)


def link(
    person: PersonReference,
    issuer: Issuer = None,
    subject: Subject = None,
    channel: Channel = None,
    account: Account = None,
    sender: Sender = None,
    config: Config = None,
    tenant: TenantName = None,
    as_json: AsJson = False,
) -> None:
    """Links a sign-in to a person, or a sender of a channel."""
    wanted = _identity(issuer, subject, channel, account, sender)
    with refusals():
        linked = at_desk(
            config, tenant, lambda desk: _on(desk, desk.catalogue.people.link, person, IdentityBody, wanted)
        )
        output.show(as_json, shapes.person(linked), _print_one)


def unlink(
    person: PersonReference,
    issuer: Issuer = None,
    subject: Subject = None,
    channel: Channel = None,
    account: Account = None,
    sender: Sender = None,
    config: Config = None,
    tenant: TenantName = None,
    as_json: AsJson = False,
) -> None:
    """Takes exactly this sign-in from a person. With --json it prints nothing, as the REST interface does."""
    wanted = _identity(issuer, subject, channel, account, sender)
    with refusals():
        at_desk(config, tenant, lambda desk: _on(desk, desk.catalogue.people.unlink, person, IdentityBody, wanted))
        if not as_json:
            output.say(f"{sender or subject} of {_where(issuer, channel, account)} is unlinked.")


def merge(
    person: PersonReference,
    into: Annotated[str, typer.Option("--into", help="Who stays: an id, an email or a unique name.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would move, and change nothing.")] = False,
    config: Config = None,
    tenant: TenantName = None,
    as_json: AsJson = False,
) -> None:
    """Makes one person of two profiles: PERSON is retired, and the other stays. It can't be undone."""

    async def ask(desk: Desk) -> Any:
        people = desk.catalogue.people
        wanted = {"into": await person_id(desk, into), "preview": dry_run}
        return await _on(desk, people.preview_merge if dry_run else people.merge, person, MergeBody, wanted)

    with refusals():
        output.show(as_json, shapes.merge(at_desk(config, tenant, ask)), _print_merge)


def roles(
    person: PersonReference,
    replacing: Annotated[
        list[str], typer.Option("--set", help=f"{ROLE_HELP} May be given again; these replace all others.")
    ] = [],  # noqa: B006 - typer copies it
    none: Annotated[bool, typer.Option("--none", help="Take all roles.")] = False,
    config: Config = None,
    tenant: TenantName = None,
    as_json: AsJson = False,
) -> None:
    """Shows a person's roles, or replaces those given by hand."""
    if none and replacing:
        raise typer.BadParameter("take all roles, or set some", param_hint="--none")
    wanted = {"roles": [_role(one) for one in replacing]}

    async def ask(desk: Desk) -> Any:
        people = desk.catalogue.people
        if none or replacing:
            return await _on(desk, people.set_roles, person, RolesBody, wanted)
        return await _on(desk, people.show, person, None, None)

    with refusals():
        output.show(as_json, shapes.person(at_desk(config, tenant, ask)), _print_one)


async def _on(
    desk: Desk, operation: AnyOperation, reference: str, model: type[Arguments] | None, wanted: dict[str, Any] | None
) -> Any:
    """Asks for an operation on one person."""
    profile = await person_id(desk, reference)
    return await desk.ask(operation, lambda: OfPerson(profile, parse(model, wanted) if model else None))


def _identity(
    issuer: str | None, subject: str | None, channel: str | None, account: str | None, sender: str | None
) -> dict[str, str]:
    """What was given of it; the operation says what is missing."""
    given = {"issuer": issuer, "subject": subject, "channel": channel, "account": account, "sender": sender}
    return {name: value for name, value in given.items() if value is not None}


def _where(issuer: str | None, channel: str | None, account: str | None) -> str:
    return f"{channel}:{account}" if channel is not None else str(issuer)


def _role(text: str) -> dict[str, str]:
    role, _, agent = text.partition("@")
    return {"role": role, "agent": agent or "*"}


def role_words(person: ProfileShape | PersonShape) -> list[str]:
    """Roles as `--set` takes them."""
    return _role_words(person["roles"])


def _role_words(roles: list[RoleShape]) -> list[str]:
    return [held["role"] if held["agent"] == "*" else f"{held['role']}@{held['agent']}" for held in roles]


def _print_page(listed: dict[str, Any]) -> None:
    rows = [
        (one["id"], one["name"], one["kind"], one["emails"], role_words(one), "disabled" if one["disabled"] else "")
        for one in listed["items"]
    ]
    output.table(("id", "name", "kind", "emails", "roles", ""), rows)
    output.more(listed["next_cursor"])


def _sign_ins(identities: list[IdentityShape]) -> list[str]:
    return [
        f"{one['subject']} of {_where(one['issuer'], one.get('channel'), one.get('account'))}" for one in identities
    ]


def _print_one(person: PersonShape) -> None:
    output.facts(
        [
            ("id", person["id"]),
            ("name", person["name"]),
            ("kind", person["kind"]),
            ("emails", person["emails"]),
            ("roles", role_words(person)),
            ("signs in as", _sign_ins(person["identities"])),
            ("disabled", person["disabled"]),
        ]
    )


def _print_merge(merge: MergeShape) -> None:
    sessions = merge["sessions"]
    if merge["preview"]:
        output.say("Nothing was changed. This merge would do:")
    output.facts(
        [
            ("retired", merge["retired"]),
            ("stays", merge["survivor"]),
            ("sign-ins that move", _sign_ins(merge["identities"])),
            ("emails that move", merge["emails"]),
            ("merged before", merge["aliases"]),
            ("tokens revoked", merge["tokens_revoked"]),
            ("browsers signed out", merge["sign_ins_ended"]),
            ("roles that end", _role_words(merge["roles_ended"])),
            ("sessions owned", sessions["owned"]),
            ("sessions shared", sessions["shared"]),
            ("private sessions", sessions["private"]),
            ("groups of both", sessions["groups_of_both"]),
        ]
    )
