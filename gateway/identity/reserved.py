"""Turns the name of an issuer into whether it is the gateway's own, under which no sign-in from outside may come."""

from __future__ import annotations

from gateway.identity.access_tokens import LOCAL_ISSUER
from gateway.keys import CHANNEL_ISSUERS

OPERATOR_ISSUER = "operator"  # whoever runs the command line on the machine itself


def is_reserved(issuer: str) -> bool:
    """Whether `issuer` reads as one of ours.

    Identity keys are compared byte for byte, so a twin in another case could not collide; it could mislead who reads
    the audit, and is refused with them.
    """
    name = issuer.strip().casefold()
    return name in (LOCAL_ISSUER, OPERATOR_ISSUER) or name.startswith(CHANNEL_ISSUERS)
