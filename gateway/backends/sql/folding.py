"""Turns a text into the form that searches compare: NFKC and case-folded, so that widths and cases are alike."""

from __future__ import annotations

import unicodedata


def fold(text: str) -> str:
    """The folded text. Folding twice changes nothing, so that a query and a text always meet."""
    return _normal(_normal(text).casefold())


def words(query: str) -> list[str]:
    """The folded words of a query, each once."""
    return list(dict.fromkeys(fold(query).split()))


def _normal(text: str) -> str:
    return text if text.isascii() else unicodedata.normalize("NFKC", text)
