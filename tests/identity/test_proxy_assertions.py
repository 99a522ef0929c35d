"""Tests that a proxy's signed assertion is worth what the proxy signed for us, in its own header and nowhere else."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import orjson
import pytest
import pytest_asyncio

from gateway.settings import Settings
from tests.clock import SettableClock
from tests.conftest import LogCapture
from tests.issuer import ABSENT, LocalIssuer, sign, signing_key
from tests.loopback import Answer
from tests.proxied import STRANGER, Behind, Header, bearer, behind

CERTS = "/cdn-cgi/access/certs"
ACCESS, POMERIUM, IAP = "Cf-Access-Jwt-Assertion", "X-Pomerium-Jwt-Assertion", "X-Goog-Iap-Jwt-Assertion"
TAG = "32eafc7626e974616deaf0dc3ce63d7b"
BACKEND = "/projects/1234/global/backendServices/5678"


def settings_text(proxy: LocalIssuer) -> str:
    """Three proxies as their makers describe them, their keys all on this machine; and a plain OIDC issuer that has
    the same name as the first, as Cloudflare can be one too."""
    return f"""
    [[proxies.assertions]]
    header = "{ACCESS}"
    issuer = "{proxy.url}"
    jwks_uri = "{proxy.url}{CERTS}"
    audience = "{TAG}"
    algorithms = ["RS256"]
    tenant = "acme"
    trust_email = true

    [[proxies.assertions]]
    header = "{POMERIUM}"
    issuer = "app.example.com"
    jwks_uri = "{proxy.url}/keys"
    audience = "app.example.com"
    algorithms = ["ES256"]
    tenant_claim = "org"
    roles = {{ leads = ["supervisor@flight"] }}

    [[proxies.assertions]]
    header = "{IAP}"
    issuer = "https://cloud.google.com/iap"
    jwks_uri = "{proxy.url}/keys"
    audience = "{BACKEND}"
    algorithms = ["ES256"]
    tenant = "acme"
    provision = true

    [[oidc.issuers]]
    issuer = "{proxy.url}"
    jwks_uri = "{proxy.url}{CERTS}"
    audience = "gateway-api"
    algorithms = ["RS256"]
    tenant = "acme"
    accept_plain_typ = true
    scopes = "person"
    """


class Proxy(LocalIssuer):
    """What signs the assertions of all three, with the keys that each publishes."""

    def __init__(self, clock: SettableClock) -> None:
        super().__init__(clock)
        self.keys = [signing_key("iap-1"), signing_key("access-1", "RS256"), signing_key("access-2", "RS256")]

    def documents(self) -> None:
        """Publishes the keys under the path that Cloudflare has them under, too."""
        self.answers[CERTS] = Answer(orjson.dumps({"keys": [key.published() for key in self.keys]}))

    def assertion(self, key: str, claims: dict[str, Any], **header: Any) -> str:
        """An assertion as a proxy writes it: a plain type."""
        signed = next(one for one in self.keys if one.kid == key)
        return sign({"alg": signed.algorithm, "typ": "JWT", "kid": key, **header}, claims, signed)

    def access(self, subject: Any = "7335d417", key: str = "access-1", **claims: Any) -> Header:
        """Of Cloudflare Access."""
        usual = {
            "aud": [TAG],
            "email": "alice@example.com",
            "iss": self.url,
            "type": "app",
            "identity_nonce": "6ei69kawdKzMIAPF",
            "sub": subject,
            "country": "US",
        }
        return ACCESS, self.assertion(key, self._times() | usual | claims)

    def pomerium(self, subject: Any = "user-1", **claims: Any) -> Header:
        """Of Pomerium."""
        usual = {
            "aud": "app.example.com",
            "iss": "app.example.com",
            "sub": subject,
            "user": subject,
            "email": "alice@example.com",
            "groups": ["owner", "admin", "leads"],
            "org": "acme",
        }
        return POMERIUM, self.assertion("iap-1", self._times() | usual | claims)

    def iap(self, subject: Any = "accounts.google.com:1", **claims: Any) -> Header:
        """Of Google IAP."""
        usual = {
            "aud": BACKEND,
            "azp": BACKEND,
            "iss": "https://cloud.google.com/iap",
            "sub": subject,
            "email": "alice@example.com",
            "hd": "example.com",
        }
        return IAP, self.assertion("iap-1", self._times() | usual | claims)

    def _times(self) -> dict[str, Any]:
        now = int(self.clock.now().timestamp())
        return {"iat": now, "nbf": now, "exp": now + 300}


@pytest.fixture
def proxy(clock: SettableClock) -> Iterator[Proxy]:
    """A running one."""
    with Proxy(clock) as running:
        running.documents()
        yield running


@pytest_asyncio.fixture
async def gateway(settings: Settings, clock: SettableClock, logs: LogCapture, proxy: Proxy) -> AsyncIterator[Behind]:
    """A house behind them."""
    async with behind(settings_text(proxy), settings, clock, logs) as made:
        await made.link("bob", "app.example.com", "user-1")
        await made.link("bob", "https://cloud.google.com/iap", "accounts.google.com:2")
        yield made


async def test_an_assertion_is_the_person_that_the_proxy_signed_for(gateway: Behind, proxy: Proxy) -> None:
    """Design section 5.2: Cloudflare Access, Pomerium and IAP as they sign; from any peer, since it is signed."""
    assert await gateway.who(proxy.access()) == "alice by proxy_assertion"  # by the email that it vouches for
    assert await gateway.who(proxy.access(email=ABSENT), peer=STRANGER) == "alice by proxy_assertion"  # linked by now
    assert await gateway.who(proxy.access(key="access-2"), peer="::1") == "alice by proxy_assertion"
    assert await gateway.who(proxy.pomerium()) == "bob by proxy_assertion"
    assert await gateway.who(proxy.iap("accounts.google.com:2")) == "bob by proxy_assertion"
    assert await gateway.who((ACCESS.lower(), proxy.access()[1])) == "alice by proxy_assertion"
    me = (await gateway.ask(proxy.pomerium())).json()
    assert me["credential"]["expires_at"] is not None
    assert me["profile"]["roles"] == [
        {"role": "member", "agent": "*", "source": "assigned"},
        {"role": "supervisor", "agent": "flight", "source": "claim"},  # and the other groups are nothing here
    ]


async def test_what_a_proxy_did_not_sign_for_us_is_refused(gateway: Behind, proxy: Proxy) -> None:
    """Design section 5.1 and 5.2: the same checks as of a token, one by one, beside the assertion that is good."""
    now = int(gateway.home.gateway.clock.now().timestamp())
    usual: dict[str, Any] = {"sub": "7335d417", "aud": [TAG], "iss": proxy.url, "iat": now, "exp": now + 300}
    good = proxy.access()[1]
    table: list[tuple[Header, str]] = [
        (proxy.access(aud=["another"]), "audience_wrong"),
        (proxy.access(aud=ABSENT), "audience_wrong"),
        (proxy.access(aud=BACKEND), "audience_wrong"),
        (proxy.access(iss="https://other.example"), "issuer_unknown"),
        (proxy.access(iss="https://cloud.google.com/iap"), "issuer_unknown"),  # of another header
        (proxy.access(exp=now - 60, iat=now - 600), "token_expired"),
        (proxy.access(exp=ABSENT), "expiry_missing"),
        (proxy.access(iat=ABSENT), "issued_at_missing"),
        (proxy.access(nbf=now + 600), "not_yet_valid"),
        (proxy.access("", common_name="ci.access"), "subject_missing"),  # a service token of Cloudflare
        (proxy.access(ABSENT), "subject_missing"),
        (proxy.access("a\x00b"), "claim_malformed"),
        (proxy.access(cnf={"jkt": "x"}), "sender_constrained"),
        (proxy.access(events={}), "id_token"),
        (proxy.access(nonce="x"), "id_token"),
        (proxy.pomerium(org="nowhere"), "tenant_unknown"),
        (proxy.pomerium(org=ABSENT), "tenant_missing"),
        (proxy.pomerium(iss="APP.example.com"), "issuer_unknown"),
        (proxy.pomerium(iss="https://app.example.com"), "issuer_unknown"),
        (proxy.pomerium("USER-1"), "person_unknown"),
        ((ACCESS, proxy.assertion("access-1", usual, typ="at+jwt")), "type_not_allowed"),
        ((ACCESS, proxy.assertion("access-1", usual, typ="logout+jwt")), "type_not_allowed"),
        ((ACCESS, proxy.assertion("iap-1", usual)), "algorithm_not_allowed"),
        ((ACCESS, proxy.assertion("access-1", usual, kid="gone")), "key_unknown"),
        ((ACCESS, proxy.assertion("access-1", usual, jku=proxy.url)), "header_not_allowed"),
        ((ACCESS, good[:-8] + "AAAAAAAA"), "signature_wrong"),
        ((ACCESS, "eyJhbGciOiJub25lIiwidHlwIjoiSldUIn0.e30."), "token_malformed"),
        ((ACCESS, ""), "token_malformed"),
        ((ACCESS, "alice"), "token_malformed"),
        ((ACCESS, f"Bearer {good}"), "token_malformed"),
        ((ACCESS, gateway.home.secrets["alice"]), "token_malformed"),
        ((ACCESS, good + "x" * 20_000), "token_too_long"),
    ]
    for sent, reason in table:
        assert await gateway.why_not(sent) == reason, (sent[0], reason)
    assert await gateway.who((ACCESS, good)) == "alice by proxy_assertion"


async def test_an_assertion_is_no_bearer_token_and_a_token_no_assertion(gateway: Behind, proxy: Proxy) -> None:
    """Design section 5.2: the same issuer signs both here; each counts in its own header alone."""
    assertion = proxy.access()[1]
    now = int(gateway.home.gateway.clock.now().timestamp())
    claims = {"iss": proxy.url, "aud": "gateway-api", "sub": "7335d417", "iat": now, "exp": now + 300, "azp": "app"}
    token = proxy.assertion("access-1", claims)
    assert await gateway.who((ACCESS, assertion)) == "alice by proxy_assertion"
    assert await gateway.who(bearer(token)) == "alice by oidc"

    assert await gateway.why_not(bearer(assertion)) == "audience_wrong"
    assert await gateway.why_not((ACCESS, token)) == "audience_wrong"
    assert await gateway.why_not((POMERIUM, assertion)) == "issuer_unknown"
    assert await gateway.why_not((IAP, proxy.pomerium()[1])) == "issuer_unknown"
    assert await gateway.why_not(("Cookie", f"CF_Authorization={assertion}")) == "credential_missing"
    assert await gateway.why_not((ACCESS.replace("-", "_"), assertion)) == "credential_missing"


async def test_two_assertions_or_one_beside_a_token(gateway: Behind, proxy: Proxy) -> None:
    """Design section 5: every one is verified; of two people they refuse, of one they reach what both reach."""
    home = gateway.home
    alice = proxy.access()
    narrow = await home.token("alice", scopes=["gateway"])
    assert await gateway.who(alice) == "alice by proxy_assertion"

    assert await gateway.why_not(alice, alice) == "credentials_several"
    assert await gateway.why_not(alice, (ACCESS.upper(), proxy.access("x")[1])) == "credentials_several"
    assert await gateway.why_not(alice, proxy.pomerium()) == "credentials_of_different_people"
    assert await gateway.why_not(alice, bearer(home.secrets["bob"])) == "credentials_of_different_people"
    assert await gateway.why_not(alice, bearer("gwp_x")) == "token_malformed"
    assert await gateway.why_not((ACCESS, "x"), bearer(home.secrets["alice"])) == "token_malformed"
    assert (await gateway.ask(alice, bearer(home.secrets["alice"]))).status_code == 200
    assert (await gateway.ask(proxy.pomerium(), proxy.iap("accounts.google.com:2"))).status_code == 200
    assert (await gateway.ask(alice, path="/v1/agents/flight/sessions")).status_code == 200
    assert (await gateway.ask(alice, bearer(narrow), path="/v1/agents/flight/sessions")).status_code == 403


async def test_an_email_links_only_where_the_operator_says_that_the_proxy_vouches(
    gateway: Behind, proxy: Proxy
) -> None:
    """Design section 5, "identity key": proxies write no `email_verified`, so `trust_email` is the operator's word; one
    that the proxy itself calls unverified counts for nothing, and a reassigned one inherits nothing."""
    for unverified in (False, "true", None):
        assert await gateway.why_not(proxy.access("c-1", email_verified=unverified)) == "person_unknown"
    assert await gateway.why_not(proxy.pomerium("a-1")) == "person_unknown"  # trusts no email
    stranger = await gateway.ask(proxy.iap())  # provisions, and trusts no email
    assert stranger.json()["profile"]["name"] == "accounts.google.com:1"
    assert stranger.json()["profile"]["emails"] == []

    assert await gateway.who(proxy.access("a-1", email=" Alice@Example.com ")) == "alice by proxy_assertion"
    assert await gateway.why_not(proxy.access("a-2")) == "email_reassigned"
    assert await gateway.who(proxy.access("b-1", email="bob@example.com", email_verified=True)) == (
        "bob by proxy_assertion"
    )


async def test_a_client_of_the_proxy_is_a_service_and_no_person(gateway: Behind, proxy: Proxy) -> None:
    """Design section 5: a service is never linked by itself, nor by a person's email."""
    sent = proxy.access("robot", client_id="robot")

    assert await gateway.why_not(sent) == "service_not_linked"
    assert await gateway.why_not(proxy.iap("robot", gty="client-credentials")) == "service_not_linked"


async def test_keys_of_a_proxy_rotate_with_an_overlap(gateway: Behind, proxy: Proxy, clock: SettableClock) -> None:
    """Cloudflare publishes the key before beside the new one; one that is gone stops working when keys are fetched."""
    old = proxy.access("7335d417", exp=int(clock.now().timestamp()) + 3_000)
    assert await gateway.who(old) == "alice by proxy_assertion"

    proxy.keys.append(signing_key("access-3", "RS256"))
    proxy.documents()
    clock.advance(31)  # past the cool-down of unknown key ids
    await gateway.home.gateway.epochs.poll()
    assert await gateway.who(proxy.access(key="access-3")) == "alice by proxy_assertion"
    assert await gateway.who(old) == "alice by proxy_assertion"

    proxy.keys = [one for one in proxy.keys if one.kid != "access-1"]
    proxy.documents()
    clock.advance(300)
    await gateway.home.gateway.epochs.poll()
    assert await gateway.why_not(old) == "key_unknown"
    assert await gateway.who(proxy.access(key="access-3")) == "alice by proxy_assertion"


async def test_a_proxy_whose_keys_can_not_be_fetched_refuses_with_a_503(gateway: Behind, proxy: Proxy) -> None:
    """Design section 12: an outage refuses and never allows, also beside a token that is good."""
    proxy.go_down()
    for sent in ([proxy.access()], [proxy.access(), bearer(gateway.home.secrets["alice"])]):
        assert (await gateway.ask(*sent)).status_code == 503
    assert await gateway.who(bearer(gateway.home.secrets["alice"])) == "alice by access_token"


async def test_a_page_of_another_site_can_not_write_through_the_proxys_cookie(gateway: Behind, proxy: Proxy) -> None:
    """Ours: a proxy asserts whoever's browser has its cookie, so a write must not come from another site's page."""
    write: dict[str, Any] = {"method": "POST", "path": "/v1/me/tokens", "body": {"name": "laptop"}}

    assert await gateway.why_not(proxy.access(), ("Sec-Fetch-Site", "cross-site"), **write) == "cross_site"
    assert await gateway.why_not(proxy.access(), ("Origin", "https://evil.example"), **write) == "cross_site"
    assert (await gateway.ask(proxy.access(), ("Sec-Fetch-Site", "same-origin"), **write)).status_code == 201
