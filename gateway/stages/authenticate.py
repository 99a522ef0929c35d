"""Turns the credentials of a request into a principal. Every one that is present is verified (design section 5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from gateway.errors import Unauthenticated
from gateway.identity.people import OPERATOR_ISSUER
from gateway.model import Principal, TenantId

ACCESS_TOKEN_PREFIX = "gwp_"  # noqa: S105 - what a token begins with, not one


OPERATOR_SUBJECT = "local"


@dataclass(frozen=True, slots=True)
class Credentials:
    """What a request presents: the values of its `Authorization` headers, or that the local operator runs it."""

    authorization: Sequence[str] = ()
    operator_of: TenantId | None = None


class Verifier(Protocol):
    """Verifies one kind of bearer token."""

    async def verify(self, token: str) -> Principal:
        """The principal. Raises Unauthenticated, or Unavailable where the issuer's keys can't be had."""


class Authenticate:
    """Verifies what is presented; `oidc` is None where no issuer is configured."""

    def __init__(self, *, access_tokens: Verifier, oidc: Verifier | None, local_operator: bool) -> None:
        self._access_tokens = access_tokens
        self._oidc = oidc
        self._local_operator = local_operator

    async def __call__(self, credentials: Credentials) -> Principal:
        """The principal. Raises Unauthenticated: none, several, not a bearer token, or not a good one."""
        if credentials.operator_of is not None:
            return self._operator(credentials.operator_of)
        return await self._verifier(token := _bearer(credentials.authorization)).verify(token)

    def _verifier(self, token: str) -> Verifier:
        if token.startswith(ACCESS_TOKEN_PREFIX):
            return self._access_tokens
        if self._oidc is None:
            raise Unauthenticated(
                "That token is not one of this gateway's.", reason="token_unknown", error="invalid_token"
            )
        return self._oidc

    def _operator(self, tenant: TenantId) -> Principal:
        """Who runs the command line on the machine itself; no request over a network can say so."""
        if not self._local_operator:
            raise Unauthenticated("Send a token.", reason="operator_not_local")
        return Principal(
            tenant=tenant,
            issuer=OPERATOR_ISSUER,
            subject=OPERATOR_SUBJECT,
            credential="operator",
            scopes=frozenset({"*"}),
        )


def _bearer(headers: Sequence[str]) -> str:
    """The one bearer token (RFC 6750 section 2.1)."""
    if not headers:
        raise Unauthenticated("Send a token: 'Authorization: Bearer gwp_…'.", reason="credential_missing")
    if len(headers) > 1:
        raise Unauthenticated(
            "Send one Authorization header, not several.", reason="credentials_several", error="invalid_request"
        )
    scheme, _, token = headers[0].partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise Unauthenticated(
            "Send a token: 'Authorization: Bearer gwp_…'.", reason="credential_malformed", error="invalid_request"
        )
    return token.strip()
