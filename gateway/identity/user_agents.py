"""Turns a `User-Agent` header into the few words that a person knows their own browser by."""

from __future__ import annotations

_LONGEST = 60
# The first that is in it counts: most browsers also claim to be those below them.
_BROWSERS = (
    ("Edg/", "Edge"),
    ("OPR/", "Opera"),
    ("SamsungBrowser/", "Samsung Internet"),
    ("Firefox/", "Firefox"),
    ("FxiOS/", "Firefox"),
    ("CriOS/", "Chrome"),
    ("Chrome/", "Chrome"),
    ("Safari/", "Safari"),
)
_SYSTEMS = (
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Android", "Android"),
    ("CrOS", "ChromeOS"),
    ("Windows", "Windows"),
    ("Mac OS X", "macOS"),
    ("Linux", "Linux"),
)


def shortened(header: str) -> str:
    """`Firefox on Linux`; for what is no browser that we know, the header's beginning. No version, no more detail."""
    browser = next((name for mark, name in _BROWSERS if mark in header), None)
    system = next((name for mark, name in _SYSTEMS if mark in header), None)
    if browser is None:
        return "".join(one if one.isprintable() else " " for one in header[:_LONGEST]).strip()
    return f"{browser} on {system}" if system else browser
