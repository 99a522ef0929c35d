"""Turns the model of a suite into the JSON schema that an editor completes and checks suites with."""

from __future__ import annotations

from typing import Any, Final

from gateway.policy.suites import Suite

FILE: Final = "suite.schema.json"  # in policies/, and in the folder of whoever keeps their policy in Git

_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_SUMMARY: Final = "What a visibility policy has to answer. `gateway policy test` and `gateway policy push` ask it."
_OF_WORDS: Final = {  # what an editor shows beside a word; the docstrings are for whoever reads the code
    "Resource": "What is to be reached: a session, a memory file, or what runs the place.",
    "Relation": "How that stands to the session that it is asked from.",
    "Whose": "Whether it is the person's own, shared with them, or somebody else's.",
    "Chat": "Where it is asked from. Outside any session is private.",
    "Action": "What the person wants to do.",
}
_EITHER: Final = ("policy", "rows")
_PROOFS: Final = ("cases", "matrices")


def suite_schema() -> dict[str, Any]:
    """The schema (draft 2020-12). It accepts whatever `gateway policy test` reads, but for a `null`."""
    schema = Suite.model_json_schema()
    for name, description in _OF_WORDS.items():
        schema["$defs"][name]["description"] = description
    for name in (*_EITHER, "now"):
        _says_something(schema["properties"][name])
    return {
        "$schema": _DIALECT,
        **schema,
        "title": "Policy test suite",
        "description": _SUMMARY,
        "oneOf": [{"required": [name]} for name in _EITHER],
        "anyOf": [{"required": [name]} for name in _PROOFS],
    }


def _says_something(field: dict[str, Any]) -> None:
    """Nobody writes `null` for a field that may be left out, so an editor should not offer it."""
    field.pop("default")
    kind, _null = field.pop("anyOf")
    field.update(kind)
