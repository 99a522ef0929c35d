"""Turns a document into its rows that end by themselves soon (design section 7, `until`)."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from gateway.policy.documents import Document
from gateway.policy.rows import Row

SOON: Final = timedelta(days=30)


def ending(document: Document, now: datetime, within: timedelta = SOON) -> tuple[Row, ...]:
    """The rows that still count and end within that time, the soonest first.

    Reads each row once, which takes a while for a long document: run it in a thread.
    """
    found = [(row.until, row.line, row) for row in document.rows if row.until and now < row.until <= now + within]
    return tuple(row for _, _, row in sorted(found))
