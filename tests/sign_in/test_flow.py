"""Tests of signing in and out with a browser, over HTTP, at a server that does what a test tells it to."""

from __future__ import annotations

import asyncio
import re
from html import unescape
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from gateway.app import compose, create_app
from gateway.identity import cookies
from gateway.web.sign_in import flows
from tests.browser import Browser
from tests.issuer import ABSENT, signing_key
from tests.loopback import Answer
from tests.sign_in.conftest import ENVIRON, WHERE, Lobby


def _cookie(browser: Browser) -> dict[str, str]:
    return {"Cookie": f"{cookies.COOKIE}={browser.cookies[cookies.COOKIE]}"}


async def test_somebody_signs_in_does_something_and_signs_out_here_and_at_the_issuer(lobby: Lobby) -> None:
    """Issue 3: the whole story, with PKCE, state and nonce; and each step in the audit."""
    browser = lobby.browser()
    page = await browser.go("/sign-in")

    assert (page.status_code, str(page.url)) == (200, f"{WHERE}/signed-in")
    assert "alice" in page.text
    assert "acme" in page.text
    request = lobby.server.asked[0]
    assert (request["code_challenge_method"], request["redirect_uri"]) == ("S256", f"{WHERE}/sign-in/office/callback")
    assert min(len(request[name]) for name in ("state", "nonce", "code_challenge")) >= 20
    assert list(browser.cookies) == [flows.COOKIE, cookies.COOKIE]
    assert all("HttpOnly" in one and "SameSite=lax" in one for one in browser.set_cookies)

    me = (await browser.once("/v1/me")).json()
    assert (me["profile"]["name"], me["credential"]["kind"]) == ("alice", "browser")
    headers = {"X-CSRF-Token": me["credential"]["csrf_token"], "Origin": WHERE, "Sec-Fetch-Site": "same-origin"}
    body = {"kind": "direct"}
    assert (await browser.once("/v1/agents/flight/sessions", method="POST", json=body)).status_code == 401
    opened = await browser.once("/v1/agents/flight/sessions", method="POST", json=body, headers=headers)
    assert opened.status_code == 201

    value = browser.cookies[cookies.COOKIE]
    left = await browser.submit(page)
    assert (left.status_code, urlsplit(str(left.url)).path) == (200, "/signed-out")
    assert browser.cookies == {}
    hint = lobby.server.ended[0]
    assert hint["post_logout_redirect_uri"] == f"{WHERE}/signed-out"
    assert hint["id_token_hint"].count(".") == 2
    browser.cookies[cookies.COOKIE] = value
    assert (await browser.once("/v1/me")).status_code == 401

    records = [one.record for one in await lobby.home.audit() if one.record.surface == "browser"]
    assert [(one.operation, one.effect, one.code) for one in records if one.kind == "access"] == [
        ("sign_in", "allow", "ok"),
        ("me.show", "allow", "ok"),
        ("sign_out", "allow", "ok"),
    ]
    assert {one.profile for one in records} == {lobby.home.id("alice")}
    assert value not in str(records)
    assert lobby.refusals() == []


async def test_the_csrf_token_is_for_browsers_alone(lobby: Lobby) -> None:
    """Interface: who comes with a token needs none, and gets none."""
    browser = await lobby.signed_in()

    assert "csrf_token" in (await browser.once("/v1/me")).json()["credential"]
    assert "csrf_token" not in (await lobby.home.get("alice", "/v1/me")).json()["credential"]


async def test_two_credentials_are_one_person_or_none(lobby: Lobby) -> None:
    """Design section 5: every credential is verified, and two that name different people refuse the request."""
    browser = await lobby.signed_in()
    sent = _cookie(browser)

    assert (await lobby.home.get("alice", "/v1/me", headers=sent)).status_code == 200
    assert (await lobby.home.get("bob", "/v1/me", headers=sent)).status_code == 401
    wrong = {"Cookie": f"{cookies.COOKIE}={cookies.mint()}"}
    assert (await lobby.home.get("alice", "/v1/me", headers=wrong)).status_code == 401
    token = lobby.home.secrets["alice"]
    assert (await lobby.home.get(None, "/v1/me", headers={"Cookie": f"{cookies.COOKIE}={token}"})).status_code == 401
    bearer = {"Authorization": f"Bearer {browser.cookies[cookies.COOKIE]}"}
    assert (await lobby.home.get(None, "/v1/me", headers=bearer)).status_code == 401


Faults = dict[str, Any]
ANOTHER_KEY = signing_key("nobody knows it")

WRONG: list[tuple[str, Faults, int]] = [
    ("nonce_wrong", {"claims": {"nonce": "another"}}, 502),
    ("nonce_wrong", {"claims": {"nonce": ABSENT}}, 502),
    ("nonce_wrong", {"claims": {"nonce": 7}}, 502),
    ("issuer_wrong", {"claims": {"iss": "https://evil.example"}}, 502),
    ("issuer_wrong", {"claims": {"iss": ABSENT}}, 502),
    ("audience_wrong", {"claims": {"aud": "another client"}}, 502),
    ("audience_wrong", {"claims": {"aud": ["gateway+web", "another client"]}}, 502),
    ("audience_wrong", {"claims": {"aud": []}}, 502),
    ("authorized_party_wrong", {"claims": {"azp": "another client"}}, 502),
    ("token_expired", {"claims": {"exp": 1}}, 502),
    ("expiry_missing", {"claims": {"exp": ABSENT}}, 502),
    ("issued_at_missing", {"claims": {"iat": ABSENT}}, 502),
    ("not_yet_valid", {"claims": {"iat": 4_000_000_000, "exp": 4_000_000_300}}, 502),
    ("subject_missing", {"claims": {"sub": ""}}, 502),
    ("access_token_hash_wrong", {"claims": {"at_hash": "AAAAAAAAAAAAAAAAAAAAAA"}}, 502),
    ("access_token_hash_wrong", {"claims": {"at_hash": 1}}, 502),
    ("access_token_hash_wrong", {"token": {"access_token": ABSENT}}, 502),
    ("access_token_hash_wrong", {"token": {"access_token": "another"}}, 502),
    ("type_not_allowed", {"header": {"typ": "at+jwt"}}, 502),
    ("type_not_allowed", {"header": {"typ": "logout+jwt"}}, 502),
    ("type_not_allowed", {"claims": {"events": {}}}, 502),
    ("algorithm_not_allowed", {"header": {"alg": "none"}}, 502),
    ("algorithm_not_allowed", {"header": {"alg": "HS256"}}, 502),
    ("header_not_allowed", {"header": {"jwk": {}}}, 502),
    ("key_unknown", {"key": ANOTHER_KEY}, 502),
    ("signature_wrong", {"key": ANOTHER_KEY, "header": {"kid": "first"}}, 502),
    ("token_too_long", {"claims": {"pad": "x" * 16_384}}, 502),
    ("id_token_missing", {"token": {"id_token": ABSENT}}, 502),
    ("id_token_missing", {"token": {"id_token": 7}}, 502),
    ("token_malformed", {"token": {"id_token": "no token"}}, 502),
    ("code_refused", {"token": {"error": "invalid_grant"}}, 502),
    ("code_refused", {"token": {"error": ["a list"]}}, 502),
    ("client_refused", {"token": {"error": "invalid_client"}}, 502),
    ("client_refused", {"token_answer": Answer(b'{"error": "unauthorized_client"}', 400)}, 502),
    ("code_refused", {"token_answer": Answer(b"[]")}, 502),
    ("code_refused", {"token_answer": Answer(b"not JSON")}, 502),
    ("code_refused", {"token": {"expires_in": "soon"}}, 502),
    ("code_refused", {"token_answer": Answer(b'{"expires_in": 1e999}')}, 502),
    ("code_refused", {"token_answer": Answer(b'"a word"')}, 502),
    ("code_refused", {"token_answer": Answer(b"null")}, 502),
    ("code_refused", {"token_answer": Answer(b"[" * 200_000)}, 502),
    ("unavailable", {"token_answer": Answer(b"", 500)}, 503),
    ("unavailable", {"token_answer": Answer(b"x" * 300_000)}, 503),
    ("unavailable", {"token_answer": Answer(b"{}", 200, {"Content-Encoding": "gzip"})}, 503),
    ("code_refused", {"token_answer": Answer(b"", 302, {"Location": "/token"})}, 502),
    ("code_missing", {"response": {"code": ABSENT}}, 502),
    ("code_missing", {"response": {"code": ["one", "two"]}}, 502),
    ("code_missing", {"response": {"code": "x" * 5_000}}, 502),
    ("code_missing", {"response": {"code": "caf\xe9"}}, 502),
    ("issuer_wrong", {"response": {"iss": "https://evil.example"}}, 502),
    ("issuer_wrong", {"response": {"iss": ABSENT}}, 502),
    ("issuer_wrong", {"response": {"iss": ["SELF", "SELF"]}}, 502),
    ("issuer_wrong", {"response": {"iss": "SELF/"}}, 502),
    ("issuer_refused", {"response": {"code": ABSENT, "error": "access_denied"}}, 403),
    ("issuer_refused", {"response": {"error": "<script>alert(1)</script>"}}, 403),
    ("state_unknown", {"response": {"state": "another"}}, 400),
    ("state_unknown", {"response": {"state": ABSENT}}, 400),
    ("state_unknown", {"response": {"state": ["one", "two"]}}, 400),
]


@pytest.mark.parametrize(("reason", "faults", "status"), WRONG)
async def test_whatever_is_not_exactly_what_was_asked_for_signs_nobody_in(
    lobby: Lobby, reason: str, faults: Faults, status: int
) -> None:
    """OpenID Connect Core 3.1.3.7, RFC 9207, RFC 6749: refused with its reason, nothing stored, nobody in the audit;
    and the same browser signs in as soon as the server does what it should."""
    lobby.server.keys.append(signing_key("second"))
    own = lobby.server.url
    for kind, changes in faults.items():
        if isinstance(changes, dict):
            changes = {name: _spelled(value, own) for name, value in changes.items()}
        setattr(lobby.server.faults, kind, changes)
    browser = lobby.browser()
    page = await browser.go("/sign-in")

    assert page.status_code == status, page.text
    assert lobby.refusals() == [reason]
    assert cookies.COOKIE not in browser.cookies
    assert await lobby.rows() == 0
    assert [one for one in await lobby.home.audit() if one.record.surface == "browser"] == []
    assert "<script>" not in page.text
    assert 'href="/sign-in/office?next=%2Fsigned-in"' in page.text
    lobby.server.faults = type(lobby.server.faults)()
    assert (await browser.go("/sign-in")).status_code == 200
    assert await lobby.rows() == 1


def _spelled(value: Any, own: str) -> Any:
    if isinstance(value, list):
        return [_spelled(one, own) for one in value]
    return value.replace("SELF", own) if isinstance(value, str) else value


@pytest.mark.parametrize(
    ("algorithm", "written"), [("RS256", "RS256"), ("ES256", "ES256"), ("EdDSA", "EdDSA"), ("EdDSA", "Ed25519")]
)
async def test_each_algorithm_of_the_settings_is_accepted_and_its_hash_with_it(
    lobby: Lobby, algorithm: str, written: str
) -> None:
    """RFC 9864 gave EdDSA a second name, for an access token's issuer too; each has its hash for `at_hash`."""
    lobby.server.rotate("new", algorithm)
    lobby.server.faults.header = {"alg": written}

    assert (await lobby.browser().go("/sign-in")).status_code == 200
    lobby.server.faults.token = {"access_token": "another"}
    assert (await lobby.browser().go("/sign-in")).status_code == 502
    assert lobby.refusals() == ["access_token_hash_wrong"]


async def test_an_issuer_that_does_not_say_who_it_is_in_the_response_need_not(lobby: Lobby) -> None:
    """RFC 9207 section 2.4: `iss` is asked for where it is advertised, and checked whenever it is there."""
    lobby.server.faults.metadata = {"authorization_response_iss_parameter_supported": ABSENT}
    lobby.server.faults.response = {"iss": ABSENT}
    assert (await lobby.browser().go("/sign-in")).status_code == 200

    lobby.server.faults.response = {"iss": "https://evil.example"}
    assert (await lobby.browser().go("/sign-in")).status_code == 502
    assert lobby.refusals() == ["issuer_wrong"]


@pytest.mark.parametrize(
    ("metadata", "proof"),
    [
        ({}, "basic"),
        ({"token_endpoint_auth_methods_supported": ["client_secret_post", "client_secret_basic"]}, "basic"),
        ({"token_endpoint_auth_methods_supported": ["private_key_jwt", "client_secret_post"]}, "post"),
        ({"token_endpoint_auth_methods_supported": "nonsense"}, "basic"),
    ],
)
async def test_the_client_shows_its_secret_as_the_issuer_wants_it(
    lobby: Lobby, metadata: dict[str, Any], proof: str
) -> None:
    """RFC 6749 section 2.3.1: form-encoded in the header, or in the body; the secret here has every odd character."""
    lobby.server.faults.metadata = metadata
    await lobby.signed_in()

    assert lobby.server.shown == [proof]


async def test_a_callback_is_good_once_for_its_browser_and_for_ten_minutes(lobby: Lobby) -> None:
    """Login CSRF and replay: the state is bound to the browser, single use, short-lived; then so is the code."""
    browser, thief = lobby.browser(), lobby.browser()
    callback = await browser.until("/sign-in", "/sign-in/office/callback")
    assert (await browser.go(callback)).status_code == 200
    assert (await browser.go(callback)).status_code == 400

    stolen = await browser.until("/sign-in", "/sign-in/office/callback")
    assert (await thief.go(stolen)).status_code == 400
    thief.cookies[flows.COOKIE] = "x" * 43
    stolen = await browser.until("/sign-in", "/sign-in/office/callback")
    assert (await thief.go(stolen)).status_code == 400
    assert (await browser.go(stolen)).status_code == 400

    late = await browser.until("/sign-in", "/sign-in/office/callback")
    await lobby.later(flows.LIVES_S)
    assert (await browser.go(late)).status_code == 400
    assert lobby.refusals() == [
        "state_unknown",
        "state_of_another_browser",
        "state_of_another_browser",
        "state_unknown",
        "state_unknown",
    ]
    assert await lobby.rows() == 1
    assert cookies.COOKIE not in thief.cookies


async def test_of_two_callbacks_at_once_one_signs_in(lobby: Lobby) -> None:
    """Single use holds also for what comes at the same moment."""
    browser = lobby.browser()
    callback = await browser.until("/sign-in", "/sign-in/office/callback")
    answers = await asyncio.gather(browser.once(callback), browser.once(callback))

    assert sorted(one.status_code for one in answers) == [303, 400]
    assert await lobby.rows() == 1


async def test_a_cookie_that_comes_twice_is_no_cookie(lobby: Lobby) -> None:
    """Cookie tossing: the page says what to do, and nobody is signed in."""
    for name in (flows.COOKIE, cookies.COOKIE):
        browser = lobby.browser()
        callback = await browser.until("/sign-in", "/sign-in/office/callback")
        value = browser.cookies.pop(flows.COOKIE)
        twice = {"Cookie": f"{flows.COOKIE}={value}; {name}=x; {name}=y"}
        answer = await browser.once(callback, headers=twice)
        assert (answer.status_code, "Please clear the cookies" in answer.text) == (400, True)
    begun = await lobby.browser().once("/sign-in/office", headers={"Cookie": f"{flows.COOKIE}=x; {flows.COOKIE}=y"})

    assert begun.status_code == 400
    assert lobby.refusals() == ["cookie_several"] * 3
    assert await lobby.rows() == 0


async def test_a_code_of_somebody_else_is_good_for_nothing(lobby: Lobby) -> None:
    """Code injection: the verifier of another flow does not fit (RFC 7636), so a stolen code signs nobody in."""
    victim, thief = lobby.browser(), lobby.browser()
    stolen = parse_qs(urlsplit(await victim.until("/sign-in", "/sign-in/office/callback")).query)["code"][0]
    own = await thief.until("/sign-in", "/sign-in/office/callback")
    injected = re.sub(r"code=[^&]*", f"code={stolen}", own)

    assert (await thief.go(injected)).status_code == 502
    assert lobby.refusals() == ["code_refused"]
    assert await lobby.rows() == 0


async def test_two_tabs_may_sign_in_side_by_side(lobby: Lobby) -> None:
    """The second begins before the first is back; both belong to one browser."""
    browser = lobby.browser()
    first = await browser.until("/sign-in", "/sign-in/office/callback")
    second = await browser.until("/sign-in?next=/v1/me", "/sign-in/office/callback")

    assert (await browser.go(first)).status_code == 200
    assert str((await browser.go(second)).url) == f"{WHERE}/v1/me"


async def test_a_new_sign_in_ends_the_one_before_and_links_nobody_to_anybody(lobby: Lobby) -> None:
    """Fixation and cross-account: what was in the browser is good for nothing afterwards, and whoever signs in is who
    the issuer says, whoever was signed in before."""
    await lobby.link("bob", "bob")
    browser = await lobby.signed_in("alice")
    before = dict(browser.cookies)
    lobby.server.account = "bob"
    await browser.go("/sign-in")

    assert (await browser.once("/v1/me")).json()["profile"]["name"] == "bob"
    assert browser.cookies != before
    browser.cookies = before
    assert (await browser.once("/v1/me")).status_code == 401
    lobby.server.account = "nobody"
    other = await lobby.signed_in("alice")
    lobby.server.account = "nobody"
    assert (await other.go("/sign-in")).status_code == 403
    assert (await other.once("/v1/me")).json()["profile"]["name"] == "alice"
    identities = await lobby.home.gateway.stores.identities.identities(lobby.home.tenant, lobby.home.id("alice"))
    assert [one.subject for one in identities] == ["alice"]


async def test_only_an_end_of_what_still_held_costs_everybody_their_memory(lobby: Lobby) -> None:
    """Ours: an epoch is for what changes who may do what; whoever comes back in the morning changes nothing."""

    async def epoch() -> int:
        found = await lobby.home.gateway.stores.tenants.find(lobby.home.tenant)
        assert found is not None
        return found.epoch

    browser = await lobby.signed_in()
    before = await epoch()
    await browser.go("/sign-in")
    assert await epoch() == before + 1
    await lobby.later(3_600)
    await browser.go("/sign-in")
    await lobby.later(86_400)
    await browser.go("/sign-in")
    assert await epoch() == before + 1


async def test_a_cookie_that_somebody_put_there_before_is_replaced(lobby: Lobby) -> None:
    """Fixation: a value that the browser brought is never the one that it is signed in with."""
    browser = lobby.browser()
    planted = cookies.mint()
    browser.cookies[cookies.COOKIE] = planted
    await browser.go("/sign-in")

    assert browser.cookies[cookies.COOKIE] != planted
    browser.cookies[cookies.COOKIE] = "nonsense"
    assert (await browser.go("/sign-in")).status_code == 200


async def test_an_account_that_is_nobody_here_is_told_so_and_is_in_the_audit(lobby: Lobby) -> None:
    """Once the issuer has said who it is there is an organisation, and its audit has the reason."""
    table = {"nobody": "person_unknown", "robot": "not_a_person", "carol": "profile_disabled"}
    await lobby.home.add("robot", "member", kind="service")
    await lobby.link("robot", "robot")
    await lobby.link("carol", "carol")
    await lobby.home.gateway.stores.identities.change_profile(
        lobby.home.tenant, lobby.home.id("carol"), name=None, emails=None, disabled=True
    )
    for account in table:
        lobby.server.account = account
        page = await lobby.browser().go("/sign-in")
        assert page.status_code == 403
        assert account not in page.text
        assert "prompt" not in lobby.server.asked[-1]

    # Whoever is signed in there with the wrong account gets a way to use another one.
    again = re.findall(r'href="([^"]*)">Use another account<', page.text)
    await lobby.browser().until(unescape(again[0]), "/sign-in/office/callback")
    assert lobby.server.asked[-1]["prompt"] == "login"
    records = [one.record for one in await lobby.home.audit(kind="access") if one.record.surface == "browser"]
    assert [(one.operation, one.effect, one.code) for one in records] == [
        ("sign_in", "deny", reason) for reason in table.values()
    ]
    assert [one.principal for one in records] == [f"browser:{lobby.server.url}#{account}" for account in table]
    assert lobby.refusals() == []
    assert await lobby.rows() == 0


async def test_a_form_of_another_site_signs_nobody_out(lobby: Lobby) -> None:
    """Issue 3: a CSRF token on every form; the refusal is in the audit, and the sign-in goes on."""
    browser = await lobby.signed_in()
    token = cookies.csrf_token(browser.cookies[cookies.COOKIE])
    good = {"Origin": WHERE, "Sec-Fetch-Site": "same-origin"}
    table: list[tuple[dict[str, Any], dict[str, str], str]] = [
        ({}, good, "csrf_token_missing"),
        ({"csrf_token": "wrong"}, good, "csrf_token_wrong"),
        ({"csrf_token": [token, token]}, good, "csrf_token_missing"),
        ({"csrf_token": token, **{f"field{number}": "1" for number in range(30)}}, good, "csrf_token_missing"),
        ({"csrf_token": token}, {"Origin": "https://evil.example"}, "origin_wrong"),
        ({"csrf_token": token}, {"Sec-Fetch-Site": "cross-site"}, "origin_wrong"),
    ]
    for data, headers, _ in table:
        answer = await browser.once("/sign-out", method="POST", data=data, headers=headers)
        assert answer.status_code == 403, answer.text
        assert (await browser.once("/v1/me")).status_code == 200

    denied = [one.record.code for one in await lobby.home.audit(effect="deny") if one.record.operation == "sign_out"]
    assert denied == [reason for _, _, reason in table]
    answer = await browser.once("/sign-out", method="POST", data={"csrf_token": token}, headers=good)
    assert answer.headers["location"].startswith(f"{lobby.server.url}/end-session?")
    gone = await browser.once("/sign-out", method="POST", data={"csrf_token": token}, headers=good)
    assert gone.headers["location"] == f"{WHERE}/signed-out"


async def test_a_form_that_comes_without_the_cookie_takes_it_away_from_nobody(lobby: Lobby) -> None:
    """SameSite keeps the cookie back from another site's form; an answer that clears it would sign its person out."""
    stranger = lobby.browser()
    elsewhere = await stranger.once("/sign-out", method="POST", headers={"Origin": "https://evil.example"})
    here = await stranger.once("/sign-out", method="POST", headers={"Origin": WHERE})

    assert (elsewhere.status_code, "set-cookie" in elsewhere.headers) == (403, False)
    assert (here.status_code, here.headers["location"]) == (303, f"{WHERE}/signed-out")
    assert lobby.refusals() == ["origin_wrong"]


async def test_signing_out_works_without_the_issuer(lobby: Lobby) -> None:
    """An issuer that has no such place, or that is away, keeps nobody signed in."""
    lobby.server.faults.metadata = {"end_session_endpoint": ABSENT}
    browser = await lobby.signed_in()
    page = await browser.go("/signed-in")
    assert "form-action 'self';" in page.headers["content-security-policy"]
    assert (await browser.submit(page)).status_code == 200

    lobby.server.faults.metadata = {}
    await lobby.later(600)
    browser = await lobby.signed_in()
    page = await browser.go("/signed-in")
    assert f"form-action 'self' {lobby.server.url};" in page.headers["content-security-policy"]
    lobby.server.go_down()
    await lobby.later(3_000)
    await browser.go("/signed-in")
    await lobby.later(3_000)
    assert (await browser.submit(page)).status_code == 200
    assert cookies.COOKIE not in browser.cookies
    assert lobby.server.ended == []


async def test_a_gateway_that_was_started_again_knows_who_is_signed_in_and_where_they_sign_out(lobby: Lobby) -> None:
    """A browser follows a form to no origin that the page does not name; so the page asks where that is."""
    browser = await lobby.signed_in()
    again = compose(lobby.home.gateway.settings, lobby.logs.loggers, clock=lobby.clock)
    async with again.running():
        other = Browser(create_app(again, lobby.logs.loggers, environ=ENVIRON), WHERE)
        other.cookies = browser.cookies
        page = await other.go("/signed-in")

        assert page.status_code == 200
        assert f"form-action 'self' {lobby.server.url};" in page.headers["content-security-policy"]
        assert (await other.submit(page)).status_code == 200
        assert len(lobby.server.ended) == 1
        # The one that was not told hears it from the store within a second.
        await lobby.home.gateway.epochs.poll()
        assert (await browser.once("/v1/me")).status_code == 401


async def test_while_the_issuer_is_away_nobody_signs_in_and_whoever_is_stays(lobby: Lobby) -> None:
    """Design section 12: an outage refuses and never allows."""
    browser = await lobby.signed_in()
    half_way = lobby.browser()
    callback = await half_way.until("/sign-in", "/sign-in/office/callback")
    lobby.server.go_down()

    assert (await half_way.go(callback)).status_code == 503
    await lobby.later(3_590)
    assert (await lobby.browser().once("/sign-in/office")).status_code == 302  # the addresses are known for an hour
    await lobby.later(9)
    assert (await browser.once("/v1/me")).status_code == 200
    await lobby.later(600)
    page = await lobby.browser().go("/sign-in")
    assert (page.status_code, page.headers["content-type"]) == (503, "text/html; charset=utf-8")
    assert (await browser.once("/v1/me")).status_code == 200
    lobby.server.come_back()
    assert (await lobby.browser().go("/sign-in")).status_code == 503  # asked again after five seconds, not at once
    await lobby.later(5)
    assert (await lobby.browser().go("/sign-in")).status_code == 200


@pytest.mark.parametrize(
    "metadata",
    [
        {"issuer": "https://evil.example"},
        {"authorization_endpoint": ABSENT},
        {"token_endpoint": "http://evil.example/token"},
        {"authorization_endpoint": "javascript:alert(1)"},
    ],
)
async def test_addresses_that_are_not_the_issuers_or_not_safe_are_not_used(
    lobby: Lobby, metadata: dict[str, Any]
) -> None:
    """OpenID Connect Discovery section 4.3; nothing is sent in the clear to another machine."""
    lobby.server.faults.metadata = metadata

    assert (await lobby.browser().go("/sign-in")).status_code == 503
    assert lobby.refusals() == ["unavailable"]
    lobby.server.faults.metadata = {}
    await lobby.later(5)
    assert (await lobby.browser().go("/sign-in")).status_code == 200


async def test_a_page_that_is_not_for_somebody_who_is_not_signed_in(lobby: Lobby) -> None:
    """Asked over the one path, so a sign-in that has ended is refused there as everywhere."""
    page = await lobby.browser().go("/signed-in")
    assert (page.status_code, "alice" in page.text) == (401, False)
    token = {"Authorization": f"Bearer {lobby.home.secrets['alice']}"}
    assert (await lobby.browser().go("/signed-in", headers=token)).status_code == 401
    assert (await lobby.browser().go("/sign-in/nowhere")).status_code == 404
    browser = await lobby.signed_in()
    await lobby.later(3_600)
    assert (await browser.go("/signed-in")).status_code == 401


async def test_a_page_says_that_the_store_is_away_and_not_that_nobody_is_signed_in(lobby: Lobby) -> None:
    """Design section 12: an outage is told as one."""
    browser = await lobby.signed_in()
    lobby.clock.advance(6)  # without word from the store

    page = await browser.go("/signed-in")
    assert (page.status_code, "not possible right now" in page.text) == (503, True)
    await lobby.later(1)
    assert (await browser.go("/signed-in")).status_code == 200


async def test_the_pages_allow_nothing_but_themselves(lobby: Lobby) -> None:
    """Headers of every page, and what a person needs who uses a keyboard, a screen reader or a phone."""
    browser = await lobby.signed_in()
    pages = [await browser.go(path) for path in ("/signed-in", "/signed-out")]
    lobby.server.account = "nobody"
    pages.append(await browser.go("/sign-in"))
    for page in pages:
        policy = page.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; style-src 'sha256-")
        assert "frame-ancestors 'none'" in policy
        assert "script" not in policy
        assert page.headers["cache-control"] == "no-store"
        assert page.headers["x-content-type-options"] == "nosniff"
        assert page.headers["referrer-policy"] in ("no-referrer", "same-origin")
        assert '<html lang="en">' in page.text
        assert '<meta name="viewport" content="width=device-width, initial-scale=1">' in page.text
        assert len(re.findall("<h1>", page.text)) == len(re.findall("<main>", page.text)) == 1
        assert "<script" not in page.text
        assert "style=" not in page.text
    # A form with "no-referrer" would be sent with `Origin: null`.
    assert pages[0].headers["referrer-policy"] == "same-origin"
