"""Turns a policy document into a gateway of its own, in a temporary folder, with two organisations full of people.

What the machine's own gateway keeps is never opened here.
"""

from __future__ import annotations

import io
import secrets
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from gateway.app import Gateway, compose, create_app
from gateway.identity.access_tokens import mint
from gateway.keys import new_id
from gateway.leak_test.asgi import App
from gateway.leak_test.cast import OTHERS, OURS, agents_of, cast_of
from gateway.leak_test.markers import Sort
from gateway.leak_test.world import Caller, Person, World
from gateway.logs import configure
from gateway.model import AccessToken, Agent, AgentName, Profile, ProfileId, RoleAssignment, TenantId
from gateway.policy.documents import parse
from gateway.ports import Clock
from gateway.settings import Settings
from gateway.workspace.scaffold import scaffold

CHANNEL, ACCOUNT = "chat", "main"
LINE_ACCOUNT = "support"
LINE_VARIABLE = "LEAK_TEST_LINE_SECRET"
# Everybody may do everything while it is planted, so that all of it is there under any document.
_PLANTING = "p, *, *, *, all, any, *, *, allow\n"
_TOKEN_LIFE = timedelta(days=1)


class StandingClock:
    """A day that does not end while its notes are looked for; ages and deadlines go on."""

    def __init__(self, clock: Clock, now: datetime) -> None:
        self._clock = clock
        self._now = now

    def now(self) -> datetime:
        """When the run began."""
        return self._now

    def monotonic(self) -> float:
        """Seconds that only rise."""
        return self._clock.monotonic()


@dataclass(frozen=True, slots=True)
class Scratch:
    """The gateway, its app, what is in it, and what it logged."""

    gateway: Gateway
    app: App
    world: World
    log: io.BytesIO
    line_secret: bytes

    @property
    def root(self) -> Path:
        """The folder of all workspaces."""
        return self.gateway.folders.root


@asynccontextmanager
async def scratch(document: str, people: int, clock: Clock) -> AsyncIterator[Scratch]:
    """A running gateway with everybody in it and nothing planted; its folder is removed afterwards.

    Raises Invalid for a document that has faults.
    """
    parsed, now = parse(document), clock.now()
    world = World(now=now, documents={OURS: document, OTHERS: document}, agents=agents_of(parsed))
    world.people = cast_of(parsed, people)
    for person in world.people:
        person.id = person.id or new_id("prf", now)
    with tempfile.TemporaryDirectory(prefix="gateway-leak-test-") as folder:
        async with opened(Path(folder), world, clock, secrets.token_hex(16)) as made:
            await furnish(made)
            yield made


@asynccontextmanager
async def opened(folder: Path, world: World, clock: Clock, line_secret: str) -> AsyncIterator[Scratch]:
    """A running gateway over a folder, with what is there already."""
    log, environ = io.BytesIO(), {LINE_VARIABLE: line_secret}
    settings = _settings(folder, world.person("connector", OURS))
    loggers = configure(settings, log)
    gateway = compose(settings, loggers, clock=StandingClock(clock, world.now), environ=environ)
    async with gateway.running():
        app: App = create_app(gateway, loggers, environ=environ)
        yield Scratch(gateway, app, world, log, line_secret.encode())


async def put_in_force(made: Scratch) -> None:
    """The world's documents instead of the rows that all was planted under."""
    policies = made.gateway.stores.policies
    for name, text in made.world.documents.items():
        tenant = TenantId(name)
        current = await policies.current(tenant)
        base = 0 if current is None else current[0].version
        await policies.publish(
            tenant, text, base_version=base, comment="leak-test", author="leak-test", now=made.world.now
        )


def _settings(folder: Path, connector: Person) -> Settings:
    account = {"tenant": OURS, "agent": "flight", "service": connector.id}
    line = {"channel": "line", "account": LINE_ACCOUNT, "secret_env": LINE_VARIABLE}
    accounts = [{"channel": CHANNEL, "account": ACCOUNT, **account}, {**line, **account}]
    return Settings.of({"state": {"folder": folder / "state"}, "connectors": {"accounts": accounts}})


async def furnish(made: Scratch) -> None:
    """Two organisations with the same agents, and everybody, each with a token. Nothing is planted yet."""
    for tenant in made.world.documents:
        await made.gateway.founder.found(tenant, policy=_PLANTING)
        for name in made.world.agents:
            agent = Agent(
                tenant=TenantId(tenant), name=AgentName(name), workspace=name, title=name.title(), timezone="UTC"
            )
            await made.gateway.stores.agents.add(agent, made.world.now)
            scaffold(made.root / tenant, name, agent.name, agent.title)
    for person in made.world.people:
        await _move_in(made, person)
    for tenant in made.world.documents:
        made.world.spare[tenant] = spare = Person(name="spare", tenant=tenant, plants=False)
        spare.id = new_id("prf", made.world.now)
        await _move_in(made, spare)


async def _move_in(made: Scratch, person: Person) -> None:
    """A profile with an email and a token, each of which nobody else is to see."""
    identities, marks, now = made.gateway.stores.identities, made.world.marks, made.world.now
    email = marks.make(Sort.EMAIL, person.name, "address", person)
    await identities.add_profile(
        Profile(
            id=ProfileId(person.id),
            tenant=TenantId(person.tenant),
            name=person.name,
            kind=person.kind,
            emails=(f"{email.word}@example.com",),
            roles=tuple(RoleAssignment(role=role, agent=AgentName(on)) for role, on in person.roles),
            created_at=now,
        )
    )
    name = marks.make(Sort.TOKEN, person.name, "access token", person)
    person.secret, person.token = await another_token(made, person, frozenset({"*"}), name.word)
    marks.named(name, person.token)


async def another_token(made: Scratch, person: Person, scopes: frozenset[str], name: str) -> tuple[str, str]:
    """The secret and the id of a new token of somebody's."""
    secret, digest = mint()
    token = AccessToken(
        id=new_id("tok", made.world.now),
        tenant=TenantId(person.tenant),
        profile=ProfileId(person.id),
        name=name,
        scopes=scopes,
        created_at=made.world.now,
        expires_at=made.world.now + _TOKEN_LIFE,
    )
    await made.gateway.stores.identities.add_token(token, digest)
    return secret, token.id


def bearer(secret: str) -> tuple[tuple[bytes, bytes], ...]:
    """The header that presents a token."""
    return ((b"authorization", f"Bearer {secret}".encode()),)


def caller_of(person: Person, label: str | None = None, **more: object) -> Caller:
    """Somebody with the token that they have."""
    return Caller(label=label or name_of(person), person=person, headers=bearer(person.secret), **more)  # type: ignore[arg-type]  # fields of Caller


def name_of(person: Person) -> str:
    """The name that a report has; another organisation's people are told apart."""
    return person.name if person.tenant == OURS else f"{person.name} ({person.tenant})"
