"""Turns the real store on a file of its own, a real issuer and a clock into what the tests of identity start from."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import httpx2
import pytest

from gateway.backends.sql.database import Database
from gateway.backends.sql.identities import SqlIdentities
from gateway.backends.sql.sessions import SqlSessions
from gateway.backends.sql.sign_ins import SqlSignIns
from gateway.backends.sql.tenants import SqlTenants
from gateway.errors import Unauthenticated
from gateway.identity.issuers import IssuerSettings
from gateway.identity.oidc import OidcVerifier
from gateway.identity.owners import Owners
from gateway.identity.people import People
from gateway.identity.refusals import NOT_VALID
from gateway.keys import new_id
from gateway.model import ANY_AGENT, Principal, Profile, ProfileId, Requester, RoleAssignment, TenantId
from gateway.policy.documents import parse
from gateway.policy.shipped import shipped
from gateway.policy.snapshot import Snapshot
from gateway.policy.states import TenantState
from gateway.raising.identities import HeldIdentities
from gateway.raising.people import PeopleAreWeighed
from gateway.raising.rows_in_force import RowsInForce
from tests.clock import SettableClock
from tests.issuer import AUDIENCE, LocalIssuer

ACME = TenantId("acme")
GLOBEX = TenantId("globex")


class Epochs:
    """The epochs that this process knows, as the store tells them after each commit."""

    def __init__(self) -> None:
        self.known: dict[TenantId, int] = {}

    def rose(self, tenant: TenantId, epoch: int) -> None:
        """The store's listener."""
        self.known[tenant] = epoch

    def __call__(self, tenant: TenantId) -> int:
        return self.known[tenant]


@dataclass
class Store:
    """The real tables, with two tenants."""

    database: Database
    identities: SqlIdentities
    tenants: SqlTenants
    epochs: Epochs
    clock: SettableClock

    async def person(self, name: str, *roles: str, tenant: TenantId = ACME, **fields: Any) -> Profile:
        """A stored profile that holds these roles on every agent."""
        values: dict[str, Any] = {
            "id": ProfileId(new_id("prf", self.clock.now())),
            "tenant": tenant,
            "name": name,
            "kind": "person",
            "roles": tuple(RoleAssignment(role=role, agent=ANY_AGENT) for role in roles),
            "created_at": self.clock.now(),
        }
        profile = Profile(**(values | fields))
        await self.identities.add_profile(profile)
        return profile

    async def merge(self, retired: Profile, survivor: Profile) -> None:
        """Makes one of two."""
        await self.identities.merge(retired.tenant, retired.id, survivor.id, self.clock.now())

    async def requester(self, profile: Profile, *scopes: str, issuer: str = "gateway") -> Requester:
        """`profile` as it is now, asking with a credential of these scopes (all, where none is named)."""
        now = await self.identities.profile(profile.tenant, profile.id)
        assert now is not None
        principal = Principal(
            tenant=profile.tenant,
            issuer=issuer,
            subject=profile.id,
            credential="access_token",
            scopes=frozenset(scopes or ("*",)),
        )
        return Requester(
            tenant=profile.tenant, profile=now, principal=principal, epoch=self.epochs.known[profile.tenant]
        )


@pytest.fixture
async def store(tmp_path: Path, clock: SettableClock) -> AsyncIterator[Store]:
    """An empty store with the tenants acme and globex."""
    async with Database(tmp_path / "gateway.db", readers=2) as database:
        epochs = Epochs()
        database.when_epoch_rises(epochs.rose)
        tenants = SqlTenants(database)
        for tenant in (ACME, GLOBEX):
            await tenants.add(tenant, demo=False, now=clock.now())
        yield Store(database, SqlIdentities(database), tenants, epochs, clock)


def weighing(store: Store, text: str = shipped("default.csv")) -> PeopleAreWeighed:
    """What changes are compared by: the shipped rows, unless others are given."""
    held = HeldIdentities(store.identities, SqlSignIns(store.database), store.clock)
    snapshot = Snapshot(parse(text), 1, store.clock.now())

    async def current(tenant: TenantId) -> TenantState:
        return TenantState(tenant=tenant, epoch=1, snapshot=snapshot, agents={}, people=0)

    sessions = SqlSessions(store.database)
    return PeopleAreWeighed(store.identities, sessions, held, RowsInForce(current), store.clock)


def people_of(store: Store) -> People:
    """What admins do to people."""
    return People(store.identities, Owners(store.identities), weighing(store), store.clock)


@pytest.fixture
def people(store: Store) -> People:
    """What admins do to people."""
    return people_of(store)


@pytest.fixture
def issuer(clock: SettableClock) -> Iterator[LocalIssuer]:
    """A running issuer with one key."""
    with LocalIssuer(clock) as running:
        yield running


class Verifiers:
    """Makes verifiers that trust the local issuer, and closes them."""

    def __init__(self, issuer: LocalIssuer, http: httpx2.AsyncClient) -> None:
        self._issuer = issuer
        self._http = http
        self._made: list[OidcVerifier] = []

    def settings(self, **changes: Any) -> IssuerSettings:
        """Settings for the local issuer."""
        usual: dict[str, Any] = {
            "issuer": self._issuer.url,
            "audience": AUDIENCE,
            "algorithms": frozenset({"RS256", "ES256", "EdDSA", "Ed25519"}),
            "tenant": ACME,
        }
        return IssuerSettings(**(usual | changes))

    def trusting(self, *, capacity: int = 100, **changes: Any) -> OidcVerifier:
        """A verifier of the local issuer's tokens."""
        verifier = OidcVerifier([self.settings(**changes)], self._http, self._issuer.clock, capacity=capacity)
        self._made.append(verifier)
        return verifier

    async def aclose(self) -> None:
        """Closes what was made."""
        for verifier in self._made:
            await verifier.aclose()


async def refusal(verifier: OidcVerifier, token: str) -> str:
    """The reason of the refusal, whose public side is the same for all of them."""
    with pytest.raises(Unauthenticated) as caught:
        await verifier.verify(token)
    assert caught.value.detail == NOT_VALID
    assert caught.value.headers == {"WWW-Authenticate": 'Bearer realm="gateway", error="invalid_token"'}
    return caught.value.reason


@lru_cache(maxsize=1)
def _tls() -> ssl.SSLContext:
    """Made once: reading the machine's certificates takes longer than most tests."""
    return ssl.create_default_context()


@pytest.fixture
async def verifiers(issuer: LocalIssuer) -> AsyncIterator[Verifiers]:
    """Verifiers over one HTTP client."""
    async with httpx2.AsyncClient(trust_env=False, verify=_tls()) as http:
        made = Verifiers(issuer, http)
        yield made
        await made.aclose()


@pytest.fixture
def verifier(verifiers: Verifiers) -> OidcVerifier:
    """One verifier of the local issuer's tokens, with the usual settings."""
    return verifiers.trusting()
