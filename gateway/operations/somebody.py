"""Turns a stored profile into somebody who asks now, for answers about people who are not asking."""

from __future__ import annotations

from typing import Final

from gateway.identity.access_tokens import LOCAL_ISSUER
from gateway.identity.scopes import EVERYTHING
from gateway.model import Principal, Profile, Requester
from gateway.turn import Turn

ASKED: Final = "asked"  # the kind of a credential that nobody presented


def as_requester(turn: Turn, profile: Profile) -> Requester:
    """A stored profile with a credential for everything. What only a credential gives (roles from an issuer's groups)
    is not known."""
    principal = Principal(
        tenant=turn.tenant,
        issuer=LOCAL_ISSUER,
        subject=profile.id,
        credential=ASKED,
        scopes=frozenset({EVERYTHING}),
    )
    return Requester(tenant=turn.tenant, profile=profile, principal=principal, epoch=turn.state.epoch)
