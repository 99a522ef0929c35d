"""Tests that a principal leads to its own person and to nobody else's, and that a change counts at once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from gateway.backends.sql.identities import SqlIdentities
from gateway.errors import Conflict, Unauthenticated, Unavailable
from gateway.identity.profiles import ProfileResolver
from gateway.identity.refusals import NOT_ACTIVE, NOT_ADDED, NOT_VALID
from gateway.identity.roles import MEMBERSHIP, role_of
from gateway.model import (
    ANY_AGENT,
    AuditRecord,
    Identity,
    Notice,
    Principal,
    Profile,
    ProfileId,
    Requester,
    RoleAssignment,
    TenantId,
)
from tests.identity.conftest import ACME, GLOBEX, Store

GOOGLE = "https://accounts.example"
OKTA = "https://okta.example"


Meanwhile = Callable[[], Awaitable[None]]


async def run(meanwhile: Meanwhile | None) -> None:
    """What happens at this moment, if anything."""
    if meanwhile is not None:
        await meanwhile()


class Watched(SqlIdentities):
    """The real store, which counts reads of profiles and runs `meanwhile` once, before or after a named call."""

    def __init__(self, store: Store) -> None:
        super().__init__(store.database)
        self.reads = 0
        self.before: dict[str, Meanwhile] = {}
        self.after: dict[str, Meanwhile] = {}

    async def profile_of(self, tenant: TenantId, issuer: str, subject: str) -> Profile | None:
        self.reads += 1
        found = await super().profile_of(tenant, issuer, subject)
        await run(self.after.pop("profile_of", None))
        return found

    async def add_profile(self, profile: Profile) -> None:
        await run(self.before.pop("add_profile", None))
        await super().add_profile(profile)

    async def link(
        self,
        tenant: TenantId,
        identity: Identity,
        now: datetime,
        *,
        by: ProfileId | None = None,
        told: Sequence[Notice] = (),
    ) -> None:
        await run(self.before.pop("link", None))
        await super().link(tenant, identity, now, by=by, told=told)


class Desk:
    """A resolver over the store; the people of Google get a profile by themselves."""

    def __init__(self, store: Store, *, capacity: int = 100) -> None:
        self.store = store
        self.watched = Watched(store)
        self.recorded: list[AuditRecord] = []
        self.audit_is_away = False
        self.resolver = ProfileResolver(
            self.watched,
            store.tenants,
            store.clock,
            store.epochs,
            self._record,
            provisioning=[GOOGLE],
            capacity=capacity,
        )

    async def _record(self, record: AuditRecord) -> None:
        """Takes a record at once; the audit on disk is tested in tests/path."""
        if self.audit_is_away:
            raise Unavailable("The audit is away.")
        self.recorded.append(record)

    async def ask(self, principal: Principal) -> Requester:
        """The requester, in a request of the tests."""
        return await self.resolver.resolve(principal, request="req_1", surface="rest")

    async def link(self, profile: Profile, issuer: str, subject: str) -> None:
        """Links as an admin does."""
        identity = Identity(issuer=issuer, subject=subject, profile=profile.id)
        await self.store.identities.link(profile.tenant, identity, self.store.clock.now())

    async def resolve(self, principal: Principal) -> ProfileId:
        """Whose principal it is."""
        return (await self.ask(principal)).profile.id

    async def refused(self, principal: Principal, detail: str = NOT_ADDED) -> str:
        """The reason of the refusal, whose public side is `detail`; and nobody was made for it."""
        people = await self.everybody(principal.tenant)
        with pytest.raises(Unauthenticated) as caught:
            await self.ask(principal)
        assert caught.value.detail == detail
        assert await self.everybody(principal.tenant) == people
        return caught.value.reason

    async def everybody(self, tenant: TenantId = ACME) -> list[Profile]:
        """The tenant's profiles."""
        return list((await self.store.identities.people(tenant, limit=100, cursor=None)).items)


@pytest.fixture
def desk(store: Store) -> Desk:
    """The resolver of the tests."""
    return Desk(store)


def signed_in(subject: str, issuer: str = OKTA, *, tenant: TenantId = ACME, **fields: Any) -> Principal:
    """A principal as the OIDC verifier makes it."""
    values: dict[str, Any] = {"credential": "oidc", "scopes": frozenset({"*"}), **fields}
    return Principal(tenant=tenant, issuer=issuer, subject=subject, **values)


def token_of(profile: ProfileId, tenant: TenantId = ACME) -> Principal:
    """A principal as the access token verifier makes it."""
    return Principal(
        tenant=tenant, issuer="gateway", subject=profile, credential="access_token", scopes=frozenset({"memory"})
    )


async def test_a_requester_is_the_profile_with_its_roles_and_the_epoch(desk: Desk, store: Store) -> None:
    """Ports: everything that a decision needs to know of the person."""
    alice = await store.person("Alice", "member", emails=("alice@acme.example",))
    await desk.link(alice, OKTA, "alice")

    requester = await desk.ask(signed_in("alice"))

    assert (requester.tenant, requester.profile, requester.epoch) == (ACME, alice, store.epochs(ACME))
    assert requester.principal == signed_in("alice")


async def test_the_identity_key_is_issuer_and_subject_byte_for_byte(desk: Desk, store: Store) -> None:
    """Design section 5, "identity key": neither another issuer's subject nor another spelling is the same person."""
    alice = await store.person("Alice", "member")
    await desk.link(alice, OKTA, "alice")

    assert await desk.resolve(signed_in("alice")) == alice.id
    for stranger in (
        signed_in("Alice"),
        signed_in("alice "),
        signed_in("alice", OKTA + "/"),
        signed_in("alice", "https://other.example"),
        signed_in("alice", tenant=GLOBEX),
        signed_in(alice.id),
    ):
        assert await desk.refused(stranger) == "person_unknown"


async def test_an_access_token_names_its_profile_and_no_other_credential_can(desk: Desk, store: Store) -> None:
    """A token's principal is ("gateway", profile id); an issuer that called itself so is not believed."""
    alice = await store.person("Alice", "member")

    assert await desk.resolve(token_of(alice.id)) == alice.id
    assert await desk.refused(token_of(alice.id, GLOBEX), NOT_VALID) == "profile_unknown"
    assert await desk.refused(token_of(ProfileId("prf_x")), NOT_VALID) == "profile_unknown"
    forged = replace(token_of(ProfileId("prf_y")), credential="oidc")
    assert await desk.refused(forged, NOT_VALID) == "principal_malformed"


async def test_a_tenant_that_does_not_exist_has_nobody(desk: Desk, store: Store) -> None:
    """Design section 5, "tenant": an unknown one is refused."""
    nowhere = TenantId("nowhere")
    with pytest.raises(Unauthenticated) as caught:
        await desk.ask(signed_in("alice", GOOGLE, tenant=nowhere))

    assert caught.value.reason == "tenant_unknown"
    assert await desk.everybody(nowhere) == []


async def test_a_disabled_person_is_refused_at_once_by_every_credential(desk: Desk, store: Store) -> None:
    """ASVS V7.4.2: disabling an account ends what it had; and it can be switched on again."""
    alice = await store.person("Alice", "member")
    await desk.link(alice, OKTA, "alice")
    credentials = [signed_in("alice"), token_of(alice.id)]
    assert [await desk.resolve(one) for one in credentials] == [alice.id, alice.id]

    async def switch(*, off: bool) -> None:
        await store.identities.change_profile(ACME, alice.id, name=None, emails=None, disabled=off)

    await switch(off=True)
    assert [await desk.refused(one, NOT_ACTIVE) for one in credentials] == ["profile_disabled"] * 2
    await switch(off=False)
    assert [await desk.resolve(one) for one in credentials] == [alice.id, alice.id]


async def test_a_merged_persons_sign_ins_lead_to_the_survivor_and_their_tokens_to_nobody(
    desk: Desk, store: Store
) -> None:
    """Design section 5, "merge": alias resolution is one hop, and captured authority of the retired fails closed."""
    retired, survivor, last = [await store.person(name, "member") for name in ("Al", "Alice", "Alicia")]
    await desk.link(retired, OKTA, "al")
    assert await desk.resolve(signed_in("al")) == retired.id

    await store.merge(retired, survivor)
    assert await desk.resolve(signed_in("al")) == survivor.id
    assert await desk.resolve(token_of(survivor.id)) == survivor.id
    assert await desk.refused(token_of(retired.id), NOT_ACTIVE) == "profile_retired"

    await store.merge(survivor, last)
    assert await desk.resolve(signed_in("al")) == last.id
    for gone in (retired, survivor):
        assert await desk.refused(token_of(gone.id), NOT_ACTIVE) == "profile_retired"


async def test_a_trusted_email_links_to_the_profile_that_holds_it_for_good(desk: Desk, store: Store) -> None:
    """Design section 5: an email links only if verified, which is when the verifier puts it into the principal."""
    alice = await store.person("Alice", "member", emails=("alice@acme.example",))

    assert await desk.refused(signed_in("alice")) == "person_unknown"
    assert await desk.resolve(signed_in("alice", email="alice@acme.example")) == alice.id
    assert await desk.resolve(signed_in("alice")) == alice.id
    assert await desk.resolve(signed_in("alice", GOOGLE, email="alice@acme.example")) == alice.id
    assert len(await store.identities.identities(ACME, alice.id)) == 2


async def test_a_reassigned_email_never_inherits_the_predecessors_profile(desk: Desk, store: Store) -> None:
    """Reported failure: the address got a new owner, who must not find the old one's personal USER.md."""
    alice = await store.person("Alice", "member", emails=("reception@acme.example",))
    assert await desk.resolve(signed_in("u-1", GOOGLE, email="reception@acme.example")) == alice.id

    assert await desk.refused(signed_in("u-2", GOOGLE, email="reception@acme.example")) == "email_reassigned"
    assert await desk.resolve(signed_in("u-1", GOOGLE)) == alice.id
    assert [one.subject for one in await store.identities.identities(ACME, alice.id)] == ["u-1"]


async def test_two_accounts_of_one_issuer_that_claim_one_email_at_once_share_no_profile(
    desk: Desk, store: Store
) -> None:
    """The other account may be linked by another process between our look and our link: then ours is taken back."""
    alice = await store.person("Alice", "member", emails=("reception@acme.example",))

    async def other_process() -> None:
        await desk.link(alice, OKTA, "u-1")

    desk.watched.before["link"] = other_process
    assert await desk.refused(signed_in("u-2", email="reception@acme.example")) == "email_reassigned"
    assert [one.subject for one in await store.identities.identities(ACME, alice.id)] == ["u-1"]


async def test_an_email_of_a_disabled_person_or_a_service_links_to_nobody(desk: Desk, store: Store) -> None:
    """A service never counts as a person, and nobody comes back as somebody who was switched off."""
    await store.person("Bot", kind="service", emails=("bot@acme.example",))
    await store.person("Bob", "member", emails=("bob@acme.example",), disabled=True)

    assert await desk.refused(signed_in("x", GOOGLE, email="bot@acme.example")) == "service_not_linked"
    assert await desk.refused(signed_in("y", GOOGLE, email="bob@acme.example")) == "profile_disabled"


async def test_somebody_new_gets_a_profile_only_from_an_issuer_that_is_set_so(desk: Desk) -> None:
    """Unknown people are refused with a text that says what to do, unless the issuer provisions."""
    assert await desk.refused(signed_in("carol")) == "person_unknown"

    made = (await desk.ask(signed_in("carol", GOOGLE, email="carol@acme.example"))).profile

    assert (made.name, made.kind, made.emails) == ("carol@acme.example", "person", ("carol@acme.example",))
    assert made.roles == (MEMBERSHIP,)
    assert await desk.everybody() == [made]
    assert await desk.resolve(signed_in("carol", GOOGLE)) == made.id
    nameless = (await desk.ask(signed_in("dana", GOOGLE))).profile
    assert (nameless.name, nameless.emails) == ("dana", ())


@pytest.mark.parametrize("email", [None, "carol@acme.example"])
async def test_two_first_requests_at_once_make_one_profile(desk: Desk, email: str | None) -> None:
    """Provisioning is safe against itself within one process."""
    carol = signed_in("carol", GOOGLE, email=email)

    found = await asyncio.gather(*(desk.resolve(carol) for _ in range(10)))

    assert [profile.id for profile in await desk.everybody()] == [found[0]]
    assert set(found) == {found[0]}


@pytest.mark.parametrize("email", [None, "carol@acme.example"])
@pytest.mark.parametrize("moment", ["add_profile", "link"])
async def test_two_processes_that_meet_somebody_new_agree_on_one_active_person(
    desk: Desk, store: Store, email: str | None, moment: str
) -> None:
    """The other process is done before we add the profile, or between adding and linking it."""
    carol = signed_in("carol", GOOGLE, email=email)
    other = Desk(store)
    won: list[ProfileId] = []

    async def other_process() -> None:
        won.append(await other.resolve(carol))

    desk.watched.before[moment] = other_process

    assert await desk.resolve(carol) == won[0]
    assert [profile.id for profile in await desk.everybody() if not profile.disabled] == won
    assert await store.identities.count_people(ACME) == 1


async def test_a_conflict_that_does_not_end_is_a_refusal(desk: Desk, store: Store) -> None:
    """Bounded: an email that is held but found with nobody is for an admin to sort out."""

    async def held() -> None:
        desk.watched.before["add_profile"] = held
        raise Conflict("held")

    desk.watched.before["add_profile"] = held

    assert await desk.refused(signed_in("carol", GOOGLE)) == "person_unknown"


async def test_the_roles_of_a_claim_are_those_of_this_credential_and_are_stored_nowhere(
    desk: Desk, store: Store
) -> None:
    """Issue 3: a removed group takes effect with the next token; what was given by hand stays what it was."""
    alice = await store.person("Alice", "member")
    bot = await store.person("Bot", "member", kind="service")
    await desk.link(alice, OKTA, "alice")
    await desk.link(bot, OKTA, "bot")
    lead = signed_in("alice", roles=(role_of("supervisor@flight"), role_of("member")))
    renewed, left = replace(lead, scopes=frozenset({"memory"})), replace(lead, roles=())

    claimed = await desk.ask(lead)
    again = await desk.ask(lead)
    same_groups = await desk.ask(renewed)
    none = await desk.ask(left)
    back = await desk.ask(lead)
    by_token = await desk.ask(token_of(alice.id))
    service = await desk.ask(signed_in("bot", roles=(role_of("supervisor"),)))

    assert claimed.profile.roles == (role_of("member"), role_of("supervisor@flight"))
    assert claimed.profile.claimed == (role_of("supervisor@flight"),)
    assert again is claimed  # worked out once
    assert same_groups.profile is claimed.profile
    assert (none.profile, none.profile.claimed) == (alice, ())
    assert back.profile == claimed.profile
    assert by_token.profile == alice
    assert service.profile == bot  # an admin who lets a service in sees all that it may do
    assert await store.identities.profile(ACME, alice.id) == alice
    changed = await store.identities.set_roles(ACME, alice.id, (role_of("supervisor@flight"),))
    assert changed is not None
    assert (await desk.ask(lead)).profile.roles == (role_of("supervisor@flight"), role_of("member"))
    assert (await desk.ask(lead)).profile.claimed == (role_of("member"),)


async def test_a_service_is_nobody_until_an_admin_links_it_to_a_service(desk: Desk, store: Store) -> None:
    """RFC 9068 section 2.2 tokens of a client: no email, no provisioning, and never a person's profile."""
    bot = await store.person("Bot", "connector", kind="service")
    alice = await store.person("Alice", "member")
    client = signed_in("bot", GOOGLE, service=True, email="alice@acme.example")
    assert await desk.refused(client) == "service_not_linked"
    await desk.link(bot, GOOGLE, "bot")
    await desk.link(alice, GOOGLE, "impostor")

    assert await desk.resolve(client) == bot.id
    assert await desk.refused(replace(client, subject="impostor")) == "service_not_linked"
    assert await desk.resolve(signed_in("impostor", GOOGLE)) == alice.id
    assert await desk.refused(replace(client, subject="impostor")) == "service_not_linked"


async def test_the_local_operator_is_a_service_that_owns_the_tenant(desk: Desk, store: Store) -> None:
    """Interface, "command line": the local operator acts on the machine itself; unknown until the tenant has one."""
    operator = Principal(
        tenant=ACME, issuer="operator", subject="local", credential="operator", scopes=frozenset({"*"})
    )
    assert await desk.refused(operator) == "service_not_linked"
    service = await store.person("local operator", "owner", kind="service")
    await desk.link(service, "operator", "local")

    requester = await desk.ask(operator)
    assert requester.profile == service
    assert requester.subjects_on(ANY_AGENT) >= {"role:owner"}
    assert await store.identities.count_people(ACME) == 0


async def test_a_person_who_is_known_is_not_read_again_until_something_changes(desk: Desk, store: Store) -> None:
    """Answers are those of one epoch."""
    alice = await store.person("Alice", "member")
    await desk.link(alice, OKTA, "alice")
    first = await desk.ask(signed_in("alice"))
    reads = desk.watched.reads

    assert await desk.ask(signed_in("alice")) == first
    assert desk.watched.reads == reads
    roles = [RoleAssignment(role="supervisor", agent=ANY_AGENT)]
    await store.identities.set_roles(ACME, alice.id, roles)
    after = await desk.ask(signed_in("alice"))
    assert after.profile.roles == tuple(roles)
    assert after.epoch == store.epochs(ACME) > first.epoch


async def test_a_read_under_way_during_a_change_leaves_no_old_answer(desk: Desk, store: Store) -> None:
    """A request in flight can't write an old answer back: the epoch is compared before and after."""
    alice = await store.person("Alice", "member")
    await desk.link(alice, OKTA, "alice")

    async def lose_roles() -> None:
        await store.identities.set_roles(ACME, alice.id, [])

    desk.watched.after["profile_of"] = lose_roles
    before = await desk.ask(signed_in("alice"))
    after = await desk.ask(signed_in("alice"))

    assert before.profile.roles == (MEMBERSHIP,)
    assert before.epoch < store.epochs(ACME)
    assert after.profile.roles == ()


async def test_remembered_people_are_bounded(store: Store) -> None:
    """The oldest makes room."""
    desk = Desk(store, capacity=1)
    for name in ("alice", "bob"):
        await desk.link(await store.person(name, "member"), OKTA, name)
    await desk.resolve(signed_in("alice"))
    await desk.resolve(signed_in("bob"))
    reads = desk.watched.reads

    await desk.resolve(signed_in("bob"))
    assert desk.watched.reads == reads
    await desk.resolve(signed_in("alice"))
    assert desk.watched.reads == reads + 1


async def test_one_sign_in_that_is_known_in_two_tenants_is_two_people(desk: Desk, store: Store) -> None:
    """Reported failure: a person in two tenants keeps both grants and mixes neither."""
    here = await store.person("Alice", "member")
    there = await store.person("Alice", "admin", tenant=GLOBEX)
    await desk.link(here, OKTA, "alice")
    await desk.link(there, OKTA, "alice")

    assert await desk.resolve(signed_in("alice")) == here.id
    assert await desk.resolve(signed_in("alice", tenant=GLOBEX)) == there.id


@pytest.mark.parametrize(
    ("principal", "operation"),
    [
        (signed_in("a-1", email="alice@acme.example"), "identity.link"),
        (signed_in("new", GOOGLE, email="new@acme.example"), "identity.provision"),
    ],
)
async def test_a_first_sign_in_is_in_the_audit_before_it_changes_anything(
    desk: Desk, store: Store, principal: Principal, operation: str
) -> None:
    """Design section 12: an effect is recorded before it is done, and without its record it is not done."""
    alice = await store.person("Alice", "member", emails=("alice@acme.example",))
    before = await desk.everybody()
    desk.audit_is_away = True
    with pytest.raises(Unavailable):
        await desk.ask(principal)
    assert await desk.everybody() == before
    assert await store.identities.profile_of(ACME, principal.issuer, principal.subject) is None

    desk.audit_is_away = False
    found = await desk.ask(principal)
    await desk.ask(principal)
    assert (found.profile.id == alice.id) is (operation == "identity.link")
    assert [(one.kind, one.operation, one.profile, one.request) for one in desk.recorded] == [
        ("access", operation, found.profile.id, "req_1")
    ]
    assert desk.recorded[0].details == {"issuer": principal.issuer, "subject": principal.subject}
