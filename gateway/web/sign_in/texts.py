"""Turns the reason why a sign-in did not happen into what its person reads: what it was, and what to do."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.errors import GatewayError, Unauthenticated
from gateway.identity.providers import AWAY
from gateway.identity.refusals import Reason


@dataclass(frozen=True, slots=True)
class Text:
    """A page of trouble."""

    status: int
    title: str
    text: str
    link: str = "Start again"  # what the way on is called


ANOTHER_ACCOUNT = "Use another account"
NOT_SIGNED_IN = Text(401, "You are not signed in", "This browser is not signed in here, or no longer.", "Sign in")
NOT_OURS = Text(
    403,
    "You were not signed out",
    "The request did not come from a page of this gateway, so nothing was changed.",
    "To your page",
)

_STARTED_TOO_LONG_AGO = Text(
    400,
    "Please start again",
    "This sign-in was begun too long ago, was finished already, or belongs to another browser. Start again, and stay "
    "in this browser. If this page comes back, allow cookies for this address.",
)
_COOKIES = Text(
    400,
    "Please clear the cookies of this address",
    "This browser has a cookie for signing in here twice, and which one is right can't be told. Clear the cookies of "
    "this address, and start again.",
)
_CANCELLED = Text(403, "You were not signed in", "Your identity provider ended the sign-in. Nothing was changed here.")
_NOT_HERE = Text(
    403,
    "You have no access here yet",
    "Your account is known to your identity provider, but it is not among this organisation's people. Ask an admin to "
    "add you.",
    ANOTHER_ACCOUNT,
)
_NOT_ACTIVE = Text(
    403, "Your access is switched off", "Your profile here is not active. Ask an admin about it.", ANOTHER_ACCOUNT
)
_NOT_TRUE = Text(
    502,
    "The sign-in could not be checked",
    "What your identity provider answered does not hold. Start again; if this page comes back, show it to an admin.",
)
_NOT_SET_UP = Text(
    502,
    "Signing in is not set up right",
    "Your identity provider does not accept this gateway as its client. Tell its operator; nothing is wrong with your "
    "account.",
)
_AWAY = Text(503, "Signing in is not possible right now", AWAY)
_OTHERWISE = Text(
    503, "Signing in is not possible right now", "Something here can't be reached. Try again in a moment."
)

_OF_REASON = {
    Reason.STATE_UNKNOWN: _STARTED_TOO_LONG_AGO,
    Reason.STATE_OF_ANOTHER_BROWSER: _STARTED_TOO_LONG_AGO,
    Reason.COOKIE_SEVERAL: _COOKIES,
    Reason.ISSUER_REFUSED: _CANCELLED,
    Reason.CLIENT_REFUSED: _NOT_SET_UP,
    Reason.PERSON_UNKNOWN: _NOT_HERE,
    Reason.EMAIL_REASSIGNED: _NOT_HERE,
    Reason.SERVICE_NOT_LINKED: _NOT_HERE,
    Reason.NOT_A_PERSON: _NOT_HERE,
    Reason.TENANT_MISSING: _NOT_HERE,
    Reason.TENANT_UNKNOWN: _NOT_HERE,
    Reason.PROFILE_DISABLED: _NOT_ACTIVE,
    Reason.PROFILE_RETIRED: _NOT_ACTIVE,
}


def text_of(error: GatewayError) -> Text:
    """What to tell of an error while signing in."""
    if isinstance(error, Unauthenticated):
        return _OF_REASON.get(Reason(error.reason), _NOT_TRUE)
    return _AWAY if error.detail == AWAY else _OTHERWISE
