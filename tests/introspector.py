"""Turns a table of tokens into a real introspection server on a loopback port, with the faults real ones have."""

from __future__ import annotations

import base64
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs, unquote_plus

import orjson

from tests.clock import SettableClock
from tests.issuer import AUDIENCE, PATIENCE_S, Answer, without_absent

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


class LocalIntrospector:
    """`with LocalIntrospector(clock) as server`: knows the tokens that were issued; every knob may be turned."""

    def __init__(self, clock: SettableClock) -> None:
        self.clock = clock
        self.tokens: dict[str, dict[str, Any]] = {}
        self.asked: list[Asked] = []
        self.answer: Answer | None = None  # instead of what it knows
        self.arrived = threading.Semaphore(0)
        self.at_once = 0  # the most questions that were there together
        self._here = 0
        self._counting = threading.Lock()
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

    @property
    def endpoint(self) -> str:
        """Where it is asked."""
        return self.url + PATH

    def come_back(self) -> None:
        """Listens, on the port of before."""
        self._server = _Server(("127.0.0.1", self._port), self._handler())
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
        """Lets questions arrive (`arrived`) but answers none until the block ends."""
        self._gate.clear()
        try:
            yield
        finally:
            self._gate.set()

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

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                headers = {name.lower(): value for name, value in self.headers.items()}
                asked = Asked(self.path, parse_qs(body), headers)
                server.asked.append(asked)
                with server._present():
                    server.arrived.release()
                    server._gate.wait(PATIENCE_S)
                    answer = server._reply(asked)
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


class _Server(ThreadingHTTPServer):
    request_queue_size = 128  # so that the gateway's own bound is what is tested


def _is_the_gateway(asked: Asked) -> bool:
    """RFC 6749 section 2.3.1: either way, and not both."""
    header = asked.headers.get("authorization")
    if header is None:
        return asked.form.get("client_id") == [CLIENT] and asked.form.get("client_secret") == [SECRET]
    pair = base64.b64decode(header.removeprefix("Basic ")).decode().split(":")
    return "client_secret" not in asked.form and [unquote_plus(part) for part in pair] == [CLIENT, SECRET]
