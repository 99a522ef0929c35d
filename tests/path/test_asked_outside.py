"""The one client for all that the gateway asks outside of itself."""

from __future__ import annotations

from http.server import BaseHTTPRequestHandler

from tests.house import House
from tests.loopback import Answer, LoopbackServer


class Baker(LoopbackServer):
    """Sets a cookie with every answer, and keeps the cookies that it is sent."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[str | None] = []

    def _answered(self, request: BaseHTTPRequestHandler) -> Answer:
        self.sent.append(request.headers.get("Cookie"))
        return Answer(b"{}", headers={"Set-Cookie": "of=one-person; Path=/"})


async def test_no_server_is_told_by_a_cookie_what_another_question_was(home: House) -> None:
    """Ours: issuers and runtimes are asked for everybody with one client, so it remembers nothing of anybody."""
    with Baker() as server:
        for _ in range(2):
            answer = await home.gateway.http.get(server.url)
            assert answer.headers["set-cookie"]

    assert server.sent == [None, None]
    assert len(home.gateway.http.cookies) == 0
