"""Turns a text into the lines of it that `memory_get` returns (reference, openclaw-memory 1.7)."""

from __future__ import annotations

MAX_CHARACTERS = 12_000


def excerpt(text: str, start: int, count: int) -> dict[str, object]:
    """Lines `start` to `start + count - 1`, at most 12,000 characters; `nextFrom` says where to go on.

    The empty line after a final newline does not count. `start` past the end is an empty text with 0 lines. One line
    that is over the limit by itself is cut, and has no `nextFrom`.
    """
    if start == 1 and len(text) <= MAX_CHARACTERS:
        number = text.count("\n") + (text[-1:] not in ("", "\n"))
        if number <= count:  # all of it, which most files are: nothing has to be taken apart
            return {"text": text.removesuffix("\n"), "from": 1, "lines": number}
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    wanted = lines[start - 1 : start - 1 + count]
    kept = _fitting(wanted)
    shown: dict[str, object] = {"text": "\n".join(kept), "from": start, "lines": len(kept)}
    if wanted and not kept:
        return {**shown, "text": wanted[0][:MAX_CHARACTERS], "lines": 1, "truncated": True}
    following = start + len(kept)
    if wanted and following <= len(lines):
        more = f"[More content available. Use from={following} to continue.]"
        return {**shown, "text": f"{shown['text']}\n{more}", "truncated": True, "nextFrom": following}
    return shown


def _fitting(lines: list[str]) -> list[str]:
    """The first lines that fit into the limit together."""
    size = 0
    for number, line in enumerate(lines):
        size += len(line) + 1
        if size > MAX_CHARACTERS + 1:
            return lines[:number]
    return lines
