"""Turns the user header of a listed proxy into a principal, and takes that header away from everybody else (5.3).

The header names a subject and nothing else: issuer and tenant come from the settings, roles from the profile.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from gateway.errors import ConfigurationFaults, Fault, Unauthenticated
from gateway.identity.credentials import Credentials
from gateway.identity.peers import Network, address_of, is_own, network_faults
from gateway.identity.refusals import Reason, refused
from gateway.identity.reserved import is_reserved
from gateway.identity.same_origin import check_same_origin
from gateway.identity.scopes import EVERYTHING
from gateway.model import Principal, TenantId

PROXY_HEADER = "proxy_header"
Headers = Sequence[tuple[bytes, bytes]]

_LONGEST = 255
# Printable ASCII without a comma, no space at either end. Bytes beyond ASCII have no agreed meaning in a header (RFC
# 9110 section 5.5), and letters that look alike would be two people; a comma joins two values of a header in one line.
_SUBJECT = re.compile(r"[!-+\--~](?:[ -+\--~]*[!-+\--~])?")
# What Apache writes for a variable that is not set, and what log formats write for one.
_NOBODY = frozenset({"(null)", "-"})


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustedProxy:
    """A proxy that is believed by its address. Raises ConfigurationFaults, with every fault at once."""

    header: str
    networks: tuple[Network, ...]
    issuer: str  # the name of the identity key; not found in any request
    tenant: TenantId
    allow_loopback: bool = False
    provision: bool = False

    def __post_init__(self) -> None:
        faults = [*network_faults(self.networks, allow_loopback=self.allow_loopback), *_issuer_faults(self.issuer)]
        if faults:
            raise ConfigurationFaults(faults)

    def trusts(self, peer: str | None) -> bool:
        """Whether the connection from `peer` is this proxy's, and no process's on this machine without the opt-in."""
        address = address_of(peer)
        if address is None or not any(address in network for network in self.networks):
            return False
        return self.allow_loopback or not is_own(address)


def _issuer_faults(issuer: str) -> Iterator[Fault]:
    if is_reserved(issuer):
        yield Fault(field="issuer", rule="reserved", message="is the gateway's own name; choose one for the proxy")
    elif not issuer.strip() or len(issuer) > _LONGEST or not issuer.isprintable():
        yield Fault(field="issuer", rule="text", message=f"must have 1 to {_LONGEST} characters, on one line")


class UserHeader:
    """Verifies one user header, by the proxies that may send it."""

    def __init__(self, proxies: Sequence[TrustedProxy]) -> None:
        """`proxies` have no network in common, so that an address says which of them it is."""
        self._proxies = proxies

    async def verify(self, values: Sequence[str], credentials: Credentials) -> Principal | None:
        """The person that the proxy names; None where the header comes from no proxy, and so is no credential.

        Raises Unauthenticated: several values, one that names nobody, or a write that another site's page sent.
        """
        proxy = next((one for one in self._proxies if one.trusts(credentials.peer)), None)
        if proxy is None:
            return None
        if len(values) > 1:
            raise Unauthenticated(
                "The header that names you came more than once.", reason="credentials_several", error="invalid_request"
            )
        subject = values[0].strip(" \t")  # white space around a value is none of it (RFC 9110 section 5.5)
        if len(subject) > _LONGEST or subject in _NOBODY or not _SUBJECT.fullmatch(subject):
            raise refused(Reason.PROXY_HEADER_MALFORMED)
        check_same_origin(credentials)
        return Principal(
            tenant=proxy.tenant,
            issuer=proxy.issuer,
            subject=subject,
            credential=PROXY_HEADER,
            scopes=frozenset({EVERYTHING}),
        )


class HeaderGuard:
    """Takes user headers away from requests before anything looks at them, unless their proxy sent them.

    Spellings with `_` for `-` go from every request: some servers and proxies take them for the same header, so one
    could be smuggled past a proxy that only overwrites the other.
    """

    def __init__(self, proxies: Mapping[bytes, Sequence[TrustedProxy]]) -> None:
        """`proxies` by the lower-case name of their header."""
        self._proxies = proxies

    def __call__(self, headers: Headers, peer: str | None) -> Headers:
        """The headers that may be looked at."""
        if not any(_folded(name) in self._proxies for name, _ in headers):
            return headers
        return [(name, value) for name, value in headers if self._may_stay(name, peer)]

    def _may_stay(self, name: bytes, peer: str | None) -> bool:
        proxies = self._proxies.get(_folded(name))
        return proxies is None or (name in self._proxies and any(one.trusts(peer) for one in proxies))


def _folded(name: bytes) -> bytes:
    return name.lower().replace(b"_", b"-")
