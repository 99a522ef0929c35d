"""Turns a typed row of `attacks.yaml` into requests to a real gateway."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from secrets import token_urlsafe
from urllib.parse import parse_qs, urlsplit

import httpx2
import orjson

from gateway.identity.access_tokens import digest, mint
from gateway.identity.claims import OIDC
from gateway.identity.cookies import csrf_token
from gateway.identity.sign_ins import Attempt as SignInAttempt
from gateway.identity.sign_ins import BrowserSignIns
from gateway.keys import new_id
from gateway.model import Identity, Principal, ProfileId
from gateway.settings import Settings, load
from tests.cast import profile_id
from tests.channels import SECRETS as CHANNEL_SECRETS
from tests.channels import add_service, link, signed
from tests.clock import SettableClock
from tests.conftest import LogCapture
from tests.house import WHERE, House, house
from tests.identity.attack_words import Attempt, Credential, Opaque, Sent
from tests.identity.forging import Forge, Jwt, Turn
from tests.introspector import SECRET, LocalIntrospector
from tests.issuer import AUDIENCE, DISCOVERY, KEYS, LocalIssuer, SigningKey, signing_key
from tests.loopback import Answer

CONFIG = Path(__file__).with_name("attacked.toml")
ISSUERS = ("main", "plain", "other", "cloud")
CONNECTORS = ("line", "sales")
CAST = {"alice": "member", "bob": "member", "erin": "admin", "olga": "owner"}
# Of globex: whatever keeps its people out of acme, it is no policy of their own.
ANYTHING_GOES = "p, *, *, *, all, any, *, *, allow\n"


@dataclass
class World:
    """The organisation acme behind its issuers, globex beside it, and whoever attacks."""

    home: House
    there: House
    issuers: dict[str, LocalIssuer]
    clock: SettableClock
    logs: LogCapture
    forge: Forge
    opaque: LocalIntrospector
    flow_cookie: str = ""  # of the browser that began to sign in last
    cookies: dict[str, str] = field(default_factory=dict)  # of the browser that each person signed in with last

    async def credential(self, spec: Credential) -> str:
        """The text that is presented."""
        if spec.access_token is not None:
            text = self.home.secrets[spec.access_token]
        elif spec.turn is not None:
            text = await self._turn_token(spec.turn)
        elif spec.opaque is not None:
            text = self._opaque_token(spec.opaque)
        elif spec.browser is not None:
            text = await self._signed_in(spec.browser)
        elif spec.flow is not None:
            text = await self._begun() if spec.flow == "state" else self.flow_cookie
        elif spec.csrf_token is not None:
            text = csrf_token(self.cookies[spec.csrf_token])
        elif spec.text is not None:
            text = str(self.forge.fill(spec.text))
        else:
            text = self.forge.jwt(spec.jwt or Jwt())
        for change in spec.then:
            text = self.forge.changed(text, change, self.issuers["main"].keys[0])
        return text

    async def _turn_token(self, spec: Turn) -> str:
        """One that the gateway gave out, or one that says something else with the gateway's own signature."""
        session = self.forge.fill(spec.session)
        answer = await self.home.post(spec.of, f"/v1/sessions/{session}/context", {"turn_token": True})
        assert answer.status_code == 200, answer.text
        signing = self.home.gateway.ways.turn_tokens._keys.signing()
        return self.forge.turn_token(answer.json()["turn_token"], spec, SigningKey(signing.kid, "EdDSA", signing.key))

    def _opaque_token(self, spec: Opaque) -> str:
        """Another one each time: what was once said of a token is remembered."""
        token = f"opq_{len(self.opaque.tokens)}_{token_urlsafe(16)}"
        return self.opaque.issue(token, spec.sub, **self.forge.fill(spec.says)) if spec.known else token

    async def _begun(self) -> str:
        """The `state` of a sign-in that a browser begins; its cookie is kept."""
        answer = await self.home.get(None, "/sign-in/office")
        assert answer.is_redirect, answer.text
        self.flow_cookie = answer.headers["set-cookie"].partition(";")[0].partition("=")[2]
        return parse_qs(urlsplit(answer.headers["location"]).query)["state"][0]

    async def _signed_in(self, name: str) -> str:
        """The cookie of a browser that somebody signed in with at `main`, as `web/sign_in` leaves it."""
        principal = Principal(
            tenant=self.home.tenant,
            issuer=self.issuers["main"].url,
            subject=name,
            credential=OIDC,
            scopes=frozenset({"*"}),
        )
        gateway = self.home.gateway
        desk = BrowserSignIns(
            gateway.stores.sign_ins,
            gateway.profiles,
            gateway.ways.seen,
            self.clock,
            gateway.buffer.record_durably,
            gateway.refusals.count,
            gateway.epochs.current,
            idle=timedelta(hours=1),
            lasts=timedelta(hours=12),
        )
        # A person has so many sign-ins, and the oldest end: of two in one instant nobody knows which is older.
        self.clock.advance(0.001)
        attempt = SignInAttempt(request="req_test", user_agent="Firefox", cookie=None, id_token=None)
        self.cookies[name], _ = await desk.sign_in(principal, attempt)
        return self.cookies[name]

    async def attempt(self, attempt: Attempt, sent: list[Sent], credentials: list[str], peer: str) -> httpx2.Response:
        """The request with these credentials at their places."""
        headers: list[tuple[bytes, bytes]] = [
            (name.encode(), str(self.forge.fill(value)).encode()) for name, value in attempt.headers.items()
        ]
        body = self.forge.fill(attempt.body)
        cookies, query, more = [], {}, {}
        for place, text in zip(sent, credentials, strict=True):
            value = _signatures(str(self.forge.fill(place.value)).replace("{}", text), body)
            if place.header is not None:
                headers.append((place.header.encode(), value.encode()))
            elif place.cookie is not None:
                cookies.append(f"{place.cookie}={value}")
            elif place.query is not None:
                query[place.query] = value
            else:
                more[str(place.body)] = value
        if body is not None:
            headers.append((b"Content-Type", b"application/json"))
        if cookies:
            headers.append((b"Cookie", "; ".join(cookies).encode()))
        transport = httpx2.ASGITransport(app=self.home.app, client=(peer, 50_000))
        async with httpx2.AsyncClient(transport=transport, base_url=WHERE) as client:
            path = str(self.forge.fill(attempt.path))
            content = None if body is None else orjson.dumps(body | more if more else body)
            return await client.request(attempt.method, path, params=query, headers=headers, content=content)


def _signatures(value: str, body: object) -> str:
    """What a channel would sign the body with, where `value` asks for it."""
    for account in CHANNEL_SECRETS:
        value = value.replace(f"{{signature by {account}}}", signed(orjson.dumps(body), account))
        value = value.replace(f"{{signature by {account} of another body}}", signed(b"{}", account))
    return value


@asynccontextmanager
async def world(settings: Settings, tmp_path: Path, clock: SettableClock, logs: LogCapture) -> AsyncIterator[World]:
    """Every way in is configured, by `attacked.toml`."""
    with ExitStack() as running:
        issuers = {name: running.enter_context(LocalIssuer(clock)) for name in ISSUERS}
        issuers["plain"].keys = [signing_key(f"plain {one}", one) for one in ("RS256", "ES256", "EdDSA")]
        main = issuers["main"].url
        addresses = {f"{name}_endpoint": f"{main}/{name}" for name in ("authorization", "token")}
        document = {"issuer": main, "jwks_uri": main + KEYS, **addresses}
        issuers["main"].answers[DISCOVERY] = Answer(orjson.dumps(document))
        for name in ("other", "cloud"):
            issuers[name].keys = [signing_key(name)]
        opaque = running.enter_context(LocalIntrospector(clock))
        ours = _configured(settings, tmp_path, issuers, opaque)
        async with house(ours, clock, logs.loggers, cast=CAST) as home:
            tenant = await home.gateway.founder.found("globex", policy=ANYTHING_GOES)
            there = House(home.gateway, home.app, tenant)
            await _furnish(home, there, issuers, opaque)
            words = dict(_words(home, there, issuers))
            token = (await home.get("alice", "/v1/me/tokens")).json()["items"][0]
            words["the id of alice's access token"] = token["id"]
            yield World(home, there, issuers, clock, logs, Forge(issuers, words), opaque)


async def _furnish(home: House, there: House, issuers: Mapping[str, LocalIssuer], opaque: LocalIntrospector) -> None:
    await home.add("robot", "member", kind="service")
    await home.add("frank", "member", "admin")
    for connector in CONNECTORS:
        await add_service(home, connector, "connector")
    home.secrets["line for sessions alone"] = await home.token("line", scopes=["session", "memory"])
    await there.add_agent("flight")
    await there.add("alice", "owner")
    for issuer, house_, subject in (
        ("main", home, "alice"),
        ("main", home, "bob"),
        ("main", home, "robot"),
        ("plain", home, "alice"),
        ("cloud", home, "alice"),
        ("front", home, "alice"),
        ("front", home, "bob"),
        ("other", there, "alice"),
        (opaque.url, home, "alice"),
        (opaque.url, home, "robot"),
    ):
        name = issuers[issuer].url if issuer in issuers else issuer
        identity = Identity(issuer=name, subject=subject, profile=house_.id(subject))
        await home.gateway.stores.identities.link(house_.tenant, identity, home.gateway.clock.now())
    await link(home, "alice", "U1")
    await home.open("alice")
    await home.open("alice", "group", name="night", participants=[home.id("bob")])
    await home.open("bob")
    await home.open("frank")


def _words(home: House, there: House, issuers: Mapping[str, LocalIssuer]) -> Iterator[tuple[str, str]]:
    yield "audience", AUDIENCE
    yield "AUDIENCE", AUDIENCE.upper()
    yield "nobody", ProfileId(new_id("prf", home.gateway.clock.now()))
    for name, issuer in issuers.items():
        yield name, issuer.url
    for name in home.people:
        yield name, home.id(name)
        yield f"{name}'s session", home.private(name)
    yield "alice's group", f"agent:flight:explicit:{home.id('alice')}:night"
    yield "alice of globex", there.id("alice")
    yield "a well-formed access token", mint()[0]
    yield "the hash of alice's access token", digest(home.secrets["alice"]).hex()


def _configured(
    settings: Settings, tmp_path: Path, issuers: Mapping[str, LocalIssuer], opaque: LocalIntrospector
) -> Settings:
    for name, secret in {"introspection": SECRET, **CHANNEL_SECRETS}.items():
        (tmp_path / f"{name}.secret").write_text(secret, encoding="utf-8")
    words = {"audience": AUDIENCE, "opaque": opaque.url, "folder": str(tmp_path)}
    text = CONFIG.read_text(encoding="utf-8")
    for word, meaning in (words | {one: profile_id(one) for one in CONNECTORS}).items():
        text = text.replace(f"{{{word}}}", meaning)
    for name, issuer in issuers.items():
        text = text.replace(f"{{{name}}}", issuer.url)
    config = tmp_path / "attacked.toml"
    config.write_text(text, encoding="utf-8")
    return load(config, {"GATEWAY_STATE__FOLDER": str(settings.state.folder)})


async def expect(answer: Awaitable[httpx2.Response]) -> httpx2.Response:
    """An answer that has to be a good one."""
    got = await answer
    assert got.is_success, got.text
    return got


Again = Callable[[], Awaitable[httpx2.Response]]
