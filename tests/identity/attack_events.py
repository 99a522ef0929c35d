"""Turns the lines of `before` in `attacks.yaml` into what happens between the making of a credential and its use."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import replace

import orjson
from sqlalchemy import Connection

from gateway.backends.sql import tables
from gateway.backends.sql.tenants import raise_epoch
from tests.identity.attacking import Again, World, expect
from tests.introspector import JSON
from tests.issuer import DISCOVERY, KEYS, signing_key
from tests.loopback import Answer


async def happens(world: World, what: str, again: Again) -> None:
    """One line. `again` sends the attack, for a line that says that it was good before."""
    if what == "it is used":
        await expect(again())
        return
    if what == "it is tried":
        await again()
        return
    for pattern, event in _EVENTS.items():
        if found := re.fullmatch(pattern, what):
            await event(world, *found.groups())
            return
    raise AssertionError(f"nobody knows how to: {what}")


async def _rotates(world: World, issuer: str, kid: str) -> None:
    world.issuers[issuer].rotate(kid)


async def _replaces_its_key(world: World, issuer: str) -> None:
    (key,) = world.issuers[issuer].keys
    world.issuers[issuer].keys = [replace(signing_key("another"), kid=key.kid)]


async def _publishes_twice(world: World, issuer: str) -> None:
    (key,) = world.issuers[issuer].keys
    world.issuers[issuer].keys = [key, replace(signing_key("another"), kid=key.kid)]


async def _is_another_issuer(world: World, issuer: str) -> None:
    theirs = world.issuers["other"]
    document = {"issuer": theirs.url, "jwks_uri": theirs.url + KEYS}
    world.issuers[issuer].answers[DISCOVERY] = Answer(orjson.dumps(document))


async def _comes_in(world: World, who: str, issuer: str) -> None:
    token = {"Authorization": f"Bearer {world.issuers[issuer].mint(who)}"}
    await expect(world.home.get(None, "/v1/me", headers=token))


async def _answers(world: World, what: str) -> None:
    """Instead of what the server knows of opaque tokens."""
    world.opaque.answer = {
        "an error": Answer(b'{"error":"server_error"}', status=500, headers=JSON),
        "that it does not know us": Answer(b'{"error":"invalid_client"}', status=401, headers=JSON),
        "a page": Answer(b"<p>Hello</p>", headers={"Content-Type": "text/html"}),
        "nothing": Answer(b"", headers=JSON),
        "a redirect": Answer(b"", status=307, headers={"Location": world.issuers["other"].url}),
        "true to everything": Answer(b'{"active":true}', headers=JSON),
    }[what]


async def _takes_back(world: World) -> None:
    for token in list(world.opaque.tokens):
        world.opaque.revoke(token)


async def _server_is_gone(world: World) -> None:
    world.opaque.go_down()


async def _goes_down(world: World, issuer: str) -> None:
    world.issuers[issuer].go_down()


async def _pass(world: World, seconds: str) -> None:
    world.clock.advance(int(seconds))
    await world.home.gateway.epochs.poll()


async def _is_disabled(world: World, who: str) -> None:
    await expect(world.home.send("olga", "DELETE", f"/v1/admin/people/{world.home.id(who)}"))


async def _is_unlinked(world: World, who: str) -> None:
    identity = {"issuer": world.issuers["main"].url, "subject": who}
    await expect(world.home.send("olga", "DELETE", f"/v1/admin/people/{world.home.id(who)}/identities", identity))


async def _is_retired(world: World, who: str) -> None:
    """As a merge leaves the profile, and without what else it does: whatever was captured before fails closed."""

    def work(connection: Connection) -> None:
        gone = tables.profiles.update().where(tables.profiles.c.id == world.home.id(who))
        connection.execute(gone.values(merged_into=world.home.id("bob")))
        raise_epoch(connection, world.home.tenant)

    await world.home.gateway.stores.database.write(work)


async def _is_merged(world: World, retired: str, survivor: str) -> None:
    path = f"/v1/admin/people/{world.home.id(retired)}/merge"
    await expect(world.home.post("olga", path, {"into": world.home.id(survivor)}))


async def _joins(world: World, who: str) -> None:
    await world.home.add(who, "member")


async def _loses_every_token(world: World, who: str) -> None:
    tokens = await world.home.get(who, "/v1/me/tokens")
    for token in tokens.json()["items"]:
        await expect(world.home.send(who, "DELETE", f"/v1/me/tokens/{token['id']}"))


async def _signs_out_everywhere(world: World, who: str) -> None:
    for sign_in in (await world.home.get(who, "/v1/me/sign-ins")).json()["items"]:
        await expect(world.home.send(who, "DELETE", f"/v1/me/sign-ins/{sign_in['id']}"))


async def _resets(world: World, who: str) -> None:
    await expect(world.home.post(who, f"/v1/sessions/{world.home.private(who)}/reset"))


_EVENTS: dict[str, Callable[..., Awaitable[None]]] = {
    r"(\w+) rotates to (\w+)": _rotates,
    r"(\w+) signs with another key under the same kid": _replaces_its_key,
    r"(\w+) publishes its key twice": _publishes_twice,
    r"(\w+) is discovered as another issuer": _is_another_issuer,
    r"(\w+) comes in with a token of (\w+)": _comes_in,
    r"the server of opaque tokens answers (.+)": _answers,
    r"the server of opaque tokens takes every one back": _takes_back,
    r"the server of opaque tokens is gone": _server_is_gone,
    r"(\w+) goes down": _goes_down,
    r"(\d+) seconds pass": _pass,
    r"(\w+) is disabled": _is_disabled,
    r"(\w+) is unlinked": _is_unlinked,
    r"(\w+) is retired": _is_retired,
    r"(\w+) is merged into (\w+)": _is_merged,
    r"(\w+) joins": _joins,
    r"(\w+) loses every token": _loses_every_token,
    r"(\w+) signs out everywhere": _signs_out_everywhere,
    r"(\w+) resets the session": _resets,
}
