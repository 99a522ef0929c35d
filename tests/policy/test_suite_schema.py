"""The JSON schema of suites: in step with the code, true of every suite we ship, and of use to an editor (issue 4)."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from gateway.errors import Invalid
from gateway.model import Action, Chat, Relation, Resource, Whose
from gateway.policy.suite_schema import FILE, suite_schema
from gateway.policy.suites import read_suite
from tests.policy.test_shipped_policies import POLICIES, SUITES

GOOD = """\
rows: ''
people: {alice: [role:member]}
cases:
  - [alice, flight, session/private, self, own, private, history, allow]
matrices:
  - name: rules
    what: {rules: [flight, memory/rules, same_agent, shared, group]}
    actions: [load]
    expected: {rules: {alice: [load]}}
"""


class _AsEditorsRead(yaml.SafeLoader):
    """YAML 1.2, as editors have it: a moment is text there."""


_AsEditorsRead.yaml_implicit_resolvers = {
    letter: [(tag, pattern) for tag, pattern in found if tag != "tag:yaml.org,2002:timestamp"]
    for letter, found in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def complaints(text: str) -> list[str]:
    """What an editor would underline."""
    found = yaml.load(text, Loader=_AsEditorsRead)  # a SafeLoader
    return [error.message for error in Draft202012Validator(suite_schema()).iter_errors(found)]


def test_the_shipped_schema_is_that_of_the_code() -> None:
    """A new word of the policy, or a new field of a suite, is completed from the day it is there."""
    shipped = (POLICIES / FILE).read_text(encoding="utf-8")

    assert json.loads(shipped) == suite_schema(), f"gateway policy schema > policies/{FILE}"
    Draft202012Validator.check_schema(suite_schema())


@pytest.mark.parametrize("path", SUITES, ids=lambda path: path.stem)
def test_every_shipped_suite_fits_the_schema_that_its_first_line_names(path: Path) -> None:
    """The modeline is what an editor finds the schema by."""
    text = path.read_text(encoding="utf-8")
    first = text.split("\n", 1)[0]

    assert complaints(text) == []
    assert first == f"# yaml-language-server: $schema={os.path.relpath(POLICIES / FILE, path.parent)}"


def test_every_place_of_a_row_completes_with_its_own_words() -> None:
    """Tuples by `prefixItems`: an editor knows at which place of a case it is, and what may stand there."""
    schema = suite_schema()
    definitions: dict[str, Any] = schema["$defs"]

    def words(place: dict[str, Any]) -> list[str] | None:
        return definitions[place["$ref"].rsplit("/", 1)[1]]["enum"] if "$ref" in place else place.get("enum")

    facts = [[*map(str, kind)] for kind in (Resource, Relation, Whose, Chat)]
    case = schema["properties"]["cases"]["items"]
    matrix = definitions["Matrix"]["properties"]
    what = matrix["what"]["additionalProperties"]
    actions = [*map(str, Action)]

    assert [words(place) for place in case["prefixItems"]] == [None, None, *facts, actions, ["allow", "deny"]]
    assert [words(place) for place in what["prefixItems"]] == [None, *facts]
    assert words(matrix["actions"]["items"]) == actions
    assert words(matrix["expected"]["additionalProperties"]["additionalProperties"]["items"]) == actions


def test_whatever_an_editor_shows_says_what_it_is() -> None:
    """A description at every field and word, and none that sends its reader to a page that they don't have."""
    schema = suite_schema()
    shown = [
        *schema["properties"].items(),
        *schema["$defs"].items(),
        *schema["$defs"]["Matrix"]["properties"].items(),
    ]

    assert [name for name, field in shown if not field.get("description")] == []
    assert "design" not in json.dumps(schema)


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ("rows: ''\n", ""),
        ("rows: ''", "rows: ''\npolicy: x.csv"),
        ("people: {alice: [role:member]}\n", ""),
        ("role:member", "member"),
        ("role:member", "user:alice"),
        ("people:", "persons:"),
        ("session/private", "session/secret"),
        ("self, own", "me, own"),
        ("own, private, history", "mine, private, history"),
        ("private, history", "public, history"),
        ("history, allow", "peek, allow"),
        ("history, allow", "history, perhaps"),
        (", history, allow", ", allow"),
        ("history, allow]", "history, allow, always]"),
        ("same_agent, shared, group]", "same_agent, shared]"),
        ("actions: [load]", "actions: [lood]"),
        ("alice: [load]", "alice: [lood]"),
        ("alice: [load]", "alice: load"),
        ("  - name: rules\n    what", "  - what"),
        (GOOD[GOOD.index("cases") :], ""),
    ],
)
def test_an_editor_underlines_what_the_command_line_refuses(tmp_path: Path, was: str, now: str) -> None:
    """The same set-up passes both before, and neither after."""
    path = tmp_path / "suite.yaml"
    path.write_text(GOOD, encoding="utf-8")
    assert complaints(GOOD) == []
    assert read_suite(path).people

    assert was in GOOD
    path.write_text(GOOD.replace(was, now, 1), encoding="utf-8")
    assert complaints(path.read_text(encoding="utf-8")) != []
    with pytest.raises(Invalid):
        read_suite(path)
