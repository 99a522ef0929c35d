"""Turns `g` rows into what a set of subjects holds altogether, and finds the rows that make that endless."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from gateway.policy.rows import Link

# Casbin's role manager stops looking after ten levels and then denies; nobody should depend on where.
MOST_LEVELS: Final = 8


class Inheritance:
    """The `g` rows of one document, by child."""

    def __init__(self, links: Sequence[Link]) -> None:
        self._parents: dict[str, list[Link]] = {}
        for link in links:
            self._parents.setdefault(link.child, []).append(link)

    def closed(self, subjects: Iterable[str]) -> frozenset[str]:
        """The subjects and every role they hold through `g`."""
        held = set(subjects)
        fresh = list(held)
        while fresh:
            for link in self._parents.get(fresh.pop(), ()):
                if link.parent not in held:
                    held.add(link.parent)
                    fresh.append(link.parent)
        return frozenset(held)

    def faults(self) -> tuple[tuple[Link, ...], tuple[Link, ...]]:
        """The links that close a circle, and those that make a chain longer than `MOST_LEVELS`."""
        circles: list[Link] = []
        height: dict[str, int] = {}  # 0 while its parents are still being walked
        for role in self._parents:
            if role not in height:
                self._walk(role, height, circles)
        return tuple(circles), () if circles else tuple(self._too_high(height))

    def _walk(self, role: str, height: dict[str, int], circles: list[Link]) -> None:
        """Depth first without recursion, so that a long chain can't exhaust the stack."""
        height[role] = 0
        path = [(role, iter(self._parents.get(role, ())))]
        while path:
            here, links = path[-1]
            link = next(links, None)
            if link is None:
                path.pop()
                above = (height[each.parent] for each in self._parents.get(here, ()))
                height[here] = 1 + max(above, default=0)
            elif link.parent not in height:
                height[link.parent] = 0
                path.append((link.parent, iter(self._parents.get(link.parent, ()))))
            elif height[link.parent] == 0:
                circles.append(link)

    def _too_high(self, height: dict[str, int]) -> Iterator[Link]:
        """The link at which a chain passes the limit; the ones below it would only repeat that."""
        for links in self._parents.values():
            yield from (link for link in links if height[link.parent] == MOST_LEVELS + 1)
