"""Turn tokens: what they say, what they are refused for, and what ends them (design section 5.5)."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest
from joserfc.jwk import OKPKey

from gateway.errors import ToolNotAllowed, Unauthenticated
from gateway.identity.access_tokens import digest
from gateway.identity.access_tokens import mint as mint_secret
from gateway.identity.credentials import Credentials
from gateway.identity.refusals import NOT_VALID
from gateway.identity.turn_claims import Source
from gateway.identity.turn_keys import KeyFolder, TurnKeys
from gateway.identity.turn_tokens import PREFIX, Origins, TurnTokenHeader, TurnTokens
from gateway.keys import new_id
from gateway.model import (
    AccessToken,
    AgentName,
    Identity,
    Principal,
    Profile,
    ProfileId,
    Requester,
    RoleAssignment,
    SessionFacts,
    TenantId,
)
from tests.cast import root
from tests.clock import SettableClock
from tests.identity.conftest import ACME, GLOBEX, Store
from tests.issuer import ABSENT, SigningKey, encode, sign, sign_with_secret, signing_key

MINUTE = 60


@dataclass
class Minted:
    """A turn of alice's, with what its token was made by."""

    store: Store
    folder: KeyFolder
    keys: TurnKeys
    tokens: TurnTokens
    alice: Profile
    credential: AccessToken
    facts: SessionFacts
    token: str

    @property
    def clock(self) -> SettableClock:
        """The time."""
        return self.store.clock

    @property
    def claims(self) -> dict[str, Any]:
        """What the token says."""
        return claims_of(self.token)

    @property
    def header(self) -> dict[str, Any]:
        """How it says that it is signed."""
        return part(self.token, 0)

    def requester(self, **changes: Any) -> Requester:
        """Alice with her access token, or with a principal that was changed."""
        usual = Principal(
            tenant=ACME,
            issuer="gateway",
            subject=self.alice.id,
            credential="access_token",
            credential_id=self.credential.id,
            scopes=frozenset({"session", "memory"}),
            expires_at=self.credential.expires_at,
        )
        return Requester(tenant=ACME, profile=self.alice, principal=replace(usual, **changes), epoch=1)

    def signed(self, header: Mapping[str, Any] | None = None, **claims: Any) -> str:
        """The token, signed again by the key that signs, with these headers and claims changed."""
        return PREFIX + sign(self.header | dict(header or {}), self.claims | claims, self.signing)

    @property
    def signing(self) -> SigningKey:
        """The key as the tests' own signer takes it."""
        key = self.keys.signing()
        return SigningKey(key.kid, "Ed25519", key.key)


def part(token: str, index: int) -> dict[str, Any]:
    """The header (0) or the claims (1) of a token."""
    text = token.removeprefix(PREFIX).split(".")[index]
    found: dict[str, Any] = orjson.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    return found


def claims_of(token: str) -> dict[str, Any]:
    """What a token says."""
    return part(token, 1)


async def credential_of(store: Store, profile: Profile, **fields: Any) -> AccessToken:
    """A stored access token."""
    usual: dict[str, Any] = {
        "id": new_id("tok", store.clock.now()),
        "tenant": profile.tenant,
        "profile": profile.id,
        "name": "laptop",
        "scopes": frozenset({"session", "memory"}),
        "created_at": store.clock.now(),
        "expires_at": store.clock.now() + timedelta(days=1),
    }
    token = AccessToken(**(usual | fields))
    await store.identities.add_token(token, digest(mint_secret()[0]))
    return token


@pytest.fixture
async def minted(store: Store, tmp_path: Path, clock: SettableClock) -> Minted:
    """A token of alice's for a session of hers."""
    folder = KeyFolder(tmp_path / "state")
    folder.ensure(clock.now())
    keys = TurnKeys(folder, clock)
    tokens = TurnTokens(keys, Origins(store.identities, clock), clock, store.epochs, capacity=3)
    alice = await store.person("alice", "member")
    credential = await credential_of(store, alice)
    made = Minted(store, folder, keys, tokens, alice, credential, root("mine", "alice"), "")
    made.token = tokens.mint(made.requester(), made.facts)[0]
    return made


async def reason_of(tokens: TurnTokens, token: str) -> str:
    """Why it is refused; whoever sent it always reads the same."""
    with pytest.raises(Unauthenticated) as caught:
        await tokens.verify(token)
    assert caught.value.detail == NOT_VALID
    return caught.value.reason


# ── what it says ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_it_says_who_and_which_turn_and_nothing_that_it_was_not_made_from(minted: Minted) -> None:
    """Design section 5.5: one tenant, profile, session and turn, with the scopes of the credential."""
    token, binding, ends = minted.tokens.mint(minted.requester(), minted.facts, "group")

    principal = await minted.tokens.verify(token)

    session = minted.facts.session
    assert principal == Principal(
        tenant=ACME,
        issuer="gateway",
        subject=minted.alice.id,
        credential="turn_token",
        credential_id=binding.turn,
        scopes=frozenset({"session", "memory"}),
        expires_at=ends,
        turn=binding,
    )
    assert binding.turn.startswith("trn_")
    assert (binding.session, binding.incarnation, binding.agent) == (session.id, session.incarnation, session.agent)
    assert binding.kind == "group"
    assert ends == minted.clock.now() + timedelta(minutes=15)
    assert part(token, 0) == {"alg": "Ed25519", "typ": "gateway-turn+jwt", "kid": minted.keys.signing().kid}
    assert claims_of(token)["from"] == [["access_token", minted.credential.id, "gateway", minted.alice.id]]


async def test_it_ends_with_its_credential_but_for_the_operators(minted: Minted) -> None:
    """Design section 5.5: 15 minutes, and never beyond the credential."""
    now = minted.clock.now()
    soon = now + timedelta(minutes=2, milliseconds=700)
    cases: list[tuple[dict[str, Any], Any]] = [
        ({}, now + timedelta(minutes=15)),
        ({"expires_at": soon}, now + timedelta(minutes=2)),
        ({"expires_at": None}, now + timedelta(minutes=15)),
        ({"expires_at": soon, "issuer": "operator", "credential": "operator"}, now + timedelta(minutes=15)),
    ]
    for changes, expected in cases:
        _, _, ends = minted.tokens.mint(minted.requester(**changes), minted.facts)
        assert ends == expected


async def test_roles_of_an_issuer_go_along_and_those_of_an_introspection_do_not(minted: Minted) -> None:
    """Issue 3: a removed group takes effect within the introspection bound, which is shorter than a turn token."""
    roles = (RoleAssignment(role="supervisor", agent=AgentName("flight")),)
    await minted.store.identities.link(
        ACME, Identity(issuer="https://login.test", subject="a", profile=minted.alice.id), minted.clock.now()
    )
    for credential, expected in [("oidc", roles), ("introspection", ())]:
        who = minted.requester(
            issuer="https://login.test", subject="a", credential=credential, roles=roles, credential_id=None
        )
        token, _, _ = minted.tokens.mint(who, minted.facts)
        assert (await minted.tokens.verify(token)).roles == expected


async def test_a_turn_token_makes_no_other(minted: Minted) -> None:
    """Design section 5.5: it can mint nothing, whoever carries it."""
    principal = await minted.tokens.verify(minted.token)
    for who in (replace(minted.requester(), principal=principal), minted.requester(beside=(principal,))):
        with pytest.raises(ToolNotAllowed, match="makes no other token"):
            minted.tokens.mint(who, minted.facts)


# ── what is refused ──────────────────────────────────────────────────────────────────────────────────────────────────

OTHER = signing_key("other", "Ed25519")


def _by_public_key(minted: Minted) -> str:
    public = base64.urlsafe_b64decode(str(minted.keys.signing().key.as_dict(private=False)["x"]) + "=")
    return PREFIX + sign_with_secret(minted.header | {"alg": "HS256"}, minted.claims, public)


def _unsigned(minted: Minted) -> str:
    header = encode(orjson.dumps(minted.header | {"alg": "none"}))
    return f"{PREFIX}{header}.{minted.token.split('.')[1]}."


def _swapped(minted: Minted, **claims: Any) -> str:
    header, _, signature = minted.token.split(".")
    return f"{header}.{encode(orjson.dumps(minted.claims | claims))}.{signature}"


Tampered = Callable[[Minted], str]
TAMPERED: list[tuple[str, Tampered, str]] = [
    ("no prefix", lambda m: m.token.removeprefix(PREFIX), "token_malformed"),
    ("nothing", lambda _: PREFIX, "token_malformed"),
    ("not ASCII", lambda m: m.token + "é", "token_malformed"),
    ("far too long", lambda m: m.token + "A" * 20_000, "token_too_long"),
    ("two parts", lambda m: m.token.rpartition(".")[0], "token_malformed"),
    ("unsigned", _unsigned, "token_malformed"),
    ("none with a signature", lambda m: m.signed({"alg": "none"}), "algorithm_not_allowed"),
    ("HMAC by the public key", _by_public_key, "algorithm_not_allowed"),
    ("the older name of the algorithm", lambda m: m.signed({"alg": "EdDSA"}), "algorithm_not_allowed"),
    ("another algorithm", lambda m: m.signed({"alg": "ES256"}), "algorithm_not_allowed"),
    ("an access token's type", lambda m: m.signed({"typ": "at+jwt"}), "type_not_allowed"),
    ("no type", lambda m: m.signed({"typ": ABSENT}), "type_not_allowed"),
    ("a type in capitals", lambda m: m.signed({"typ": "Gateway-Turn+JWT"}), "type_not_allowed"),
    ("no kid", lambda m: m.signed({"kid": ABSENT}), "key_unknown"),
    ("another kid", lambda m: m.signed({"kid": "key_0"}), "key_unknown"),
    ("a kid that is a path", lambda m: m.signed({"kid": "../turn/" + m.header["kid"]}), "key_unknown"),
    ("an embedded key", lambda m: m.signed({"jwk": OTHER.key.as_dict(private=False)}), "header_not_allowed"),
    ("a key elsewhere", lambda m: m.signed({"jku": "https://evil.test"}), "header_not_allowed"),
    ("critical", lambda m: m.signed({"crit": ["exp"]}), "header_not_allowed"),
    ("another's signature", lambda m: PREFIX + sign(m.header, m.claims, OTHER), "signature_wrong"),
    ("swapped session", lambda m: _swapped(m, session="ses_other"), "signature_wrong"),
    ("swapped person", lambda m: _swapped(m, sub="prf_other"), "signature_wrong"),
    ("swapped tenant", lambda m: _swapped(m, tenant=GLOBEX), "signature_wrong"),
    ("more scopes", lambda m: _swapped(m, scopes=["*"]), "signature_wrong"),
    ("another audience", lambda m: m.signed(aud="admin"), "audience_wrong"),
    ("a list of audiences", lambda m: m.signed(aud=["tools"]), "audience_wrong"),
    ("no audience", lambda m: m.signed(aud=ABSENT), "audience_wrong"),
    ("another issuer", lambda m: m.signed(iss="https://login.test"), "issuer_unknown"),
    ("no expiry", lambda m: m.signed(exp=ABSENT), "claim_malformed"),
    ("expiry as text", lambda m: m.signed(exp="9999999999"), "claim_malformed"),
    ("an endless expiry", lambda m: m.signed(exp=m.claims["iat"] + 901), "claim_malformed"),
    ("expired", lambda m: m.signed(iat=m.claims["iat"] - 900, exp=m.claims["iat"]), "token_expired"),
    ("from the future", lambda m: m.signed(iat=m.claims["iat"] + 61), "not_yet_valid"),
    ("incarnation true", lambda m: m.signed(incarnation=True), "claim_malformed"),
    ("negative incarnation", lambda m: m.signed(incarnation=-1), "claim_malformed"),
    ("no session", lambda m: m.signed(session=ABSENT), "claim_malformed"),
    ("no turn", lambda m: m.signed(turn=""), "claim_malformed"),
    ("kind as number", lambda m: m.signed(kind=1), "claim_malformed"),
    ("scopes as text", lambda m: m.signed(scopes="*"), "claim_malformed"),
    ("roles as text", lambda m: m.signed(roles="owner"), "claim_malformed"),
    ("a role without an agent", lambda m: m.signed(roles=[["owner"]]), "claim_malformed"),
    ("a role that is no text", lambda m: m.signed(roles=[[1, "*"]]), "claim_malformed"),
    ("made from nothing", lambda m: m.signed({}, **{"from": []}), "claim_malformed"),
    ("made from no list", lambda m: m.signed({}, **{"from": ["access_token"]}), "claim_malformed"),
    ("made from another's credential", lambda m: m.signed(sub="prf_other"), "turn_origin_ended"),
    (
        "made from an unknown credential",
        lambda m: m.signed({}, **{"from": [["access_token", "tok_0", "gateway", m.alice.id]]}),
        "turn_origin_ended",
    ),
    (
        "made from a credential of ours that nobody keeps",
        lambda m: m.signed({}, **{"from": [["sign_in", "sgn_0", "gateway", m.alice.id]]}),
        "turn_origin_ended",
    ),
]


@pytest.mark.parametrize(("tamper", "reason"), [row[1:] for row in TAMPERED], ids=[row[0] for row in TAMPERED])
async def test_what_is_not_exactly_ours_is_refused(minted: Minted, tamper: Tampered, reason: str) -> None:
    """RFC 8725; the token itself is good in the same set-up, before and after."""
    assert (await minted.tokens.verify(minted.token)).subject == minted.alice.id

    assert await reason_of(minted.tokens, tamper(minted)) == reason

    assert (await minted.tokens.verify(minted.signed(turn="trn_1"))).credential_id == "trn_1"


async def test_it_counts_for_fifteen_minutes(minted: Minted) -> None:
    """Also where it was verified before."""
    minted.clock.advance(15 * MINUTE - 1)
    await minted.tokens.verify(minted.token)
    minted.clock.advance(1)

    assert await reason_of(minted.tokens, minted.token) == "token_expired"


async def test_a_header_of_its_own_holds_one(minted: Minted) -> None:
    """Design section 5: exactly one."""
    header = TurnTokenHeader(minted.tokens)
    assert await header.verify([minted.token], Credentials()) == await minted.tokens.verify(minted.token)

    with pytest.raises(Unauthenticated) as caught:
        await header.verify([minted.token, minted.token], Credentials())
    assert caught.value.reason == "credentials_several"


# ── what ends it ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_it_ends_with_the_access_token_that_it_was_made_from(minted: Minted) -> None:
    """Issue 3, "turn tokens"; another token of the same person changes nothing."""
    other = await credential_of(minted.store, minted.alice)
    await minted.tokens.verify(minted.token)
    now = minted.clock.now()
    await minted.store.identities.revoke_token(ACME, minted.alice.id, other.id, now)
    await minted.tokens.verify(minted.token)

    await minted.store.identities.revoke_token(ACME, minted.alice.id, minted.credential.id, now)

    assert await reason_of(minted.tokens, minted.token) == "turn_origin_ended"


async def test_it_ends_with_the_link_of_an_issuers_principal(minted: Minted) -> None:
    """Unlinked, linked to somebody else, or to a profile that was merged or switched off."""
    identity = Identity(issuer="https://login.test", subject="a-1", profile=minted.alice.id)
    bob = await minted.store.person("bob", "member")
    identities, now = minted.store.identities, minted.clock.now()

    async def moved() -> None:
        await identities.unlink(ACME, identity)
        await identities.link(ACME, replace(identity, profile=bob.id), now)

    async def disabled() -> None:
        await identities.change_profile(ACME, minted.alice.id, name=None, emails=None, disabled=True)

    async def merged() -> None:
        await minted.store.merge(minted.alice, bob)

    for end in (lambda: identities.unlink(ACME, identity), moved, disabled, merged):
        await identities.unlink(ACME, replace(identity, profile=bob.id))
        await identities.change_profile(ACME, minted.alice.id, name=None, emails=None, disabled=False)
        await identities.link(ACME, identity, now)
        who = minted.requester(issuer=identity.issuer, subject=identity.subject, credential="oidc", credential_id=None)
        token, _, _ = minted.tokens.mint(who, minted.facts)
        assert (await minted.tokens.verify(token)).subject == minted.alice.id
        await end()
        assert await reason_of(minted.tokens, token) == "turn_origin_ended"


async def test_it_ends_with_any_of_several_credentials(minted: Minted) -> None:
    """A request with two is worth no more than either."""
    other = await credential_of(minted.store, minted.alice)
    beside = replace(minted.requester().principal, credential_id=other.id)
    token, _, _ = minted.tokens.mint(minted.requester(beside=(beside,)), minted.facts)
    await minted.tokens.verify(token)

    await minted.store.identities.revoke_token(ACME, minted.alice.id, other.id, minted.clock.now())

    assert await reason_of(minted.tokens, token) == "turn_origin_ended"
    await minted.tokens.verify(minted.token)


async def test_a_senders_token_ends_with_the_connector_that_brought_it(minted: Minted) -> None:
    """One whose channel signs its requests has no credential here, so what counts is its service."""
    robot = await minted.store.person("robot", kind="service")
    beside = replace(minted.requester().principal, credential="webhook", credential_id="line:main", subject=robot.id)
    token, _, _ = minted.tokens.mint(minted.requester(beside=(beside,)), minted.facts)
    await minted.tokens.verify(token)

    await minted.store.identities.change_profile(ACME, robot.id, name=None, emails=None, disabled=True)

    assert await reason_of(minted.tokens, token) == "turn_origin_ended"


async def test_other_kinds_bring_their_own_check(minted: Minted) -> None:
    """Sign-ins are looked up by their id."""
    signed_in = {"sgn_1"}

    async def sign_in(tenant: TenantId, source: Source) -> ProfileId | None:
        assert tenant == ACME
        return minted.alice.id if source.id in signed_in else None

    origins = Origins(minted.store.identities, minted.clock, {"sign_in": sign_in})
    tokens = TurnTokens(minted.keys, origins, minted.clock, minted.store.epochs)
    token, _, _ = tokens.mint(minted.requester(credential="sign_in", credential_id="sgn_1"), minted.facts)
    await tokens.verify(token)

    signed_in.clear()
    await credential_of(minted.store, minted.alice)
    await tokens.verify(token)  # nothing was revoked as far as the epoch says
    await minted.store.person("somebody")

    await minted.store.identities.set_roles(ACME, minted.alice.id, ())
    assert await reason_of(tokens, token) == "turn_origin_ended"


# ── what is remembered ───────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_signature_is_checked_once(minted: Minted, monkeypatch: pytest.MonkeyPatch) -> None:
    """Again only where the key is another, or where newer ones took its place in the bounded table."""
    checked: list[str] = []
    check = TurnTokens._check_signed

    def counting(self: TurnTokens, parts: Any) -> None:
        checked.append(parts.claims["turn"])
        check(self, parts)

    monkeypatch.setattr(TurnTokens, "_check_signed", counting)
    for _ in range(3):
        await minted.tokens.verify(minted.token)
    await minted.store.identities.set_roles(ACME, minted.alice.id, ())  # another epoch: read again, not checked again
    await minted.tokens.verify(minted.token)
    assert len(checked) == 1

    for number in range(3):
        await minted.tokens.verify(minted.signed(turn=f"trn_{number}"))
    await minted.tokens.verify(minted.token)
    assert len(checked) == 5
    assert len(minted.tokens._verified) == 3


async def test_a_change_while_the_credential_is_looked_up_is_not_missed(minted: Minted) -> None:
    """What was read before a revocation is not kept past it."""

    class Revoking(Origins):
        async def hold(self, claims: Any) -> bool:
            held = await super().hold(claims)
            if not revoked:
                revoked.append(True)
                await minted.store.identities.revoke_token(
                    ACME, minted.alice.id, minted.credential.id, minted.clock.now()
                )
            return held

    revoked: list[bool] = []
    origins = Revoking(minted.store.identities, minted.clock)
    tokens = TurnTokens(minted.keys, origins, minted.clock, minted.store.epochs)
    await tokens.verify(minted.token)  # began before the revocation

    assert await reason_of(tokens, minted.token) == "turn_origin_ended"


async def test_many_at_once_are_each_somebodys(minted: Minted) -> None:
    """No two verifications share anything that changes."""
    tokens = [minted.tokens.mint(minted.requester(), minted.facts) for _ in range(20)]
    principals = await asyncio.gather(*(minted.tokens.verify(token) for token, _, _ in tokens))
    assert [one.turn for one in principals] == [binding for _, binding, _ in tokens]
    assert isinstance(minted.keys.signing().key, OKPKey)
