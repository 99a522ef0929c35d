"""Turns the local issuer into a server that browsers sign in at (OAuth, OpenID Connect), with faults to switch on."""

from __future__ import annotations

import base64
import hashlib
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, unquote_plus, urlencode, urlsplit

import orjson

from tests.clock import SettableClock
from tests.issuer import ABSENT, DISCOVERY, LocalIssuer, SigningKey, encode, sign, without_absent
from tests.loopback import Answer

CLIENT = "gateway+web"
SECRET = "pass%word & more"
METADATA_ENDPOINTS = ("authorization", "token", "userinfo", "end_session")


@dataclass
class Faults:
    """What this server does wrong; nothing, until a test says so."""

    metadata: dict[str, Any] = field(default_factory=dict)  # changes the discovery document
    response: dict[str, Any] = field(default_factory=dict)  # changes the parameters of the authorization response
    header: dict[str, Any] = field(default_factory=dict)  # changes the ID token's header
    claims: dict[str, Any] = field(default_factory=dict)  # changes its claims
    key: SigningKey | None = None  # signs it instead
    token: dict[str, Any] = field(default_factory=dict)  # changes the token response
    token_answer: Answer | None = None  # is the token response
    userinfo: dict[str, Any] | None = None  # what the userinfo endpoint says, besides the subject
    userinfo_answer: Answer | None = None


@dataclass(frozen=True)
class Code:
    """An authorization code, and what it was given for."""

    subject: str
    client: str
    redirect_uri: str
    nonce: str | None
    challenge: str


class AuthorizationServer(LocalIssuer):
    """`/authorize` signs in whoever `account` is, without a word; `/token`, `/userinfo` and `/end-session` follow."""

    def __init__(self, clock: SettableClock, *, secret: str | None = SECRET) -> None:
        super().__init__(clock)
        self.secret = secret
        self.account = "alice"
        self.faults = Faults()
        self.codes: dict[str, Code] = {}
        self.ended: list[dict[str, str]] = []
        self.asked: list[dict[str, str]] = []  # the authorization requests
        self.shown: list[str] = []  # how the client proved to be itself

    def _answer(self, path: str) -> Answer:
        parts = urlsplit(path)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        if path in self.answers:
            return self.answers[path]
        match parts.path:
            case "/authorize":
                return self._authorize(query)
            case "/end-session":
                self.ended.append(query)
                return Answer(b"", 302, {"Location": query["post_logout_redirect_uri"]})
            case "/userinfo":
                said = {"sub": self.account, **(self.faults.userinfo or {})}
                return self.faults.userinfo_answer or Answer(orjson.dumps(without_absent(said)))
            case _ if path == DISCOVERY:
                return Answer(orjson.dumps(self._metadata()))
            case _:
                return super()._answer(path)

    def _metadata(self) -> dict[str, Any]:
        endpoints = {
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "userinfo_endpoint": f"{self.url}/userinfo",
            "end_session_endpoint": f"{self.url}/end-session",
            "authorization_response_iss_parameter_supported": True,
            "jwks_uri": f"{self.url}/keys",
        }
        return without_absent({"issuer": self.url, **endpoints, **self.faults.metadata})

    def _authorize(self, query: Mapping[str, str]) -> Answer:
        assert query["client_id"] == CLIENT
        assert query["response_type"] == "code"
        assert query["code_challenge_method"] == "S256"
        assert "openid" in query["scope"].split()
        self.asked.append(dict(query))
        code = secrets.token_urlsafe(16)
        self.codes[code] = Code(
            self.account, CLIENT, query["redirect_uri"], query.get("nonce"), query["code_challenge"]
        )
        response = {"code": code, "state": query["state"], "iss": self.url, **self.faults.response}
        return Answer(b"", 302, {"Location": f"{query['redirect_uri']}?{urlencode(without_absent(response), True)}"})

    def _posted(self, path: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        form = {name: values[0] for name, values in parse_qs(body.decode(), keep_blank_values=True).items()}
        if path != "/token":
            return super()._posted(path, body, headers)
        if self.faults.token_answer is not None:
            return self.faults.token_answer
        code = self.codes.pop(form.get("code", ""), None)  # good once (RFC 6749 section 4.1.2)
        if not self._is_client(form, headers):
            return Answer(b'{"error": "invalid_client"}', 401)
        if code is None or not _is_of(code, form):
            return Answer(b'{"error": "invalid_grant"}', 400)
        return Answer(orjson.dumps(without_absent({**self._tokens(code), **self.faults.token})))

    def _is_client(self, form: Mapping[str, str], headers: Mapping[str, str]) -> bool:
        """RFC 6749 section 2.3.1: in the header, form-encoded; or in the body."""
        if self.secret is None:
            self.shown.append("none")
            return form.get("client_id") == CLIENT and "client_secret" not in form
        scheme, _, value = headers.get("Authorization", "").partition(" ")
        if scheme == "Basic":
            self.shown.append("basic")
            name, _, secret = base64.b64decode(value).decode().partition(":")
            return (unquote_plus(name), unquote_plus(secret)) == (CLIENT, self.secret)
        self.shown.append("post")
        return (form.get("client_id"), form.get("client_secret")) == (CLIENT, self.secret)

    def _tokens(self, code: Code) -> dict[str, Any]:
        access_token = secrets.token_urlsafe(16)
        return {
            "access_token": access_token,
            "token_type": "Bearer",
            "expires_in": 300,
            "id_token": self.id_token(code.subject, code.nonce, access_token),
        }

    def id_token(self, subject: str, nonce: str | None, access_token: str) -> str:
        """An ID token as this server signs it, with what a test changed."""
        key = self.faults.key or self.keys[0]
        now = int(self.clock.now().timestamp())
        digest = (hashlib.sha512 if key.algorithm == "EdDSA" else hashlib.sha256)(access_token.encode()).digest()
        claims = {
            "iss": self.url,
            "sub": subject,
            "aud": CLIENT,
            "exp": now + 300,
            "iat": now,
            "nonce": ABSENT if nonce is None else nonce,
            "at_hash": encode(digest[: len(digest) // 2]),
            **self.faults.claims,
        }
        return sign({"alg": key.algorithm, "kid": key.kid, **self.faults.header}, claims, key)


def _is_of(code: Code, form: Mapping[str, str]) -> bool:
    """RFC 7636 section 4.6, and the redirect URI of the request (RFC 6749 section 4.1.3)."""
    verifier = form.get("code_verifier", "")
    challenge = encode(hashlib.sha256(verifier.encode()).digest())
    return (form.get("grant_type"), form.get("redirect_uri"), challenge) == (
        "authorization_code",
        code.redirect_uri,
        code.challenge,
    )
