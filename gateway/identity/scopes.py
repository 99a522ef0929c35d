"""Turns the words of a credential into the areas of the gateway that it reaches (ports: `Principal.scopes`)."""

from __future__ import annotations

from collections.abc import Iterable

EVERYTHING = "*"
DECIDE = "decide"  # asking for decisions about others (AuthZEN): named in a token, and no part of `gateway`
AREAS = frozenset({"session", "memory", "admin", "gateway", DECIDE, EVERYTHING})


def areas_in(words: Iterable[str], prefix: str) -> frozenset[str]:
    """The areas among `words`, each without `prefix`; words that are not ours are other services' business."""
    ours = (word.removeprefix(prefix) for word in words if word.startswith(prefix))
    return AREAS & frozenset(ours)


def common(held: Iterable[frozenset[str]]) -> frozenset[str]:
    """What every one of several credentials reaches."""
    limits = [one for one in held if EVERYTHING not in one]
    return frozenset.intersection(*limits) if limits else frozenset({EVERYTHING})


def reaches(held: frozenset[str], wanted: frozenset[str]) -> bool:
    """Whether a credential with `held` may hand on `wanted`: never more than it has itself."""
    return EVERYTHING in held or wanted <= held
