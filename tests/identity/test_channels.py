"""Channel identities: a sender of a channel is the person they are linked to, or a guest (design section 5)."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import gateway
from gateway.errors import Conflict, Invalid, ToolNotAllowed, Unauthenticated
from gateway.identity import assertions
from gateway.identity.assertions import Assertion, assert_connector, assert_sender
from gateway.identity.credentials import Credentials
from gateway.identity.profiles import ProfileResolver
from gateway.keys import (
    channel_account,
    channel_issuer,
    guest_id,
    is_account,
    is_channel,
    is_guest_id,
    is_peer,
    is_profile_id,
)
from gateway.model import AuditRecord, Principal, Requester, SessionId
from gateway.stages.authenticate import Authenticate
from tests import cast
from tests.cast import ACME, GLOBEX, person, requester
from tests.identity.conftest import Store, people_of

PACKAGE = Path(gateway.__file__).parent
LINE = {"channel": "line", "account": "support", "sender": "U1"}


async def _nowhere(_record: AuditRecord) -> None:
    """An audit that takes everything."""


def _resolver(store: Store) -> ProfileResolver:
    return ProfileResolver(store.identities, store.tenants, store.clock, store.epochs, _nowhere)


def _principal(connector: Requester, sender: str, account: str = "support", channel: str = "line") -> Principal:
    return assert_sender(connector, channel=channel, account=account, sender=sender, place=None).principal


async def _resolve(resolver: ProfileResolver, principal: Principal) -> Requester:
    return await resolver.resolve(principal, request="req_1", surface="rest")


@given(st.text(max_size=8), st.text(max_size=8), st.text(max_size=8), st.text(max_size=8))
@example("line", "1:a", "line1:", "a")
@example("a", "", "", "a")
def test_no_two_accounts_share_an_issuer(channel: str, account: str, other: str, others: str) -> None:
    """Design section 5: "Ids of two accounts or apps never collide"; and the issuer can be read back."""
    issuer = channel_issuer(channel, account)

    assert issuer.startswith("channel:")
    assert (issuer == channel_issuer(other, others)) == ((channel, account) == (other, others))
    assert channel_account(issuer) == (channel, account)


@pytest.mark.parametrize("text", ["", "channel:", "channel:4:line", "channel:9:line1:a", "https://idp.test", "gateway"])
def test_only_an_issuer_that_was_made_so_names_an_account(text: str) -> None:
    """Whatever else is kept as an issuer is shown as it is."""
    found = channel_account(text)
    assert found is None or channel_issuer(*found) == text


def test_what_a_channel_an_account_and_a_peer_may_be_called() -> None:
    """They go into session keys, so the parts before the last hold no colon, and no channel is another kind's word."""
    assert all(map(is_channel, ("line", "slack", "my-app")))
    assert not any(map(is_channel, ("", "Line", "a:b", "direct", "explicit", "web", "cron", "subagent", "dashboard")))
    assert all(map(is_account, ("support", "U4af49", "a.b@c")))
    assert not any(map(is_account, ("", "a:b", "a b", "a/b", "x" * 129)))
    assert all(map(is_peer, ("U1", "C:1", "é", "x" * 200)))
    assert not any(map(is_peer, ("", " U1", "U1\n", "\ud800", "x" * 201)))


def test_a_guest_is_called_what_no_profile_is() -> None:
    """Ours: always the same, and another for another tenant, account or sender."""
    issuer = channel_issuer("line", "support")
    ids = {guest_id(ACME, issuer, "U1"), guest_id(GLOBEX, issuer, "U1"), guest_id(ACME, issuer, "U2")}

    assert guest_id(ACME, issuer, "U1") in ids
    assert len(ids) == 3
    assert all(is_guest_id(one) and not is_profile_id(one) for one in ids)


async def test_an_unlinked_sender_is_a_guest_and_the_person_once_linked(store: Store) -> None:
    """Never provisioned and never a default person; a link, and its end, take effect with the next request."""
    alice, owner = await store.person("alice", "member"), requester(await store.person("olga", "owner"))
    line = requester(await store.person("line", "connector", kind="service"))
    resolver, people = _resolver(store), people_of(store)

    guest = await _resolve(resolver, _principal(line, "U1"))
    assert (guest.profile.kind, guest.profile.name) == ("guest", "guest")
    assert guest.subjects_on(cast.FLIGHT) == {"*", "role:guest", f"user:{guest.profile.id}"}
    assert await store.identities.profile(ACME, guest.profile.id) is None
    assert await store.identities.count_people(ACME) == 2

    await people.link_sender(owner, alice.id, **LINE)
    assert (await _resolve(resolver, _principal(line, "U1"))).profile == alice
    # The same id on another account, on another channel, in another case: somebody else each.
    for other in (
        _principal(line, "U1", account="sales"),
        _principal(line, "U1", channel="viber"),
        _principal(line, "u1"),
    ):
        assert (await _resolve(resolver, other)).profile.kind == "guest"

    await people.unlink(owner, alice.id, issuer=channel_issuer("line", "support"), subject="U1")
    assert (await _resolve(resolver, _principal(line, "U1"))).profile.id == guest.profile.id


async def test_a_sender_who_is_linked_to_somebody_disabled_is_nobody(store: Store) -> None:
    """Fail closed: not a guest either."""
    alice, owner = await store.person("alice", "member"), requester(await store.person("olga", "owner"))
    line = requester(await store.person("line", "connector", kind="service"))
    people = people_of(store)
    await people.link_sender(owner, alice.id, **LINE)
    await people.change(owner, alice.id, disabled=True)

    with pytest.raises(Unauthenticated) as refused:
        await _resolve(_resolver(store), _principal(line, "U1"))
    assert refused.value.reason == "profile_disabled"


async def test_an_owner_links_a_sender_once_and_an_admin_links_none(store: Store) -> None:
    """A linked sender is a way to speak as its person: the rule is that of other links."""
    alice, bob = await store.person("alice", "member"), await store.person("bob", "member")
    owner, admin = requester(await store.person("olga", "owner")), requester(await store.person("erin", "admin"))
    people = people_of(store)

    with pytest.raises(ToolNotAllowed):
        await people.link_sender(admin, alice.id, **LINE)
    assert await store.identities.identities(ACME, alice.id) == []

    linked = await people.link_sender(owner, alice.id, **LINE)
    assert (linked.issuer, linked.subject) == (channel_issuer("line", "support"), "U1")
    with pytest.raises(Conflict):
        await people.link_sender(owner, bob.id, **LINE)
    assert [one.profile for one in await store.identities.identities(ACME, alice.id)] == [alice.id]


@pytest.mark.parametrize(
    ("changed", "field"),
    [({"channel": "Line"}, "channel"), ({"account": "a:b"}, "account"), ({"sender": " U1"}, "sender")],
)
async def test_a_sender_that_could_be_taken_for_another_is_not_linked(
    store: Store, changed: dict[str, str], field: str
) -> None:
    """The fault is named; nothing is kept."""
    alice, owner = await store.person("alice", "member"), requester(await store.person("olga", "owner"))

    with pytest.raises(Invalid) as refused:
        await people_of(store).link_sender(owner, alice.id, **(LINE | changed))
    assert [fault.field for fault in refused.value.faults] == [field]
    assert await store.identities.identities(ACME, alice.id) == []


async def test_no_sign_in_is_linked_under_a_channels_issuer(store: Store) -> None:
    """The prefix is reserved: an issuer of tokens can't be a channel."""
    alice, owner = await store.person("alice", "member"), requester(await store.person("olga", "owner"))

    with pytest.raises(Invalid) as refused:
        await people_of(store).link(owner, alice.id, issuer=channel_issuer("line", "support"), subject="U1")
    assert [(fault.field, fault.rule) for fault in refused.value.faults] == [("issuer", "reserved")]
    assert await store.identities.identities(ACME, alice.id) == []


# ── assertions ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_sender_has_no_more_scopes_than_the_service_and_never_more_than_two() -> None:
    """Design section 5: a connector acts for a sender; nobody administers over a channel."""
    service = person("line", "connector", kind="service")
    for held, got in (("*", "session memory"), ("gateway", ""), ("memory admin", "memory")):
        connector = requester(service, scopes=held.split())
        asserted = assert_sender(connector, **LINE, place=SessionId("ses_1")).principal
        assert (asserted.credential, asserted.place) == ("channel", "ses_1")
        assert asserted.scopes == frozenset(got.split())
        assert asserted.credential_id == f"{service.id}#line:support#U1"
        assert asserted.beside == (connector.principal,)


def test_a_sender_speaks_for_nobody_else() -> None:
    """However it came to be permitted."""
    connector = requester(person("line", "connector", kind="service"))
    sender = Requester(tenant=ACME, profile=connector.profile, principal=_principal(connector, "U1"), epoch=1)

    with pytest.raises(Unauthenticated) as refused:
        assert_sender(sender, **LINE, place=None)
    assert refused.value.reason == "sender_for_another"


async def test_an_assertion_is_a_credential_and_is_made_in_two_places_alone() -> None:
    """Like a permit: whoever imports a maker could be anybody, so it is these modules and no other."""
    asserted = assert_connector(ACME, cast.profile_id("line"), channel="line", account="support")
    authenticate = Authenticate({}, local_operator=False)

    assert await authenticate(Credentials(asserted=asserted)) is asserted.principal
    assert (asserted.principal.issuer, asserted.principal.credential) == ("gateway", "webhook")
    with pytest.raises(TypeError, match="only a connector"):
        Assertion(asserted.principal, seal=object())  # type: ignore[arg-type]  # what this test is about
    makers = {
        (alias.name, path.relative_to(PACKAGE).as_posix())
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and node.module == assertions.__name__
        for alias in node.names
        if alias.name.startswith("assert_")
    }
    assert makers == {
        ("assert_sender", "operations/connectors.py"),
        ("assert_connector", "identity/webhooks.py"),
    }


class Pretender:
    """A verifier of something that says it is a channel."""

    async def verify(self, values: object, _credentials: Credentials) -> Principal:
        """The principal."""
        return Principal(
            tenant=ACME,
            issuer=channel_issuer("line", "support"),
            subject="U1",
            credential="proxy",
            scopes=frozenset({"*"}),
        )


async def test_no_other_credential_has_a_channels_issuer() -> None:
    """Whatever a proxy or an issuer of tokens says, the prefix is the gateway's own."""
    authenticate = Authenticate({b"x-user": Pretender()}, local_operator=False)

    with pytest.raises(Unauthenticated) as refused:
        await authenticate(Credentials(headers=((b"x-user", b"U1"),)))
    assert refused.value.reason == "principal_malformed"
