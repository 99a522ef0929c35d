"""Turns a table of tokens into a real introspection server on a loopback port, with the faults real ones have."""

from __future__ import annotations

import base64
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, unquote_plus

import orjson

from tests.clock import SettableClock
from tests.issuer import AUDIENCE, without_absent
from tests.loopback import Answer, LoopbackServer, body_of

PATH = "/introspect"
CLIENT = "gateway"
SECRET = "a secret: of the tests+"
JSON = {"Content-Type": "application/json"}


@dataclass(frozen=True)
class Asked:
    """A question as it arrived."""

    path: str
    form: dict[str, list[str]]
    headers: dict[str, str]

    @property
    def token(self) -> str:
        """What it was about."""
        return self.form["token"][0]


class LocalIntrospector(LoopbackServer):
    """`with LocalIntrospector(clock) as server`: knows the tokens that were issued; every knob may be turned."""

    def __init__(self, clock: SettableClock) -> None:
        super().__init__()
        self.clock = clock
        self.tokens: dict[str, dict[str, Any]] = {}
        self.asked: list[Asked] = []
        self.answer: Answer | None = None  # instead of what it knows
        self.at_once = 0  # the most questions that were there together
        self._here = 0
        self._counting = threading.Lock()

    @property
    def endpoint(self) -> str:
        """Where it is asked."""
        return self.url + PATH

    def issue(self, token: str, subject: Any = "alice", **members: Any) -> str:
        """A token that is active for five minutes; ABSENT leaves a member of the answer out."""
        now = int(self.clock.now().timestamp())
        standard = {
            "active": True,
            "iss": self.url,
            "aud": AUDIENCE,
            "sub": subject,
            "client_id": "console",
            "token_type": "Bearer",
            "iat": now,
            "exp": now + 300,
        }
        self.tokens[token] = without_absent(standard | members)
        return token

    def revoke(self, token: str) -> None:
        """Ends it."""
        del self.tokens[token]

    def _reply(self, asked: Asked) -> Answer:
        if self.answer is not None:
            return self.answer
        if asked.path != PATH or not _is_the_gateway(asked):
            return Answer(b'{"error":"invalid_client"}', status=401, headers=JSON)
        return Answer(orjson.dumps(self.tokens.get(asked.token, {"active": False})), headers=JSON)

    def _answered(self, request: BaseHTTPRequestHandler) -> Answer:
        headers = {name.lower(): value for name, value in request.headers.items()}
        asked = Asked(request.path, parse_qs(body_of(request).decode()), headers)
        self.asked.append(asked)
        with self._present():
            self._wait()
            return self._reply(asked)

    @contextmanager
    def _present(self) -> Iterator[None]:
        with self._counting:
            self._here += 1
            self.at_once = max(self.at_once, self._here)
        try:
            yield
        finally:
            with self._counting:
                self._here -= 1


def _is_the_gateway(asked: Asked) -> bool:
    """RFC 6749 section 2.3.1: either way, and not both."""
    header = asked.headers.get("authorization")
    if header is None:
        return asked.form.get("client_id") == [CLIENT] and asked.form.get("client_secret") == [SECRET]
    pair = base64.b64decode(header.removeprefix("Basic ")).decode().split(":")
    return "client_secret" not in asked.form and [unquote_plus(part) for part in pair] == [CLIENT, SECRET]
