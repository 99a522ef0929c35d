"""Turns the place that somebody wants to go on to after signing in into a path of ours, whatever was asked for."""

from __future__ import annotations

import re
from urllib.parse import unquote

AFTER_SIGN_IN = "/signed-in"
_LONGEST = 2_048
_ROUNDS = 5  # of decoding; what is encoded more often than that is no path of ours
_PLAIN = re.compile(r"/[\x21-\x7e]*", re.ASCII)


def on_this_origin(wanted: str | None) -> str:
    """`wanted`, if it can only be a path of this origin; else where a sign-in goes on by itself.

    A browser reads `//host`, `/\\host` and the same with tabs and line ends in between as another origin (WHATWG URL,
    "relative slash state"). A proxy may decode once more than we do, so no decoded form may hold any of these either.
    """
    if wanted is None or len(wanted) > _LONGEST or not _PLAIN.fullmatch(wanted):
        return AFTER_SIGN_IN
    form = wanted
    for _ in range(_ROUNDS):
        if not _is_safe(form):
            return AFTER_SIGN_IN
        decoded = unquote(form, errors="replace")
        if decoded == form:
            return wanted
        form = decoded
    return AFTER_SIGN_IN


def _is_safe(form: str) -> bool:
    return form.startswith("/") and "//" not in form and "\\" not in form and form.isprintable()
