"""Turns the words of `attacks.yaml` into requests to a real gateway, and into what they left behind there."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx2
import orjson
import yaml
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import Connection, select

from gateway.backends.sql import tables
from gateway.backends.sql.tenants import raise_epoch
from gateway.identity.access_tokens import digest, mint
from gateway.keys import new_id
from gateway.model import Identity, ProfileId
from gateway.ports import AuditFilter, StoredRecord
from gateway.settings import Settings, load
from tests.clock import SettableClock
from tests.conftest import LogCapture
from tests.house import WHERE, House, house
from tests.identity.forging import Change, Forge, Jwt
from tests.issuer import AUDIENCE, DISCOVERY, KEYS, Answer, LocalIssuer, signing_key

ROWS = Path(__file__).with_name("attacks.yaml")
CONFIG = Path(__file__).with_name("attacked.toml")
BYSTANDERS = frozenset({"audit"})  # tables that a refusal may write to
_NEWEST = 50  # records of the audit: more than one request and what came right before it
WHO_WAS_SEEN = re.compile(r"last_\w+_at")  # columns that say when somebody was here


class Words(BaseModel):
    """A piece of the table: a word that nobody knows is a fault of the table."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)


class Credential(Words):
    """What is presented: exactly one of a JWT, an access token of a person's, or a text as it is."""

    jwt: Jwt | None = None
    access_token: str | None = None  # whose
    text: str | None = None
    then: list[Change] = []


class Sent(Words):
    """A credential at its place: in a header (`as` is its value), a cookie, the query or the body."""

    header: str | None = None
    cookie: str | None = None
    query: str | None = None
    body: str | None = None
    value: str = Field(default="{}", alias="as")
    credential: Credential = Credential(jwt=Jwt())


class Attempt(Words):
    """A request, but for its credentials."""

    method: str
    path: str
    body: Any = None
    headers: dict[str, str] = {}


class Row(Words):
    """One attack, and what has to become of it."""

    name: str
    source: str = ""
    way: str = "bearer"  # whose honest credential shows that the attempt itself would succeed
    bearer: Jwt | str | None = None  # a JWT, or a text, as the one Authorization header
    access_token: str | None = None  # a person's, as the one Authorization header
    then: list[Change] = []  # what happens to that token
    send: list[Sent] = []
    peer: str = "127.0.0.1"
    before: list[str] = []  # what happens between the making of the credential and its use
    attempt: str = "remember"
    answer: int = 401
    says: str = "not valid"
    reason: str
    audited: bool = False  # in the chain of the tenant; else only counted, since nobody knows whose it is

    @property
    def sent(self) -> list[Sent]:
        """Everything that is presented."""
        if self.access_token is not None:
            credential: dict[str, Any] = {"access_token": self.access_token, "then": self.then}
        elif isinstance(self.bearer, str):
            credential = {"text": self.bearer}
        elif self.bearer is not None:
            credential = {"jwt": self.bearer}
        else:
            return self.send
        alone = Sent.model_validate({"header": "Authorization", "as": "Bearer {}", "credential": credential})
        return [alone, *self.send]


class Way(Words):
    """How an honest alice comes in."""

    send: list[Sent]
    peer: str = "127.0.0.1"


class Table(Words):
    """The whole file."""

    ways: dict[str, Way]
    attempts: dict[str, Attempt]
    says: dict[str, str]
    attacks: list[Row]


def table() -> Table:
    """What the file says. Raises pydantic's ValidationError for a word that is not of the vocabulary."""
    return Table.model_validate(yaml.safe_load(ROWS.read_text(encoding="utf-8")))


@dataclass
class Told:
    """What the gateway wrote down of a refusal: codes of access records, and of what it counted for nobody."""

    audited: list[str] = field(default_factory=list)
    counted: list[str] = field(default_factory=list)


@dataclass
class World:
    """The organisation acme behind its issuers, globex beside it, and whoever attacks."""

    home: House
    there: House
    issuers: dict[str, LocalIssuer]
    clock: SettableClock
    logs: LogCapture
    forge: Forge

    def credential(self, spec: Credential) -> str:
        """The text that is presented."""
        if spec.access_token is not None:
            text = self.home.secrets[spec.access_token]
        elif spec.text is not None:
            text = str(self.forge.fill(spec.text))
        else:
            text = self.forge.jwt(spec.jwt or Jwt())
        for change in spec.then:
            text = self.forge.changed(text, change, self.issuers["main"].keys[0])
        return text

    async def attempt(self, attempt: Attempt, sent: list[Sent], credentials: list[str], peer: str) -> httpx2.Response:
        """The request with these credentials at their places."""
        headers: list[tuple[bytes, bytes]] = [
            (name.encode(), str(self.forge.fill(value)).encode()) for name, value in attempt.headers.items()
        ]
        cookies, query, more = [], {}, {}
        for place, text in zip(sent, credentials, strict=True):
            value = str(self.forge.fill(place.value)).replace("{}", text)
            if place.header is not None:
                headers.append((place.header.encode(), value.encode()))
            elif place.cookie is not None:
                cookies.append(f"{place.cookie}={value}")
            elif place.query is not None:
                query[place.query] = value
            else:
                more[str(place.body)] = value
        if cookies:
            headers.append((b"Cookie", "; ".join(cookies).encode()))
        body = self.forge.fill(attempt.body)
        transport = httpx2.ASGITransport(app=self.home.app, client=(peer, 50_000))
        async with httpx2.AsyncClient(transport=transport, base_url=WHERE) as client:
            path = str(self.forge.fill(attempt.path))
            return await client.request(
                attempt.method, path, params=query, headers=headers, json=body | more if more else body
            )

    async def happens(self, what: str, attempt: Callable[[], Awaitable[httpx2.Response]]) -> None:
        """One line of `before`."""
        for pattern, event in _EVENTS.items():
            if found := re.fullmatch(pattern, what):
                await event(self, *found.groups())
                return
        assert what == "it is used", f"nobody knows how to: {what}"
        assert (await attempt()).is_success, "it should have been good before"

    def mark(self) -> Mark:
        """From here on is what the attack did."""
        self.home.gateway.refusals.flush()
        return Mark(self)


class Mark:
    """Compares the world with what it was."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._lines = len(world.logs.lines)
        self._seen: set[str] = set()
        self._state: dict[str, Any] = {}

    async def set(self) -> Mark:
        """Looks at everything that could change."""
        self._seen = {one.hash for one in await self._accesses()}
        self._state = await self.state()
        return self

    async def unchanged(self) -> bool:
        """Whether no row and no file is another than before."""
        return await self.state() == self._state

    async def told(self) -> Told:
        """What was written down since then."""
        self._world.home.gateway.refusals.flush()
        lines = self._world.logs.lines[self._lines :]
        counted = [line["code"] for line in lines if line["event"] == "refused" for _ in range(line["count"])]
        return Told([one.record.code for one in await self._accesses() if one.hash not in self._seen], counted)

    async def _accesses(self) -> list[StoredRecord]:
        """The newest records of who came in, of both organisations."""
        audit = self._world.home.gateway.stores.audit
        newest = [
            await audit.read(one.tenant, AuditFilter(), limit=_NEWEST, cursor=None, ascending=False)
            for one in (self._world.home, self._world.there)
        ]
        return [one for page in newest for one in page.items if one.record.kind == "access"]

    async def state(self) -> dict[str, Any]:
        """Every row of every table but the audit, and every file of every workspace."""
        gateway = self._world.home.gateway
        files = {
            str(path): sha256(path.read_bytes()).hexdigest()
            for path in gateway.folders.root.rglob("*")
            if path.is_file()
        }
        return {"files": files, "rows": await gateway.stores.database.read(_rows)}


def _rows(connection: Connection) -> dict[str, list[Any]]:
    rows: dict[str, list[Any]] = {}
    for one in tables.metadata.sorted_tables:
        if one.name not in BYSTANDERS:
            columns = [column for column in one.columns if not WHO_WAS_SEEN.fullmatch(column.name)]
            rows[one.name] = sorted(map(repr, connection.execute(select(*columns))))
    return rows


# ── what may happen before an attack ─────────────────────────────────────────────────────────────────────────────────


async def _rotates(world: World, issuer: str, kid: str) -> None:
    world.issuers[issuer].rotate(kid)


async def _replaces_its_key(world: World, issuer: str) -> None:
    (key,) = world.issuers[issuer].keys
    world.issuers[issuer].keys = [replace(signing_key("another"), kid=key.kid)]


async def _publishes_twice(world: World, issuer: str) -> None:
    (key,) = world.issuers[issuer].keys
    world.issuers[issuer].keys = [key, replace(signing_key("another"), kid=key.kid)]


async def _is_another_issuer(world: World, issuer: str) -> None:
    theirs = world.issuers["other"]
    document = {"issuer": theirs.url, "jwks_uri": theirs.url + KEYS}
    world.issuers[issuer].answers[DISCOVERY] = Answer(orjson.dumps(document))


async def _goes_down(world: World, issuer: str) -> None:
    world.issuers[issuer].go_down()


async def _pass(world: World, seconds: str) -> None:
    world.clock.advance(int(seconds))
    await world.home.gateway.epochs.poll()


async def _ask(world: World, method: str, path: str, body: object = None) -> None:
    answer = await world.home.send("olga", method, path, body)
    assert answer.is_success, answer.text


async def _is_disabled(world: World, who: str) -> None:
    await _ask(world, "DELETE", f"/v1/admin/people/{world.home.id(who)}")


async def _is_unlinked(world: World, who: str) -> None:
    identity = {"issuer": world.issuers["main"].url, "subject": who}
    await _ask(world, "DELETE", f"/v1/admin/people/{world.home.id(who)}/identities", identity)


async def _is_merged_away(world: World, who: str) -> None:
    """As a merge leaves the profile; the links of a sign-in that it moved are put back, as a lost race would."""

    def work(connection: Connection) -> None:
        gone = tables.profiles.update().where(tables.profiles.c.id == world.home.id(who))
        connection.execute(gone.values(merged_into=world.home.id("bob")))
        raise_epoch(connection, world.home.tenant)

    await world.home.gateway.stores.database.write(work)


async def _joins(world: World, who: str) -> None:
    await world.home.add(who, "member")


async def _loses_every_token(world: World, who: str) -> None:
    tokens = await world.home.get(who, "/v1/me/tokens")
    for token in tokens.json()["items"]:
        answer = await world.home.send(who, "DELETE", f"/v1/me/tokens/{token['id']}")
        assert answer.is_success, answer.text


_EVENTS: dict[str, Callable[..., Awaitable[None]]] = {
    r"(\w+) rotates to (\w+)": _rotates,
    r"(\w+) signs with another key under the same kid": _replaces_its_key,
    r"(\w+) publishes its key twice": _publishes_twice,
    r"(\w+) is discovered as another issuer": _is_another_issuer,
    r"(\w+) goes down": _goes_down,
    r"(\d+) seconds pass": _pass,
    r"(\w+) is disabled": _is_disabled,
    r"(\w+) is unlinked": _is_unlinked,
    r"(\w+) joins": _joins,
    r"a merge leaves (\w+)'s sign-in with a retired profile": _is_merged_away,
    r"(\w+) loses every token": _loses_every_token,
}


# ── the world itself ─────────────────────────────────────────────────────────────────────────────────────────────────


@asynccontextmanager
async def world(settings: Settings, tmp_path: Path, clock: SettableClock, logs: LogCapture) -> AsyncIterator[World]:
    """Every way in is configured, by `attacked.toml`."""
    with ExitStack() as running:
        issuers = {name: running.enter_context(LocalIssuer(clock)) for name in ("main", "plain", "other")}
        issuers["plain"].keys = [signing_key(f"plain {one}", one) for one in ("RS256", "ES256", "EdDSA")]
        issuers["other"].keys = [signing_key("other")]
        async with house(_configured(settings, tmp_path, issuers), clock, logs.loggers, cast=_CAST) as home:
            there = House(home.gateway, home.app, await home.gateway.founder.found("globex", policy=_POLICY))
            await _furnish(home, there, issuers)
            words = dict(_words(home, there, issuers))
            words["the id of alice's access token"] = (await home.get("alice", "/v1/me/tokens")).json()["items"][0][
                "id"
            ]
            yield World(home, there, issuers, clock, logs, Forge(issuers, words))


_CAST = {"alice": "member", "bob": "member", "erin": "admin", "olga": "owner"}
_POLICY = "p, *, *, *, all, any, *, *, allow\n"  # of globex: whatever keeps it out of acme, it is no policy of its own


async def _furnish(home: House, there: House, issuers: Mapping[str, LocalIssuer]) -> None:
    await home.add("robot", "member", kind="service")
    await there.add_agent("flight")
    await there.add("alice", "owner")
    for issuer, house_, subject in (
        ("main", home, "alice"),
        ("main", home, "bob"),
        ("main", home, "robot"),
        ("plain", home, "alice"),
        ("other", there, "alice"),
    ):
        identity = Identity(issuer=issuers[issuer].url, subject=subject, profile=house_.id(subject))
        await home.gateway.stores.identities.link(house_.tenant, identity, home.gateway.clock.now())
    await home.open("alice")
    await home.open("bob")


def _words(home: House, there: House, issuers: Mapping[str, LocalIssuer]) -> Iterator[tuple[str, str]]:
    yield "audience", AUDIENCE
    yield "AUDIENCE", AUDIENCE.upper()
    yield "nobody", ProfileId(new_id("prf", home.gateway.clock.now()))
    for name, issuer in issuers.items():
        yield name, issuer.url
    for name in home.people:
        yield name, home.id(name)
        yield f"{name}'s session", home.private(name)
    yield "alice of globex", there.id("alice")
    yield "a well-formed access token", mint()[0]
    yield "the hash of alice's access token", digest(home.secrets["alice"]).hex()


def _configured(settings: Settings, tmp_path: Path, issuers: Mapping[str, LocalIssuer]) -> Settings:
    text = CONFIG.read_text(encoding="utf-8").replace("{audience}", AUDIENCE)
    for name, issuer in issuers.items():
        text = text.replace(f"{{{name}}}", issuer.url)
    config = tmp_path / "attacked.toml"
    config.write_text(text, encoding="utf-8")
    return load(config, {"GATEWAY_STATE__FOLDER": str(settings.state.folder)})
