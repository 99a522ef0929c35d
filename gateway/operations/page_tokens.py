"""Turns the place where a page of search results ended into an opaque token, which fits that search alone, and back."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from typing import Final

import orjson

from gateway.errors import Malformed
from gateway.keys import storage_key
from gateway.model import TenantId

_MAC_BYTES: Final = 16
_LONGEST: Final = 2_048
_PURPOSE: Final = b"pages of searches"


class PageTokens:
    """Makes and reads tokens. They are good for the same question of the same tenant, at any gateway with this key."""

    def __init__(self, key: bytes) -> None:
        """`key` may have other uses: tokens are made with one that is derived from it."""
        self._key = hmac.digest(key, _PURPOSE, "sha256")

    def write(self, tenant: TenantId, question: object, place: str) -> str:
        """The token of a place in the answer to a question, which is any value that JSON can hold."""
        found = place.encode()
        return base64.urlsafe_b64encode(self._mac(tenant, question, found) + found).decode().rstrip("=")

    def read(self, tenant: TenantId, question: object, token: str) -> str:
        """The place. Raises Malformed for what was not given out for this question, byte for byte."""
        try:
            raw = base64.urlsafe_b64decode(token[:_LONGEST].encode("ascii") + b"=" * (-len(token) % 4))
        except (binascii.Error, UnicodeError):
            raise _no_token() from None
        mac, place = raw[:_MAC_BYTES], raw[_MAC_BYTES:]
        spelled = base64.urlsafe_b64encode(raw).decode().rstrip("=")
        if not hmac.compare_digest(mac, self._mac(tenant, question, place)) or spelled != token:
            raise _no_token()
        return place.decode()

    def _mac(self, tenant: TenantId, question: object, place: bytes) -> bytes:
        asked = hashlib.sha256(orjson.dumps(question, option=orjson.OPT_SORT_KEYS)).hexdigest()
        return hmac.digest(self._key, storage_key(tenant, asked).encode() + place, "sha256")[:_MAC_BYTES]


def _no_token() -> Malformed:
    message = "This is no token of this search. Send the one that its last page gave, with the same question."
    return Malformed.of("page.token", "token", message)
