"""Turns a webhook's signature into the service that the account's messages come with; the HMAC is its credential.

LINE signs the raw body with the channel's secret: `X-Line-Signature` is the base64 of HMAC-SHA256 (LINE Developers,
"Verify webhook signature"). Nothing of the body is read before that holds.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Sequence

from gateway.errors import Unauthenticated
from gateway.identity.assertions import Assertion, assert_connector
from gateway.identity.channel_accounts import ChannelAccount
from gateway.identity.refusals import Reason

LINE = "line"
LINE_SIGNATURE = b"x-line-signature"

_NOT_SIGNED = "This request is not signed with the secret of that account."
_NO_SECRET = b"an account that is not there takes as long to refuse"


def verify_line(account: ChannelAccount | None, signatures: Sequence[str], body: bytes) -> Assertion:
    """The account's service, where `body` is signed with the account's secret.

    Raises Unauthenticated with one answer for a signature that is missing, there twice or wrong, and for an account
    that is not here: so that trying names teaches nothing.
    """
    secret = account.secret if account is not None and account.channel == LINE else None
    if len(signatures) != 1:
        reason = "credential_missing" if not signatures else "credentials_several"
        raise Unauthenticated(_NOT_SIGNED, reason=reason)
    expected = base64.b64encode(hmac.new(secret or _NO_SECRET, body, hashlib.sha256).digest())
    right = hmac.compare_digest(expected, signatures[0].encode("latin-1", "replace"))
    if account is None or secret is None or not right:
        raise Unauthenticated(_NOT_SIGNED, reason=Reason.SIGNATURE_WRONG.value)
    return assert_connector(account.tenant, account.service, channel=account.channel, account=account.account)


def sign(secret: bytes, body: bytes) -> str:
    """What the gateway signs its own deliveries with: `sha256=` and the hex of HMAC-SHA256 over the raw body."""
    return f"sha256={hmac.new(secret, body, hashlib.sha256).hexdigest()}"
