"""Signing in and out with a real browser, at a provider that none of us wrote, over real connections."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest_asyncio
from playwright.async_api import Browser

from gateway.model import Identity
from gateway.settings import Settings
from tests.clock import RunningClock
from tests.conftest import LogCapture
from tests.house import House, house
from tests.provider.browsing import Surfer, chromium
from tests.provider.conftest import configured
from tests.provider.running import Provider
from tests.serving import free_port, served

COOKIE = "__Host-gateway"
ME = "/v1/me"
TOKENS = "/v1/me/tokens"
SIGN_INS = "/v1/me/sign-ins"
LAPTOP = {"name": "laptop", "expires_in_days": 1}


@dataclass
class Door:
    """A gateway that listens, with two issuers to sign in at, and browsers in front of it."""

    home: House
    url: str
    browser: Browser

    async def somebody(self) -> Surfer:
        """A new browser."""
        return await Surfer.new(self.browser, self.url)

    async def signed_in(self, name: str, issuer: str = "Example Ltd") -> Surfer:
        """Somebody who has signed in."""
        surfer = await self.somebody()
        await surfer.open("/sign-in")
        await surfer.press(issuer)
        await surfer.sign_in_at_the_provider(name)
        return surfer


def registered(issuer: str, url: str, name: str, **more: Any) -> dict[str, Any]:
    """The gateway as a client of the issuer (RFC 7591), as an operator would enter it there."""
    asked = {
        "redirect_uris": [f"{url}/sign-in/{name}/callback"],
        "post_logout_redirect_uris": [f"{url}/signed-out"],
        "application_type": "native",  # what it calls a client on this machine's own address
        **more,
    }
    answer = httpx2.post(f"{issuer}/reg", json=asked, trust_env=False)
    assert answer.status_code == 201, answer.text
    return dict(answer.json())


def settings_of(provider: Provider, url: str, folder: Path) -> str:
    """One confidential client, and one public one whose issuer tells emails at its userinfo endpoint alone."""
    staff, partners = provider.issuers
    confidential = registered(staff, url, "staff", id_token_signed_response_alg="ES256")
    public = registered(partners, url, "partners", token_endpoint_auth_method="none")
    secret = folder / "staff.secret"
    secret.write_text(confidential["client_secret"], encoding="utf-8")
    return f"""
        [login]
        public_url = "{url}"

        [[login.issuers]]
        name = "staff"
        title = "Example Ltd"
        issuer = "{staff}"
        client_id = "{confidential["client_id"]}"
        client_secret_file = "{secret}"
        algorithms = ["ES256"]
        tenant = "acme"

        [[login.issuers]]
        name = "partners"
        title = "Partners"
        issuer = "{partners}"
        client_id = "{public["client_id"]}"
        algorithms = ["RS256"]
        tenant = "acme"
        trust_email = true
    """


@pytest_asyncio.fixture
async def door(
    provider: Provider, settings: Settings, tmp_path: Path, running_clock: RunningClock, logs: LogCapture
) -> AsyncIterator[Door]:
    """The organisation acme; alice is linked to her account at the first issuer."""
    bound = free_port()
    url = f"http://localhost:{bound.getsockname()[1]}"
    ours = configured(tmp_path, settings, settings_of(provider, url, tmp_path))
    async with house(ours, running_clock, logs.loggers) as home:
        identity = Identity(issuer=provider.url, subject="alice", profile=home.id("alice"))
        await home.gateway.stores.identities.link(home.tenant, identity, running_clock.now())
        async with served(home.app, on=bound), chromium() as browser:
            yield Door(home, url, browser)


async def test_a_person_signs_in_works_and_signs_out_here_and_at_the_provider(door: Door) -> None:
    """Issue 3, "what it must show" 1; and what is left afterwards: nothing, here and behind the back button."""
    alice = await door.somebody()
    await alice.open("/signed-in")
    assert "not signed in" in await alice.text()
    await alice.open("/sign-in")
    assert {"Example Ltd", "Partners"} <= set((await alice.text()).splitlines())
    assert (await alice.ask(ME))["status"] == 401

    await alice.press("Example Ltd")
    await alice.sign_in_at_the_provider("alice")
    assert alice.page.url == f"{door.url}/signed-in"
    assert "alice" in await alice.text()
    me = (await alice.ask(ME))["body"]
    assert (me["profile"]["id"], me["credential"]["kind"]) == (door.home.id("alice"), "browser")

    # No script reads the cookie, it is for this host alone, and a write needs what another site can't know.
    cookie = (await alice.cookies())[COOKIE]
    assert (cookie["httpOnly"], cookie["secure"], cookie["sameSite"], cookie["path"]) == (True, True, "Lax", "/")
    assert await alice.page.evaluate("document.cookie") == ""
    assert (await alice.ask(TOKENS, "POST", LAPTOP))["status"] == 401
    assert (await alice.ask(TOKENS, "POST", LAPTOP, {"X-CSRF-Token": "guessed"}))["status"] == 401
    assert [one["name"] for one in (await alice.ask(TOKENS))["body"]["items"]] == ["test"]
    csrf = {"X-CSRF-Token": me["credential"]["csrf_token"]}
    assert (await alice.ask(TOKENS, "POST", LAPTOP, csrf))["status"] == 201

    await alice.open("/signed-in")
    await alice.press("Sign out")
    await alice.press("Yes, sign me out")
    await alice.page.wait_for_url(re.compile(f"{door.url}/signed-out"))
    assert COOKIE not in await alice.cookies()
    assert (await alice.ask(ME))["status"] == 401

    # The back button shows nothing of hers, and the cookie of before is nobody's.
    for _ in range(3):
        await alice.page.go_back()
        assert "alice" not in await alice.text()
    assert (await door.home.get(None, ME, headers={"Cookie": f"{COOKIE}={cookie['value']}"})).status_code == 401

    # It ended at the provider too: whoever sits down at this browser is asked who they are.
    await alice.open("/sign-in/staff")
    await alice.page.get_by_placeholder("Enter any login").wait_for()
    codes = [one.record.operation for one in await door.home.audit(kind="access") if "sign" in one.record.operation]
    assert codes == ["sign_in", "sign_out"]


async def test_a_person_sees_their_browsers_and_ends_one_of_them(door: Door) -> None:
    """Issue 3: "my sign-ins" with revoke; pomerium#6024: what has ended has ended everywhere."""
    here, elsewhere = await door.signed_in("alice"), await door.signed_in("alice")
    csrf = {"X-CSRF-Token": (await here.ask(ME))["body"]["credential"]["csrf_token"]}
    theirs = (await elsewhere.ask(ME))["body"]["credential"]["csrf_token"]
    items = (await here.ask(SIGN_INS))["body"]["items"]
    assert sorted(one["current"] for one in items) == [False, True]
    other = next(one["id"] for one in items if not one["current"])

    assert (await here.ask(f"{SIGN_INS}/{other}", "DELETE"))["status"] == 401
    assert (await here.ask(f"{SIGN_INS}/{other}", "DELETE", None, {"X-CSRF-Token": theirs}))["status"] == 401
    assert (await elsewhere.ask(ME))["status"] == 200
    assert (await here.ask(f"{SIGN_INS}/{other}", "DELETE", None, csrf))["status"] == 204

    assert (await elsewhere.ask(ME))["status"] == 401
    assert (await here.ask(ME))["status"] == 200
    await elsewhere.open("/signed-in")
    assert "alice" not in await elsewhere.text()

    # An admin's word ends the rest.
    assert (await door.home.send("erin", "DELETE", f"/v1/admin/people/{door.home.id('alice')}")).status_code == 204
    assert (await here.ask(ME))["status"] == 401


async def test_a_verified_email_comes_from_userinfo_and_an_unverified_one_opens_no_door(
    door: Door, provider: Provider
) -> None:
    """A public client with PKCE alone, RS256, and an ID token that holds no email (OpenID Connect Core section 5.4)."""
    dana = await door.signed_in("dana", "Partners")
    assert (await dana.ask(ME))["body"]["profile"]["id"] == door.home.id("dana")

    for name in ("bob", "alice"):  # bob's email is not verified; alice's account is linked at the other issuer alone
        surfer = await door.signed_in(name, "Partners")
        known = name == "alice"  # by her verified email
        assert (await surfer.ask(ME))["status"] == (200 if known else 401)
        assert ("no access here yet" in await surfer.text()) is not known


async def test_another_sites_page_writes_nothing_with_the_cookie(door: Door, provider: Provider) -> None:
    """The browser is the attacker's tool: it keeps the cookie back, and must not be told to throw it away either."""
    alice = await door.signed_in("alice")
    await alice.page.goto(f"{provider.url}/.well-known/openid-configuration")  # any page of another site
    script = """async ([url]) => {
        const form = document.createElement('form');
        form.method = 'post'; form.action = url; document.body.append(form); form.submit();
    }"""
    await alice.page.evaluate(script, [f"{door.url}/sign-out"])
    await alice.page.wait_for_url(f"{door.url}/**")
    assert "nothing was changed" in await alice.text()

    assert (await alice.ask(ME))["status"] == 200
    assert COOKIE in await alice.cookies()
    await alice.page.goto(f"{provider.url}/.well-known/openid-configuration")
    read = "async ([url]) => fetch(url, {credentials: 'include'}).then((answer) => answer.status, () => null)"
    assert await alice.page.evaluate(read, [door.url + ME]) is None
    assert [one["name"] for one in (await door.home.get("alice", TOKENS)).json()["items"]] == ["test"]
