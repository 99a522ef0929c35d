"""A tenant's root with the folder of one agent, and what stands beside it."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gateway.workspace.files import Workspace
from gateway.workspace.locks import FileLocks

NOBODY = 65534


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The tenant's root."""
    (tmp_path / "acme" / "flight").mkdir(parents=True)
    return tmp_path / "acme"


@pytest.fixture
def flight(root: Path) -> Path:
    """The agent's folder, for looking at it and meddling with it from outside."""
    return root / "flight"


@pytest.fixture
def workspace(root: Path) -> Workspace:
    """The same folder, as the gateway sees it."""
    return Workspace(root, "flight")


@pytest.fixture
def locks(tmp_path: Path) -> FileLocks:
    """Locks that don't wait."""
    return FileLocks(tmp_path / "locks", wait_s=0)


@pytest.fixture
def open_root() -> Iterator[Path]:
    """A tenant's root with a short path that other users of the machine may walk into."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    (folder / "flight").mkdir(mode=0o755)
    yield folder
    shutil.rmtree(folder)


@contextmanager
def without_privileges() -> Iterator[None]:
    """Runs as somebody whom the file system refuses things; root is never refused."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def unprivileged() -> object:
    """`without_privileges`, for tests."""
    return without_privileges
