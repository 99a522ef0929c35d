"""Turns every example of the README and of docs/ into a test: it runs, and prints what the page shows."""

from __future__ import annotations

import importlib.util
import json
import re
import shlex
import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest
from starlette.routing import Route

from gateway.app import compose, create_app
from gateway.policy.documents import lint
from gateway.policy.suites import read_suite
from gateway.settings import Settings, load
from tests.conftest import LogCapture
from tests.docs.pages import PAGES, ROOT, Block, blocks, examples, fits, masked
from tests.docs.terminal import terminal

RUN = {"console", "python"}
ELSEWHERE = "docs/cli.md"  # its examples run in tests/cli/test_docs.py
NOW = datetime(2026, 12, 1, tzinfo=UTC)
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]


@pytest.mark.timeout(400)
@pytest.mark.parametrize("page", [page for page in NAMES if page != ELSEWHERE])
def test_every_example_of_a_page_prints_what_the_page_shows(page: str, tmp_path: Path) -> None:
    """Ours: a page that is not true of the code is worse than none. The commands of a page run in order, in one shell,
    beside a gateway that was started for this page."""
    found = list(examples((ROOT / page).read_text(encoding="utf-8")))
    if not found:
        return
    if shutil.which("curl") is None:
        pytest.skip("the examples need curl")
    with terminal(tmp_path) as shell:
        for example in found:
            printed = shell.run(example.program)
            where = f"{page}:{example.line}: {example.program}"
            assert fits(example.expected, printed), (
                f"{where}\n--- the page\n{masked(example.expected)}\n--- really\n{masked(printed)}"
            )


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_every_block_of_a_page_is_of_a_kind_that_is_checked(page: Path, tmp_path: Path) -> None:
    """Ours: what can't be run as it stands is still read by what would read it: policies, suites, settings, JSON."""
    for block in blocks(page.read_text(encoding="utf-8")):
        where = f"{page.relative_to(ROOT)}:{block.line}"
        assert block.language in RUN | {"sh", "csv", "yaml", "toml", "json", "text"}, where
        assert _is_sound(block, tmp_path), where


def _is_sound(block: Block, folder: Path) -> bool:
    match block.language:
        case "sh":
            return all(_can_be_started(line) for line in block.text.splitlines() if line)
        case "csv":
            return lint(block.text, NOW)[0] == ()
        case "yaml":
            suite = folder / "suite.yaml"
            suite.write_text(block.text, encoding="utf-8")
            return bool(read_suite(suite).people)
        case "toml":
            config = folder / "gateway.toml"
            config.write_text(block.text, encoding="utf-8")
            return load(config, {}) is not None
        case "json":
            return json.loads(block.text) is not None
        case _:
            return True


def _can_be_started(line: str) -> bool:
    """What would run for ever, or run these tests: a script of ours, or a module that is there."""
    words = shlex.split(line, comments=True)
    if words[:2] == ["python", "-m"]:
        return importlib.util.find_spec(words[2]) is not None
    return (ROOT / words[0]).is_file()


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    """Ours: a link to a page that was renamed is found here and not by a reader."""
    text = page.read_text(encoding="utf-8")
    targets = [part.split(")", 1)[0] for part in text.split("](")[1:]]
    local = [target.split("#", 1)[0] for target in targets if "://" not in target]

    assert [target for target in local if target and not (page.parent / target).exists()] == []


def test_the_page_of_the_rest_interface_names_every_route_and_no_other(settings: Settings, logs: LogCapture) -> None:
    """Ours: a route that nobody finds is as bad as one that is promised and not there."""
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    told = re.findall(r"^\| `([A-Z]+ /\S+)` \|", page, re.MULTILINE)
    routes = list(create_app(compose(settings, logs.loggers), logs.loggers).routes)
    served = [
        f"{method} {route.path}"
        for route in routes
        if isinstance(route, Route)
        for method in sorted((route.methods or set()) - {"HEAD"})
    ]

    assert sorted(told) == sorted(served)
