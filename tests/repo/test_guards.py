"""Turns the guards of the tests themselves into tests: no network but this machine, a clock that only we move."""

from __future__ import annotations

import socket
from datetime import timedelta

import pytest

from gateway.ports import Clock
from tests.clock import SettableClock
from tests.conftest import Refused


def test_only_this_machine_can_be_reached() -> None:
    """Style, section 4 rule 8: network blocked except loopback."""
    with socket.socket() as server, socket.socket() as client, socket.socket() as outside:
        server.bind(("127.0.0.1", 0))
        server.listen()
        client.connect(server.getsockname())

        for connect in (outside.connect, outside.connect_ex):
            for address in (("192.0.2.1", 80), ("example.test", 80)):
                with pytest.raises(Refused):
                    connect(address)


def test_the_clock_stands_until_it_is_moved(clock: SettableClock) -> None:
    """Style, section 4 rule 8: a clock is injected, no test sleeps."""
    asked: Clock = clock
    now, monotonic = asked.now(), asked.monotonic()

    clock.advance(90)
    assert (asked.now() - now, asked.monotonic() - monotonic) == (timedelta(seconds=90), 90)

    clock.set(now)
    assert (asked.now(), asked.monotonic()) == (now, monotonic + 90)
