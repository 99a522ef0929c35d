"""Who calls, end to end: tokens of ours and of an issuer, scopes, and what ends them at once (design section 5)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest
import pytest_asyncio

from gateway.app import compose, create_app
from gateway.keys import new_id
from gateway.model import Identity, ProfileId
from gateway.policy.shipped import shipped
from gateway.settings import Settings, load
from gateway.workspace.files import Workspace
from tests.clock import SettableClock
from tests.conftest import LogCapture
from tests.house import House, house
from tests.issuer import AUDIENCE, LocalIssuer

ME = "/v1/me"


async def bearer(home: House, token: str, path: str = ME, method: str = "GET", body: object = None) -> httpx2.Response:
    """A request with any token."""
    return await home.send(None, method, path, body, headers={"Authorization": f"Bearer {token}"})


# ── tokens of ours ───────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_credential_that_is_not_good_refuses_the_request_and_all_look_alike(home: House) -> None:
    """Design section 5: every credential that is present is verified; trying tokens teaches nothing."""
    secret = home.secrets["alice"]
    swapped = secret[:-1] + ("A" if secret[-1] != "A" else "B")
    before = len(await home.audit())
    headers: list[tuple[list[tuple[str, str]], str]] = [
        ([], "credential_missing"),
        ([("Authorization", f"Bearer {secret}"), ("Authorization", f"Bearer {secret}")], "several"),
        ([("Authorization", f"Bearer {secret}"), ("Authorization", f"Bearer {home.secrets['bob']}")], "several"),
        ([("Authorization", f"Basic {secret}")], "malformed"),
        ([("Authorization", "Bearer")], "malformed"),
        ([("Authorization", "Bearer ")], "malformed"),
        ([("Authorization", secret)], "malformed"),
        ([("Authorization", f"Bearer {swapped}")], "not valid"),
        ([("Authorization", "Bearer gwp_")], "not valid"),
        ([("Authorization", f"Bearer {secret} x")], "not valid"),
        ([("Authorization", "Bearer eyJhbGciOiJub25lIn0.e30.")], "no issuer"),
    ]
    for sent, reason in headers:
        answer = await home.get(None, ME, headers=sent)
        assert answer.status_code == 401, (reason, answer.text)
        assert answer.headers["www-authenticate"].startswith('Bearer realm="gateway"')
        assert ("error=" in answer.headers["www-authenticate"]) == bool(sent)
        assert answer.json()["code"] == "unauthenticated"
        assert secret not in answer.text
    assert len(await home.audit()) == before
    assert (await home.get(None, ME, headers={"authorization": f"bearer   {secret}"})).status_code == 200


async def test_a_token_that_is_revoked_or_over_is_refused_at_once(home: House, clock: SettableClock) -> None:
    """BerriAI/litellm#35662: a revocation reaches a warm process; descope/authzcache#902: read after write is fresh."""
    made = await home.post("alice", "/v1/me/tokens", {"name": "laptop", "expires_in_days": 1})
    secret, token = made.json()["secret"], made.json()["id"]
    assert made.headers["cache-control"] == "no-store"
    assert (await bearer(home, secret)).status_code == 200
    assert (await home.send("bob", "DELETE", f"/v1/me/tokens/{token}")).status_code == 404
    assert (await bearer(home, secret)).status_code == 200

    gone = await home.send("alice", "DELETE", f"/v1/me/tokens/{token}")
    revoked = await bearer(home, secret)
    again = await home.send("alice", "DELETE", f"/v1/me/tokens/{token}")
    short = (await home.post("alice", "/v1/me/tokens", {"name": "day", "expires_in_days": 1})).json()["secret"]
    clock.advance(86_399)
    await home.gateway.epochs.poll()
    in_time = await bearer(home, short)
    clock.advance(1)
    over = await bearer(home, short)

    assert (gone.status_code, revoked.status_code, again.status_code) == (204, 401, 404)
    assert (in_time.status_code, over.status_code) == (200, 401)
    assert revoked.json() | {"request_id": ""} == over.json() | {"request_id": ""}
    listed = (await home.get("alice", "/v1/me/tokens")).json()["items"]
    assert "secret" not in str(listed)
    assert {one["name"] for one in listed} == {"test", "day"}


@pytest.mark.parametrize(
    ("scopes", "allowed"),
    [
        (["*"], {"me", "enter", "memory", "instructions"}),
        (["memory"], {"instructions"}),
        (["session"], {"enter"}),
        (["session", "memory"], {"enter", "memory", "instructions"}),
        (["gateway"], {"me"}),
        (["admin"], set()),
        ([], set()),
    ],
)
async def test_a_token_reaches_what_it_was_made_for(home: House, scopes: list[str], allowed: set[str]) -> None:
    """IBM/ibmi-mcp-server#189: scopes are enforced and not only parsed; honcho#828: without a scope, nothing."""
    session = await home.open("alice")
    home.workspace().replace("MEMORY.md", "the runway code is 4711")
    secret = await home.token("alice", scopes=scopes)

    answers = {
        "me": await bearer(home, secret),
        "enter": await bearer(home, secret, f"/v1/sessions/{session}/messages"),
        "memory": await bearer(home, secret, f"/v1/sessions/{session}/tools/memory_get", "POST", {"path": "MEMORY.md"}),
        "instructions": await bearer(home, secret, "/v1/agents/flight/personal-instructions"),
    }
    admin = await bearer(home, secret, "/v1/admin/people")

    assert {name for name, answer in answers.items() if answer.status_code == 200} == allowed
    assert {answer.json()["code"] for name, answer in answers.items() if name not in allowed} <= {"tool_not_allowed"}
    assert admin.status_code == 403
    if "enter" in allowed:
        context = await bearer(home, secret, f"/v1/sessions/{session}/context", "POST", {})
        assert ("4711" in context.text) == ("memory" in allowed)
    if "memory" not in allowed:
        assert "4711" not in "".join(answer.text for answer in answers.values())


async def test_a_token_can_not_be_made_wider_than_the_one_it_is_made_with(home: House) -> None:
    """Design section 5: it carries no more than the credential it was made from; honcho#815."""
    narrow = await home.token("alice", scopes=["gateway", "session"])

    inherited = await bearer(home, narrow, "/v1/me/tokens", "POST", {"name": "same"})
    wider = await bearer(home, narrow, "/v1/me/tokens", "POST", {"name": "all", "scopes": ["*"]})
    other = await bearer(home, narrow, "/v1/me/tokens", "POST", {"name": "mem", "scopes": ["session", "memory"]})
    fewer = await bearer(home, narrow, "/v1/me/tokens", "POST", {"name": "few", "scopes": ["session"]})
    none = await bearer(home, narrow, "/v1/me/tokens", "POST", {"name": "none", "scopes": []})
    odd = await bearer(home, narrow, "/v1/me/tokens", "POST", {"name": "", "scopes": ["root"], "expires_in_days": 0})

    assert set(inherited.json()["scopes"]) == {"gateway", "session"}
    assert fewer.json()["scopes"] == ["session"]
    for refused in (wider, other, none):
        assert refused.json()["errors"][0]["field"] == "scopes", refused.text
    assert {one["field"] for one in odd.json()["errors"]} >= {"name"}
    assert len((await home.get("alice", "/v1/me/tokens")).json()["items"]) == 4


async def test_who_am_i_says_what_the_credential_is(home: House) -> None:
    """Interface, `GET /v1/me`."""
    body = (await home.get("dana", ME)).json()
    assert body == {
        "profile": {
            "id": home.id("dana"),
            "name": "dana",
            "emails": ["dana@example.com"],
            "roles": [{"role": "supervisor", "agent": "*", "source": "assigned"}],
        },
        "tenant": "acme",
        "credential": {"kind": "access_token", "expires_at": "2026-12-31T09:00:00Z"},
        "notices": 0,
    }


# ── what is in force at once ─────────────────────────────────────────────────────────────────────────────────────────


async def test_a_role_on_one_agent_is_enough_for_oneself_and_gives_nothing_else(home: House) -> None:
    """Ours: one's own profile and tokens are no agent's, so the rows of any agent on which one is somebody count."""
    await home.add_agent("payroll")
    await home.add("clerk", "member", agent="payroll")
    await home.add("nobody")

    for path in ("/v1/me", "/v1/me/tokens", "/v1/tools", "/v1/agents"):
        assert (await home.get("clerk", path)).status_code == 200, path
        assert (await home.get("nobody", path)).status_code == 403, path
    made = await home.post("clerk", "/v1/me/tokens", {"name": "mine", "expires_in_days": 1})
    assert made.status_code == 201
    assert (await home.send("clerk", "DELETE", f"/v1/me/tokens/{made.json()['id']}")).status_code == 204
    assert [one["name"] for one in (await home.get("clerk", "/v1/agents")).json()["items"]] == ["payroll"]
    for path in ("/v1/admin/people", "/v1/admin/policy", "/v1/admin/audit"):
        assert (await home.get("clerk", path)).status_code == 403, path
    decided = [one.record for one in await home.audit(person=home.id("clerk"), kind="decision", action="read")]
    assert {one.agent for one in decided if one.effect == "allow"} == {"payroll"}


async def test_a_change_of_roles_is_live_with_its_answer(home: House) -> None:
    """Design section 7, freshness; pomerium#2675. The answer names the epoch that the change is in force at."""
    session = await home.open("alice")
    dana = await home.get("dana", f"/v1/sessions/{session}/messages")
    before = int(dana.headers["gateway-epoch"])

    changed = await home.send(
        "olga", "PUT", f"/v1/admin/people/{home.id('dana')}/roles", {"roles": [{"role": "member"}]}
    )
    after = await home.get("dana", f"/v1/sessions/{session}/messages")
    on_agent = await home.send(
        "olga",
        "PUT",
        f"/v1/admin/people/{home.id('dana')}/roles",
        {"roles": [{"role": "member"}, {"role": "supervisor", "agent": "flight"}]},
    )
    again = await home.get("dana", f"/v1/sessions/{session}/messages")

    assert (dana.status_code, after.status_code, again.status_code) == (200, 404, 200)
    assert int(changed.headers["gateway-epoch"]) > before
    assert after.headers["gateway-epoch"] == changed.headers["gateway-epoch"]
    assert on_agent.status_code == 200
    removed = await home.send("erin", "DELETE", f"/v1/admin/people/{home.id('dana')}")
    assert removed.status_code == 204
    for path in (ME, f"/v1/sessions/{session}/messages"):
        assert (await home.get("dana", path)).status_code == 401
    bad_body = await home.send("dana", "POST", f"/v1/sessions/{session}/tools/memory_get", content=b"{")
    assert bad_body.status_code == 401  # whoever may not come in learns nothing of what they sent
    back = await home.send("erin", "PATCH", f"/v1/admin/people/{home.id('dana')}", {"disabled": False})
    assert back.status_code == 200
    assert (await home.get("dana", ME)).status_code == 200


async def test_a_change_reaches_another_process_with_its_next_look(
    home: House, settings: Settings, clock: SettableClock, logs: LogCapture
) -> None:
    """Design section 7: a change is in force on every replica within 1 s; cerbos#2601."""
    session = await home.open("alice", "group", participants=[home.id("bob")])
    elsewhere = compose(settings, logs.loggers, clock=clock)
    async with elsewhere.running():
        there = House(elsewhere, create_app(elsewhere, logs.loggers), home.tenant, home.people, home.secrets)
        assert (await there.get("bob", f"/v1/sessions/{session}")).status_code == 200
        await home.say("alice", session, "the runway code is 4711")
        answer = await home.send("alice", "PATCH", f"/v1/sessions/{session}", {"participants": [home.id("alice")]})
        assert answer.status_code == 200
        await elsewhere.epochs.poll()
        assert (await there.get("bob", f"/v1/sessions/{session}")).status_code == 404

        assert (await there.get("carol", ME)).status_code == 200
        epoch = (await home.send("erin", "DELETE", f"/v1/admin/people/{home.id('carol')}")).headers["gateway-epoch"]
        waited = await there.get("carol", ME, headers={"Gateway-Min-Epoch": epoch})
        assert waited.status_code == 401
        assert (await there.get("alice", ME)).headers["gateway-epoch"] == epoch


# ── an issuer of sign-ins ────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def issuer(clock: SettableClock) -> Any:
    """A real one, on this machine."""
    with LocalIssuer(clock) as running:
        yield running


def oidc_settings(settings: Settings, tmp_path: Path, issuer: LocalIssuer, **more: object) -> Settings:
    """The settings with this issuer trusted."""
    lines = {"issuer": issuer.url, "audience": AUDIENCE, "algorithms": ["ES256"], "scopes": "person", **more}
    text = "[[oidc.issuers]]\n"
    for name, value in lines.items():
        shown = str(value).lower() if isinstance(value, bool) else repr(value).replace("'", '"')
        text += f"{name} = {shown}\n"
    config = tmp_path / "oidc.toml"
    config.write_text(text, encoding="utf-8")
    return load(config, {"GATEWAY_STATE__FOLDER": str(settings.state.folder)})


@pytest_asyncio.fixture
async def signed_in(
    settings: Settings, tmp_path: Path, clock: SettableClock, logs: LogCapture, issuer: LocalIssuer
) -> AsyncIterator[House]:
    """A house that trusts the issuer, with alice linked to it."""
    ours = oidc_settings(settings, tmp_path, issuer, tenant="acme", trust_email=True)
    async with house(ours, clock, logs.loggers) as made:
        identity = Identity(issuer=issuer.url, subject="alice", profile=made.id("alice"))
        await made.gateway.stores.identities.link(made.tenant, identity, clock.now())
        yield made


async def test_a_sign_in_is_the_person_it_is_linked_to(
    signed_in: House, issuer: LocalIssuer, clock: SettableClock
) -> None:
    """Design section 5: (issuer, subject) byte for byte, with every check of the token; over HTTP, end to end."""
    home = signed_in
    session = await home.open("alice")
    good = await bearer(home, issuer.mint("alice"), f"/v1/sessions/{session}/context", "POST", {})
    assert good.status_code == 200
    me = (await bearer(home, issuer.mint("alice"))).json()
    assert (me["profile"]["id"], me["credential"]["kind"]) == (home.id("alice"), "oidc")

    now = int(clock.now().timestamp())
    for name, token in {
        "another audience": issuer.mint("alice", aud="https://other.example"),
        "over": issuer.mint("alice", exp=now - 120, iat=now - 400),
        "not yet": issuer.mint("alice", nbf=now + 600),
        "an id token": issuer.mint("alice", header={"typ": "JWT"}, nonce="x"),
        "nobody": issuer.mint("Alice"),
        "unsigned": "eyJhbGciOiJub25lIiwidHlwIjoiYXQrand0In0.e30.",
        "another issuer": issuer.mint("alice", iss="https://id.example"),
    }.items():
        answer = await bearer(home, token, f"/v1/sessions/{session}/messages")
        assert answer.status_code == 401, name
        assert token not in answer.text
    unlinked = await home.send(
        "erin",
        "DELETE",
        f"/v1/admin/people/{home.id('alice')}/identities",
        {"issuer": issuer.url, "subject": "alice"},
    )
    assert unlinked.status_code == 204
    assert (await bearer(home, issuer.mint("alice"))).status_code == 401


async def test_a_verified_email_links_and_a_reassigned_one_inherits_nothing(
    signed_in: House, issuer: LocalIssuer
) -> None:
    """Design section 5; koalixcrm#431, switch#291."""
    home = signed_in
    verified = await bearer(home, issuer.mint("b-1", email="Bob@Example.com", email_verified=True))
    unverified = await bearer(home, issuer.mint("c-1", email="carol@example.com"))
    successor = await bearer(home, issuer.mint("b-2", email="bob@example.com", email_verified=True))

    assert verified.json()["profile"]["id"] == home.id("bob")
    assert (unverified.status_code, successor.status_code) == (401, 401)
    arrivals = [one.record for one in await home.audit() if one.record.operation.startswith("identity.")]
    assert [(one.operation, one.request) for one in arrivals] == [("identity.link", verified.headers["x-request-id"])]
    assert arrivals[0].details == {"issuer": issuer.url, "subject": "b-1"}


async def test_a_token_for_a_tenant_that_is_not_here_harms_nobody(
    settings: Settings, tmp_path: Path, clock: SettableClock, logs: LogCapture, issuer: LocalIssuer
) -> None:
    """Design section 5: a missing or unknown tenant is refused; section 12: it belongs to no chain, and is counted."""
    ours = oidc_settings(settings, tmp_path, issuer, tenant_claim="org", provision=True)
    async with house(ours, clock, logs.loggers) as home:
        for org in ("nowhere", "../acme", "", 7, "acme\0"):
            refused = await bearer(home, issuer.mint("eve", org=org))
            assert refused.status_code == 401, org
        missing = await bearer(home, issuer.mint("eve"))
        welcome = await bearer(home, issuer.mint("eve", org="acme"))

        assert missing.status_code == 401
        assert welcome.json()["profile"]["roles"] == [{"role": "member", "agent": "*", "source": "assigned"}]
        audit = settings.state.folder / "audit"
        assert {one.stem.split(".")[0] for one in audit.iterdir() if "nowhere" in one.name} == set()
        assert home.gateway.buffer.healthy
        assert (await home.get("audrey", "/v1/admin/audit/verify")).json()["sound"] is True


async def test_a_merged_profile_can_do_nothing_any_more(home: House) -> None:
    """Design section 5, merge: captured authority of the retired profile fails closed."""
    now = home.gateway.clock.now()
    await home.gateway.stores.identities.merge(home.tenant, home.id("alice"), home.id("bob"), now)
    assert (await home.get("alice", ME)).status_code == 401
    assert (await home.get("bob", ME)).status_code == 200


async def test_a_sign_in_that_becomes_somebody_elses_saves_nothing(
    signed_in: House, issuer: LocalIssuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Design section 6: who asks is looked at again just before the rename."""
    home = signed_in
    identities = home.gateway.stores.identities
    loop = asyncio.get_running_loop()
    replace = Workspace.replace

    async def relink() -> None:
        before, after = (Identity(issuer=issuer.url, subject="alice", profile=home.id(who)) for who in ("alice", "bob"))
        await identities.unlink(home.tenant, before)
        await identities.link(home.tenant, after, home.gateway.clock.now())

    def overtaken(self: Workspace, path: str, text: str, *, before_rename: Any) -> Any:
        asyncio.run_coroutine_threadsafe(relink(), loop).result(5)
        return replace(self, path, text, before_rename=before_rename)

    monkeypatch.setattr(Workspace, "replace", overtaken)
    token = issuer.mint("alice")
    answer = await home.send(
        None,
        "PUT",
        "/v1/agents/flight/personal-instructions",
        {"content": "Lost."},
        headers={"Authorization": f"Bearer {token}", "If-None-Match": "*"},
    )

    assert answer.status_code == 401
    assert not list((home.workspace().root / "flight").rglob("users/*/USER.md"))
    assert (await bearer(home, token)).json()["profile"]["id"] == home.id("bob")


async def test_a_row_that_names_a_merged_profile_holds_for_its_survivor(home: House) -> None:
    """Design section 5, "merge": alias resolution is one hop, also for policy rows that name the retired id."""
    old, older = ProfileId(new_id("prf", home.gateway.clock.now())), ProfileId(new_id("prf", home.gateway.clock.now()))
    deny = f"p, user:{old}, *, session/*, all, any, *, history, deny\n"
    await home.publish(shipped("default.csv") + deny)
    sessions = {who: await home.open(who) for who in ("alice", "bob")}

    async def reads(who: str) -> int:
        return (await home.get(who, f"/v1/sessions/{sessions[who]}/messages")).status_code

    assert (await reads("alice"), await reads("bob")) == (200, 200)
    retired = replace(home.people["alice"], id=old, emails=(), merged_into=home.id("alice"))
    await home.gateway.stores.identities.add_profile(retired)

    assert (await reads("alice"), await reads("bob")) == (404, 200)
    decision = (await home.audit(person=home.id("alice"), action="history", effect="deny"))[-1].record
    assert {f"user:{old}", f"user:{home.id('alice')}"} <= set(decision.subjects)
    twice = replace(retired, id=older, merged_into=old)
    await home.gateway.stores.identities.add_profile(twice)
    profile = await home.gateway.stores.identities.profile(home.tenant, home.id("alice"))
    assert profile is not None
    assert profile.aliases == (old,)  # one hop
