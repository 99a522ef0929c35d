"""Tests that one address has one spelling, and two mailboxes never share it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.identity.emails import fold, is_address, is_unambiguous


@given(st.emails())
def test_folding_is_stable_and_ignores_case_and_space_around(email: str) -> None:
    """Design section 5: emails are compared trimmed and case-folded everywhere."""
    assert fold(fold(email)) == fold(email) == fold(f" {email}\t") == fold(email.upper())


@pytest.mark.parametrize(
    ("text", "address", "unambiguous"),
    [
        ("Alice@Acme.Example", True, True),
        ("josé@acme.example", True, True),
        ("alice", False, True),
        ("alice@", False, True),
        ("@acme.example", False, True),
        ("a@b@c", False, True),
        ("alice bob@acme.example", False, True),
        ("alice@acme.example\nbcc: x", False, True),
        ("alice@acme\x00.example", False, True),
        ("a" * 65 + "@acme.example", False, True),
        ("mi\u212ae@acme.example", True, False),
        ("straße@acme.example", True, False),
        ("JOSÉ@acme.example", True, False),
    ],
)
def test_an_address_is_one_line_with_one_at_and_no_letter_that_becomes_another(
    text: str, address: bool, unambiguous: bool
) -> None:
    """Who registers a look-alike that folds to another's address must not get that one's profile."""
    assert is_address(text) is address
    assert is_unambiguous(text) is unambiguous
