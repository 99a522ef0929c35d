"""Turns what a caller sent as JSON into typed arguments, or into every fault at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from gateway.errors import Fault, Invalid, field_path

ArgumentsT = TypeVar("ArgumentsT", bound="Arguments")


class Arguments(BaseModel):
    """The base of all argument models: no unknown fields, no silent conversions."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, populate_by_name=True)


def parse(model: type[ArgumentsT], data: object) -> ArgumentsT:
    """The arguments. Raises Invalid with each fault's field, rule and message; values are not repeated in them."""
    if type(data) is not dict and not isinstance(data, Mapping):
        raise Invalid.of("body", "object", "Send a JSON object.")
    try:
        return model.model_validate(data)
    except ValidationError as error:
        found = error.errors(include_url=False, include_context=False, include_input=False)
        raise Invalid([_fault(one["loc"], one["type"], one["msg"]) for one in found]) from None


def schema(model: type[Arguments]) -> dict[str, object]:
    """The JSON schema of the arguments, by the names that callers use."""
    described = model.model_json_schema(by_alias=True)
    described.pop("title", None)
    return described


def _fault(location: tuple[int | str, ...], rule: str, message: str) -> Fault:
    field = field_path(location) or "body"
    if rule == "extra_forbidden":
        message = "There is no such field."
    message = message.removeprefix("Value error, ")
    return Fault(field=field, rule=rule, message=message)
