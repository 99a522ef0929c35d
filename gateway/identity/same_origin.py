"""Turns what a browser says of a request's origin into whether another site's page sent it.

A proxy signs in whoever's browser carries its cookie, also where a page of another site made the browser send the
request. So a write that a proxy vouches for must come from a page of the gateway's own, or from no page at all.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from gateway.errors import Unauthenticated
from gateway.identity.credentials import Credentials

_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})  # RFC 9110 section 9.2.1
_FROM_HERE = frozenset({b"same-origin", b"none"})


def check_same_origin(credentials: Credentials) -> None:
    """Returns for a read, for a write from our own page, and for one from no browser. Raises Unauthenticated.

    Browsers say it in `Sec-Fetch-Site` (Fetch Metadata, section 2.3), older ones in `Origin` (RFC 6454 section 7),
    which has to name the host that was asked.
    """
    if credentials.method not in _SAFE and not _is_from_here(credentials):
        raise Unauthenticated(
            "Another site's page sent this. Send it from the gateway's own page, or with a token instead.",
            reason="cross_site",
            error="invalid_request",
        )


def _is_from_here(credentials: Credentials) -> bool:
    sites = _values(credentials, b"sec-fetch-site")
    if sites:
        return _FROM_HERE.issuperset(sites)
    origins = _values(credentials, b"origin")
    if not origins:
        return True
    hosts = _values(credentials, b"host")
    return len(origins) == len(hosts) == 1 and _authority(origins[0]) == hosts[0].lower()


def _values(credentials: Credentials, name: bytes) -> list[bytes]:
    return [value for header, value in credentials.headers if header == name]


def _authority(origin: bytes) -> bytes | None:
    try:
        return urlsplit(origin.lower()).netloc or None
    except ValueError:
        return None
