"""Tests that people know their own browsers in a list, and that it holds no more of them than that."""

from __future__ import annotations

import pytest

from gateway.identity.user_agents import shortened

CHROME = "Mozilla/5.0 ({}) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36"


@pytest.mark.parametrize(
    ("header", "shown"),
    [
        ("Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0", "Firefox on Linux"),
        (CHROME.format("Windows NT 10.0; Win64; x64"), "Chrome on Windows"),
        (CHROME.format("Windows NT 10.0; Win64; x64") + " Edg/142.0.0.0", "Edge on Windows"),
        (CHROME.format("Macintosh; Intel Mac OS X 10_15_7"), "Chrome on macOS"),
        (CHROME.format("Linux; Android 16; Pixel 9"), "Chrome on Android"),
        (CHROME.format("X11; CrOS x86_64 14541.0.0"), "Chrome on ChromeOS"),
        ("Mozilla/5.0 (iPhone; CPU iPhone OS 19_0 like Mac OS X) Version/19.0 Safari/604.1", "Safari on iPhone"),
        ("Mozilla/5.0 (PlayStation) Firefox/1", "Firefox"),
        ("curl/8.5.0", "curl/8.5.0"),
        ("", ""),
        ("x" * 100, "x" * 60),
        ("evil\x1b[31m\u202e\nname", "evil [31m  name"),
    ],
)
def test_a_browser_is_called_what_its_person_calls_it(header: str, shown: str) -> None:
    """Ours: no version and no more detail than a person needs."""
    assert shortened(header) == shown
