"""Turns an email address into the one spelling it is compared by (design section 5: trimmed and case-folded)."""

from __future__ import annotations

import re
import string

_ADDRESS = re.compile(r"[^@\s\x00-\x1f\x7f]{1,64}@[^@\s\x00-\x1f\x7f]{1,189}")
_ASCII_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)


def fold(email: str) -> str:
    """The spelling that is stored and compared."""
    return email.strip().casefold()


def is_address(email: str) -> bool:
    """Whether the folded text is shaped like one address: something, an at sign, something."""
    return _ADDRESS.fullmatch(fold(email)) is not None


def is_unambiguous(email: str) -> bool:
    """Whether folding changes nothing but A to Z.

    Case folding also turns the Kelvin sign into "k" and "ß" into "ss", so that two mailboxes would become one address
    and whoever registers the odd spelling would inherit the other's profile.
    """
    return email.strip().translate(_ASCII_LOWER) == fold(email)
