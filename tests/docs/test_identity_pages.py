"""Turns each settings block of the pages about ways in into a gateway that starts with it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gateway.app import compose, create_app
from gateway.settings import load
from tests.conftest import LogCapture
from tests.docs.pages import ROOT, Block, blocks

FOLDER = ROOT / "docs" / "identity"
INDEX = ROOT / "docs" / "identity.md"
_FILE = re.compile(r'(\w*secret_file) = "[^"]+"')  # a reader has the secrets that a page names
_VARIABLE = re.compile(r'\w*secret_env = "([^"]+)"')
_SECRET = "a secret of the reader's own"
PAGES = sorted(FOLDER.glob("*.md"))
SETTINGS = [
    pytest.param(block, id=f"{page.name}:{block.line}")
    for page in (INDEX, *PAGES)
    for block in blocks(page.read_text(encoding="utf-8"))
    if block.language == "toml"
]


@pytest.mark.parametrize("block", SETTINGS)
def test_a_gateway_starts_with_the_settings_that_a_page_shows(block: Block, tmp_path: Path, logs: LogCapture) -> None:
    """Issue 3: each page has settings that a test runs. A block is a whole file: a reader copies it as it stands."""
    config, secret = tmp_path / "page.toml", tmp_path / "secret"
    secret.write_text(f"{_SECRET}\n", encoding="utf-8")
    config.write_text(_FILE.sub(rf'\1 = "{secret}"', block.text), encoding="utf-8")
    environ = dict.fromkeys(_VARIABLE.findall(block.text), _SECRET)

    settings = load(config, {"GATEWAY_STATE__FOLDER": str(tmp_path / "state")})
    made = compose(settings, logs.loggers, environ=environ)
    create_app(made, logs.loggers, environ=environ)

    assert made.settings != load(None, {"GATEWAY_STATE__FOLDER": str(tmp_path / "state")})  # it sets something


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_page_about_a_way_in_is_found_from_the_first_one(page: Path) -> None:
    """Ours: a page that nothing links to is not there for a reader."""
    assert f"](identity/{page.name}" in INDEX.read_text(encoding="utf-8")
