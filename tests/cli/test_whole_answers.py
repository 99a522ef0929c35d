"""An answer leaves in one write, and a stream is not held back (cli/whole_answers)."""

from __future__ import annotations

import asyncio

from gateway.cli.whole_answers import Gathering


class Wire:
    """A transport that keeps what was written to it, write by write."""

    def __init__(self) -> None:
        self.writes: list[bytes] = []
        self.closed = False

    def write(self, data: bytes) -> None:
        """Keeps it."""
        self.writes.append(data)

    def close(self) -> None:
        """Nothing is written after it."""
        self.closed = True

    def is_closing(self) -> bool:
        """As a transport says it."""
        return self.closed


async def test_head_and_body_leave_together_and_nothing_waits_longer_than_a_step() -> None:
    """In order, nothing twice, nothing lost when the connection closes."""
    wire = Wire()
    gathering = Gathering(wire, asyncio.get_running_loop())  # type: ignore[arg-type]  # a part of a transport

    gathering.write(b"head ")
    gathering.write(b"body")
    whole = list(wire.writes)
    gathering.write(b"")
    gathering.write(b"first event")
    held = list(wire.writes)
    await asyncio.sleep(0)
    streamed = list(wire.writes)
    gathering.write(b"end")
    gathering.close()
    await asyncio.sleep(0)

    assert whole == [b"head body"]
    assert held == whole
    assert streamed == [b"head body", b"first event"]
    assert wire.writes == [b"head body", b"first event", b"end"]
    assert gathering.is_closing()
