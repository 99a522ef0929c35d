"""One holder at a time, over threads and processes, and none for ever."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from gateway.errors import Unavailable
from gateway.model import TenantId
from gateway.workspace.locks import FileLocks, file_key

HOLDER = """
import sys
from pathlib import Path
from gateway.workspace.locks import FileLocks
with FileLocks(Path(sys.argv[1])).hold("key"):
    print("held", flush=True)
    sys.stdin.read()
"""


class Time:
    """A clock that moves only while somebody pauses."""

    def __init__(self) -> None:
        self.now = 0.0
        self.pauses: list[float] = []

    def monotonic(self) -> float:
        return self.now

    def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds


def test_a_wait_ends_with_a_named_error(tmp_path: Path) -> None:
    """design section 12: outages refuse with 503; nobody waits for ever."""
    time = Time()
    locks = FileLocks(tmp_path / "locks", wait_s=2.0, monotonic=time.monotonic, pause=time.pause)

    with locks.hold("key"):
        with locks.hold("other key"):
            assert not time.pauses
        with pytest.raises(Unavailable) as refusal, locks.hold("key"):
            pytest.fail("two hold the same lock")
    assert refusal.value.headers == {"Retry-After": "1"}
    assert 2.0 <= time.now < 2.01
    with locks.hold("key"):
        pass


def test_a_lock_is_freed_by_an_error_and_seen_by_another_object(tmp_path: Path) -> None:
    """Two parts of the gateway that use the same state folder lock each other out."""
    one, other = FileLocks(tmp_path, wait_s=0), FileLocks(tmp_path, wait_s=0)

    def fail() -> None:
        with one.hold("key"):
            with pytest.raises(Unavailable), other.hold("key"):
                pytest.fail("two hold the same lock")
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    with other.hold("key"):
        pass


def test_threads_take_turns(tmp_path: Path) -> None:
    """Eight threads read, add one and write back; without the lock some would be lost."""
    locks, counter, start = FileLocks(tmp_path / "locks", wait_s=60), tmp_path / "counter", threading.Barrier(8)
    counter.write_text("0")

    def add() -> None:
        start.wait(5)
        for _ in range(25):
            with locks.hold("key"):
                counter.write_text(str(int(counter.read_text()) + 1))

    threads = [threading.Thread(target=add) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert counter.read_text() == "200"


def test_a_killed_process_frees_its_lock(tmp_path: Path) -> None:
    """design section 12: a process that is killed must not stop anybody's work."""
    locks = FileLocks(tmp_path, wait_s=0)
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(Unavailable), locks.hold("key"):
            pytest.fail("two processes hold the same lock")
        holder.kill()
        holder.wait(5)

    with locks.hold("key"):
        pass


def test_a_child_forked_meanwhile_does_not_go_on_holding(tmp_path: Path) -> None:
    """flock belongs to the open file, which a child shares."""
    locks = FileLocks(tmp_path, wait_s=0)
    end, start = os.pipe()
    with locks.hold("key"):
        child = os.fork()
        if child == 0:
            os.close(start)
            os.read(end, 1)
            os._exit(0)
    try:
        with locks.hold("key"):
            pass
    finally:
        os.close(start)
        os.close(end)
        os.waitpid(child, 0)


def test_a_state_folder_that_is_gone_is_unavailable(tmp_path: Path) -> None:
    """design section 12: without a lock there is no write."""
    locks = FileLocks(tmp_path / "locks")
    (tmp_path / "locks").rmdir()

    with pytest.raises(Unavailable), locks.hold("key"):
        pytest.fail("held nothing")


def test_files_of_two_tenants_agents_or_paths_have_different_keys() -> None:
    """design section 11: length-prefixed, so that no two lists of parts collide."""
    keys = {
        file_key(TenantId("acme"), "flight", "USER.md"),
        file_key(TenantId("acmef"), "light", "USER.md"),
        file_key(TenantId("acme"), "flightU", "SER.md"),
        file_key(TenantId("acme"), "flight", "MEMORY.md"),
    }

    assert len(keys) == 4
