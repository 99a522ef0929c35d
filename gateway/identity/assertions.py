"""What the gateway itself found out about who speaks, as a value that only two places make (design section 5).

A request brings credentials; a connector brings somebody else's words. Whose they are is said by an `Assertion`, which
goes to the authenticate stage like a credential. The type checker refuses one made elsewhere, making it raises, and a
test finds every module that imports the makers.
"""

from __future__ import annotations

from gateway.errors import Unauthenticated
from gateway.identity.access_tokens import LOCAL_ISSUER
from gateway.identity.scopes import EVERYTHING
from gateway.keys import channel_issuer
from gateway.model import Principal, ProfileId, Requester, SessionId, TenantId

CHANNEL = "channel"  # the kind of credential of a sender whom a connector speaks for
WEBHOOK = "webhook"  # that of a connector whose request was signed by the channel

_OF_SENDERS = frozenset({"session", "memory"})
_OF_CONNECTORS = frozenset({"session", "memory", "gateway"})


class _Seal:
    """What only this module holds."""


_SEAL = _Seal()


class Assertion:
    """A principal that the gateway vouches for, for the rest of one request."""

    __slots__ = ("principal",)

    def __init__(self, principal: Principal, *, seal: _Seal) -> None:
        if seal is not _SEAL:
            raise TypeError("only a connector's operation and a verified webhook assert who speaks")
        self.principal = principal


def assert_sender(
    connector: Requester, *, channel: str, account: str, sender: str, place: SessionId | None
) -> Assertion:
    """A sender whom `connector`, which was permitted to, speaks for: with no more scopes than it has.

    `place` is the shared session that they speak in, None for a private one. Raises Unauthenticated for a service that
    is itself spoken for.
    """
    service = connector.principal
    if service.credential == CHANNEL:
        raise Unauthenticated("A sender speaks for nobody else.", reason="sender_for_another")
    scopes = _OF_SENDERS if EVERYTHING in service.scopes else _OF_SENDERS & service.scopes
    principal = Principal(
        tenant=service.tenant,
        issuer=channel_issuer(channel, account),
        subject=sender,
        credential=CHANNEL,
        scopes=scopes,
        credential_id=f"{connector.profile.id}#{channel}:{account}#{sender}",
        expires_at=service.expires_at,
        place=place,
        beside=(service,),  # so that it speaks for nobody once it is disabled
    )
    return Assertion(principal, seal=_SEAL)


def assert_connector(tenant: TenantId, service: ProfileId, *, channel: str, account: str) -> Assertion:
    """The service of an account whose channel has signed the request."""
    principal = Principal(
        tenant=tenant,
        issuer=LOCAL_ISSUER,
        subject=service,
        credential=WEBHOOK,
        scopes=_OF_CONNECTORS,
        credential_id=f"{channel}:{account}",
    )
    return Assertion(principal, seal=_SEAL)
