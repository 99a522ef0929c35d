"""Turns `model.conf` into Casbin enforcers that decide a handful of rows each and share one parsed matcher.

Stock `enforce` parses the matcher on every call (reference, pycasbin, "How enforce works"); here it is parsed once for
a snapshot. That is safe because its text is only ever that of the shipped `model.conf`, and because a snapshot asks
Casbin on one thread alone: simpleeval keeps the values of the current row in the expression.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, Final

import casbin
from casbin.model import FunctionMap

from gateway.policy.rows import ACTION_WORDS, MODES, WHOSE, Row
from gateway.policy.shipped import shipped

MODEL: Final = shipped("model.conf")


class HeldSubjects:
    """The closed subject set as simpleeval sees it: something to ask, not something to walk for every row."""

    __slots__ = ("_held",)

    def __init__(self, held: frozenset[str]) -> None:
        self._held = held

    def __contains__(self, subject: object) -> bool:
        return subject in self._held


class SliceEnforcer(casbin.Enforcer):  # type: ignore[misc]  # casbin ships no types
    """A Casbin enforcer over a few rows. It is never reloaded, changed or switched off."""

    def __init__(self, model: casbin.Model, expression: Any) -> None:
        self._expression = expression
        super().__init__(model)

    def _get_expression(self, expr: str, functions: object = None) -> Any:
        return self._expression


class CompiledModel:
    """`model.conf`, parsed once: what the slices of one snapshot share."""

    def __init__(self) -> None:
        self._model = casbin.Model()
        self._model.load_model_from_text(MODEL)
        self._expression = casbin.Enforcer._get_expression(self._model["m"]["m"].value, _functions())

    def enforcer(self, rows: Sequence[Row]) -> SliceEnforcer:
        """An enforcer over these rows, given as values. The roles are closed and the groups are a table, so no `g`."""
        model = casbin.Model()
        for section in ("r", "e", "m"):  # never changed after parsing
            model[section] = self._model[section]
        permissions = copy.copy(self._model["p"]["p"])
        permissions.policy = [list(row.values) for row in rows]
        model["p"] = {"p": permissions}
        return SliceEnforcer(model, self._expression)


def _functions() -> dict[str, Any]:
    functions = dict(FunctionMap.load_function_map().get_functions())
    functions.update(sees=_sees, covers=_covers, g2=_in_group, holds=_holds)
    return functions


def _sees(visibility: str, relation: str) -> bool:
    return relation in MODES[visibility]


def _covers(asked: str, whose: str) -> bool:
    return whose in WHOSE[asked]


def _in_group(action: str, word: str) -> bool:
    return word in _WORDS[action]


def _holds(subjects: HeldSubjects, subject: str) -> bool:
    return subject in subjects


_WORDS: Final = {str(action): words for action, words in ACTION_WORDS.items()}
