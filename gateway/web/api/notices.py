"""Turns a notice into what its person reads: what was changed, when, and who did it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from typing_extensions import TypedDict

from gateway.model import Notice
from gateway.web.api.shapes import time

# By its code. "owner_…" is told to others who run the place, of an owner who changed themselves.
SENTENCES: Final[Mapping[str, str]] = {
    "roles": "Your roles are now: {about}.",
    "owner_roles": "An owner changed their own roles. They are now: {about}.",
    "profile": "Your profile was changed: {about}.",
    "owner_profile": "An owner changed their own profile: {about}.",
    "linked": "A sign-in was linked to you: {about}. Whoever signs in so is you.",
    "owner_linked": "An owner linked a sign-in to themselves: {about}.",
    "unlinked": "A sign-in was taken from you: {about}.",
    "owner_unlinked": "An owner took a sign-in from themselves: {about}.",
    "token": "An access token that speaks for you was made: {about}.",
    "token_ended": "An access token of yours was ended: {about}.",
    "merged": "Another profile was merged into yours: {about}.",
    "policy": "The policy was changed in favour of its author, or of what you or another admin may do: {about}.",
    "session_owner": "Somebody who runs the place has given themselves a session of yours: {about}.",
    "session_people": "Somebody who runs the place has joined a session of yours: {about}.",
}


class NoticeShape(TypedDict):
    """What somebody is told."""

    id: str
    at: str | None
    code: str
    by: str
    about: str
    text: str


def notice(one: Notice) -> NoticeShape:
    """A notice, with a sentence for its person."""
    about = one.about or "none"
    return {
        "id": one.id,
        "at": time(one.at),
        "code": one.code,
        "by": one.by,
        "about": one.about,
        "text": SENTENCES[one.code].format(about=about),
    }
