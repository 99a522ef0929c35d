"""Tests that a browser's cookie works from the sign-in until its end, and that no other site can write with it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest

from gateway.backends.sql.sign_ins import SqlSignIns
from gateway.errors import Unauthenticated, Unavailable
from gateway.identity import cookies
from gateway.identity.credentials import Credentials
from gateway.identity.issuers import ClaimRules
from gateway.identity.login import SEND_CSRF_TOKEN, BrowserOrigin, CookieVerifier, NoBearer
from gateway.identity.refusals import NOT_VALID
from gateway.identity.seen import Seen
from gateway.identity.turn_claims import Source
from gateway.keys import new_id
from gateway.model import ANY_AGENT, Identity, Principal, Profile, RoleAssignment, SignIn, TenantId
from tests.identity.conftest import ACME, Store

ISSUER = "https://login.example"
ORIGIN = "https://gateway.example"
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
LEADS = RoleAssignment(role="supervisor", agent=ANY_AGENT)
ISSUERS = {ISSUER: ClaimRules(issuer=ISSUER, audience="gateway", tenant=ACME, roles={"leads": (LEADS,)})}


class Watched(SqlSignIns):
    """The real store, which counts look-ups and writes, can be held between a read and its answer, and go away."""

    def __init__(self, store: Store) -> None:
        super().__init__(store.database)
        self.look_ups = 0
        self.held_at: int | None = None
        self.reached = asyncio.Event()
        self.go_on = asyncio.Event()
        self.touched: list[dict[str, Any]] = []
        self.gone_before: int | None = None
        self.away = False

    async def by_digest(self, digest: bytes) -> SignIn | None:
        self.look_ups += 1
        found = None if self.look_ups == self.gone_before else await super().by_digest(digest)
        if self.look_ups == self.held_at:
            self.reached.set()
            await self.go_on.wait()
        return found

    async def touch(self, seen: Any) -> None:
        if self.away:
            raise Unavailable("away")
        self.touched.append(dict(seen))
        await super().touch(seen)


class Desk:
    """A verifier over the store, and browsers that people are signed in with."""

    def __init__(self, store: Store, capacity: int = 100, issuers: Mapping[str, ClaimRules] = ISSUERS) -> None:
        self.store = store
        self.watched = Watched(store)
        self.seen = Seen(self.watched, store.clock)
        self.verifier = CookieVerifier(
            self.watched,
            store.identities,
            store.clock,
            store.epochs,
            self.seen,
            issuers=issuers,
            idle=HOUR,
            origin=ORIGIN,
            capacity=capacity,
        )

    async def browser(self, profile: Profile, **changed: Any) -> tuple[str, SignIn]:
        """A browser that `profile` is signed in with, as the identity `profile.name` of the issuer."""
        identity = Identity(issuer=ISSUER, subject=profile.name, profile=profile.id)
        await self.store.identities.link(profile.tenant, identity, self.store.clock.now())
        value, now = cookies.mint(), self.store.clock.now()
        fields: dict[str, Any] = {"expires_at": now + 12 * HOUR, "user_agent": "Firefox"}
        sign_in = SignIn(
            id=new_id("sgn", now),
            tenant=profile.tenant,
            profile=profile.id,
            issuer=ISSUER,
            subject=profile.name,
            created_at=now,
            last_seen_at=now,
            **(fields | changed),
        )
        await self.watched.add(sign_in, cookies.digest(value), instead_of=None)
        return value, sign_in

    async def ask(self, *sent: str, method: str = "GET", **headers: str) -> Principal | None:
        """What the verifier makes of these `Cookie` headers, with others beside them."""
        more = [(name.replace("_", "-").encode(), value.encode("latin-1")) for name, value in headers.items()]
        given = Credentials(headers=[*((b"cookie", one.encode()) for one in sent), *more], method=method)
        return await self.verifier.verify(sent, given)

    async def refused(self, *sent: str, detail: str = NOT_VALID, **more: str) -> str:
        """The reason of the refusal, whose public side is the same for all that don't hold."""
        with pytest.raises(Unauthenticated) as caught:
            await self.ask(*sent, **more)
        assert caught.value.detail == detail
        return caught.value.reason


@pytest.fixture
def desk(store: Store) -> Desk:
    """The verifier of the tests."""
    return Desk(store)


def cookie(value: str) -> str:
    """A `Cookie` header as a browser sends it, among others."""
    return f"theme=dark; {cookies.COOKIE}={value}; lang=en"


def test_a_cookie_is_long_and_random_and_its_csrf_token_tells_nothing_of_it() -> None:
    """Design section 5.6 and the brief: 256 random bits; a token that is derived from the session."""
    values = {cookies.mint() for _ in range(200)}

    assert len(values) == 200
    assert len({cookies.csrf_token(value) for value in values}) == 200
    for value in values:
        assert cookies.is_well_formed(value)
        assert re.fullmatch(r"gwb_[\w-]{43}", value)
        assert re.fullmatch(r"[\w-]{43}", cookies.csrf_token(value))
        assert cookies.csrf_token(value) not in value


async def test_a_cookie_stands_for_the_person_who_signed_in(desk: Desk, store: Store) -> None:
    """The profile itself, all that they may do, until the sign-in ends; with the roles that the issuer said."""
    roles = (LEADS,)
    alice = await store.person("alice", "member")
    value, sign_in = await desk.browser(alice, roles=roles)

    assert await desk.ask(cookie(value)) == Principal(
        tenant=ACME,
        issuer="gateway",
        subject=alice.id,
        credential="browser",
        scopes=frozenset({"*"}),
        expires_at=sign_in.expires_at,
        credential_id=sign_in.id,
        roles=roles,
        csrf_token=cookies.csrf_token(value),
    )
    assert value not in repr(await desk.ask(cookie(value)))
    assert await desk.ask() is None
    assert await desk.ask("theme=dark; gateway=1; __host-gateway=x; x__Host-gateway=y") is None


async def test_every_cookie_that_does_not_hold_gets_the_same_answer(desk: Desk, store: Store) -> None:
    """The bearer reads one text; the audit has a reason for each."""
    alice = await store.person("alice", "member")
    value, sign_in = await desk.browser(alice)
    other, ended = await desk.browser(alice)
    await desk.watched.end(ACME, alice.id, ended.id, store.clock.now())
    table = {
        cookie(""): "token_malformed",
        cookie(value[:-1]): "token_malformed",
        cookie(f"{value}x"): "token_malformed",
        cookie(f'"{value}"'): "token_malformed",
        cookie(f"gwp_{value[4:]}"): "token_malformed",
        cookie(value.upper()): "token_malformed",
        cookie(cookies.mint()): "sign_in_unknown",
        cookie(other): "sign_in_ended",
        f"{cookie(value)}; {cookies.COOKIE}={value}": "cookie_several",
        f"{cookie(value)}; pad={'x' * 16_384}": "token_too_long",
    }

    assert {sent: await desk.refused(sent) for sent in table} == table
    assert await desk.refused(cookie(value), cookie(other)) == "cookie_several"
    assert (await desk.ask(cookie(value))) is not None
    store.clock.set(sign_in.expires_at)
    assert await desk.refused(cookie(value)) == "sign_in_expired"


async def test_a_cookie_is_no_token_and_is_sent_nowhere(desk: Desk, store: Store) -> None:
    """A cookie in the Authorization header is refused before an issuer is asked what it might be."""
    value, _ = await desk.browser(await store.person("alice", "member"))

    with pytest.raises(Unauthenticated) as caught:
        await NoBearer().verify(value)
    assert (caught.value.reason, caught.value.detail) == ("cookie_as_bearer", NOT_VALID)
    assert desk.watched.look_ups == 0


OURS = {"origin": ORIGIN, "sec_fetch_site": "same-origin"}


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "get"])
@pytest.mark.parametrize(
    ("headers", "reason"),
    [
        ({}, "csrf_token_missing"),
        ({"x_csrf_token": ""}, "csrf_token_missing"),
        ({"x_csrf_token": "wrong"}, "csrf_token_wrong"),
        ({"x_csrf_token": "caf\xe9"}, "csrf_token_wrong"),
        ({"x_csrf_token": "OTHERS"}, "csrf_token_wrong"),
        ({"x_csrf_token": "RIGHT", "origin": "https://evil.example"}, "origin_wrong"),
        ({"x_csrf_token": "RIGHT", "origin": "null"}, "origin_wrong"),
        ({"x_csrf_token": "RIGHT", "origin": "http://gateway.example"}, "origin_wrong"),
        ({"x_csrf_token": "RIGHT", "origin": f"{ORIGIN}:8443"}, "origin_wrong"),
        ({"x_csrf_token": "RIGHT", "sec_fetch_site": "cross-site"}, "origin_wrong"),
        ({"x_csrf_token": "RIGHT", "sec_fetch_site": "same-site"}, "origin_wrong"),
        ({"x_csrf_token": "RIGHT"}, None),
        ({"x_csrf_token": "RIGHT", **OURS}, None),
        ({"x_csrf_token": "RIGHT", "sec_fetch_site": "none"}, None),
    ],
)
async def test_a_write_shows_that_it_comes_from_a_page_of_ours(
    desk: Desk, store: Store, method: str, headers: dict[str, str], reason: str | None
) -> None:
    """Issue 3: a CSRF token on every write from a cookie; a read with the same headers is answered."""
    value, _ = await desk.browser(await store.person("alice", "member"))
    others, _ = await desk.browser(await store.person("bob", "member"))
    tokens = {"RIGHT": cookies.csrf_token(value), "OTHERS": cookies.csrf_token(others)}
    sent = {name: tokens.get(header, header) for name, header in headers.items()}

    if reason is None:
        assert await desk.ask(cookie(value), method=method, **sent) is not None
    else:
        assert await desk.refused(cookie(value), detail=SEND_CSRF_TOKEN, method=method, **sent) == reason
    assert await desk.ask(cookie(value), **sent) is not None


async def test_two_csrf_tokens_are_none(desk: Desk, store: Store) -> None:
    """Which of them counts must not depend on who reads them."""
    value, _ = await desk.browser(await store.person("alice", "member"))
    token = (b"x-csrf-token", cookies.csrf_token(value).encode())

    with pytest.raises(Unauthenticated) as caught:
        await desk.verifier.verify([cookie(value)], Credentials(headers=[token, token], method="POST"))
    assert caught.value.reason == "csrf_token_missing"


async def test_a_sign_in_ends_when_nobody_comes_for_an_hour_and_at_its_end_whoever_comes(
    desk: Desk, store: Store
) -> None:
    """Issue 3: idle and absolute expiry; the same on a replica that knows only what is in the store."""
    value, _ = await desk.browser(await store.person("alice", "member"))
    busy, sign_in = await desk.browser(await store.person("bob", "member"))
    elsewhere = Desk(store)
    for _ in range(12 * 60 - 1):
        store.clock.advance(60)
        await desk.ask(cookie(busy))
        await desk.seen.flush()
        if store.clock.now() == sign_in.created_at + HOUR - MINUTE:
            assert await elsewhere.ask(cookie(value)) is not None
            await elsewhere.seen.flush()

    assert await desk.refused(cookie(value)) == "sign_in_expired"
    assert await elsewhere.ask(cookie(busy)) is not None
    store.clock.advance(60)
    assert await desk.refused(cookie(busy)) == "sign_in_expired"
    assert await elsewhere.refused(cookie(busy)) == "sign_in_expired"


async def test_when_a_browser_was_seen_is_written_once_a_minute_and_nothing_is_lost(desk: Desk, store: Store) -> None:
    """The brief: at most once a minute; and a store that is away is tried again."""
    value, sign_in = await desk.browser(await store.person("alice", "member"))
    for _ in range(90):
        store.clock.advance(1)
        await desk.ask(cookie(value))
        await desk.seen.flush()
    written = [one for one in desk.watched.touched if one]

    assert written == [{sign_in.id: sign_in.created_at + MINUTE}]
    store.clock.advance(60)
    desk.watched.away = True
    with pytest.raises(Unavailable):
        await desk.seen.flush()
    desk.watched.away = False
    await desk.seen.flush()
    assert desk.watched.touched[-1] == {sign_in.id: sign_in.created_at + timedelta(seconds=90)}
    store.clock.advance(60)
    await desk.seen.flush()
    assert desk.watched.touched[-1] == {}
    assert desk.seen.last(sign_in) == sign_in.last_seen_at  # forgotten here, since the store knows


async def test_a_known_cookie_costs_no_look_up_until_anything_of_its_tenant_changes(desk: Desk, store: Store) -> None:
    """As access tokens: what was read counts as long as the epoch it was read at."""
    alice = await store.person("alice", "member")
    value, sign_in = await desk.browser(alice)
    for _ in range(3):
        await desk.ask(cookie(value))
    assert desk.watched.look_ups == 2

    await desk.watched.end(ACME, alice.id, sign_in.id, store.clock.now())
    assert await desk.refused(cookie(value)) == "sign_in_ended"


async def test_an_end_while_the_cookie_is_read_leaves_nothing_behind(desk: Desk, store: Store) -> None:
    """The answer of before the end may be given once, and is not kept."""
    alice = await store.person("alice", "member")
    value, sign_in = await desk.browser(alice)
    desk.watched.held_at = 2
    asking = asyncio.create_task(desk.ask(cookie(value)))
    async with asyncio.timeout(5):
        await desk.watched.reached.wait()
        await desk.watched.end(ACME, alice.id, sign_in.id, store.clock.now())
        desk.watched.go_on.set()
        assert await asking is not None

    assert await desk.refused(cookie(value)) == "sign_in_ended"


async def test_a_sign_in_that_is_forgotten_between_two_looks_is_unknown(desk: Desk, store: Store) -> None:
    """Rows of long ago are deleted; one may go at any moment."""
    value, _ = await desk.browser(await store.person("alice", "member"))
    desk.watched.gone_before = 2

    assert await desk.refused(cookie(value)) == "sign_in_unknown"


async def test_the_cache_is_bounded(store: Store) -> None:
    """The oldest go first; what is out is looked up again."""
    desk = Desk(store, capacity=2)
    person = await store.person("alice", "member")
    browsers = [(await desk.browser(person))[0] for _ in range(3)]
    for value in browsers:
        await desk.ask(cookie(value))
    look_ups = desk.watched.look_ups
    await desk.ask(cookie(browsers[2]))
    assert desk.watched.look_ups == look_ups
    await desk.ask(cookie(browsers[0]))
    assert desk.watched.look_ups == look_ups + 2


async def test_whoever_may_no_longer_sign_in_as_a_person_is_not_signed_in_as_them(desk: Desk, store: Store) -> None:
    """An unlinked identity, and one that a merge moved to the survivor, end what was made with them."""
    alice, bob = await store.person("alice", "member"), await store.person("bob", "member")
    hers, _ = await desk.browser(alice)
    his, _ = await desk.browser(bob)
    assert await desk.ask(cookie(hers)) is not None
    assert await desk.ask(cookie(his)) is not None

    await store.identities.unlink(ACME, Identity(issuer=ISSUER, subject="alice", profile=alice.id))
    assert await desk.refused(cookie(hers)) == "sign_in_ended"
    await store.merge(bob, alice)
    assert await desk.refused(cookie(his)) == "sign_in_ended"


async def test_who_comes_all_day_is_not_sent_away_after_a_short_pause(desk: Desk, store: Store) -> None:
    """Design section 5.6: idle is the time since the last request, whoever remembers it: this process, or the store."""
    alice = await store.person("alice", "member")
    value, _ = await desk.browser(alice)
    for _ in range(90):
        store.clock.advance(60)
        await desk.ask(cookie(value))
        await desk.seen.flush()
    store.clock.advance(120)
    await desk.seen.flush()  # nothing is due, and what the store knows is forgotten here

    assert await desk.ask(cookie(value)) is not None

    store.clock.advance(HOUR.total_seconds())
    assert await desk.refused(cookie(value)) == "sign_in_expired"


@pytest.mark.parametrize(
    ("issuers", "reason"),
    [
        ({}, "sign_in_ended"),
        ({ISSUER + "/": ISSUERS[ISSUER]}, "sign_in_ended"),
        ({ISSUER: ClaimRules(issuer=ISSUER, audience="gateway", tenant=TenantId("globex"))}, "sign_in_ended"),
        ({ISSUER: ClaimRules(issuer=ISSUER, audience="gateway", tenant_claim="org")}, None),
        ({ISSUER: ClaimRules(issuer=ISSUER, audience="gateway", tenant=ACME)}, None),
    ],
)
async def test_an_issuer_that_is_no_longer_trusted_is_not_trusted_for_its_old_sign_ins(
    desk: Desk, store: Store, issuers: dict[str, ClaimRules], reason: str | None
) -> None:
    """Whoever takes a compromised issuer, or a role of its groups, out of the settings does not wait for half a day."""
    alice = await store.person("alice", "member")
    value, sign_in = await desk.browser(alice, roles=(LEADS,))
    before = await desk.ask(cookie(value))
    again = Desk(store, issuers=issuers)
    origin = BrowserOrigin(again.watched, store.identities, again.seen, issuers=issuers, idle=HOUR)
    source = Source("browser", sign_in.id, "gateway", alice.id)

    assert before is not None
    assert before.roles == (LEADS,)
    if reason is None:
        now = await again.ask(cookie(value))
        assert now is not None
        assert now.roles == ()
        assert await origin(ACME, source) == alice.id
    else:
        assert await again.refused(cookie(value)) == reason
        assert await origin(ACME, source) is None
