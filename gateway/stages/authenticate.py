"""Turns the credentials of a request into a principal. Every one that is present is verified (design section 5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from gateway.errors import Unauthenticated
from gateway.identity.bearer import SEND_A_TOKEN
from gateway.identity.credentials import Credentials, HeaderVerifier
from gateway.identity.refusals import Reason, refused
from gateway.identity.reserved import OPERATOR_ISSUER
from gateway.identity.roles import held_by_all
from gateway.identity.scopes import common
from gateway.keys import CHANNEL_ISSUERS
from gateway.model import Principal, TenantId

OPERATOR_SUBJECT = "local"


class Authenticate:
    """Verifies what is presented, each kind by its header."""

    def __init__(self, verifiers: Mapping[bytes, HeaderVerifier], *, local_operator: bool) -> None:
        """`verifiers` by the lower-case name of their header: a kind that is not in it is not a credential here."""
        self._verifiers = verifiers
        self._local_operator = local_operator

    async def __call__(self, credentials: Credentials) -> Principal:
        """The principal. Raises Unauthenticated: none, one that is not good, or two that can't go together."""
        if credentials.operator_of is not None:
            return self._operator(credentials.operator_of)
        if credentials.asserted is not None:
            return credentials.asserted.principal
        presented: dict[bytes, list[str]] = {}
        for name, value in credentials.headers:
            if name in self._verifiers:
                presented.setdefault(name, []).append(value.decode("latin-1"))
        principals = []
        for name, values in presented.items():
            principal = await self._verifiers[name].verify(values, credentials)
            if principal is None:
                continue
            if principal.issuer.startswith(CHANNEL_ISSUERS):  # whatever vouched for it, it is no channel
                raise refused(Reason.PRINCIPAL_MALFORMED)
            principals.append(principal)
        if not principals:
            raise Unauthenticated(SEND_A_TOKEN, reason="credential_missing")
        return principals[0] if len(principals) == 1 else _together(principals)

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


def _together(principals: Sequence[Principal]) -> Principal:
    """Several credentials as one principal with the others beside it; whether they are one person's, or a service's
    beside a turn token, is seen once their profiles are known.

    A turn token comes first and keeps its scopes: a service only carries it. Two of one person reach what both reach.
    """
    turns = [one for one in principals if one.turn is not None]
    if len(turns) > 1 or (turns and len(principals) > 2):
        raise Unauthenticated("Send one credential.", reason="credentials_several", error="invalid_request")
    first = turns[0] if turns else principals[0]
    beside = tuple(one for one in principals if one is not first)
    if turns:
        return replace(first, beside=beside)
    ends = [one.expires_at for one in principals if one.expires_at is not None]
    return replace(
        first,
        beside=beside,
        scopes=common(one.scopes for one in principals),
        roles=held_by_all([one.roles for one in principals]),
        expires_at=min(ends, default=None),
    )
