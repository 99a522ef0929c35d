"""Turns 256 random bits into a browser's cookie, and the cookie into what is stored of it and what a form must show."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from base64 import urlsafe_b64encode
from collections.abc import Iterator, Sequence

from gateway.identity.refusals import Reason, refused

COOKIE = "__Host-gateway"  # RFC 6265bis section 4.1.3.2: Secure, no Domain, Path=/, so that no other host can set it
PREFIX = "gwb_"  # so that one in the wrong place is told from a token, and scanners find leaked ones
_SHAPE = re.compile(rf"{PREFIX}[0-9A-Za-z_-]{{43}}", re.ASCII)
_LONGEST_HEADER = 16_384


def mint() -> str:
    """A new value of a cookie: 256 random bits."""
    return PREFIX + secrets.token_urlsafe(32)


def digest(value: str) -> bytes:
    """What is stored of a cookie. A plain hash will do: 256 random bits can't be guessed."""
    return hashlib.sha256(value.encode("ascii")).digest()


def is_well_formed(value: str) -> bool:
    """Whether `value` has the shape of a cookie of ours."""
    return _SHAPE.fullmatch(value) is not None


def csrf_token(value: str) -> str:
    """What a write from this cookie's browser has to show besides, which another site can neither read nor make."""
    mac = hmac.new(value.encode("ascii"), b"gateway csrf token", hashlib.sha256).digest()
    return urlsafe_b64encode(mac).rstrip(b"=").decode("ascii")


def named(headers: Sequence[str], name: str) -> str | None:
    """The value of the one cookie of that exact name in the `Cookie` headers; None where there is none.

    Raises Unauthenticated for two: one of them was put there by somebody else, and which one can't be told.
    """
    if sum(map(len, headers)) > _LONGEST_HEADER:
        raise refused(Reason.TOKEN_TOO_LONG)
    found = [value for one, value in _pairs(headers) if one == name]
    if len(found) > 1:
        raise refused(Reason.COOKIE_SEVERAL)
    return found[0] if found else None


def _pairs(headers: Sequence[str]) -> Iterator[tuple[str, str]]:
    """RFC 6265 section 4.2.1; several headers are one, as HTTP/2 splits them (RFC 9113 section 8.2.3)."""
    for header in headers:
        for pair in header.split(";"):
            name, _, value = pair.partition("=")
            yield name.strip(" \t"), value.strip(" \t")
