"""Turns one founded demo into a fresh copy for each test, with the command line in front of it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from gateway.cli.running import with_gateway
from gateway.settings import load
from tests.terminal import Terminal, founded


@pytest.fixture(scope="session")
def demo_state(tmp_path_factory: pytest.TempPathFactory) -> Terminal:
    """The demo, made once and never changed by a test."""
    folder = tmp_path_factory.mktemp("demo") / ".gateway"
    settings = load(None, {"GATEWAY_STATE__FOLDER": str(folder), "GATEWAY_LOG__LEVEL": "error"})
    demo, ids = with_gateway(settings, founded)
    return Terminal(folder, demo, ids)


@pytest.fixture
def terminal(demo_state: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """A copy of the demo, and a command line in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    shutil.copytree(demo_state.state, tmp_path / ".gateway")
    return Terminal(tmp_path / ".gateway", demo_state.demo, demo_state.ids)
