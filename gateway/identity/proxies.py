"""Turns the settings of proxies into what verifies their headers, or into every fault in them (design 5.2, 5.3)."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import httpx2

from gateway.errors import ConfigurationFaults, Fault, Unauthenticated
from gateway.identity.credentials import Credentials, HeaderVerifier, Verifier
from gateway.identity.issuers import ClaimRules, IssuerSettings
from gateway.identity.oidc import OidcVerifier
from gateway.identity.proxy_headers import HeaderGuard, TrustedProxy, UserHeader
from gateway.identity.same_origin import check_same_origin
from gateway.model import Principal
from gateway.ports import Clock

_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?")
# Headers that mean something else already. A credential in one of them would be read twice, or never.
_TAKEN = frozenset(
    [
        "accept",
        "authorization",
        "connection",
        "content-length",
        "content-type",
        "cookie",
        "expect",
        "forwarded",
        "host",
        "if-match",
        "if-none-match",
        "origin",
        "proxy-authorization",
        "referer",
        "te",
        "transfer-encoding",
        "upgrade",
        "user-agent",
        "via",
        "x-csrf-token",
        "x-forwarded-for",
        "x-forwarded-host",
        "x-forwarded-proto",
        "x-real-ip",
        "x-request-id",
    ]
)
_OURS = ("gateway-", "sec-")


@dataclass(frozen=True, slots=True)
class SignedHeader:
    """A header in which a proxy signs who is behind it, and the issuer that it signs as."""

    header: str
    issuer: IssuerSettings


class AssertionHeader:
    """Verifies the assertions that come in one header. They are signed, so it does not matter who hands them over."""

    def __init__(self, verifier: Verifier) -> None:
        self._verifier = verifier

    async def verify(self, values: Sequence[str], credentials: Credentials) -> Principal:
        """The person that the proxy signed for.

        Raises Unauthenticated: several, not a good one, or a write that another site's page sent; Unavailable.
        """
        if len(values) > 1:
            raise Unauthenticated(
                "The assertion of your proxy came more than once.",
                reason="credentials_several",
                error="invalid_request",
            )
        check_same_origin(credentials)
        return await self._verifier.verify(values[0].strip(" \t"))


class Proxies:
    """Every header of a proxy that is a credential here."""

    def __init__(
        self,
        signed: Sequence[SignedHeader],
        plain: Sequence[TrustedProxy],
        *,
        issuers: Sequence[IssuerSettings],
        http: httpx2.AsyncClient,
        clock: Clock,
        asked: Sequence[ClaimRules] = (),
        sign_ins: Collection[str] = (),
    ) -> None:
        """`issuers` are those whose signed bearer tokens are trusted, `asked` those whose opaque ones are, `sign_ins`
        the names of those who sign people in here.

        Raises ConfigurationFaults where two entries could take one credential for two things, or two people for one.
        """
        faults = [
            *_header_faults(signed, plain),
            *_signed_faults(signed, issuers),
            *_plain_faults(
                plain, {*(one.issuer for one in (*issuers, *asked, *(it.issuer for it in signed))), *sign_ins}
            ),
        ]
        if faults:
            raise ConfigurationFaults(faults)
        by_header: dict[bytes, list[IssuerSettings]] = defaultdict(list)
        for one in signed:
            by_header[_key(one.header)].append(one.issuer)
        proxies: dict[bytes, list[TrustedProxy]] = defaultdict(list)
        for proxy in plain:
            proxies[_key(proxy.header)].append(proxy)
        self.assertions = {header: OidcVerifier(found, http, clock) for header, found in by_header.items()}
        self.guard = HeaderGuard(proxies) if proxies else None
        self.verifiers: Mapping[bytes, HeaderVerifier] = {
            **{header: AssertionHeader(verifier) for header, verifier in self.assertions.items()},
            **{header: UserHeader(found) for header, found in proxies.items()},
        }
        self.provisioning = frozenset(
            [one.issuer.issuer for one in signed if one.issuer.provision]
            + [proxy.issuer for proxy in plain if proxy.provision]
        )

    async def aclose(self) -> None:
        """Ends fetches in flight."""
        for verifier in self.assertions.values():
            await verifier.aclose()


def _key(header: str) -> bytes:
    return header.lower().encode("ascii")


def _header_faults(signed: Sequence[SignedHeader], plain: Sequence[TrustedProxy]) -> Iterator[Fault]:
    of_assertions = {one.header.lower() for one in signed}
    for field, header in _headers(signed, plain):
        name = header.lower()
        if not _NAME.fullmatch(name):
            message = "must be letters, digits and hyphens; '_' is read as '-' by some proxies"
            yield Fault(field=field, rule="header", message=message)
        elif name in _TAKEN or name.startswith(_OURS):
            yield Fault(field=field, rule="header", message=f"{header} has a meaning of its own; choose another")
        elif field.startswith("proxies.headers") and name in of_assertions:
            yield Fault(field=field, rule="unique", message=f"{header} holds a signed assertion already")


def _headers(signed: Sequence[SignedHeader], plain: Sequence[TrustedProxy]) -> Iterator[tuple[str, str]]:
    for index, one in enumerate(signed):
        yield f"proxies.assertions[{index}].header", one.header
    for index, proxy in enumerate(plain):
        yield f"proxies.headers[{index}].header", proxy.header


def _signed_faults(signed: Sequence[SignedHeader], issuers: Sequence[IssuerSettings]) -> Iterator[Fault]:
    seen: dict[tuple[str, str], int] = {}
    for index, one in enumerate(signed):
        field = f"proxies.assertions[{index}]"
        ours = one.issuer
        if seen.setdefault((one.header.lower(), ours.issuer), index) != index:
            message = "an earlier entry has this issuer in this header; name each one once"
            yield Fault(field=f"{field}.issuer", rule="unique", message=message)
        if any((other.issuer, other.audience) == (ours.issuer, ours.audience) for other in issuers):
            message = "is this issuer's audience in oidc.issuers too; an assertion would pass for a bearer token"
            yield Fault(field=f"{field}.audience", rule="separate", message=message)
        others = [*issuers, *(before.issuer for before in signed[:index])]
        if any(other.issuer == ours.issuer and other.provision != ours.provision for other in others):
            message = "must be the same in each entry of this issuer: whoever is new is the same person in all of them"
            yield Fault(field=f"{field}.provision", rule="same", message=message)


def _plain_faults(plain: Sequence[TrustedProxy], taken: set[str]) -> Iterator[Fault]:
    """`taken` are the names of all other issuers."""
    for index, proxy in enumerate(plain):
        field = f"proxies.headers[{index}]"
        if proxy.issuer in taken:
            message = "is the name of another issuer, whose people this proxy could then speak for; choose its own"
            yield Fault(field=f"{field}.issuer", rule="unique", message=message)
        taken = taken | {proxy.issuer}
        if _overlaps(proxy, (other for other in plain[:index] if other.header.lower() == proxy.header.lower())):
            message = "an earlier entry of this header has addresses in common with these; which of the two is it?"
            yield Fault(field=f"{field}.networks", rule="separate", message=message)


def _overlaps(proxy: TrustedProxy, others: Iterable[TrustedProxy]) -> bool:
    pairs = (pair for other in others for pair in product(proxy.networks, other.networks))
    return any(one.version == two.version and one.overlaps(two) for one, two in pairs)
