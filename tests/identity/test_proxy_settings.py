"""Tests that settings of proxies which would believe too many, or the wrong ones, don't come to be."""

from __future__ import annotations

import errno
import socket
from ipaddress import ip_address
from pathlib import Path

import pytest

from gateway.app import compose
from gateway.errors import ConfigurationFaults
from gateway.identity.peers import is_own
from gateway.identity.proxy_headers import TrustedProxy
from gateway.model import TenantId
from gateway.settings import Settings
from tests.conftest import LogCapture
from tests.proxied import settings_of

HEADER = """
[[proxies.headers]]
header = "X-User"
networks = ["192.0.2.10/32", "10.1.0.0/16", "2001:db8:7::/48"]
issuer = "staff-proxy"
tenant = "acme"
"""
SIGNED = """
[[proxies.assertions]]
header = "X-Assertion"
issuer = "https://proxy.example"
audience = "gateway"
algorithms = ["ES256"]
tenant = "acme"
"""
OIDC = """
[[oidc.issuers]]
issuer = "https://proxy.example"
audience = "gateway-api"
algorithms = ["ES256"]
tenant = "acme"
"""
LOGIN = """
[login]
public_url = "https://gateway.example"
[[login.issuers]]
name = "work"
issuer = "https://proxy.example"
client_id = "gateway"
algorithms = ["ES256"]
tenant = "acme"
"""
BARE = SIGNED.replace("https://proxy.example", "app.example.com")
KEYS = 'jwks_uri = "https://app.example.com/keys"\n'

NETWORKS = {
    "none": ([], "too_short"),
    "no network": (["proxy.example"], "ip_any_network"),
    "bits of a host": (["10.1.0.5/16"], "ip_any_network"),
    "everybody": (["0.0.0.0/0"], "network"),
    "half of everybody": (["128.0.0.0/1"], "network"),
    "everybody on IPv6": (["::/0"], "network"),
    "everybody on IPv4, as IPv6": (["::ffff:0:0/96"], "network"),
    "IPv4 as IPv6": (["::ffff:10.1.0.0/112"], "network"),
    "link-local": (["fe80::/10"], "network"),
    "loopback": (["127.0.0.0/8"], "network"),
    "one of loopback": (["127.0.0.1"], "network"),
    "loopback on IPv6": (["::1/128"], "network"),
    "no address": (["0.0.0.0/32"], "network"),
}


def faults_of(text: str, settings: Settings, logs: LogCapture) -> dict[str, str]:
    """What a start with these settings complains of."""
    with pytest.raises(ConfigurationFaults) as caught:
        compose(settings_of(text, settings.state.folder), logs.loggers)
    assert all(fault.message for fault in caught.value.faults)
    return {fault.field: fault.rule for fault in caught.value.faults}


def starts(text: str, settings: Settings, logs: LogCapture) -> bool:
    """Whether a gateway comes of these settings."""
    return compose(settings_of(text, settings.state.folder), logs.loggers).ways is not None


@pytest.mark.parametrize(("networks", "rule"), NETWORKS.values(), ids=NETWORKS)
def test_networks_that_are_no_proxys_refuse_the_start(
    networks: list[str], rule: str, settings: Settings, logs: LogCapture
) -> None:
    """Design section 5.3: only from listed source networks; loopback by opt-in."""
    good = '["192.0.2.10/32", "10.1.0.0/16", "2001:db8:7::/48"]'
    assert starts(HEADER, settings, logs)
    (field, found), *others = faults_of(HEADER.replace(good, str(networks)), settings, logs).items()

    assert (field.partition("[0].networks")[0], found, others) == ("proxies.headers", rule, [])


def test_loopback_is_believed_only_where_somebody_opted_in(settings: Settings, logs: LogCapture) -> None:
    """Design section 5.3: it means every process on this machine; what is too wide stays refused."""
    opted = HEADER + "allow_loopback = true\n"
    good = '["192.0.2.10/32", "10.1.0.0/16", "2001:db8:7::/48"]'
    for networks in ('["127.0.0.1"]', '["127.0.0.0/8", "::1"]'):
        assert starts(opted.replace(good, networks), settings, logs)
    for networks in ('["0.0.0.0/0"]', '["::ffff:127.0.0.1"]', '["fe80::1"]'):
        assert faults_of(opted.replace(good, networks), settings, logs) == {"proxies.headers[0].networks[0]": "network"}


def test_every_fault_of_every_proxy_is_told_by_its_full_name(settings: Settings, logs: LogCapture) -> None:
    """Ours: all at once, so that a start is not a guessing game."""
    text = (
        SIGNED.replace('"gateway"', '" "')
        + BARE.replace('["ES256"]', '["RS256"]')
        + SIGNED.replace("https://proxy.example", "gateway")
    )

    assert faults_of(text, settings, logs) == {
        "proxies.assertions[0].audience": "required",
        "proxies.assertions[1].issuer": "https",
        "proxies.assertions[2].issuer": "reserved",
    }
    assert faults_of(
        HEADER.replace('issuer = "staff-proxy"', 'issuer = " "').replace("10.1", "127.1"), settings, logs
    ) == {
        "proxies.headers[0].networks[1]": "network",
        "proxies.headers[0].issuer": "text",
    }


ISSUERS = {
    "a URL": (SIGNED, None),
    "a URL with its keys elsewhere": (SIGNED + KEYS, None),
    "a host name with its keys": (BARE + KEYS, None),
    "a host name without": (BARE, "issuer"),
    "keys on this machine": (BARE + 'jwks_uri = "http://127.0.0.1:9/keys"\n', None),
    "keys over http": (BARE + 'jwks_uri = "http://app.example.com/keys"\n', "jwks_uri"),
    "no name": (BARE.replace("app.example.com", "app example") + KEYS, "issuer"),
    "plain http": (SIGNED.replace("https://proxy", "http://proxy") + KEYS, "issuer"),
    "an operator": (BARE.replace("app.example.com", "operator") + KEYS, "issuer"),
    "a gateway in capitals": (BARE.replace("app.example.com", "Gateway") + KEYS, "issuer"),
    "a channel": (BARE.replace("app.example.com", "channel:line:1") + KEYS, "issuer"),
    "no tenant": (SIGNED.replace('tenant = "acme"', ""), "tenant_claim"),
    "two tenants": (SIGNED + 'tenant_claim = "org"\n', "tenant_claim"),
    "no audience": (SIGNED.replace('audience = "gateway"', ""), "audience"),
}


@pytest.mark.parametrize(("text", "field"), ISSUERS.values(), ids=ISSUERS)
def test_the_issuer_of_an_assertion_is_a_url_or_a_name_whose_keys_are_told(
    text: str, field: str | None, settings: Settings, logs: LogCapture
) -> None:
    """Issue 3: header name, issuer or JWKS URL, audience, per proxy; and no name of the gateway's own."""
    if field is None:
        assert starts(text, settings, logs)
    else:
        assert list(faults_of(text, settings, logs)) == [f"proxies.assertions[0].{field}"]


def test_a_bearer_tokens_issuer_is_a_url_whatever_proxies_may_have(settings: Settings, logs: LogCapture) -> None:
    """OpenID Connect Core section 2: `iss` is a URL."""
    text = OIDC.replace("https://proxy.example", "app.example.com") + KEYS

    assert faults_of(text, settings, logs) == {"oidc.issuers[0].issuer": "value_error"}


TOGETHER = {
    "two headers of one proxy each": (HEADER + HEADER.replace("X-User", "X-Name").replace("staff", "other"), None),
    "one header of two proxies": (
        HEADER
        + HEADER.replace("192.0.2.10", "192.0.2.11")
        .replace("10.1", "10.2")
        .replace(":7:", ":8:")
        .replace("staff", "b"),
        None,
    ),
    "one header of one address": (
        HEADER + HEADER.replace("10.1", "10.2").replace(":7:", ":8:").replace("staff", "b"),
        {"proxies.headers[1].networks": "separate"},
    ),
    "one header within a network": (
        HEADER
        + HEADER.replace('"192.0.2.10/32", "10.1.0.0/16"', '"10.1.2.3"').replace(":7:", ":8:").replace("staff", "b"),
        {"proxies.headers[1].networks": "separate"},
    ),
    "two proxies of one name": (
        HEADER + HEADER.replace("X-User", "X-Name"),
        {"proxies.headers[1].issuer": "unique"},
    ),
    "a header that names an issuer's people": (
        HEADER.replace("staff-proxy", "https://proxy.example") + OIDC,
        {"proxies.headers[0].issuer": "unique"},
    ),
    "a header that names an assertion's people": (
        HEADER.replace("staff-proxy", "https://proxy.example") + SIGNED,
        {"proxies.headers[0].issuer": "unique"},
    ),
    "a header that names people who sign in here": (
        HEADER.replace("staff-proxy", "https://proxy.example") + LOGIN,
        {"proxies.headers[0].issuer": "unique"},
    ),
    "a header beside people who sign in here": (HEADER + LOGIN, None),
    "a header of both kinds": (
        HEADER.replace("X-User", "x-assertion") + SIGNED,
        {"proxies.headers[0].header": "unique"},
    ),
    "one issuer in two headers": (SIGNED + SIGNED.replace("X-Assertion", "X-Other"), None),
    "one issuer twice in a header": (
        SIGNED + SIGNED.replace("X-Assertion", "x-assertion").replace('"gateway"', '"other"'),
        {"proxies.assertions[1].issuer": "unique"},
    ),
    "one issuer for both, apart": (SIGNED + OIDC, None),
    "one issuer and audience for both": (
        SIGNED + OIDC.replace("gateway-api", "gateway"),
        {"proxies.assertions[0].audience": "separate"},
    ),
    "newcomers by one door only": (
        SIGNED + OIDC + "provision = true\n",
        {"proxies.assertions[0].provision": "same"},
    ),
    "newcomers by one header only": (
        SIGNED + SIGNED.replace("X-Assertion", "X-Other") + "provision = true\n",
        {"proxies.assertions[1].provision": "same"},
    ),
    "the header of tokens": (HEADER.replace("X-User", "Authorization"), {"proxies.headers[0].header": "header"}),
    "cookies": (SIGNED.replace("X-Assertion", "Cookie"), {"proxies.assertions[0].header": "header"}),
    "a header of ours": (HEADER.replace("X-User", "Gateway-User"), {"proxies.headers[0].header": "header"}),
    "an underscore": (HEADER.replace("X-User", "REMOTE_USER"), {"proxies.headers[0].header": "header"}),
    "no header": (HEADER.replace("X-User", "X User"), {"proxies.headers[0].header": "header"}),
}


@pytest.mark.parametrize(("text", "faults"), TOGETHER.values(), ids=TOGETHER)
def test_no_credential_can_be_taken_for_two_things(
    text: str, faults: dict[str, str] | None, settings: Settings, logs: LogCapture
) -> None:
    """Design section 5: each header, issuer and address stands for one thing."""
    if faults is None:
        assert starts(text, settings, logs)
    else:
        assert faults_of(text, settings, logs) == faults


def test_a_proxy_that_is_made_without_the_settings_has_the_same_rules() -> None:
    """Design section 5: every fault at once, whoever asks for it."""
    with pytest.raises(ConfigurationFaults) as caught:
        TrustedProxy(header="X-User", networks=(), issuer="operator", tenant=TenantId("acme"))

    assert [(fault.field, fault.rule) for fault in caught.value.faults] == [
        ("networks", "required"),
        ("issuer", "reserved"),
    ]


def test_an_own_address_is_found_whatever_interface_or_route_it_is_on() -> None:
    """Ours: whoever connects from an address that can be bound here runs a process here."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as bound:
        bound.bind(("127.5.5.5", 0))  # no interface lists it
        assert is_own(ip_address(bound.getsockname()[0]))
    for own in ("127.0.0.1", "::1", "0.0.0.0", "::"):
        assert is_own(ip_address(own)), own
    for other in ("192.0.2.10", "198.51.100.7", "2001:db8::7"):
        assert not is_own(ip_address(other)), other


def _binds(outcome: int | None) -> type[socket.socket]:
    """A socket that binds anything, or fails with this error."""

    class Socket(socket.socket):
        def bind(self, address: object) -> None:
            if outcome is not None:
                raise OSError(outcome, "as the test says")

    return Socket


def test_where_it_can_not_be_found_out_an_address_counts_as_our_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Design section 12: fail closed. A machine without that family of addresses has none of them, though."""
    for outcome, own in (
        (errno.EADDRNOTAVAIL, False),
        (errno.EAFNOSUPPORT, False),
        (errno.EMFILE, True),
        (errno.EACCES, True),
        (None, True),
    ):
        monkeypatch.setattr("gateway.identity.peers.socket.socket", _binds(outcome))
        assert is_own(ip_address("192.0.2.10")) is own


def test_an_own_interface_is_refused_at_the_start_and_within_a_network(
    settings: Settings, logs: LogCapture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Issue 3: own interfaces refused. A network that merely holds one of ours is good for all others in it."""
    ours = ip_address("10.1.0.5")
    monkeypatch.setattr("gateway.identity.peers.is_own", lambda address: address == ours)
    monkeypatch.setattr("gateway.identity.proxy_headers.is_own", lambda address: address == ours)
    alone = HEADER.replace("10.1.0.0/16", "10.1.0.5/32")
    assert faults_of(alone, settings, logs) == {"proxies.headers[0].networks[1]": "network"}
    assert starts(alone + "allow_loopback = true\n", settings, logs)

    guard = compose(settings_of(HEADER, settings.state.folder), logs.loggers).ways.guard
    opted = compose(settings_of(HEADER + "allow_loopback = true\n", settings.state.folder), logs.loggers).ways.guard
    assert guard is not None
    assert opted is not None
    sent = [(b"x-user", b"alice")]
    for peer, left, left_by_opt_in in (
        ("10.1.0.4", sent, sent),
        ("10.1.0.5", [], sent),
        ("::ffff:10.1.0.5", [], sent),
        ("10.2.0.5", [], []),
    ):
        assert guard(sent, peer) == left, peer
        assert opted(sent, peer) == left_by_opt_in, peer


def test_a_machine_that_binds_every_address_can_not_tell_its_own(
    settings: Settings, logs: LogCapture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: with `ip_nonlocal_bind` the question has no answer, so the start is refused and says why."""
    monkeypatch.setattr("gateway.identity.peers.socket.socket", _binds(None))
    text = HEADER.replace('"192.0.2.10/32", ', "").replace(', "2001:db8:7::/48"', "")

    assert faults_of(text, settings, logs) == {"proxies.headers[0].networks[0]": "network"}
    assert starts(text + "allow_loopback = true\n", settings, logs)
