"""Turns keys made on the spot into a real OpenID Connect issuer on a loopback port, with the faults real ones have."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from http.server import BaseHTTPRequestHandler
from typing import Any

import orjson
from joserfc.jwk import ECKey, OKPKey, RSAKey
from joserfc.jws import JWSRegistry

from tests.clock import SettableClock
from tests.loopback import Answer, LoopbackServer, body_of

ABSENT = object()  # as a header or claim: leave it out
DISCOVERY = "/.well-known/openid-configuration"
KEYS = "/keys"
AUDIENCE = "https://gateway.example"


@dataclass(frozen=True)
class SigningKey:
    """A private key with the name and algorithm it is published under."""

    kid: str
    algorithm: str
    key: RSAKey | ECKey | OKPKey

    def published(self) -> dict[str, Any]:
        """Its entry in a key set."""
        return {**self.key.as_dict(private=False), "kid": self.kid, "alg": self.algorithm, "use": "sig"}


@lru_cache(maxsize=32)
def signing_key(kid: str, algorithm: str = "ES256") -> SigningKey:
    """A key, made once for each name in a test run: RSA keys take their time."""
    made: dict[str, Any] = {
        "RS256": lambda: RSAKey.generate_key(2048),
        "ES256": lambda: ECKey.generate_key("P-256"),
        "EdDSA": lambda: OKPKey.generate_key("Ed25519"),
        "Ed25519": lambda: OKPKey.generate_key("Ed25519"),
    }
    return SigningKey(kid, algorithm, made[algorithm]())


def encode(part: bytes) -> str:
    """base64url as JWS writes it."""
    return base64.urlsafe_b64encode(part).rstrip(b"=").decode()


def without_absent(values: Mapping[str, Any]) -> dict[str, Any]:
    """The entries that are to be there."""
    return {name: value for name, value in values.items() if value is not ABSENT}


def _as_bytes(*parts: Mapping[str, Any] | bytes) -> list[bytes]:
    return [part if isinstance(part, bytes) else orjson.dumps(without_absent(part)) for part in parts]


def sign(header: Mapping[str, Any] | bytes, claims: Mapping[str, Any] | bytes, key: SigningKey) -> str:
    """A compact JWS of exactly this header and these claims (or bytes), whatever they say."""
    signed = ".".join(map(encode, _as_bytes(header, claims)))
    # The model itself, since the registry refuses to sign what an honest issuer would not.
    model = JWSRegistry.algorithms["Ed25519" if key.algorithm == "EdDSA" else key.algorithm]
    return f"{signed}.{encode(model.sign(signed.encode(), key.key))}"


def sign_with_secret(header: Mapping[str, Any] | bytes, claims: Mapping[str, Any] | bytes, secret: bytes) -> str:
    """A compact JWS under HMAC, as an attacker makes it who knows only a public key."""
    signed = ".".join(map(encode, _as_bytes(header, claims)))
    return f"{signed}.{encode(hmac.new(secret, signed.encode(), hashlib.sha256).digest())}"


class LocalIssuer(LoopbackServer):
    """`with LocalIssuer(clock) as issuer`: discovery, a key set and tokens; every knob may be turned while it runs."""

    def __init__(self, clock: SettableClock) -> None:
        super().__init__()
        self.clock = clock
        self.keys = [signing_key("first")]
        self.requests: list[str] = []
        self.answers: dict[str, Answer] = {}

    def rotate(self, kid: str, algorithm: str = "ES256") -> SigningKey:
        """A new key instead of all before."""
        self.keys = [signing_key(kid, algorithm)]
        return self.keys[0]

    def claims(self, subject: str = "alice", **claims: Any) -> dict[str, Any]:
        """The claims of RFC 9068 section 2.2, valid for five minutes."""
        now = int(self.clock.now().timestamp())
        standard = {
            "iss": self.url,
            "aud": AUDIENCE,
            "sub": subject,
            "client_id": "console",
            "iat": now,
            "exp": now + 300,
            "jti": "1",
        }
        return standard | claims

    def mint(
        self,
        subject: str = "alice",
        *,
        header: Mapping[str, Any] | None = None,
        key: SigningKey | None = None,
        **claims: Any,
    ) -> str:
        """An access token as the issuer signs it; `header` and claims change it, and ABSENT leaves one out."""
        key = self.keys[0] if key is None else key
        full = {"alg": key.algorithm, "typ": "at+jwt", "kid": key.kid, **(header or {})}
        return sign(full, self.claims(subject, **claims), key)

    def sign(self, claims: Mapping[str, Any]) -> str:
        """An access token with these claims instead of the usual ones, `iss` and `sub` among them."""
        key = self.keys[0]
        return sign({"alg": key.algorithm, "typ": "at+jwt", "kid": key.kid}, self.claims() | dict(claims), key)

    def _answer(self, path: str) -> Answer:
        documents = {
            DISCOVERY: {"issuer": self.url, "jwks_uri": self.url + KEYS},
            KEYS: {"keys": [key.published() for key in self.keys]},
        }
        if path in self.answers:
            return self.answers[path]
        return Answer(orjson.dumps(documents[path])) if path in documents else Answer(b"{}", status=404)

    def _posted(self, _path: str, _body: bytes, _headers: Mapping[str, str]) -> Answer:
        """What a POST is answered with; this issuer takes none."""
        return Answer(b"{}", status=404)

    def _answered(self, request: BaseHTTPRequestHandler) -> Answer:
        posted = body_of(request) if request.command == "POST" else None
        self.requests.append(request.path)
        self._wait()
        if posted is None:
            return self._answer(request.path)
        return self._posted(request.path, posted, dict(request.headers))
