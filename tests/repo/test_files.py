"""Turns the repository's own files into claims: what each of them says, and what none may say (style, section 4)."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("gateway", "tests", "bench", "scripts", "docs", "policies", "workspaces", "requirements", ".ci")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))

# In pieces, so that this file does not hold what it looks for.
FORBIDDEN = re.compile(
    "|".join(["/wo" + "rk/", "/ro" + "ot/", r"/ho" + r"me/\w", "py" + r"pi\.org", "python" + "hosted"])
)


def files() -> Iterator[Path]:
    yield from (
        path for path in ROOT.iterdir() if path.suffix in {".md", ".toml"} or path.name in {"LICENSE", ".gitignore"}
    )
    for folder in FOLDERS:
        yield from (path for path in (ROOT / folder).rglob("*") if path.is_file() and "__pycache__" not in path.parts)


def modules(*folders: str) -> list[Path]:
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def test_every_module_says_in_one_line_what_it_turns_into_what() -> None:
    """Style 12: every module has a docstring whose first line is a sentence of its own."""
    wanting = []
    for path in [*modules("gateway", "tests", "bench"), ROOT / "scripts" / "settings_reference"]:
        docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        first, _, rest = docstring.partition("\n")
        if not first or not f"{rest}\n".startswith("\n"):
            wanting.append(str(path.relative_to(ROOT)))

    assert wanting == []


def test_every_folder_with_modules_is_a_package() -> None:
    """The layers (import-linter) see packages only: a folder without `__init__.py` would escape them."""
    folders = {path.parent for path in modules("gateway")}

    assert [str(folder.relative_to(ROOT)) for folder in sorted(folders) if not (folder / "__init__.py").exists()] == []


def test_no_file_names_a_machine_or_a_registry() -> None:
    """Ours: a clone works on any machine, with any package index."""
    found = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in files()
        for number, line in enumerate(path.read_bytes().decode("utf-8", "replace").splitlines(), 1)
        if FORBIDDEN.search(line)
    ]

    assert found == []


def test_the_changelog_is_headed_by_the_version_of_the_package() -> None:
    """Style 1, from starlette: a release can't be cut with an old changelog."""
    head = re.search(r"^## \[(.+?)\]", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)

    assert head is not None
    assert head[1] == PROJECT["project"]["version"]


def test_every_dependency_has_its_reason_and_every_reason_its_dependency() -> None:
    """Design section 13: docs/dependencies.md says why each is there."""
    page = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")
    told = dict(re.findall(r"^\| `([\w-]+)` \| (.+) \|$", page, re.MULTILINE))
    asked = PROJECT["project"]["dependencies"] + PROJECT["dependency-groups"]["dev"]

    assert set(told) == {re.split(r"[\[<>=]", one)[0] for one in asked}
    assert all(len(reason) > 10 for reason in told.values())


def test_the_reference_of_settings_is_up_to_date() -> None:
    """Issue 2: every setting with its type, default and meaning; made from the model."""
    assert subprocess.run([sys.executable, "scripts/settings_reference", "--check"], cwd=ROOT).returncode == 0


@pytest.mark.parametrize("script", ["install", "serve", "test", "check", "coverage"])
def test_every_script_is_short_strict_and_can_be_started(script: str) -> None:
    """Style 17: what CI runs is what people run; POSIX sh, which stops at the first failure."""
    path = ROOT / "scripts" / script
    text = path.read_text(encoding="utf-8")

    assert text.startswith("#!/bin/sh\n")
    assert "\nset -eu\n" in text
    assert len(text.splitlines()) < 45
    assert path.stat().st_mode & 0o111 == 0o111
    assert subprocess.run(["sh", "-n", path]).returncode == 0
