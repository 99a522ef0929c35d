"""Roles by a group of the issuer, end to end: as long as the token says so, and never for longer (design section 5)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
import pytest_asyncio

from gateway.app import compose
from gateway.errors import ConfigurationFaults
from gateway.model import Identity
from gateway.settings import Settings, load
from tests.clock import SettableClock
from tests.conftest import LogCapture
from tests.house import House, house
from tests.issuer import AUDIENCE, LocalIssuer

ME = "/v1/me"
PEOPLE = "/v1/admin/people"
TRUSTED = """
[[oidc.issuers]]
issuer = "{issuer}"
audience = "{audience}"
algorithms = ["ES256"]
tenant = "acme"
scopes = "person"
groups_claim = "teams"

[oidc.issuers.roles]
flight-leads = ["supervisor@flight"]
it-admins = ["admin"]
{more}
"""


@pytest.fixture
def issuer(clock: SettableClock) -> Any:
    """A real one, on this machine."""
    with LocalIssuer(clock) as running:
        yield running


def trusting(settings: Settings, folder: Path, issuer: LocalIssuer, more: str = "") -> Settings:
    """The settings with the issuer's groups mapped."""
    config = folder / "groups.toml"
    config.write_text(TRUSTED.format(issuer=issuer.url, audience=AUDIENCE, more=more), encoding="utf-8")
    return load(config, {"GATEWAY_STATE__FOLDER": str(settings.state.folder)})


@pytest_asyncio.fixture
async def home(
    settings: Settings, tmp_path: Path, clock: SettableClock, logs: LogCapture, issuer: LocalIssuer
) -> AsyncIterator[House]:
    """A house where alice, bob and olga sign in at the issuer."""
    async with house(trusting(settings, tmp_path, issuer), clock, logs.loggers) as made:
        for name in ("alice", "bob", "olga"):
            identity = Identity(issuer=issuer.url, subject=name, profile=made.id(name))
            await made.gateway.stores.identities.link(made.tenant, identity, clock.now())
        yield made


async def send(home: House, token: str, path: str, method: str = "GET", body: object = None) -> httpx2.Response:
    """A request with a token of the issuer."""
    return await home.send(None, method, path, body, headers={"Authorization": f"Bearer {token}"})


async def test_a_group_is_a_role_until_the_token_that_says_so_is_replaced(home: House, issuer: LocalIssuer) -> None:
    """Issue 3, "groups to roles": on the agent that the settings name, and with the next token no more."""
    await home.add_agent("train")
    of_bob = f"/v1/sessions/{await home.open('bob')}/messages"
    on_train = f"/v1/sessions/{await home.open('bob', agent='train')}/messages"
    lead, left = issuer.mint("alice", teams=["crew", "flight-leads"]), issuer.mint("alice", teams=["crew"])

    for _ in range(2):  # the tokens may be used in turn, by two windows of one person
        assert (await send(home, lead, of_bob)).status_code == 200
        assert (await send(home, lead, on_train)).status_code == 404
        assert (await send(home, left, of_bob)).status_code == 404
    assert (await home.get("alice", of_bob)).status_code == 404
    refused = (await home.audit(person=home.id("alice"), action="history", effect="deny"))[-1].record
    allowed = (await home.audit(person=home.id("alice"), action="history", effect="allow"))[-1].record
    assert ("role:supervisor" in allowed.subjects, "role:supervisor" in refused.subjects) == (True, False)
    assert allowed.principal == f"oidc:{issuer.url}#alice"


async def test_roles_of_a_claim_are_told_from_those_that_were_given(home: House, issuer: LocalIssuer) -> None:
    """Issue 3: `/v1/me` says the source of each; admins see and replace what was given by hand, and nothing else."""
    lead = issuer.mint("alice", teams=["flight-leads"])
    alice = f"{PEOPLE}/{home.id('alice')}"

    mine = (await send(home, lead, ME)).json()["profile"]["roles"]
    shown = (await home.get("erin", alice)).json()["roles"]
    listed = (await home.get("erin", PEOPLE)).json()["items"]
    replaced = await home.send("olga", "PUT", f"{alice}/roles", {"roles": [{"role": "member"}, {"role": "pilot"}]})
    after = (await send(home, lead, ME)).json()["profile"]["roles"]
    same = {"roles": [{"role": "member"}, {"role": "supervisor", "agent": "flight"}]}
    given = await home.send("olga", "PUT", f"{alice}/roles", same)

    claimed = {"role": "supervisor", "agent": "flight", "source": "claim"}
    member, pilot = {"role": "member", "agent": "*"}, {"role": "pilot", "agent": "*"}
    by_hand = {"source": "assigned"}
    assert mine == [member | by_hand, claimed]
    assert shown == [member]
    assert [one["roles"] for one in listed if one["name"] == "alice"] == [[member]]
    assert replaced.json()["roles"] == [member, pilot]
    assert after == [member | by_hand, pilot | by_hand, claimed]
    assert given.status_code == 200
    assert (await send(home, lead, ME)).json()["profile"]["roles"] == [member | by_hand, claimed | by_hand]


async def test_an_access_token_that_is_made_with_a_claim_carries_no_role_of_it(
    home: House, issuer: LocalIssuer
) -> None:
    """Issue 3: a token of the gateway would outlive the group. It ends with the credential besides."""
    of_bob = f"/v1/sessions/{await home.open('bob')}/messages"
    lead = issuer.mint("alice", teams=["flight-leads", "it-admins"])

    made = await send(home, lead, "/v1/me/tokens", "POST", {"name": "laptop", "expires_in_days": 30})
    secret = made.json()["secret"]

    assert (await send(home, lead, of_bob)).status_code == 200
    assert (await send(home, lead, PEOPLE)).status_code == 200
    assert (await send(home, secret, of_bob)).status_code == 404
    assert (await send(home, secret, PEOPLE)).status_code == 403
    assert [one["role"] for one in (await send(home, secret, ME)).json()["profile"]["roles"]] == ["member"]


async def test_a_claimed_admin_is_an_admin_for_as_long_as_the_token_and_keeps_nothing_of_it(
    home: House, issuer: LocalIssuer, clock: SettableClock
) -> None:
    """Issue 3 and design section 5, "nobody raises themselves"."""
    token = issuer.mint("bob", teams=["it-admins", "flight-leads"])
    bob, alice, erin = (f"{PEOPLE}/{home.id(name)}" for name in ("bob", "alice", "erin"))
    refused: list[tuple[str, str, Any]] = [
        ("PUT", f"{bob}/roles", {"roles": [{"role": "member"}, {"role": "admin"}]}),
        ("PUT", f"{alice}/roles", {"roles": [{"role": "member"}, {"role": "supervisor", "agent": "flight"}]}),
        ("PUT", f"{alice}/roles", {"roles": [{"role": "owner"}]}),
        ("DELETE", erin, None),
        ("POST", f"{alice}/identities", {"issuer": "https://x.example", "subject": "bob"}),
        ("POST", f"{alice}/tokens", {"name": "alice's"}),
        ("POST", PEOPLE, {"name": "R", "kind": "service", "roles": [{"role": "supervisor", "agent": "flight"}]}),
    ]
    before = (await home.get("erin", PEOPLE)).json()

    assert (await home.send("bob", "PUT", f"{alice}/roles", {"roles": []})).status_code == 403
    for method, path, body in refused:
        answer = await send(home, token, path, method, body)
        assert (answer.status_code, answer.json()["code"]) == (403, "tool_not_allowed"), (method, path, answer.text)
    assert (await home.get("erin", PEOPLE)).json() == before
    added = await send(home, token, PEOPLE, "POST", {"name": "Frank", "roles": [{"role": "member"}]})
    assert added.status_code == 201
    clock.advance(331)  # five minutes and the leeway
    await home.gateway.epochs.poll()
    assert (await send(home, token, PEOPLE)).status_code == 401
    assert (await send(home, issuer.mint("bob"), PEOPLE)).status_code == 403


async def test_a_malformed_claim_refuses_the_token_and_an_owner_stays_one(home: House, issuer: LocalIssuer) -> None:
    """Ours: no falling back to the roles given by hand, which an operator would take for the group's."""
    records = len(await home.audit())

    malformed = await send(home, issuer.mint("alice", teams="it-admins"), PEOPLE)

    assert (malformed.status_code, malformed.json()["code"]) == (401, "unauthenticated")
    assert len(await home.audit()) == records
    roles = {"roles": [{"role": "member"}, {"role": "supervisor", "agent": "flight"}]}
    olga = await send(home, issuer.mint("olga", teams=[]), f"{PEOPLE}/{home.id('alice')}/roles", "PUT", roles)
    assert olga.status_code == 200


def test_a_mapping_that_can_not_be_used_refuses_the_start_by_its_full_name(
    settings: Settings, tmp_path: Path, clock: SettableClock, logs: LogCapture, issuer: LocalIssuer
) -> None:
    """Issue 2: every fault at once, each with its name."""
    good = trusting(settings, tmp_path, issuer)
    bad = trusting(settings, tmp_path, issuer, 'bosses = ["owner"]\nodd = ["member", "Super visor@*"]\nnone = []')

    assert good.oidc.issuers[0].roles["it-admins"] == ("admin",)
    with pytest.raises(ConfigurationFaults) as caught:
        compose(bad, logs.loggers, clock=clock)
    assert [(fault.field, fault.rule) for fault in caught.value.faults] == [
        ("oidc.issuers[0].roles.bosses", "by_hand"),
        ("oidc.issuers[0].roles.odd[1].role", "name"),
        ("oidc.issuers[0].roles.none", "required"),
    ]
