"""Opaque tokens, end to end: a server that no caller sees says who they are (RFC 7662, design section 5)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
import pytest_asyncio

from gateway.app import compose, create_app
from gateway.errors import ConfigurationFaults
from gateway.model import Identity
from gateway.settings import Settings, load
from tests.clock import SettableClock
from tests.conftest import LogCapture
from tests.house import House, house
from tests.introspector import CLIENT, SECRET, LocalIntrospector
from tests.issuer import AUDIENCE

ME = "/v1/me"
ENVIRON = {"ACME_INTROSPECTION": SECRET}
ASKED = """
[[introspection.servers]]
endpoint = "{server.endpoint}"
issuer = "{server.url}"
audience = "{audience}"
client_id = "{client}"
client_secret_env = "ACME_INTROSPECTION"
tenant = "acme"
scopes = "person"

[introspection.servers.roles]
flight-leads = ["supervisor@flight"]
{more}
"""


@pytest.fixture
def server(clock: SettableClock) -> Iterator[LocalIntrospector]:
    """A real one, on this machine."""
    with LocalIntrospector(clock) as running:
        yield running


def asking(settings: Settings, folder: Path, server: LocalIntrospector, more: str = "", head: str = "") -> Settings:
    """The settings with this server to ask."""
    config = folder / "introspection.toml"
    text = head + ASKED.format(server=server, audience=AUDIENCE, client=CLIENT, more=more)
    config.write_text(text, encoding="utf-8")
    return load(config, {"GATEWAY_STATE__FOLDER": str(settings.state.folder), "GATEWAY_LOG__LEVEL": "debug"})


@pytest_asyncio.fixture
async def home(
    settings: Settings,
    tmp_path: Path,
    clock: SettableClock,
    logs: LogCapture,
    server: LocalIntrospector,
) -> AsyncIterator[House]:
    """A house whose alice has an account at the server."""
    async with house(asking(settings, tmp_path, server), clock, logs.loggers, environ=ENVIRON) as made:
        identity = Identity(issuer=server.url, subject="alice", profile=made.id("alice"))
        await made.gateway.stores.identities.link(made.tenant, identity, clock.now())
        yield made


async def send(home: House, token: str, path: str = ME) -> httpx2.Response:
    """A request with a token of the server."""
    return await home.get(None, path, headers={"Authorization": f"Bearer {token}"})


async def test_an_opaque_token_is_the_person_it_was_issued_to(
    home: House, server: LocalIntrospector, logs: LogCapture
) -> None:
    """Issue 3, "token introspection". The caller reads one text for every reason; nothing of the secret is written."""
    session = f"/v1/sessions/{await home.open('alice')}/messages"
    good = server.issue("opaque-of-alice")
    me = (await send(home, good)).json()

    assert (me["profile"]["id"], me["credential"]["kind"]) == (home.id("alice"), "introspection")
    assert (await send(home, good, session)).status_code == 200
    asked = len(server.asked)
    answers = [
        await send(home, token, session)
        for token in (
            "made-up",
            server.issue("of-bob", "bob"),
            server.issue("of-another", aud="https://other.example"),
            server.issue("bound", token_type="DPoP"),
            "gwx_of-another-gateway",
            "eyJhbGciOiJub25lIn0.e30.",
        )
    ]
    assert {answer.status_code for answer in answers} == {401}
    assert len(server.asked) == asked + 4
    assert (await home.audit(action="history", effect="allow"))[-1].record.principal == (
        f"introspection:{server.url}#alice"
    )
    assert not any(secret in logs.text for secret in (SECRET, "opaque-of-alice", "made-up"))


async def test_a_token_that_ends_at_its_server_ends_here_within_half_a_minute(
    home: House, server: LocalIntrospector, clock: SettableClock
) -> None:
    """Issue 3: cached for 30 s at most; and a removed group takes effect within the same bound."""
    of_bob = f"/v1/sessions/{await home.open('bob')}/messages"
    token = server.issue("opaque", groups=["flight-leads"])

    async def later(seconds: float) -> tuple[int, int]:
        clock.advance(seconds)
        await home.gateway.epochs.poll()
        return (await send(home, token)).status_code, (await send(home, token, of_bob)).status_code

    assert await later(0) == (200, 200)
    server.issue(token, groups=[])
    assert await later(29) == (200, 200)
    assert await later(1) == (200, 404)
    server.revoke(token)
    assert await later(29) == (200, 404)
    assert await later(1) == (401, 401)


async def test_a_server_that_is_away_is_a_503_and_lets_nobody_in(
    home: House, server: LocalIntrospector, clock: SettableClock
) -> None:
    """Design section 12: outages refuse, never allow; a 401 would make a client throw a good token away."""
    known, new = server.issue("known"), server.issue("new")
    assert (await send(home, known)).status_code == 200
    records = len(await home.audit())
    server.go_down()

    away = await send(home, new)

    assert (away.status_code, away.json()["code"]) == (503, "unavailable")
    assert int(away.headers["retry-after"]) >= 1
    assert len(await home.audit()) == records
    assert (await home.get("alice", ME)).status_code == 200  # one way in is away, not the others
    clock.advance(30)
    await home.gateway.epochs.poll()
    assert (await send(home, known)).status_code == 503
    server.come_back()
    assert (await send(home, new)).status_code == 200


async def test_what_the_settings_say_of_servers_is_checked_before_the_start(
    settings: Settings, tmp_path: Path, clock: SettableClock, logs: LogCapture, server: LocalIntrospector
) -> None:
    """Issue 2: every fault by its full name; the secret comes from a file or a variable and never from the settings."""

    def faults(more: str = "", environ: dict[str, str] = ENVIRON, head: str = "") -> list[tuple[str, str]]:
        try:
            ours = asking(settings, tmp_path, server, more, head)
            create_app(compose(ours, logs.loggers, clock=clock, environ=environ), logs.loggers)
        except ConfigurationFaults as error:
            return [(fault.field, fault.rule) for fault in error.faults]
        return []

    where = "introspection.servers[0]"
    issuer = f'[[oidc.issuers]]\nissuer = "{server.url}"\naudience = "x"\nalgorithms = ["ES256"]\n'
    entry = '[[introspection.servers]]\nendpoint = "https://b.example"\nissuer = "https://b.example"\naudience = "x"\n'
    assert faults() == []
    assert faults(head=issuer + 'tenant = "acme"\n') == []
    assert faults(head=issuer + 'tenant = "acme"\nprovision = true\n') == [(f"{where}.provision", "agrees")]
    browser = (
        f'[login]\npublic_url = "http://localhost:8080"\n[[login.issuers]]\nname = "id"\nissuer = "{server.url}"\n'
        'client_id = "g"\nalgorithms = ["ES256"]\ntenant = "acme"\n'
    )
    assert faults(head=browser) == []
    assert faults(head=browser + "trust_email = true\n") == [(f"{where}.trust_email", "agrees")]
    both = issuer + 'tenant = "acme"\ntrust_email = true\n' + browser + "trust_email = true\n"
    assert faults(head=both) == [(f"{where}.trust_email", "agrees")]  # once, though two entries say otherwise
    header = '[[proxies.headers]]\nheader = "X-Forwarded-User"\nnetworks = ["192.0.2.1/32"]\ntenant = "acme"\n'
    assert faults(head=header + 'issuer = "proxy"\n') == []
    assert faults(head=header + f'issuer = "{server.url}"\n') == [("proxies.headers[0].issuer", "unique")]
    assertion = (
        f'[[proxies.assertions]]\nheader = "X-Signed"\nissuer = "{server.url}"\naudience = "{AUDIENCE}"\n'
        'algorithms = ["ES256"]\ntenant = "acme"\n'
    )
    assert faults(head=assertion) == []
    assert faults(head=assertion + "provision = true\n") == [(f"{where}.provision", "agrees")]
    # Only who serves needs the secret: the command line of the machine starts without it.
    assert compose(asking(settings, tmp_path, server), logs.loggers, clock=clock, environ={}).ways.introspection
    assert faults(environ={}) == [(f"{where}.client_secret_env", "secret")]
    assert faults('x = ["owner"]') == [(f"{where}.roles.x", "by_hand")]
    second: dict[str, Any] = {
        'client_id = "g"\ntenant = "acme"\n': [("introspection.servers[1].client_secret_env", "value_error")],
        'client_id = "g"\ntenant = "acme"\nclient_secret_env = "GATEWAY_X"\n': [
            ("introspection.servers[1].client_secret_env", "value_error")
        ],
        'client_id = "g"\ntenant = "acme"\nclient_secret_env = "X"\nclient_secret_file = "x"\n': [
            ("introspection.servers[1].client_secret_env", "value_error")
        ],
        'client_id = "g"\ntenant = "acme"\nclient_secret = "x"\nclient_secret_env = "X"\n': [
            ("introspection.servers[1].client_secret", "extra_forbidden")
        ],
        'client_id = "g"\nclient_secret_env = "X"\n': [("introspection.servers[1].tenant_claim", "value_error")],
        'client_id = "g"\ntenant = "acme"\nclient_secret_env = "ACME_INTROSPECTION"\n': [
            ("introspection.servers[1].prefix", "unambiguous")
        ],
    }
    for more, found in second.items():
        assert faults(entry + more) == found, more
    plain = entry.replace('endpoint = "https', 'endpoint = "http')
    assert faults(plain + 'client_id = "g"\ntenant = "acme"\nclient_secret_env = "X"\n') == [
        ("introspection.servers[1].endpoint", "value_error")
    ]
    secret = tmp_path / "secret"
    secret.write_text(SECRET + "\n", encoding="utf-8")
    text = f'client_id = "g"\ntenant = "acme"\nclient_secret_file = "{secret}"\nprefix = "b_"\n'
    assert faults(entry + text) == [("introspection.servers[1].prefix", "unambiguous")]
