"""What a request presents, and what turns one kind of it into a principal (design section 5, "credentials")."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from gateway.identity.assertions import Assertion
from gateway.model import Principal, TenantId


@dataclass(slots=True)
class Credentials:
    """The headers of a request and the connection they came over; or that the local operator runs it.

    Names of headers are in lower case, as ASGI has them. The edge has taken away those that only a trusted proxy sends.
    """

    headers: Sequence[tuple[bytes, bytes]] = ()
    peer: str | None = None  # the address at the other end of the connection
    method: str = "GET"
    operator_of: TenantId | None = None
    asserted: Assertion | None = None  # whom the gateway itself vouches for; then there are no headers

    @classmethod
    def bearer(cls, token: str) -> Credentials:
        """What a request presents that sends this token alone."""
        return cls(headers=((b"authorization", f"Bearer {token}".encode("utf-8", "surrogateescape")),))


class Verifier(Protocol):
    """Verifies one kind of token."""

    async def verify(self, token: str) -> Principal:
        """The principal. Raises Unauthenticated, or Unavailable where that can't be found out now."""


class HeaderVerifier(Protocol):
    """Verifies the kind of credential that comes in one header."""

    async def verify(self, values: Sequence[str], credentials: Credentials) -> Principal | None:
        """The principal that all `values` of the header name; None where they hold no credential of this kind.

        Raises Unauthenticated for one that does not hold, or for several; Unavailable where nobody can tell now.
        """
