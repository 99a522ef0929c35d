"""Turns the address at the other end of a connection into whether it is one of the proxies that are listed.

A plain header is worth as much as the address it comes from, so what can't be told apart is refused at the start:
networks as wide as the internet, link-local ones, and this machine itself where nobody opted in.
"""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterator, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

from gateway.errors import Fault

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

_WIDEST = {4: 8, 6: 7}  # 10.0.0.0/8 and fc00::/7, the widest private networks
# Addresses for documentation (RFC 5737, RFC 3849): no machine has them.
_NOBODY: dict[int, Address] = {4: IPv4Address("192.0.2.1"), 6: IPv6Address("2001:db8::1")}
_NOT_HERE = frozenset({errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT})


def address_of(peer: str | None) -> Address | None:
    """The address, an IPv4-mapped one as IPv4 (RFC 4291 section 2.5.5.2); None for a socket file, or with a zone."""
    try:
        address = ip_address(peer or "")
    except ValueError:
        return None
    if isinstance(address, IPv4Address):
        return address
    # An address with a zone is unique on its link alone, and a network in the settings names no link.
    return None if address.scope_id else address.ipv4_mapped or address


def is_own(address: Address) -> bool:
    """Whether this machine has `address` now: whoever connects from it has a process here.

    A socket can be bound to an own address only. That is asked each time and not read from a list at the start:
    addresses come and go, and a route may make a whole network local that no interface shows.
    """
    if address.is_loopback or address.is_unspecified:
        return True
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((str(address), 0))
    except OSError as error:
        return error.errno not in _NOT_HERE  # where that can't be found out, it counts as ours
    return True


def network_faults(networks: Sequence[Network], *, allow_loopback: bool) -> Iterator[Fault]:
    """Why a list of networks may not be trusted with saying who somebody is."""
    if not networks:
        yield Fault(field="networks", rule="required", message="list the addresses that the proxy connects from")
    for index, network in enumerate(networks):
        message = _why_not(network, allow_loopback=allow_loopback)
        if message is not None:
            yield Fault(field=f"networks[{index}]", rule="network", message=f"{network} {message}")


def _why_not(network: Network, *, allow_loopback: bool) -> str | None:
    if network.prefixlen < _WIDEST[network.version]:
        return "is too wide: everybody in it could say who they are. List the proxy's own addresses"
    if network.version == 6 and isinstance(network, IPv6Network):
        if network.network_address.ipv4_mapped is not None:
            return "is IPv4 written as IPv6; write it as IPv4"
        if network.is_link_local:
            return "is link-local, and addresses of two links can't be told apart; list another address of the proxy"
    if allow_loopback:
        return None
    if network.is_loopback or (network.num_addresses == 1 and is_own(network.network_address)):
        return "is this machine itself, where every process could say who it is; allow_loopback = true permits that"
    if is_own(_NOBODY[network.version]):
        return (
            "can't be told from this machine, which binds addresses that are not its own "
            "(net.ipv4.ip_nonlocal_bind or net.ipv6.ip_nonlocal_bind); switch that off"
        )
    return None
