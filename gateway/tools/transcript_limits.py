"""Turns messages into what a tool returns of them: never more than a model can be expected to read.

The numbers are OpenClaw's (reference, openclaw-visibility 1.6).
"""

from __future__ import annotations

from collections.abc import Sequence

from gateway.model import Message

MAX_TEXT = 4_000
MAX_BYTES = 80 * 1024
MARK = "\n…(truncated)…"


def clipped(message: Message) -> dict[str, object]:
    """One message; a long text is cut and says so."""
    cut = len(message.content) > MAX_TEXT
    return {
        "messageId": message.id,
        "role": message.role,
        "name": message.name,
        "content": message.content[:MAX_TEXT] + MARK if cut else message.content,
        "createdAt": message.created_at.isoformat(),
        "sender": message.sender,
        "contentTruncated": cut,
    }


def bounded(messages: Sequence[Message]) -> dict[str, object]:
    """The newest of `messages` that fit into 80 KiB, in order, and how many older ones were dropped for it."""
    kept: list[dict[str, object]] = []
    size = 0
    for message in reversed(messages):
        shown = clipped(message)
        size += len(str(shown["content"]).encode())
        if size > MAX_BYTES:
            break
        kept.append(shown)
    kept.reverse()
    dropped = len(messages) - len(kept)
    return {"messages": kept, "truncated": dropped > 0, "droppedMessages": dropped}
