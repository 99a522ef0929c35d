"""Tests that a plain user header counts from its proxy alone, names a subject alone, and is nothing anywhere else."""

from __future__ import annotations

from collections.abc import AsyncIterator
from ipaddress import ip_network
from typing import Any

import pytest
import pytest_asyncio

from gateway.identity.credentials import Credentials
from gateway.identity.proxy_headers import HeaderGuard, TrustedProxy, UserHeader
from gateway.model import Identity, TenantId
from gateway.settings import Settings
from tests.clock import SettableClock
from tests.conftest import LogCapture
from tests.proxied import PROXY, STRANGER, Behind, bearer, behind

USER = "X-Forwarded-User"
SETTINGS = f"""
[[proxies.headers]]
header = "{USER}"
networks = ["{PROXY}/32", "203.0.113.0/24", "2001:db8:7::/48"]
issuer = "staff-proxy"
tenant = "acme"

[[proxies.headers]]
header = "{USER}"
networks = ["198.51.100.200/32"]
issuer = "partner-proxy"
tenant = "acme"

[[proxies.headers]]
header = "Remote-User"
networks = ["127.0.0.2/32"]
issuer = "local-proxy"
tenant = "acme"
allow_loopback = true
"""


@pytest_asyncio.fixture
async def gateway(settings: Settings, clock: SettableClock, logs: LogCapture) -> AsyncIterator[Behind]:
    """A house behind three proxies, with alice and bob linked to what the first calls them."""
    async with behind(SETTINGS, settings, clock, logs) as made:
        for name, issuer, subject in (
            ("alice", "staff-proxy", "alice"),
            ("bob", "staff-proxy", "bob"),
            ("carol", "partner-proxy", "alice"),
            ("dana", "local-proxy", "dana"),
        ):
            await made.link(name, issuer, subject)
        yield made


async def test_a_user_header_counts_from_its_proxy_and_is_nothing_from_anywhere_else(gateway: Behind) -> None:
    """Design section 5.3: only from listed networks, stripped everywhere else; and so the request has no credential."""
    alice = (USER, "alice")
    for peer in (PROXY, "203.0.113.1", "203.0.113.255", f"::ffff:{PROXY}", "2001:db8:7::9", "2001:DB8:7:0::9"):
        assert await gateway.who(alice, peer=peer) == "alice by proxy_header", peer
    for peer in (
        STRANGER,
        "192.0.2.11",
        f"::ffff:{STRANGER}",
        f"::{PROXY}",  # the old compatible form is another address
        f"64:ff9b::{PROXY}",
        "2001:db8:8::9",
        "2001:db8:7::9%eth0",
        "127.0.0.1",
        "127.0.0.2",  # a proxy of another header
        "::1",
        "localhost",
        "testclient",
        f"{PROXY}:80",
        "192.0.2.010",
        "",
    ):
        assert await gateway.why_not(alice, peer=peer) == "credential_missing", peer
    assert await gateway.who(alice, peer="198.51.100.200") == "carol by proxy_header"  # another proxy's alice
    assert await gateway.who(("Remote-User", "dana"), peer="127.0.0.2") == "dana by proxy_header"
    assert await gateway.why_not(("Remote-User", "dana"), peer="127.0.0.1") == "credential_missing"
    assert await gateway.why_not(("Remote-User", "dana"), peer=PROXY) == "credential_missing"


async def test_no_forwarding_header_decides_who_the_peer_is(gateway: Behind) -> None:
    """Design section 5.3: the peer is the other end of the connection, whatever a chain of proxies says of it."""
    for name in ("X-Forwarded-For", "X-Real-IP", "Forwarded", "X-Client-IP", "CF-Connecting-IP", "True-Client-IP"):
        for claim in (PROXY, f"{PROXY}, {STRANGER}", f"{STRANGER}, {PROXY}", f"for={PROXY}"):
            assert await gateway.why_not((USER, "alice"), (name, claim), peer=STRANGER) == "credential_missing"
            assert await gateway.who((USER, "alice"), (name, claim), peer=PROXY) == "alice by proxy_header"
        for claim in (STRANGER, "127.0.0.1", f"for={STRANGER}"):
            assert await gateway.who((USER, "alice"), (name, claim), peer=PROXY) == "alice by proxy_header"


async def test_the_header_comes_once_and_its_twins_do_not_count(gateway: Behind) -> None:
    """Design section 5.3: exactly one value; issue 3, "header duplicates in any case and with underscores"."""
    alice = (USER, "alice")
    for second in ((USER, "alice"), (USER, "bob"), (USER.lower(), "bob"), (USER.upper(), "bob"), (USER, "")):
        assert await gateway.why_not(alice, second) == "credentials_several"
        assert await gateway.why_not(second, alice) == "credentials_several"
    for twin in ("X_Forwarded_User", "x_forwarded-user", "X-FORWARDED_USER", "x-forwarded_user"):
        assert await gateway.who(alice, (twin, "bob")) == "alice by proxy_header"
        assert await gateway.who((twin, "bob"), alice) == "alice by proxy_header"
        assert await gateway.why_not((twin, "alice")) == "credential_missing"
    for other in ("X-Forwarded-Users", "X-Forwarded-User-Id", "X.Forwarded.User", "XForwardedUser", "Remote_User"):
        assert await gateway.why_not((other, "alice")) == "credential_missing"


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b" ",
        b"alice, bob",
        b"alice,bob",
        b"alice,",
        b",",
        b"al\tice",
        b"al\x00ice",
        b"al\x7fice",
        b"al\x1bice",
        "alicé".encode(),
        "alicé".encode("latin-1"),
        "аlice".encode(),  # a Cyrillic letter
        "alice\u200b".encode(),
        "ａlice".encode(),
        b"\xff",
        b"a" * 256,
        b"(null)",
        b"-",
    ],
)
async def test_a_value_that_is_not_one_plain_name_is_refused(gateway: Behind, value: bytes) -> None:
    """Ours: no lists, no control characters, no letters that look alike, nobody's name for nobody; 255 at most."""
    assert await gateway.why_not((USER.lower().encode(), value)) == "proxy_header_malformed"
    assert await gateway.who((USER, "alice")) == "alice by proxy_header"


async def test_a_subject_is_compared_byte_for_byte(gateway: Behind) -> None:
    """Design section 5, "identity key"; what a proxy writes is neither decoded nor folded."""
    for subject in ("Alice", "ALICE", "alice@acme", "%61lice", "ali ce", "alice;", "a", "a" * 255, "alice/../bob", "'"):
        assert await gateway.why_not((USER, subject)) == "person_unknown", subject
    await gateway.link("bob", "staff-proxy", "uid=bob; ou=staff & 'more'")
    assert await gateway.who((USER, "uid=bob; ou=staff & 'more'")) == "bob by proxy_header"


async def test_a_user_header_names_neither_a_role_nor_a_tenant(gateway: Behind) -> None:
    """Design section 5: the tenant comes from the settings, roles from the profile; whatever else is sent."""
    claims = [
        ("X-Forwarded-Groups", "owner"),
        ("X-Forwarded-Email", "olga@example.com"),
        ("X-Forwarded-Preferred-Username", "olga"),
        ("X-Forwarded-Tenant", "globex"),
        ("X-Auth-Request-Groups", "admin"),
        ("Gateway-Tenant", "globex"),
        ("Remote-Groups", "owner"),
    ]
    me = (await gateway.ask((USER, "alice"), *claims)).json()

    assert (me["tenant"], me["profile"]["name"]) == ("acme", "alice")
    assert me["profile"]["roles"] == [{"role": "member", "agent": "*", "source": "assigned"}]
    assert (await gateway.ask((USER, "alice"), *claims, path="/v1/admin/people")).status_code == 403
    for subject in ("alice#owner", "role:owner", "globex/alice", "acme:alice"):
        assert await gateway.why_not((USER, subject)) == "person_unknown"


async def test_a_person_behind_a_proxy_does_all_that_they_may(gateway: Behind) -> None:
    """Ours: the proxy signed them in, so they reach what their roles allow, and only that."""
    home = gateway.home
    session = await home.open("alice")
    home.workspace().replace("MEMORY.md", "the runway code is 4711")
    read: dict[str, Any] = {
        "method": "POST",
        "path": f"/v1/sessions/{session}/tools/memory_get",
        "body": {"path": "MEMORY.md"},
    }

    assert "4711" in (await gateway.ask((USER, "alice"), **read)).text
    assert (await gateway.ask((USER, "bob"), **read)).status_code == 404
    made = await gateway.ask((USER, "alice"), method="POST", path="/v1/me/tokens", body={"name": "laptop"})
    assert made.json()["scopes"] == ["*"]
    record = (await home.audit(code="ok"))[-1].record
    assert record.principal == "proxy_header:staff-proxy#alice"


async def test_every_credential_beside_the_header_is_verified_and_of_the_same_person(gateway: Behind) -> None:
    """Design section 5: two that name different people refuse, and two of one person reach what both reach."""
    home = gateway.home
    alice, bob = (USER, "alice"), (USER, "bob")
    narrow = await home.token("alice", scopes=["gateway"])

    assert (await gateway.ask(alice, bearer(home.secrets["alice"]))).json()["profile"]["name"] == "alice"
    assert (await gateway.ask(alice, path="/v1/agents/flight/sessions")).status_code == 200
    assert (await gateway.ask(alice, bearer(narrow), path="/v1/agents/flight/sessions")).status_code == 403
    assert (await gateway.ask(alice, bearer(narrow))).status_code == 200
    assert await gateway.why_not(bob, bearer(home.secrets["alice"])) == "credentials_of_different_people"
    assert await gateway.why_not(alice, bearer("gwp_x")) == "token_malformed"
    assert await gateway.why_not((USER, "a,b"), bearer(home.secrets["alice"])) == "proxy_header_malformed"
    assert await gateway.why_not((USER, "nobody"), bearer(home.secrets["alice"])) == "person_unknown"
    # From anywhere else the header is not there, so the token stands alone.
    assert await gateway.who(bob, bearer(home.secrets["alice"]), peer=STRANGER) == "alice by access_token"


async def test_somebody_new_gets_a_profile_only_where_the_settings_say_so(
    settings: Settings, clock: SettableClock, logs: LogCapture
) -> None:
    """Design section 5: an admin adds people, or `provision` does; the profile has the role member and no email."""
    async with behind(
        SETTINGS.replace('tenant = "acme"', 'tenant = "acme"\nprovision = true', 1), settings, clock, logs
    ) as it:
        welcome = await it.ask((USER, "eve"))
        again = await it.ask((USER, "eve"))

        assert welcome.json()["profile"] == again.json()["profile"]
        assert (welcome.json()["profile"]["name"], welcome.json()["profile"]["emails"]) == ("eve", [])
        assert welcome.json()["profile"]["roles"] == [{"role": "member", "agent": "*", "source": "assigned"}]
        assert await it.why_not((USER, "eve"), peer="198.51.100.200") == "person_unknown"  # the other proxy's
        assert await it.why_not(("Remote-User", "eve"), peer="127.0.0.2") == "person_unknown"
        arrivals = [one.record for one in await it.home.audit() if one.record.operation.startswith("identity.")]
        assert [one.details for one in arrivals] == [{"issuer": "staff-proxy", "subject": "eve"}]


async def test_a_page_of_another_site_can_not_write_through_the_proxys_cookie(gateway: Behind) -> None:
    """Ours: a proxy signs in whoever's browser has its cookie, so a write must not come from another site's page."""
    alice = (USER, "alice")
    write: dict[str, Any] = {"method": "POST", "path": "/v1/me/tokens", "body": {"name": "laptop"}}
    elsewhere = [
        [("Sec-Fetch-Site", "cross-site")],
        [("Sec-Fetch-Site", "same-site")],
        [("Sec-Fetch-Site", "")],
        [("Sec-Fetch-Site", "same-origin"), ("Sec-Fetch-Site", "cross-site")],
        [("Origin", "https://evil.example")],
        [("Origin", "null")],
        [("Origin", "")],
        [("Origin", "http://[")],
        [("Origin", "http://gateway.test"), ("Origin", "https://evil.example")],
        [("Origin", "http://gateway.test.evil.example")],
    ]
    for sent in elsewhere:
        assert await gateway.why_not(alice, *sent, **write) == "cross_site", sent
        assert (await gateway.ask(alice, *sent)).status_code == 200  # another site's page can't see what it reads
    assert len((await gateway.ask(alice, path="/v1/me/tokens")).json()["items"]) == 1  # the one of the house
    for sent in (
        [],
        [("Sec-Fetch-Site", "same-origin")],
        [("Sec-Fetch-Site", "none")],
        [("Origin", "http://gateway.test")],
        [("Origin", "HTTP://Gateway.Test")],
    ):
        assert (await gateway.ask(alice, *sent, **write)).status_code == 201, sent


async def test_the_header_is_gone_before_any_route_looks(gateway: Behind, logs: LogCapture) -> None:
    """Design section 5.3: stripped everywhere, public routes and paths that are not there included."""
    for path, status in (("/livez", 200), ("/openapi.json", 200), ("/v1/nothing", 404), ("/v1/me", 401)):
        assert (await gateway.ask((USER, "alice"), peer=STRANGER, path=path)).status_code == status


async def test_a_merged_or_disabled_person_does_not_come_back_through_the_proxy(gateway: Behind) -> None:
    """Design section 5: who leaves is disabled, and their sign-ins end at once, warm or not."""
    home = gateway.home
    assert await gateway.who((USER, "alice")) == "alice by proxy_header"
    assert (await home.send("olga", "DELETE", f"/v1/admin/people/{home.id('alice')}")).status_code == 204
    assert await gateway.why_not((USER, "alice")) == "profile_disabled"
    await home.gateway.stores.identities.unlink(
        home.tenant, Identity(issuer="staff-proxy", subject="bob", profile=home.id("bob"))
    )
    assert await gateway.why_not((USER, "bob")) == "person_unknown"


async def test_the_verifier_asks_for_the_address_itself() -> None:
    """Ours: whoever forgets the guard in front of it opens nothing."""
    networks = (ip_network(f"{PROXY}/32"),)
    header = UserHeader([TrustedProxy(header="X-User", networks=networks, issuer="staff", tenant=TenantId("acme"))])

    named = await header.verify(["alice"], Credentials(peer=PROXY))

    assert named is not None
    assert (named.issuer, named.subject, named.credential) == ("staff", "alice", "proxy_header")
    for peer in (STRANGER, "127.0.0.1", None):
        assert await header.verify(["alice"], Credentials(peer=peer)) is None


def test_the_guard_folds_names_as_the_loosest_proxy_does() -> None:
    """Ours: by case and by underscore; everything else passes in order, and as it is where there is nothing to take."""
    networks = (ip_network(f"{PROXY}/32"),)
    proxy = TrustedProxy(header="X-User", networks=networks, issuer="staff", tenant=TenantId("acme"))
    guard = HeaderGuard({b"x-user": [proxy]})
    plain = [(b"host", b"gateway"), (b"x-users", b"a")]
    sent = [(b"host", b"gateway"), (b"x-user", b"a"), (b"X-USER", b"b"), (b"x_user", b"c"), (b"accept", b"*/*")]

    assert guard(plain, STRANGER) is plain
    assert guard(sent, STRANGER) == guard(sent, None) == [sent[0], sent[-1]]
    assert guard(sent, PROXY) == [sent[0], sent[1], sent[-1]]
