"""Turns keys made on the spot into a real OpenID Connect issuer on a loopback port, with the faults real ones have."""

from __future__ import annotations

import base64
import hashlib
import hmac
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

import orjson
from joserfc.jwk import ECKey, OKPKey, RSAKey
from joserfc.jws import JWSRegistry

from tests.clock import SettableClock

ABSENT = object()  # as a header or claim: leave it out
DISCOVERY = "/.well-known/openid-configuration"
KEYS = "/keys"
AUDIENCE = "https://gateway.example"
PATIENCE_S = 5


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


@dataclass
class Answer:
    """What the issuer says under one path."""

    body: bytes
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)


class LocalIssuer:
    """`with LocalIssuer(clock) as issuer`: discovery, a key set and tokens; every knob may be turned while it runs."""

    def __init__(self, clock: SettableClock) -> None:
        self.clock = clock
        self.keys = [signing_key("first")]
        self.requests: list[str] = []
        self.answers: dict[str, Answer] = {}
        self.arrived = threading.Semaphore(0)
        self._gate = threading.Event()
        self._gate.set()
        self._server: ThreadingHTTPServer | None = None
        self._port = 0

    def __enter__(self) -> Self:
        self.come_back()
        return self

    def __exit__(self, *_: object) -> None:
        self._gate.set()
        self.go_down()

    @property
    def url(self) -> str:
        """Its `iss`."""
        return f"http://127.0.0.1:{self._port}"

    def come_back(self) -> None:
        """Listens, on the port of before."""
        self._server = ThreadingHTTPServer(("127.0.0.1", self._port), self._handler())
        self._port = self._server.server_port
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def go_down(self) -> None:
        """Stops listening: connections are refused."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    @contextmanager
    def holding(self) -> Iterator[None]:
        """Lets requests arrive (`arrived`) but answers none until the block ends."""
        self._gate.clear()
        try:
            yield
        finally:
            self._gate.set()

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

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._reply(lambda: issuer._answer(self.path))

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                self._reply(lambda: issuer._posted(self.path, body, dict(self.headers)))

            def _reply(self, answered: Callable[[], Answer]) -> None:
                issuer.requests.append(self.path)
                issuer.arrived.release()
                issuer._gate.wait(PATIENCE_S)
                answer = answered()
                try:
                    self.send_response(answer.status)
                    for name, value in answer.headers.items():
                        self.send_header(name, value)
                    self.end_headers()
                    self.wfile.write(answer.body)
                except ConnectionError:
                    self.close_connection = True  # the gateway had enough

            def log_message(self, *_: object) -> None:
                """Says nothing: tests print what matters."""

        return Handler
