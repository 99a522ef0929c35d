"""Turns a class into a real HTTP server on a loopback port that a test can take down, bring back, and hold."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self

PATIENCE_S = 5


@dataclass
class Answer:
    """What a server says under one path."""

    body: bytes
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)


class LoopbackServer:
    """`with …() as server`: listens meanwhile. Whoever extends it answers in `_answered`."""

    def __init__(self) -> None:
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
        """Lets requests arrive (`arrived`) but answers none until the block ends."""
        self._gate.clear()
        try:
            yield
        finally:
            self._gate.set()

    def _answered(self, request: BaseHTTPRequestHandler) -> Answer:
        """What the request is answered with; calls `_wait` where it is to be held."""
        raise NotImplementedError  # whoever extends it answers

    def _wait(self) -> None:
        """Until nobody holds the server."""
        self.arrived.release()
        self._gate.wait(PATIENCE_S)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._reply()

            def do_POST(self) -> None:
                self._reply()

            def _reply(self) -> None:
                answer = server._answered(self)
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


class _Server(ThreadingHTTPServer):
    request_queue_size = 128  # so that the gateway's own bound is what is tested


def body_of(request: BaseHTTPRequestHandler) -> bytes:
    """What was posted."""
    return request.rfile.read(int(request.headers["Content-Length"]))
