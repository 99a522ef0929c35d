"""Tests of who somebody is here once an issuer has said who they are there, and of what they may then do."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest

from gateway.errors import Unavailable
from gateway.identity import cookies
from gateway.model import Identity
from tests.authorization_server import AuthorizationServer
from tests.browser import Browser
from tests.clock import SettableClock
from tests.conftest import LogCapture
from tests.house import house
from tests.issuer import ABSENT
from tests.loopback import Answer
from tests.sign_in.conftest import ENVIRON, LOGIN, SECRETLY, TENANT, Configured, Lobby, an_issuer

Opened = Callable[[str], AbstractAsyncContextManager[Lobby]]


@pytest.fixture
def opened(
    server: AuthorizationServer, configured: Configured, clock: SettableClock, logs: LogCapture
) -> Callable[[str], AbstractAsyncContextManager[Lobby]]:
    """An organisation whose issuer is configured with these lines besides."""

    @asynccontextmanager
    async def opening(more: str) -> AsyncIterator[Lobby]:
        settings = configured(LOGIN + an_issuer(server, more=SECRETLY + more))
        async with house(settings, clock, logs.loggers, environ=ENVIRON) as home:
            yield Lobby(home, server, clock, logs)

    return opening


async def name_of(browser: Browser) -> str | None:
    """Who a browser is signed in as."""
    answer = await browser.once("/v1/me")
    return str(answer.json()["profile"]["name"]) if answer.status_code == 200 else None


TRUSTED = TENANT + "trust_email = true\n"
HERS = {"email": " Alice@Example.com", "email_verified": True}


@pytest.mark.parametrize(
    ("more", "claims", "userinfo", "who"),
    [
        (TRUSTED, HERS, {}, "alice"),
        (TENANT, HERS, HERS, None),
        (TRUSTED, HERS | {"email_verified": "true"}, HERS, None),
        (TRUSTED, HERS | {"email_verified": False}, HERS, None),
        (TRUSTED, {"email": "nobody@example.com", "email_verified": True}, {}, None),
        (TRUSTED, {}, HERS, "alice"),
        (TRUSTED, {}, {}, None),
        (TRUSTED, {}, HERS | {"email_verified": False}, None),
        (TRUSTED, {"email": "nobody@example.com"}, HERS, None),
        # One address in the token and another, verified one at the endpoint: whoever changes it in between is not her.
        (TRUSTED, {"email": "alice@example.com"}, {"email": "mallory@example.com", "email_verified": True}, None),
        (TRUSTED, {"email": "alice@example.com"}, {"email_verified": True}, None),
        (TRUSTED, {"email_verified": True}, {"email": "alice@example.com"}, None),
        (TRUSTED, {"email": "alice@example.com"}, HERS, "alice"),
        ('tenant_claim = "org"\ntrust_email = true\n', HERS | {"org": "acme"}, {}, "alice"),
        ('tenant_claim = "org"\ntrust_email = true\n', HERS, {"org": "acme"}, "alice"),
        ('tenant_claim = "org"\ntrust_email = true\n', HERS, {"org": "globex"}, None),
        ('tenant_claim = "org"\ntrust_email = true\n', HERS, {}, None),
    ],
)
async def test_a_verified_email_of_a_trusted_issuer_links_and_nothing_less(
    opened: Opened, more: str, claims: dict[str, Any], userinfo: dict[str, Any], who: str | None
) -> None:
    """Design section 5, identity key; a claim of the signed token wins over the userinfo endpoint, which is asked for
    what is missing (OpenID Connect Core section 5.4)."""
    async with opened(more) as lobby:
        lobby.server.account = "00u1"
        lobby.server.faults.claims = claims
        lobby.server.faults.userinfo = userinfo
        browser = lobby.browser()
        await browser.go("/sign-in")

        assert await name_of(browser) == who
        assert await lobby.rows() == (0 if who is None else 1)


@pytest.mark.parametrize(
    ("faults", "reason"),
    [
        ({"userinfo": {"sub": "another"}}, ["userinfo_wrong"]),
        ({"userinfo": {"sub": ABSENT}}, ["userinfo_wrong"]),
        ({"userinfo_answer": Answer(b"[]")}, ["userinfo_wrong"]),
        ({"userinfo_answer": Answer(b"a JWT")}, ["userinfo_wrong"]),
        ({"userinfo_answer": Answer(b"{}", 403)}, ["userinfo_wrong"]),
        ({"userinfo_answer": Answer(b"x" * 300_000)}, ["unavailable"]),
        ({"userinfo_answer": Answer(b"{}")}, ["userinfo_wrong"]),
        ({"metadata": {"userinfo_endpoint": ABSENT}}, []),
        ({"token": {"access_token": ABSENT}, "claims": {"at_hash": ABSENT}}, []),
    ],
)
async def test_what_the_userinfo_endpoint_says_is_of_the_same_person_or_nobodys(
    opened: Opened, faults: dict[str, Any], reason: list[str]
) -> None:
    """OpenID Connect Core section 5.3.2: `sub` must be that of the ID token. Without an endpoint there is no email."""
    async with opened(TRUSTED) as lobby:
        for kind, value in faults.items():
            setattr(lobby.server.faults, kind, value)
        browser = lobby.browser()
        page = await browser.go("/sign-in")

        assert page.status_code in (403, 502, 503)
        assert lobby.refusals() == reason
        assert await lobby.rows() == 0


async def test_an_issuer_that_provisions_makes_a_member_of_whoever_is_new(opened: Opened) -> None:
    """As for bearer tokens: once, and only where the settings say so."""
    async with opened(TENANT + "provision = true\n") as lobby:
        first = await lobby.signed_in("frank")
        again = await lobby.signed_in("frank")

        assert await name_of(first) == await name_of(again) == "frank"
        mine = (await first.once("/v1/me")).json()
        assert mine["profile"]["roles"] == [{"role": "member", "agent": "*", "source": "assigned"}]
        assert mine["profile"]["id"] == (await again.once("/v1/me")).json()["profile"]["id"]


ROLES = TENANT + '[login.issuers.roles]\nleads = ["supervisor@flight"]\n'


@pytest.mark.parametrize("where", ["claims", "userinfo"])
async def test_groups_of_the_issuer_are_roles_as_long_as_the_sign_in_lasts(opened: Opened, where: str) -> None:
    """Issue 3, groups to roles; the claim is kept with the sign-in, and another sign-in has its own."""
    async with opened(ROLES) as lobby:
        await lobby.link("alice", "alice")
        setattr(lobby.server.faults, where, {"groups": ["leads", "others"]})
        leading = await lobby.signed_in()
        setattr(lobby.server.faults, where, {"groups": []})
        plain = await lobby.signed_in()
        path = "/v1/sessions/" + await lobby.home.open("bob")

        assert (await leading.once(path)).status_code == 200
        assert (await plain.once(path)).status_code == 404
        assert (await leading.once(path)).status_code == 200


async def test_my_sign_ins_are_mine_and_i_end_them(lobby: Lobby) -> None:
    """Issue 3: a list of my sign-ins with revoke; at once, also for a browser that was just here; and nobody else's."""
    await lobby.link("bob", "bob")
    laptop = await lobby.signed_in()
    await lobby.later(1)
    phone = lobby.browser()
    phone.user_agent = "Mozilla/5.0 (iPhone; CPU iPhone OS 19_0 like Mac OS X) Version/19.0 Mobile/15E148 Safari/604.1"
    await phone.go("/sign-in")
    his = await lobby.signed_in("bob")
    await lobby.later(120)
    mine = (await laptop.once("/v1/me/sign-ins")).json()["items"]

    assert [(one["user_agent"], one["current"]) for one in mine] == [
        ("Safari on iPhone", False),
        ("Firefox on Linux", True),
    ]
    assert {one["issuer"] for one in mine} == {lobby.server.url}
    assert (mine[1]["created_at"], mine[1]["last_seen_at"], mine[1]["expires_at"]) == (
        "2026-12-01T09:00:00Z",
        "2026-12-01T09:02:01Z",
        "2026-12-01T21:00:00Z",
    )
    token = (await laptop.once("/v1/me")).json()["credential"]["csrf_token"]
    headers = {"X-CSRF-Token": token}
    theirs = (await his.once("/v1/me/sign-ins")).json()["items"][0]["id"]
    for one in (theirs, "sgn_00000000000000000000000000"):
        path = f"/v1/me/sign-ins/{one}"
        assert (await laptop.once(path, method="DELETE", headers=headers)).status_code == 404
    assert await name_of(his) == "bob"

    assert await name_of(phone) == "alice"
    path = f"/v1/me/sign-ins/{mine[0]['id']}"
    assert (await laptop.once(path, method="DELETE", headers=headers)).status_code == 204
    assert await name_of(phone) is None
    assert (await laptop.once(path, method="DELETE", headers=headers)).status_code == 404
    assert [one["current"] for one in (await laptop.once("/v1/me/sign-ins")).json()["items"]] == [True]
    # With a token there is no browser among them that asks.
    assert [one["current"] for one in (await lobby.home.get("alice", "/v1/me/sign-ins")).json()["items"]] == [False]
    await lobby.later(3_600)
    assert (await lobby.home.get("alice", "/v1/me/sign-ins")).json()["items"] == []


@pytest.mark.parametrize("how", ["disable", "unlink", "revoke", "expire", "idle"])
async def test_a_turn_token_ends_with_the_sign_in_that_it_was_made_with(lobby: Lobby, how: str) -> None:
    """Design section 5.5: it carries no more than the credential it was made from, nor longer."""
    browser = await lobby.signed_in()
    headers = {"X-CSRF-Token": cookies.csrf_token(browser.cookies[cookies.COOKIE])}
    key = lobby.home.private("alice")
    await browser.once("/v1/agents/flight/sessions", method="POST", json={"kind": "direct"}, headers=headers)
    if how == "expire":
        for _ in range(12):
            await lobby.later(3_500)
            assert await name_of(browser) == "alice"
        await lobby.later(1_100)
    asked = await browser.once(f"/v1/sessions/{key}/context", method="POST", json={"turn_token": True}, headers=headers)
    bearer = {"Authorization": f"Bearer {asked.json()['turn_token']}"}

    async def call() -> int:
        path = f"/v1/sessions/{key}/tools/memory_get"
        return (await lobby.home.post(None, path, {"path": "AGENTS.md"}, headers=bearer)).status_code

    assert await call() == 200

    identities = lobby.home.gateway.stores.identities
    alice, tenant = lobby.home.id("alice"), lobby.home.tenant
    match how:
        case "disable":
            await identities.change_profile(tenant, alice, name=None, emails=None, disabled=True)
        case "unlink":
            await identities.unlink(tenant, Identity(issuer=lobby.server.url, subject="alice", profile=alice))
        case "revoke":
            mine = (await browser.once("/v1/me/sign-ins")).json()["items"][0]["id"]
            await lobby.home.gateway.stores.sign_ins.end(tenant, alice, mine, lobby.clock.now())
        case "expire":
            await lobby.later(100)
        case "idle":
            await lobby.later(899)
            assert await call() == 200
            await lobby.later(1)
    assert await call() == 401


async def test_nobody_is_signed_in_or_out_when_the_audit_can_not_be_written(
    lobby: Lobby, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Design section 12: the audit first; else the change does not happen."""
    browser = await lobby.signed_in()
    page = await browser.go("/signed-in")

    async def away(*_: object) -> None:
        raise Unavailable("The audit can't be written.")

    with monkeypatch.context() as broken:
        broken.setattr(lobby.home.gateway.stores.audit, "append", away)
        assert (await lobby.browser().go("/sign-in")).status_code == 503
        assert (await browser.submit(page)).status_code == 503
        lobby.server.account = "nobody"
        assert (await lobby.browser().go("/sign-in")).status_code == 503
    assert await lobby.rows() == 1
