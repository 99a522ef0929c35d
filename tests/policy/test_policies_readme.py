"""policies/README.md: its examples run, and its table of words is that of the grammar."""

from __future__ import annotations

import re
import shlex

import pytest
from typer.testing import CliRunner

from gateway.cli import build
from gateway.policy.rows import ACTIONS, CHATS, EFFECTS, MODES, RESOURCES, WHOSE
from tests.docs.pages import ROOT, examples, fits
from tests.policy.test_shipped_policies import POLICIES

PAGE = (POLICIES / "README.md").read_text(encoding="utf-8")


def test_its_examples_print_what_it_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    """As for docs/: run from the clone, since neither command needs a gateway."""
    monkeypatch.chdir(ROOT)
    found = list(examples(PAGE))
    for example in found:
        answer = CliRunner().invoke(build(), shlex.split(example.program)[1:])
        assert (answer.exit_code, fits(example.expected, answer.stdout)) == (0, True), example.program

    assert len(found) == 2


@pytest.mark.parametrize(
    ("place", "words"),
    [(3, RESOURCES), (4, MODES), (5, WHOSE), (6, CHATS), (7, ACTIONS), (8, EFFECTS)],
)
def test_its_words_are_those_of_the_grammar(place: int, words: tuple[str, ...]) -> None:
    """A word that is listed and not known is as bad as one that is known and not listed."""
    row = re.search(rf"^\| {place} \| .*? \| (.*) \|$", PAGE, re.MULTILINE)

    assert row is not None
    assert sorted(re.findall(r"`(.+?)`", row[1])) == sorted(words)


def test_it_names_every_example_and_links_to_what_is_there() -> None:
    """An example that nobody finds is none."""
    targets = {target.split("#")[0] for target in re.findall(r"\]\((.+?)\)", PAGE)}

    assert {f"examples/{path.name}" for path in (POLICIES / "examples").glob("*.csv")} <= targets
    assert [target for target in targets if not (POLICIES / target).exists()] == []
