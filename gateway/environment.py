"""Turns `GATEWAY_…` variables into nested settings, and remembers which variable said what."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource

from gateway.errors import Fault, field_path

PREFIX = "GATEWAY_"
SEPARATOR = "__"
# What the commands and the tests read for themselves.
NOT_SETTINGS = frozenset({"GATEWAY_TOKEN", "GATEWAY_LONG", "GATEWAY_CONFIG"})


class Environment(PydanticBaseSettingsSource):
    """The variables of one start: `GATEWAY_SERVER__PORT=9000` is `server.port`; a list is given as JSON.

    `faults` holds what can't be a setting (a variable nobody knows, JSON that is none), all of it, after the call.
    """

    def __init__(self, settings: type[BaseSettings], environ: Mapping[str, str]) -> None:
        super().__init__(settings)
        self._environ = environ
        self._variables: dict[tuple[str, ...], str] = {}
        self.faults: list[Fault] = []

    def __call__(self) -> dict[str, Any]:
        """The values, nested as in the file."""
        values: dict[str, Any] = {}
        for variable in sorted(name for name in self._environ if name.startswith(PREFIX)):
            if variable not in NOT_SETTINGS:
                self._take(variable, values)
        return values

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        """The value of one group of settings, as every source of pydantic-settings can say it."""
        return self().get(field_name), field_name, False

    def spell(self, location: tuple[str | int, ...]) -> str:
        """The name of a setting as its author wrote it: the variable's where one was given, else the file's."""
        for length in range(len(location), 0, -1):
            variable = self._variables.get(location[:length])  # type: ignore[arg-type] # a path with an index misses
            if variable is not None:
                rest = field_path(location[length:])
                return variable + (f".{rest}" if rest and not rest.startswith("[") else rest)
        return field_path(location)

    def _take(self, variable: str, values: dict[str, Any]) -> None:
        path = tuple(variable.removeprefix(PREFIX).lower().split(SEPARATOR))
        field = _field(self.settings_cls, path)
        # Only the spelling in the documents counts, so that no two variables name one setting.
        if field is None or variable != PREFIX + SEPARATOR.join(path).upper():
            message = "is no setting; docs/settings.md lists them all"
            self.faults.append(Fault(field=variable, rule="unknown_variable", message=message))
            return
        text = self._environ[variable]
        try:
            value = orjson.loads(text) if self.field_is_complex(field) else text
        except orjson.JSONDecodeError as error:
            self.faults.append(Fault(field=variable, rule="json", message=f"must be JSON: {error.msg}"))
            return
        self._variables[path] = variable
        for group in path[:-1]:
            values = values.setdefault(group, {})
        values[path[-1]] = value


def _field(model: type[BaseModel], path: tuple[str, ...]) -> FieldInfo | None:
    """The setting that `path` names, which lies in a group of settings; None for a group or an unknown name."""
    for index, name in enumerate(path):
        field = model.model_fields.get(name)
        inner = None if field is None else field.annotation
        if not (isinstance(inner, type) and issubclass(inner, BaseModel)):
            return field if index == len(path) - 1 else None
        model = inner
    return None
