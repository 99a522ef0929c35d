"""Tests that a group of an issuer is worth the roles that the settings say, to the person it was signed for."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.identity.roles import role_of
from tests.identity.conftest import Verifiers, refusal
from tests.issuer import ABSENT, LocalIssuer

LEADS, CREW, ADMINS = "flight-leads", "crew", "it-admins"
ROLES = {
    CREW: (role_of("member"),),
    LEADS: (role_of("supervisor@flight"), role_of("member")),
    ADMINS: (role_of("admin"),),
}


def written(roles: Any) -> list[str]:
    """Roles as the settings write them."""
    return [one.role if one.agent == "*" else f"{one.role}@{one.agent}" for one in roles]


@pytest.mark.parametrize(
    ("groups", "roles"),
    [
        (ABSENT, []),
        (None, []),
        ([], []),
        (["staff", "everybody"], []),
        ([CREW], ["member"]),
        ([LEADS], ["supervisor@flight", "member"]),
        ([ADMINS, LEADS, CREW, CREW], ["member", "supervisor@flight", "admin"]),
        (["Flight-leads", " flight-leads", "flight-leads ", "ﬂight-leads", "flight\u2010leads", "/flight-leads"], []),
        ([f"group-{number}" for number in range(999)] + [CREW], ["member"]),
    ],
)
async def test_a_group_is_worth_the_roles_that_are_written_for_its_exact_name(
    issuer: LocalIssuer, verifiers: Verifiers, groups: Any, roles: list[str]
) -> None:
    """Design section 5, "roles": byte for byte, each role once, whatever order the issuer names them in."""
    mapped = verifiers.trusting(roles=ROLES, max_token_length=65_536)
    token = issuer.mint(groups=groups)

    assert written((await mapped.verify(token)).roles) == roles
    assert (await verifiers.trusting(max_token_length=65_536).verify(token)).roles == ()


@pytest.mark.parametrize("groups", ["crew", 7, True, {"crew": True}, ["crew", 7], [["crew"]], [None], ["crew"] * 1_001])
async def test_a_claim_that_is_no_list_of_names_is_refused(
    issuer: LocalIssuer, verifiers: Verifiers, groups: Any
) -> None:
    """Ours: guessing at what an issuer meant could only widen. Who maps no groups does not look at them."""
    mapped = verifiers.trusting(roles=ROLES, max_token_length=65_536)

    assert await refusal(mapped, issuer.mint(groups=groups)) == "claim_malformed"
    assert (await verifiers.trusting(max_token_length=65_536).verify(issuer.mint(groups=groups))).roles == ()
    assert written((await mapped.verify(issuer.mint(groups=["crew"]))).roles) == ["member"]


async def test_the_claim_is_the_one_that_the_settings_name(issuer: LocalIssuer, verifiers: Verifiers) -> None:
    """Ours: issuers call it `groups`, `cognito:groups` or a URL; a name with dots is a name and no path."""
    url = "https://acme.example/groups"
    mapped = verifiers.trusting(roles=ROLES, groups_claim=url)
    nested = verifiers.trusting(roles=ROLES, groups_claim="realm_access.roles")

    both: dict[str, Any] = {url: [CREW], "groups": [ADMINS]}
    assert written((await mapped.verify(issuer.mint(**both))).roles) == ["member"]
    assert (await nested.verify(issuer.mint(realm_access={"roles": [ADMINS]}))).roles == ()


@pytest.mark.parametrize(
    "overage",
    [
        {"_claim_names": {"groups": "src1"}, "_claim_sources": {"src1": {"endpoint": "https://graph.example/groups"}}},
        {"hasgroups": True},
        {"_claim_names": {"groups": "src1"}, "groups": [ADMINS]},
        {"hasgroups": True, "groups": [ADMINS]},
    ],
)
async def test_groups_that_are_too_many_for_the_token_are_not_known_and_give_nothing(
    issuer: LocalIssuer, verifiers: Verifiers, overage: dict[str, Any]
) -> None:
    """Entra ID leaves them out beyond 200 and says where to ask (OpenID Connect Core section 5.6.2); we ask nobody."""
    mapped = verifiers.trusting(roles=ROLES)

    assert (await mapped.verify(issuer.mint(**overage))).roles == ()
    other: dict[str, Any] = {"_claim_names": {"address": "src1"}, "hasgroups": False}
    assert written((await mapped.verify(issuer.mint(groups=[ADMINS], **other))).roles) == ["admin"]
    assert await refusal(mapped, issuer.mint(groups=[ADMINS], _claim_names=["groups"])) == "claim_malformed"


async def test_a_service_has_no_role_by_a_group(issuer: LocalIssuer, verifiers: Verifiers) -> None:
    """Ours: an admin lets a service in who holds all its roles, and can see only those that were given by hand."""
    mapped = verifiers.trusting(roles=ROLES)

    service = await mapped.verify(issuer.mint("robot", client_id="robot", groups=[ADMINS]))
    person = await mapped.verify(issuer.mint("robot", groups=[ADMINS]))

    assert (service.service, service.roles) == (True, ())
    assert (person.service, written(person.roles)) == (False, ["admin"])
