"""Tests that an opaque token is worth what its own server says of it now, and that nobody else is asked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Iterator
from datetime import UTC, datetime
from typing import Any

import httpx2
import orjson
import pytest

from gateway.errors import ConfigurationFaults, Unauthenticated, Unavailable
from gateway.identity.introspection import ACTIVE_FOR_S, INACTIVE_FOR_S, IntrospectionVerifier
from gateway.identity.introspection_server import ClientMethod, IntrospectionSettings
from gateway.identity.issuers import ScopePolicy
from gateway.identity.refusals import NOT_VALID
from gateway.identity.roles import role_of
from gateway.identity.secret_sources import ClientSecret
from gateway.model import Principal
from tests.clock import SettableClock
from tests.identity.conftest import ACME
from tests.introspector import CLIENT, JSON, SECRET, LocalIntrospector
from tests.issuer import ABSENT, AUDIENCE
from tests.loopback import Answer

NOW = int(datetime(2026, 12, 1, 9, 0, tzinfo=UTC).timestamp())


@pytest.fixture
def server(clock: SettableClock) -> Iterator[LocalIntrospector]:
    """A running one, which knows no token."""
    with LocalIntrospector(clock) as running:
        yield running


def secret(value: str) -> ClientSecret:
    """A secret as a variable holds it."""
    return ClientSecret(None, "ACME_SECRET", {"ACME_SECRET": value})


class Desk:
    """Makes verifiers that ask the local server, and closes them."""

    def __init__(self, server: LocalIntrospector, http: httpx2.AsyncClient) -> None:
        self.server = server
        self.http = http
        self.made: list[IntrospectionVerifier] = []

    def settings(self, **changes: Any) -> IntrospectionSettings:
        """Settings for the local server."""
        usual: dict[str, Any] = {
            "endpoint": self.server.endpoint,
            "issuer": self.server.url,
            "audience": AUDIENCE,
            "client_id": CLIENT,
            "client_secret": secret(SECRET),
            "tenant": ACME,
        }
        return IntrospectionSettings(**(usual | changes))

    def asking(self, *more: IntrospectionSettings, capacity: int = 100, **changes: Any) -> IntrospectionVerifier:
        """A verifier that asks the local server."""
        verifier = IntrospectionVerifier(
            [self.settings(**changes), *more], self.http, self.server.clock, capacity=capacity
        )
        self.made.append(verifier)
        return verifier


@pytest.fixture
async def desk(server: LocalIntrospector) -> AsyncIterator[Desk]:
    """Over one HTTP client."""
    # Without TLS, whose context takes longer to make than the tests.
    async with httpx2.AsyncClient(trust_env=False, verify=False) as http:
        made = Desk(server, http)
        yield made
        for verifier in made.made:
            await verifier.aclose()


async def refusal(answer: Awaitable[Principal]) -> str:
    """The reason of the refusal, whose public side is the same for all of them."""
    with pytest.raises(Unauthenticated) as caught:
        await answer
    assert caught.value.detail == NOT_VALID
    assert caught.value.headers == {"WWW-Authenticate": 'Bearer realm="gateway", error="invalid_token"'}
    return caught.value.reason


async def arrive(server: LocalIntrospector, count: int = 1) -> None:
    """Waits until so many questions have arrived."""
    for _ in range(count):
        assert await asyncio.to_thread(server.arrived.acquire, timeout=5)


# ── what is asked, and what an answer is worth ───────────────────────────────────────────────────────────────────────


async def test_an_active_token_is_the_principal_that_its_server_names(server: LocalIntrospector, desk: Desk) -> None:
    """RFC 7662 section 2: a POST, as a client with a secret, with the token in the body alone."""
    principal = await desk.asking().verify(server.issue("2YotnFZFEjr1zCsicMWpAA"))

    assert principal == Principal(
        tenant=ACME,
        issuer=server.url,
        subject="alice",
        credential="introspection",
        scopes=frozenset({"*"}),
        expires_at=datetime(2026, 12, 1, 9, 5, tzinfo=UTC),
    )
    (asked,) = server.asked
    assert asked.path == "/introspect"
    assert asked.form == {"token": ["2YotnFZFEjr1zCsicMWpAA"], "token_type_hint": ["access_token"]}
    assert (asked.headers["accept"], asked.headers["content-type"]) == (
        "application/json",
        "application/x-www-form-urlencoded",
    )


async def test_the_secret_is_sent_in_the_way_that_the_settings_name_and_shown_nowhere(
    server: LocalIntrospector, desk: Desk
) -> None:
    """RFC 6749 section 2.3.1. The secret of the tests has a colon, a space and a plus."""
    token = server.issue("opaque")

    assert (await desk.asking(client_method=ClientMethod.POST).verify(token)).subject == "alice"
    assert "authorization" not in server.asked[-1].headers
    assert (await desk.asking(client_method=ClientMethod.BASIC).verify(token)).subject == "alice"
    assert "client_secret" not in server.asked[-1].form
    assert SECRET not in repr(desk.settings())
    asked = len(server.asked)
    with pytest.raises(Unavailable):
        await desk.asking(client_secret=secret("")).verify(token)
    assert len(server.asked) == asked
    with pytest.raises(Unavailable):
        await desk.asking(client_secret=secret("another")).verify(token)


ANSWERS: dict[str, tuple[dict[str, Any], str | None]] = {
    "an audience among several": ({"aud": ["https://other.example", AUDIENCE]}, None),
    "no iss": ({"iss": ABSENT}, None),
    "no token_type": ({"token_type": ABSENT}, None),
    "token_type in small letters": ({"token_type": "bearer"}, None),
    "a server's word for an access token": ({"token_use": "access_token"}, None),
    "within the leeway": ({"exp": NOW - 29, "iat": NOW + 30}, None),
    "not active": ({"active": False}, "token_inactive"),
    "active in words": ({"active": "true"}, "claim_malformed"),
    "active in numbers": ({"active": 1}, "claim_malformed"),
    "nothing about active": ({"active": ABSENT}, "claim_malformed"),
    "no audience": ({"aud": ABSENT}, "audience_wrong"),
    "another audience": ({"aud": "https://other.example"}, "audience_wrong"),
    "our audience in another case": ({"aud": AUDIENCE.upper()}, "audience_wrong"),
    "another issuer": ({"iss": "https://id.example"}, "issuer_unknown"),
    "an issuer with a slash": ({"iss": "{url}/"}, "issuer_unknown"),
    "an issuer that is null": ({"iss": None}, "issuer_unknown"),
    "bound to a proof": ({"token_type": "DPoP"}, "type_not_allowed"),
    "a token_type that is no word": ({"token_type": ["Bearer"]}, "type_not_allowed"),
    "bound to a key": ({"cnf": {"jkt": "0ZcOCORZNYy"}}, "sender_constrained"),
    "a refresh token of Hydra": ({"token_use": "refresh_token"}, "id_token"),
    "a refresh token of Keycloak": ({"typ": "Refresh"}, "id_token"),
    "for its own client": ({"client_id": AUDIENCE}, "id_token"),
    "no end": ({"exp": ABSENT}, "expiry_missing"),
    "no beginning": ({"iat": ABSENT}, "issued_at_missing"),
    "over": ({"exp": NOW - 30}, "token_expired"),
    "not yet": ({"nbf": NOW + 31}, "not_yet_valid"),
    "an end in words": ({"exp": "tomorrow"}, "claim_malformed"),
    "nobody": ({"sub": ABSENT, "client_id": ABSENT}, "subject_missing"),
    "a person without a sub": ({"sub": ABSENT, "username": "alice"}, "subject_missing"),
    "a sub that is null": ({"sub": None}, "subject_missing"),
    "a client that is no word": ({"sub": ABSENT, "client_id": 7}, "subject_missing"),
}


@pytest.mark.parametrize(("members", "reason"), ANSWERS.values(), ids=ANSWERS)
async def test_an_answer_is_checked_like_the_claims_of_a_signed_token(
    server: LocalIntrospector, desk: Desk, members: dict[str, Any], reason: str | None
) -> None:
    """RFC 7662 section 4: that the token is meant for us is ours to check. Allow and refuse with one set-up."""
    verifier = desk.asking()
    if members.get("iss") == "{url}/":
        members = {"iss": f"{server.url}/"}
    token = server.issue("odd", **members)

    if reason is None:
        assert (await verifier.verify(token)).subject == "alice"
    else:
        assert await refusal(verifier.verify(token)) == reason
        assert await refusal(verifier.verify(token)) == reason
        assert len(server.asked) == 1  # a refusal is remembered too
    assert (await verifier.verify(server.issue("usual"))).subject == "alice"


async def test_a_token_that_a_client_got_for_itself_is_a_service(server: LocalIntrospector, desk: Desk) -> None:
    """RFC 7662 section 2.2: no resource owner, no `sub`; it has the scopes of the token and no others."""
    verifier = desk.asking(scopes=ScopePolicy.PERSON)
    own = await verifier.verify(server.issue("own", ABSENT, client_id="robot", scope="memory openid"))
    named = await verifier.verify(server.issue("named", "robot", client_id="robot"))
    person = await verifier.verify(server.issue("person", "robot", scope="memory"))

    assert (own.subject, own.service, own.scopes) == ("robot", True, frozenset({"memory"}))
    assert (named.subject, named.service, named.scopes) == ("robot", True, frozenset())
    assert (person.subject, person.service, person.scopes) == ("robot", False, frozenset({"*"}))


async def test_tenant_email_scopes_and_groups_follow_the_settings(server: LocalIntrospector, desk: Desk) -> None:
    """The same words as of an issuer that signs, with the same meaning."""
    verifier = desk.asking(
        tenant=None,
        tenant_claim="org",
        trust_email=True,
        scopes=ScopePolicy.TOKEN,
        roles={"flight-leads": (role_of("supervisor@flight"),)},
    )
    vouched: dict[str, Any] = {"email": "Alice@Acme.example", "email_verified": True, "groups": ["flight-leads"]}

    principal = await verifier.verify(server.issue("all", org="acme", scope="session memory", **vouched))

    assert (principal.tenant, principal.email) == ("acme", "alice@acme.example")
    assert principal.scopes == {"session", "memory"}
    assert principal.roles == (role_of("supervisor@flight"),)
    assert await refusal(verifier.verify(server.issue("nowhere"))) == "tenant_missing"
    assert await refusal(verifier.verify(server.issue("odd", org="acme", groups="x"))) == "claim_malformed"


# ── whose token it is ────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("token", "reason"),
    [
        ("gwp_0123456789", "token_unknown"),
        ("gwt_0123456789", "token_unknown"),
        ("gwx_0123456789", "token_unknown"),
        ("with space", "token_malformed"),
        ("=", "token_malformed"),
        ("a=b", "token_malformed"),
        ("töken", "token_malformed"),
        ("a" * 16_385, "token_too_long"),
    ],
)
async def test_what_no_server_can_have_issued_is_asked_of_none(
    server: LocalIntrospector, desk: Desk, token: str, reason: str
) -> None:
    """RFC 6750 section 2.1. A secret of ours is never shown to somebody else."""
    verifier = desk.asking()

    assert await refusal(verifier.verify(token)) == reason
    assert server.asked == []
    assert (await verifier.verify(server.issue("a/b+c~d.e_f-g=="))).subject == "alice"


async def test_a_token_is_shown_to_the_server_of_its_prefix_and_to_no_other(
    server: LocalIntrospector, desk: Desk, clock: SettableClock
) -> None:
    """Design section 5: no falling through from one to another, not even where its own server is away."""
    with LocalIntrospector(clock) as other:
        theirs = desk.settings(endpoint=other.endpoint, issuer=other.url, prefix="two_")
        verifier = desk.asking(theirs, prefix="one_")
        for token in ("one_a", "two_a"):
            server.issue(token, "alice")
            other.issue(token, "bob")

        assert [(await verifier.verify(token)).subject for token in ("one_a", "two_a")] == ["alice", "bob"]
        assert await refusal(verifier.verify("a")) == "token_unknown"
        assert await refusal(verifier.verify("two_b")) == "token_inactive"
        other.go_down()
        with pytest.raises(Unavailable):
            await verifier.verify("two_c")
        assert [one.token for one in server.asked] == ["one_a"]
        assert [one.token for one in other.asked] == ["two_a", "two_b"]
        assert verifier.faults()[server.url] is None
        assert verifier.faults()[other.url] is not None


@pytest.mark.parametrize(
    ("first", "second", "sound"),
    [
        ("a_", "b_", True),
        ("", "b_", False),
        ("a_", "", False),
        ("", "", False),
        ("a_", "a_", False),
        ("a", "ab", False),
        ("ab", "a", False),
    ],
)
async def test_servers_whose_tokens_can_not_be_told_apart_refuse_to_start(
    desk: Desk, first: str, second: str, sound: bool
) -> None:
    """Ours: one server, or a prefix for each."""
    other = desk.settings(issuer="https://id.example", prefix=second)
    if sound:
        assert desk.asking(other, prefix=first).faults() == {desk.server.url: None, other.issuer: None}
        return
    with pytest.raises(ConfigurationFaults) as caught:
        desk.asking(other, prefix=first)
    assert [(one.field, one.rule) for one in caught.value.faults] == [
        ("introspection.servers[1].prefix", "unambiguous")
    ]


async def test_two_servers_of_one_issuer_refuse_to_start(desk: Desk) -> None:
    """Ours: which tenant, and which roles, would count?"""
    with pytest.raises(ConfigurationFaults) as caught:
        desk.asking(desk.settings(prefix="b_"), prefix="a_")
    assert [(one.field, one.rule) for one in caught.value.faults] == [("introspection.servers[1].issuer", "unique")]


FAULTY: dict[str, tuple[dict[str, Any], list[tuple[str, str]]]] = {
    "plain http": ({"endpoint": "http://id.example/introspect"}, [("endpoint", "https")]),
    "a secret in the address": ({"endpoint": "https://me:x@id.example"}, [("endpoint", "https")]),
    "an issuer that is no URL": ({"issuer": "gateway"}, [("issuer", "https")]),
    "an issuer with a query": ({"issuer": "https://id.example?x"}, [("issuer", "https")]),
    "no audience": ({"audience": " "}, [("audience", "required")]),
    "no client": ({"client_id": ""}, [("client_id", "required")]),
    "no tenant": ({"tenant": None}, [("tenant", "one_of")]),
    "a prefix of ours": ({"prefix": "gwp_"}, [("prefix", "prefix")]),
    "a prefix that no token has": ({"prefix": "a b"}, [("prefix", "prefix")]),
    "an owner by a group": ({"roles": {"x": (role_of("owner"),)}}, [("roles.x", "by_hand")]),
    "bounds that are none": (
        {"timeout_s": 0, "max_bytes": 0, "most_at_once": 0, "most_waiting": 0},
        [("timeout_s", "range"), ("max_bytes", "range"), ("most_at_once", "range"), ("most_waiting", "range")],
    ),
}


@pytest.mark.parametrize(("changes", "faults"), FAULTY.values(), ids=FAULTY)
async def test_settings_that_must_not_be_used_are_refused_with_every_fault(
    desk: Desk, changes: dict[str, Any], faults: list[tuple[str, str]]
) -> None:
    """Issue 2: every fault at once, and none holds the secret."""
    assert desk.settings().prefix == ""
    with pytest.raises(ConfigurationFaults) as caught:
        desk.settings(**changes)
    assert [(one.field, one.rule) for one in caught.value.faults] == faults
    assert SECRET not in str(caught.value)


# ── how long an answer counts ────────────────────────────────────────────────────────────────────────────────────────


async def test_an_answer_counts_for_half_a_minute_and_never_past_the_tokens_end(
    server: LocalIntrospector, desk: Desk, clock: SettableClock
) -> None:
    """Issue 3: cached no longer than `exp` and 30 s."""
    verifier = desk.asking()
    long, short = server.issue("long"), server.issue("short", exp=NOW + 10)
    first = await verifier.verify(long)
    await verifier.verify(short)

    clock.advance(9)
    assert await verifier.verify(long) is first
    await verifier.verify(short)
    assert len(server.asked) == 2
    clock.advance(1)
    server.revoke(short)
    assert await refusal(verifier.verify(short)) == "token_inactive"
    clock.advance(ACTIVE_FOR_S - 11)
    await verifier.verify(long)
    assert len(server.asked) == 3
    server.revoke(long)
    clock.advance(1)
    assert await refusal(verifier.verify(long)) == "token_inactive"
    assert len(server.asked) == 4


async def test_a_wall_clock_that_is_set_back_makes_no_answer_last_longer(
    server: LocalIntrospector, desk: Desk, clock: SettableClock
) -> None:
    """Ours: `exp` is by the wall, the 30 s are not."""
    verifier = desk.asking()
    await verifier.verify(server.issue("opaque"))
    clock.advance(ACTIVE_FOR_S)
    clock.set(datetime(2026, 12, 1, 9, 0, tzinfo=UTC))
    server.revoke("opaque")

    assert await refusal(verifier.verify("opaque")) == "token_inactive"


async def test_an_answer_counts_from_when_it_was_asked_for(
    server: LocalIntrospector, desk: Desk, clock: SettableClock
) -> None:
    """Ours: what a slow server says may be as old as the question."""
    verifier = desk.asking()
    server.issue("opaque")
    with server.holding():
        question = asyncio.create_task(verifier.verify("opaque"))
        await arrive(server)
        clock.advance(20)
    await question
    clock.advance(10)
    server.revoke("opaque")

    assert await refusal(verifier.verify("opaque")) == "token_inactive"


async def test_what_was_not_active_stays_so_without_being_asked_again(
    server: LocalIntrospector, desk: Desk, clock: SettableClock
) -> None:
    """Issue 3: `active: false` is final: nobody else is asked, and the server itself not for five minutes."""
    verifier = desk.asking()
    assert await refusal(verifier.verify("late")) == "token_inactive"
    server.issue("late")
    clock.advance(INACTIVE_FOR_S - 1)

    assert await refusal(verifier.verify("late")) == "token_inactive"
    assert len(server.asked) == 1
    clock.advance(1)
    server.issue("late")
    assert (await verifier.verify("late")).subject == "alice"


async def test_both_memories_are_bounded_and_made_up_tokens_push_nobody_out(
    server: LocalIntrospector, desk: Desk
) -> None:
    """A flood of tokens costs a question each, and neither memory nor anybody's sign-in."""
    verifier = desk.asking(capacity=3)
    await verifier.verify(server.issue("alice"))
    for number in range(20):
        await refusal(verifier.verify(f"made-up-{number}"))

    await verifier.verify("alice")
    assert len(server.asked) == 21
    assert (len(verifier._active), len(verifier._refused)) == (1, 3)
    for name in ("a", "b", "c"):
        await verifier.verify(server.issue(name))
    await verifier.verify("alice")
    assert len(server.asked) == 25  # the oldest was pushed out


# ── the server, and what it may cost ─────────────────────────────────────────────────────────────────────────────────


async def test_one_token_is_asked_about_once_however_many_bring_it(server: LocalIntrospector, desk: Desk) -> None:
    """One question in flight per token; one caller who hangs up does not end it for the others."""
    verifier = desk.asking()
    server.issue("opaque")
    with server.holding():
        callers = [asyncio.create_task(verifier.verify("opaque")) for _ in range(5)]
        await arrive(server)
        callers[0].cancel()
        await asyncio.wait([callers[0]])
    principals = await asyncio.gather(*callers[1:])

    assert len(server.asked) == 1
    assert all(one is principals[0] for one in principals)


async def test_questions_are_asked_a_few_at_a_time_and_a_crowd_is_turned_away(
    server: LocalIntrospector, desk: Desk
) -> None:
    """Ours: made-up tokens can't flood the server, and don't pile up here. Refused is 503: they may be good."""
    verifier = desk.asking(most_at_once=3, most_waiting=6)
    tokens = [server.issue(f"token-{number}") for number in range(6)]
    with server.holding():
        waiting = [asyncio.create_task(verifier.verify(token)) for token in tokens]
        await arrive(server, 2)
        with pytest.raises(Unavailable):
            await verifier.verify("one-too-many")
    await asyncio.gather(*waiting)

    assert (len(server.asked), server.at_once) == (6, 2)
    assert (await verifier.verify(server.issue("later"))).subject == "alice"


async def test_a_flood_of_made_up_tokens_keeps_out_nobody_whose_token_was_good_before(
    server: LocalIntrospector, desk: Desk
) -> None:
    """Design section 12, "one's failure does not stop another's work": strangers wait among themselves."""
    verifier = desk.asking(most_at_once=2, most_waiting=4)
    good = server.issue("known")
    await verifier.verify(good)
    await arrive(server)
    server.clock.advance(31)  # what was said of it counts no longer
    with server.holding():
        strangers = [asyncio.create_task(verifier.verify(f"made-up-{number}")) for number in range(4)]
        await arrive(server)
        with pytest.raises(Unavailable):
            await verifier.verify("one-too-many")
        again = asyncio.create_task(verifier.verify(good))
        await arrive(server)  # it is asked about while every stranger still waits
    assert (await again).subject == "alice"
    for stranger in strangers:
        with pytest.raises(Unauthenticated):
            await stranger


BAD: dict[str, Answer] = {
    "an error": Answer(b"{}", status=500, headers=JSON),
    "who are you": Answer(b"{}", status=401, headers=JSON),
    "a redirect": Answer(b"", status=307, headers={"Location": "{endpoint}?again", **JSON}),
    "a page": Answer(b"<html>", headers={"Content-Type": "text/html"}),
    "a signed answer": Answer(b"{}", headers={"Content-Type": "application/token-introspection+jwt"}),
    "no type": Answer(b'{"active": true}'),
    "compressed": Answer(b"{}", headers={"Content-Encoding": "gzip", **JSON}),
    "half of it": Answer(b'{"active": true', headers=JSON),
    "a list": Answer(b'[{"active": true}]', headers=JSON),
    "without end": Answer(b'{"active": true}' + b" " * 65_536, headers=JSON),
}


@pytest.mark.parametrize("answer", BAD.values(), ids=BAD)
async def test_an_answer_that_is_none_lets_nobody_in_and_is_not_remembered(
    server: LocalIntrospector, desk: Desk, clock: SettableClock, answer: Answer
) -> None:
    """Design section 12: outages refuse with a 503 and never allow; nor is anybody told that their token is bad."""
    verifier = desk.asking()
    await verifier.verify(server.issue("known"))
    headers = {name: value.format(endpoint=server.endpoint) for name, value in answer.headers.items()}
    server.answer = Answer(answer.body, answer.status, headers)
    server.issue("new")

    for _ in range(2):
        with pytest.raises(Unavailable) as caught:
            await verifier.verify("new")
        assert SECRET not in str(caught.value)
    assert len(server.asked) == 3  # each was asked once and followed nowhere
    assert (await verifier.verify("known")).subject == "alice"
    clock.advance(ACTIVE_FOR_S)
    with pytest.raises(Unavailable):
        await verifier.verify("known")
    fault = verifier.faults()[server.url]
    assert fault is not None
    assert not any(secret in fault for secret in (SECRET, "new", "known"))
    server.answer = None
    assert (await verifier.verify("new")).subject == "alice"
    assert verifier.faults()[server.url] is None


async def test_a_server_that_is_away_or_slow_is_not_waited_for_without_end(
    server: LocalIntrospector, desk: Desk
) -> None:
    """A timeout on everything that leaves the process; waiting for one's turn counts."""
    verifier = desk.asking(timeout_s=0.05, most_at_once=1)
    with server.holding():
        answers = await asyncio.gather(*(verifier.verify(token) for token in ("one", "two")), return_exceptions=True)
    server.go_down()
    with pytest.raises(Unavailable):
        await verifier.verify("three")

    assert [type(one) for one in answers] == [Unavailable, Unavailable]
    server.come_back()
    assert (await verifier.verify(server.issue("four"))).subject == "alice"


async def test_closing_ends_questions_in_flight(server: LocalIntrospector, desk: Desk) -> None:
    """Structured only: nothing outlives the gateway, and nobody is let in while it stops."""
    verifier = desk.asking()
    server.answer = Answer(orjson.dumps({"active": True}), headers=JSON)
    with server.holding():
        caller = asyncio.create_task(verifier.verify("opaque"))
        await arrive(server)
        await verifier.aclose()
        await asyncio.wait([caller])

    assert caller.cancelled()
    await verifier.aclose()


async def test_a_question_that_everybody_hung_up_on_fails_in_silence(server: LocalIntrospector, desk: Desk) -> None:
    """Ours: its failure is seen, so that nothing is written about an exception that nobody read."""
    verifier = desk.asking()
    server.answer = Answer(b"", status=500)
    with server.holding():
        caller = asyncio.create_task(verifier.verify("opaque"))
        await arrive(server)
        question = next(iter(verifier._in_flight.values()))
        caller.cancel()
        await asyncio.wait([caller])
    await asyncio.wait([question])

    assert verifier._in_flight == {}
