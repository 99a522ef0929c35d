"""Turns a headless Chromium of this machine into people with a browser each."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from playwright.async_api import Browser, BrowserContext, Page, async_playwright

PHONE = {"width": 390, "height": 844}
PATIENCE_MS = 15_000
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE 127.0.0.1",  # as the tests, it stays here
]
_ASK = """async ([method, path, headers, body]) => {
    const answer = await fetch(path, {method, headers, body: body === null ? undefined : JSON.stringify(body)});
    const text = await answer.text();
    return {status: answer.status, body: text === "" ? null : JSON.parse(text)};
}"""


@asynccontextmanager
async def chromium() -> AsyncIterator[Browser]:
    """The browser. A machine without one can't run the test, and says so."""
    path = shutil.which("chromium") or shutil.which("google-chrome")
    if path is None:
        pytest.skip("Chromium is not on this machine, and signing in is tested in a real browser")
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=path, headless=True, args=FLAGS)
        try:
            yield browser
        finally:
            await browser.close()


@dataclass
class Surfer:
    """Somebody with cookies of their own, at the page they are at."""

    context: BrowserContext
    page: Page
    script: Page  # another tab, at a page of the gateway's that lets script ask it: those of signing in let none
    gateway: str

    @classmethod
    async def new(cls, browser: Browser, gateway: str) -> Surfer:
        """Nobody yet."""
        context = await browser.new_context(viewport={"width": PHONE["width"], "height": PHONE["height"]})
        context.set_default_timeout(PATIENCE_MS)
        script = await context.new_page()
        await script.goto(f"{gateway}/openapi.json")
        return cls(context, await context.new_page(), script, gateway)

    async def open(self, path: str) -> None:
        """Types an address of the gateway."""
        await self.page.goto(self.gateway + path)

    async def press(self, name: str) -> None:
        """Presses a button, or a link that looks like one."""
        button = self.page.get_by_role("button", name=name).or_(self.page.get_by_role("link", name=name))
        await button.first.click()

    async def sign_in_at_the_provider(self, name: str) -> None:
        """Fills the provider's own pages, until it sends the browser back."""
        await self.page.get_by_placeholder("Enter any login").fill(name)
        await self.page.get_by_placeholder("and password").fill("any")
        await self.press("Sign-in")
        await self.press("Continue")
        await self.page.wait_for_url(f"{self.gateway}/**")

    async def ask(
        self, path: str, method: str = "GET", body: object = None, headers: dict[str, str] | None = None
    ) -> dict[str, Any]:
        """What script of the same origin gets from the gateway: `status` and `body`."""
        sent = {"Content-Type": "application/json", **(headers or {})}
        return dict(await self.script.evaluate(_ASK, [method, path, sent, body]))

    async def text(self) -> str:
        """All that can be read on the page."""
        return await self.page.inner_text("body")

    async def cookies(self) -> dict[str, Any]:
        """The gateway's cookies, by name."""
        return {str(one["name"]): one for one in await self.context.cookies(self.gateway)}
