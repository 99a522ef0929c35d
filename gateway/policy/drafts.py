"""Turns two documents into the rows that are in one of them alone, and the one agent that all of those are about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from gateway.model import ANY_AGENT, AgentName
from gateway.policy.differences import links_apart, rows_apart
from gateway.policy.documents import Document
from gateway.policy.rows import ANY, Link, Row

_ABOUT_THE_PLACE: Final = ("admin/", "gateway")


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A document that is to be put in force on top of another."""

    base_version: int
    before: Document
    after: Document
    rows: tuple[Row, ...]  # added or taken out
    links: tuple[Link, ...]

    @property
    def agent(self) -> AgentName:
        """The agent that every change is about, or `*`: also for a `g` row, and where nothing but comments changes."""
        agents = {row.agent for row in self.rows}
        return AgentName(agents.pop()) if len(agents) == 1 and not self.links else ANY_AGENT

    @property
    def about_the_place(self) -> bool:
        """Whether a change speaks of running the place, which is no agent's."""
        return any(_speaks_of_the_place(row.resource) for row in self.rows)

    @property
    def subjects(self) -> frozenset[str]:
        """Whom the changed rows are for."""
        return frozenset({row.subject for row in self.rows} | {link.child for link in self.links})


def draft(base_version: int, before: Document, after: Document) -> Draft:
    """What is different. Reads each row once, which takes a while for long documents: run it in a thread."""
    gone, come = rows_apart(before, after)
    gone_links, come_links = links_apart(before, after)
    return Draft(
        base_version=base_version,
        before=before,
        after=after,
        rows=(*gone, *come),
        links=(*gone_links, *come_links),
    )


def _speaks_of_the_place(pattern: str) -> bool:
    return pattern == ANY or pattern.startswith(_ABOUT_THE_PLACE)
