"""Opaque tokens of a certified provider, which the gateway asks about; and roles by the groups that it names."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio

from gateway.model import Identity
from gateway.settings import Settings
from tests.clock import RunningClock
from tests.conftest import LogCapture
from tests.house import House, house
from tests.provider.conftest import configured
from tests.provider.running import INTROSPECTOR, OPAQUE_AUDIENCE, Provider
from tests.provider.test_tokens import ME, bearer


@pytest_asyncio.fixture
async def asking(
    provider: Provider,
    settings: Settings,
    tmp_path: Path,
    running_clock: RunningClock,
    logs: LogCapture,
) -> AsyncIterator[House]:
    """The organisation, as a client of the provider that may ask about tokens."""
    text = f"""
        [[introspection.servers]]
        endpoint = "{provider.url}/token/introspection"
        issuer = "{provider.url}"
        audience = "{OPAQUE_AUDIENCE}"
        client_id = "{INTROSPECTOR}"
        client_secret_env = "INTROSPECTION_SECRET"
        tenant = "acme"
        trust_email = true
        scopes = "person"

        [introspection.servers.roles]
        flight-leads = ["supervisor@flight"]
    """
    ours, environ = configured(tmp_path, settings, text), {"INTROSPECTION_SECRET": provider.secret}
    async with house(ours, running_clock, logs.loggers, environ=environ) as made:
        await made.add("robot", "member", kind="service")
        for name in ("bob", "robot"):
            identity = Identity(issuer=provider.url, subject=name, profile=made.id(name))
            await made.gateway.stores.identities.link(made.tenant, identity, running_clock.now())
        yield made


async def test_a_person_is_known_by_a_token_that_only_the_provider_can_read(asking: House, provider: Provider) -> None:
    """Issue 3, "what it must show" 1: an introspection by RFC 7662 at a server that none of us wrote."""
    alice = provider.person_tokens("alice", resource=OPAQUE_AUDIENCE)
    of_alice = await asking.open("alice")
    me = await bearer(asking, alice["access_token"])
    bob = provider.person_tokens("bob", resource=OPAQUE_AUDIENCE)["access_token"]

    assert alice["access_token"].count(".") == 0
    assert me.status_code == 200, me.text
    assert me.json()["profile"]["id"] == asking.id("alice")  # by the email, which the provider verified
    assert me.json()["credential"]["kind"] == "introspection"
    assert {"role": "supervisor", "agent": "flight", "source": "claim"} in (await bearer(asking, bob)).json()[
        "profile"
    ]["roles"]
    assert (await bearer(asking, bob, f"/v1/sessions/{of_alice}/messages")).status_code == 200
    assert (await bearer(asking, alice["access_token"], "/v1/admin/people")).status_code == 403


async def test_what_the_provider_does_not_vouch_for_here_is_refused(asking: House, provider: Provider) -> None:
    """A token for another resource is none for us; nor is a JWT, which no issuer here signs."""
    for_nobody = provider.person_tokens("alice", resource=None)["access_token"]
    signed = provider.person_tokens("alice")["access_token"]

    assert (await bearer(asking, for_nobody)).status_code == 401
    assert (await bearer(asking, signed)).status_code == 401
    assert (await bearer(asking, for_nobody[:-1] + ("A" if for_nobody[-1] != "A" else "B"))).status_code == 401


async def test_a_service_has_the_scopes_of_its_opaque_token(asking: House, provider: Provider) -> None:
    """RFC 7662 section 2.2: this provider names no `sub` for a client; without a scope it calls nothing."""

    async def status(scope: str, path: str) -> int:
        token = provider.service_token(scope=scope, resource=OPAQUE_AUDIENCE)
        return (await bearer(asking, token, path)).status_code

    assert await status("gateway", ME) == 200
    assert await status("gateway", "/v1/sessions") == 403
    assert await status("session", "/v1/sessions") == 200
    for path in (ME, "/v1/sessions", "/v1/agents"):
        assert await status("", path) == 403
