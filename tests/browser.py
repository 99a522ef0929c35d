"""Turns requests into those of a browser: it keeps cookies as RFC 6265 says, follows redirects, and sends forms."""

from __future__ import annotations

import re
from collections.abc import Mapping
from html import unescape
from http.cookies import SimpleCookie
from typing import Any
from urllib.parse import urljoin, urlsplit

import httpx2
from starlette.types import ASGIApp

MOST_REDIRECTS = 10


class Browser:
    """One browser. What it keeps for the gateway is `cookies`; elsewhere it has none."""

    def __init__(self, app: ASGIApp, home: str = "https://gateway.test") -> None:
        self._app = app
        self.home = home
        self.cookies: dict[str, str] = {}
        self.set_cookies: list[str] = []  # every `Set-Cookie` that came, for what it says besides the value
        self.visited: list[str] = []
        self.user_agent = "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0"

    async def once(
        self, url: str, *, method: str = "GET", headers: Mapping[str, str] | None = None, **more: Any
    ) -> httpx2.Response:
        """One request, with the cookies that belong to it; no redirect is followed."""
        url = urljoin(self.home, url)
        here = url.startswith(f"{self.home}/")
        self.visited.append(url)
        everything = {"User-Agent": self.user_agent, **(headers or {})}
        if here and self.cookies:
            everything["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        transport = httpx2.ASGITransport(app=self._app) if here else None
        async with httpx2.AsyncClient(transport=transport, trust_env=False, verify=False) as client:
            answer = await client.request(method, url, headers=everything, **more)
        if here:
            self._keep(answer)
        return answer

    async def go(self, url: str, **more: Any) -> httpx2.Response:
        """The page that `url` leads to, over every redirect."""
        answer = await self.once(url, **more)
        for _ in range(MOST_REDIRECTS):
            if not answer.is_redirect:
                return answer
            answer = await self.once(urljoin(str(answer.request.url), answer.headers["location"]))
        raise AssertionError(f"too many redirects: {self.visited}")

    async def until(self, url: str, stop: str) -> str:
        """Follows redirects, and says where the next one leads to whose path is `stop`, without going there."""
        for _ in range(MOST_REDIRECTS):
            answer = await self.once(url)
            assert answer.is_redirect, answer.text
            url = urljoin(str(answer.request.url), answer.headers["location"])
            if urlsplit(url).path == stop:
                return url
        raise AssertionError(f"too many redirects: {self.visited}")

    async def submit(self, page: httpx2.Response, **changed: str) -> httpx2.Response:
        """Sends the form of a page as a browser does."""
        action = re.search(r'<form method="post" action="([^"]+)"', page.text)
        assert action, page.text
        fields = {name: unescape(value) for name, value in re.findall(r'name="(\w+)" value="([^"]*)"', page.text)}
        headers = {"Origin": self.home, "Sec-Fetch-Site": "same-origin"}
        return await self.go(action[1], method="POST", data=fields | changed, headers=headers)

    def _keep(self, answer: httpx2.Response) -> None:
        for header in answer.headers.get_list("set-cookie"):
            self.set_cookies.append(header)
            for name, one in SimpleCookie(header).items():
                # RFC 6265bis section 5.7: a browser takes a `__Host-` cookie only with all of these.
                assert not name.startswith("__Host-") or (one["secure"], one["path"], one["domain"]) == (True, "/", "")
                if one["max-age"] == "0":
                    self.cookies.pop(name, None)
                else:
                    self.cookies[name] = one.value
