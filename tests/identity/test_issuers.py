"""Tests that settings of an issuer that would accept too much don't come to be."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.errors import ConfigurationFaults
from gateway.identity.issuers import IssuerSettings, KeyTimes, ScopePolicy
from gateway.identity.roles import role_of
from gateway.model import TenantId

GOOD: dict[str, Any] = {
    "issuer": "https://id.example/realms/acme",
    "audience": "https://gateway.example",
    "algorithms": frozenset({"RS256"}),
    "tenant": TenantId("acme"),
}

FAULTY: dict[str, tuple[dict[str, Any], list[tuple[str, str]]]] = {
    "empty audience": ({"audience": ""}, [("audience", "required")]),
    "blank audience": ({"audience": "  "}, [("audience", "required")]),
    "no algorithm": ({"algorithms": frozenset()}, [("algorithms", "required")]),
    "HMAC": ({"algorithms": frozenset({"RS256", "HS256"})}, [("algorithms", "known")]),
    "none": ({"algorithms": frozenset({"none"})}, [("algorithms", "known")]),
    "plain http": ({"issuer": "http://id.example"}, [("issuer", "https")]),
    "http on a name like this machine's": ({"issuer": "http://localhost.example"}, [("issuer", "https")]),
    "no URL": ({"issuer": "acme"}, [("issuer", "https")]),
    "no host": ({"issuer": "https:///x"}, [("issuer", "https")]),
    "a password": ({"issuer": "https://me:secret@id.example"}, [("issuer", "https")]),
    "a fragment": ({"issuer": "https://id.example#x"}, [("issuer", "https")]),
    "a query": ({"issuer": "https://id.example?x=1"}, [("issuer", "https")]),
    "a port that is none": ({"issuer": "https://id.example:port"}, [("issuer", "https")]),
    "a line end": ({"issuer": "https://id.example/\n"}, [("issuer", "https")]),
    "keys over http": ({"jwks_uri": "http://id.example/keys"}, [("jwks_uri", "https")]),
    "keys on this machine": ({"jwks_uri": "http://127.0.0.1/keys"}, [("jwks_uri", "https")]),
    "no tenant": ({"tenant": None}, [("tenant", "one_of")]),
    "two sources of the tenant": ({"tenant_claim": "org"}, [("tenant", "one_of")]),
    "a table without a claim": ({"tenants": {"6d0e": TenantId("acme")}}, [("tenants", "needs")]),
    "leeway of hours": ({"leeway_s": 3_600}, [("leeway_s", "range")]),
    "negative leeway": ({"leeway_s": -1}, [("leeway_s", "range")]),
    "no room for a token": ({"max_token_length": 10}, [("max_token_length", "range")]),
    "too much room": ({"max_token_length": 1_000_000}, [("max_token_length", "range")]),
    "no claim of groups": ({"groups_claim": " "}, [("groups_claim", "required")]),
    "an owner by a group": ({"roles": {"x": (role_of("owner"),)}}, [("roles.x", "by_hand")]),
    "an owner of one agent": ({"roles": {"x": (role_of("owner@flight"),)}}, [("roles.x", "by_hand")]),
    "a group without a name": ({"roles": {" ": (role_of("member"),)}}, [("roles. ", "required")]),
    "a group without a role": ({"roles": {"x": ()}}, [("roles.x", "required")]),
    "roles that are none": (
        {"roles": {"x": tuple(map(role_of, ("member", "", "Admin", "role:admin", "member@", "a@b@c")))}},
        [
            ("roles.x[1].role", "name"),
            ("roles.x[2].role", "name"),
            ("roles.x[3].role", "name"),
            ("roles.x[4].agent", "name"),
            ("roles.x[5].agent", "name"),
        ],
    ),
    "roles without end": (
        {"roles": {f"g{number}": (role_of(f"r{number}"),) for number in range(101)}},
        [("roles", "count")],
    ),
    "times that are none": (
        {"keys": KeyTimes(refresh_s=0, cool_down_s=0, retry_s=-1, timeout_s=0, max_bytes=0, max_stale_s=-1)},
        [
            ("keys.refresh_s", "range"),
            ("keys.cool_down_s", "range"),
            ("keys.retry_s", "range"),
            ("keys.timeout_s", "range"),
            ("keys.max_bytes", "range"),
            ("keys.max_stale_s", "range"),
        ],
    ),
    "everything at once": (
        {"issuer": "", "audience": "", "algorithms": frozenset({"HS256", "none"}), "tenant": None},
        [
            ("issuer", "https"),
            ("audience", "required"),
            ("tenant", "one_of"),
            ("algorithms", "known"),
            ("algorithms", "known"),
        ],
    ),
}


@pytest.mark.parametrize(("changes", "faults"), FAULTY.values(), ids=FAULTY)
def test_settings_that_would_accept_too_much_are_refused_with_every_fault(
    changes: dict[str, Any], faults: list[tuple[str, str]]
) -> None:
    """Design section 5.1: an empty audience refuses to start, algorithms are a closed list; all faults at once."""
    assert IssuerSettings(**GOOD).audience == "https://gateway.example"
    with pytest.raises(ConfigurationFaults) as caught:
        IssuerSettings(**(GOOD | changes))

    assert [(fault.field, fault.rule) for fault in caught.value.faults] == faults


@pytest.mark.parametrize("issuer", ["http://localhost:9000", "http://127.0.0.1:9000", "http://[::1]:9000"])
def test_an_issuer_on_this_machine_may_use_http(issuer: str) -> None:
    """RFC 8252 section 8.3: nobody listens in between; its keys may lie beside it."""
    settings = IssuerSettings(**(GOOD | {"issuer": issuer, "jwks_uri": issuer + "/keys"}))

    assert settings.on_loopback


def test_the_careful_choices_are_the_defaults() -> None:
    """Nothing is trusted that was not asked for."""
    settings = IssuerSettings(**GOOD)

    assert not any([settings.trust_email, settings.provision, settings.accept_plain_typ, settings.on_loopback])
    assert settings.scopes is ScopePolicy.PERSON
    assert settings.roles == {}


def test_a_group_may_be_worth_any_role_but_owner() -> None:
    """Ours: who writes the settings is trusted with `admin`; an owner is made by hand."""
    roles = {"it": (role_of("admin"),), "crew": (role_of("member"), role_of("pilot@flight"), role_of("guest@*"))}

    assert IssuerSettings(**(GOOD | {"roles": roles})).roles == roles
