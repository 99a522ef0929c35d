"""What was sent becomes typed arguments, or every fault at once (interface, "Conventions")."""

from __future__ import annotations

import pytest

from gateway.errors import Invalid
from gateway.tools.arguments import Arguments, parse


class Role(Arguments):
    """A part of a body."""

    role: str


class Person(Arguments):
    """A body."""

    name: str
    roles: list[Role]


def test_faults_of_a_body_carry_their_full_names_and_no_values() -> None:
    """A problem names the field and the rule; what was sent is not repeated."""
    with pytest.raises(Invalid) as caught:
        parse(Person, {"roles": [{"role": "member"}, {"role": 4711}], "nick": "al"})

    assert [(fault.field, fault.rule) for fault in caught.value.faults] == [
        ("name", "missing"),
        ("roles[1].role", "string_type"),
        ("nick", "extra_forbidden"),
    ]
    assert not any("4711" in fault.message for fault in caught.value.faults)


@pytest.mark.parametrize("sent", [3, None, [], "text"])
def test_what_is_no_object_is_one_fault_of_the_body(sent: object) -> None:
    """Whatever else JSON can be."""
    with pytest.raises(Invalid) as caught:
        parse(Person, sent)

    assert [(fault.field, fault.rule) for fault in caught.value.faults] == [("body", "object")]
