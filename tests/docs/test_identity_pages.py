"""Turns each settings block of the pages about ways in into a gateway that starts with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.app import compose
from gateway.settings import load
from tests.conftest import LogCapture
from tests.docs.pages import ROOT, Block, blocks

FOLDER = ROOT / "docs" / "identity"
INDEX = ROOT / "docs" / "identity.md"
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
    config = tmp_path / "page.toml"
    config.write_text(block.text, encoding="utf-8")

    made = compose(load(config, {"GATEWAY_STATE__FOLDER": str(tmp_path / "state")}), logs.loggers)

    assert made.settings != load(None, {"GATEWAY_STATE__FOLDER": str(tmp_path / "state")})  # it sets something


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_page_about_a_way_in_is_found_from_the_first_one(page: Path) -> None:
    """Ours: a page that nothing links to is not there for a reader."""
    assert f"](identity/{page.name}" in INDEX.read_text(encoding="utf-8")
