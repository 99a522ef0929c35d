"""Tests of the door itself: which issuers it has, what a person sees of them, and where clients' secrets come from."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.app import compose, create_app
from gateway.errors import ConfigurationFaults, Unauthenticated
from gateway.web.sign_in.flows import LIVES_S, Flow, Flows
from tests.authorization_server import SECRET, AuthorizationServer
from tests.browser import Browser
from tests.clock import SettableClock
from tests.conftest import LogCapture
from tests.house import House, house
from tests.sign_in.conftest import ENVIRON, LOGIN, SECRETLY, TENANT, WHERE, Configured, Lobby, an_issuer


@pytest.fixture
def another(clock: SettableClock) -> Iterator[AuthorizationServer]:
    """A second server, whose client has no secret."""
    with AuthorizationServer(clock, secret=None) as running:
        yield running


async def test_where_there_are_several_a_person_chooses(
    server: AuthorizationServer,
    another: AuthorizationServer,
    configured: Configured,
    clock: SettableClock,
    logs: LogCapture,
) -> None:
    """Issue 3: a chooser page; and an answer of one issuer is never taken for another's (RFC 9207, mix-up)."""
    text = LOGIN + an_issuer(server, more=TENANT + SECRETLY) + an_issuer(another, "<b>&partners", TENANT)
    text = text.replace('name = "<b>&partners"', 'name = "partners"')
    async with house(configured(text), clock, logs.loggers, environ=ENVIRON) as home:
        lobby = Lobby(home, server, clock, logs)
        await lobby.link("bob", "alice", another.url)
        browser = lobby.browser()
        page = await browser.go("/sign-in?next=/v1/me")

        assert page.status_code == 200
        assert re.findall(r'href="([^"]*)">([^<]*)<', page.text) == [
            (f"{WHERE}/sign-in/office?next=/v1/me", "Sign in at office &amp; co"),
            (f"{WHERE}/sign-in/partners?next=/v1/me", "Sign in at &lt;b&gt;&amp;partners &amp; co"),
        ]
        answer = await browser.go("/sign-in/partners?next=/v1/me")
        assert (answer.json()["profile"]["name"], another.shown) == ("bob", ["none"])

        callback = await lobby.browser().until("/sign-in/office", "/sign-in/office/callback")
        mixed = lobby.browsers[-1]
        assert (await mixed.go(callback.replace("/office/", "/partners/"))).status_code == 502
        assert lobby.refusals() == ["issuer_wrong"]
        assert another.shown == ["none"]


@pytest.mark.parametrize("wanted", ["https://evil.example", "//evil.example", "/\\evil.example", "/a&next=/b"])
async def test_nobody_is_sent_elsewhere(lobby: Lobby, wanted: str) -> None:
    """Issue 3: an open redirect is impossible, over the whole way."""
    for path in ("/sign-in", "/sign-in/office"):
        browser = lobby.browser()
        page = await browser.go(f"{path}?next={wanted}")
        assert str(page.url) == f"{WHERE}/signed-in"
        hosts = {re.match(r"https?://([^/]*)", url)[1] for url in browser.visited}  # type: ignore[index] # all are URLs
        assert hosts == {"gateway.test", lobby.server.url.removeprefix("http://")}


async def test_without_issuers_there_is_no_door_and_a_cookie_is_no_credential(home: House) -> None:
    """Design section 5: each kind is explicit in settings."""
    browser = Browser(home.app, WHERE)
    for path in ("/sign-in", "/sign-in/office", "/sign-in/office/callback", "/signed-in", "/signed-out"):
        assert (await browser.once(path)).status_code == 404
    assert (await browser.once("/sign-out", method="POST", data={})).status_code == 404
    answer = await home.get(None, "/v1/me", headers={"Cookie": "__Host-gateway=x"})
    assert (answer.status_code, answer.json()["detail"]) == (401, "Send a token: 'Authorization: Bearer gwp_…'.")


def test_a_client_whose_secret_is_not_there_does_not_serve(
    server: AuthorizationServer, configured: Configured, tmp_path: Path, logs: LogCapture
) -> None:
    """Every one is named at once, with where it should be; a command that serves nothing needs none."""
    files = {name: tmp_path / name for name in ("missing", "empty", "binary", "lines", "good")}
    files["empty"].write_text(" \n")
    files["binary"].write_bytes(b"\xff\xfe")
    files["lines"].write_text("one\ntwo\n")
    files["good"].write_text(f"{SECRET}\n")
    text = LOGIN + an_issuer(server, "variable", TENANT + SECRETLY)
    for index, (name, path) in enumerate(files.items()):
        other = an_issuer(server, name, f'{TENANT}client_secret_file = "{path}"\n')
        text += other.replace(server.url, f"https://id{index}.example")
    gateway = compose(configured(text), logs.loggers)

    with pytest.raises(ConfigurationFaults) as caught:
        create_app(gateway, logs.loggers, environ={"LOGIN_SECRET": " "})
    assert [fault.field for fault in caught.value.faults] == [
        "login.issuers[0].client_secret_env",
        *(f"login.issuers[{index}].client_secret_file" for index in range(1, 5)),
    ]
    assert SECRET not in str(caught.value)
    assert all(fault.rule == "secret" for fault in caught.value.faults)


def test_a_flood_of_beginnings_ends_the_oldest_and_memory_stays_bounded(clock: SettableClock) -> None:
    """Anybody may begin a sign-in; each is good for ten minutes at most."""
    flows = Flows(clock, capacity=3)
    flow = Flow(issuer="work", nonce="n", code_verifier="v", next="/")
    for number in range(5):
        flows.begin(f"state{number}", "browser", flow)

    def reason(state: str) -> str | None:
        try:
            assert flows.take(state, "browser") is flow
        except Unauthenticated as error:
            return error.reason
        return None

    assert [reason(f"state{number}") for number in range(5)] == ["state_unknown", "state_unknown", None, None, None]
    flows.begin("old", "browser", flow)
    clock.advance(LIVES_S)
    flows.begin("new", "browser", flow)
    assert list(flows._begun) == ["new"]
    assert [reason("old"), reason("new"), reason("new")] == ["state_unknown", None, "state_unknown"]
