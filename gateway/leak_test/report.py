"""Turns findings into a matrix of who saw how much of whom, and into an object for programs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from gateway.leak_test.driver import OUTSIDE
from gateway.leak_test.expectation import Expectation
from gateway.leak_test.findings import Finding, Findings
from gateway.leak_test.markers import Mark, Sort
from gateway.leak_test.scratch import name_of
from gateway.leak_test.world import PlantedFile, PlantedMessage, PlantedSession, World

TEAM = "the team"


@dataclass(frozen=True, slots=True)
class Cell:
    """Of one person's marks: how many a caller was shown and may be, how many stayed hidden, how many leaked.

    That there is a session counts where it leaked, and otherwise in a column of its own.
    """

    seen: int
    hidden: int
    leaked: int

    def __str__(self) -> str:
        """`12/30`, or `LEAK 3`."""
        return f"LEAK {self.leaked}" if self.leaked else f"{self.seen}/{self.hidden}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What the command prints."""

    callers: tuple[str, ...]
    victims: tuple[str, ...]
    matrix: dict[str, dict[str, Cell]]  # by caller and victim
    kinds: dict[str, dict[str, Cell]]  # by caller and kind of content
    leaks: tuple[Finding, ...]
    lost: tuple[Finding, ...]
    not_driven: tuple[str, ...]
    blind: tuple[str, ...]  # what nobody saw, though the policy shows it to somebody who asked
    marks: int
    shown: int  # marks that reached somebody who may see them
    requests: dict[str, int]
    statuses: dict[int, int]
    compared: int
    decided: int
    seconds: float
    people: int

    @property
    def clean(self) -> bool:
        """Whether nothing is wrong."""
        return not (self.leaks or self.lost or self.not_driven or self.blind)

    @classmethod
    def of(cls, world: World, findings: Findings, expectation: Expectation, seconds: float) -> Report:
        """The report of a run."""
        callers = tuple(one.label for one in world.callers)
        marks = world.marks.all
        shown = {mark for label in callers for mark in findings.seen[label]}
        return cls(
            callers=callers,
            victims=tuple(_victims(world)),
            matrix={label: _cells(label, marks, _whose, findings, _CONTENT) for label in callers},
            kinds={label: _cells(label, marks, kind_of, findings, tuple(Sort)) for label in callers},
            leaks=_in_order(findings.leaks),
            lost=_in_order(findings.lost),
            not_driven=tuple(findings.not_driven),
            blind=() if shown else ("nothing at all was shown to anybody, so nothing was proved",),
            marks=len(marks),
            shown=len(shown),
            requests=dict(findings.requests),
            statuses=dict(sorted(findings.statuses.items())),
            compared=findings.compared,
            decided=expectation.asked,
            seconds=seconds,
            people=sum(one.plants for one in world.people),
        )

    def shape(self) -> dict[str, Any]:
        """For `--json`."""
        return {
            "clean": self.clean,
            "people": self.people,
            "marks": self.marks,
            "marks_shown": self.shown,
            "requests": sum(self.requests.values()),
            "refusals_compared": self.compared,
            "questions": self.decided,
            "seconds": round(self.seconds, 1),
            "leaks": [asdict(one) for one in self.leaks],
            "lost": [asdict(one) for one in self.lost],
            "not_driven": [*self.not_driven],
            "blind": [*self.blind],
            "matrix": _shape(self.matrix),
            "kinds": _shape(self.kinds),
            "requests_by_route": self.requests,
            "answers_by_status": {str(status): count for status, count in self.statuses.items()},
        }


def kind_of(mark: Mark) -> str:
    """The kind of content, as the second table has it."""
    where = mark.where
    if mark.sort is Sort.SESSION:
        return "that there is a session"
    if isinstance(where, PlantedMessage):
        where = where.session
    if isinstance(where, PlantedSession):
        if where.incognito:
            return "incognito"
        return "private sessions" if where.private else "shared sessions"
    if isinstance(where, PlantedFile):
        return "personal files" if where.owner is not None else "team files"
    return "addresses and tokens"


KINDS = (
    "private sessions",
    "incognito",
    "shared sessions",
    "personal files",
    "team files",
    "that there is a session",
    "addresses and tokens",
)
_CONTENT = (Sort.TITLE, Sort.MESSAGE, Sort.FILE)


def _in_order(found: Iterable[Finding]) -> tuple[Finding, ...]:
    """The same in every run, whichever answer came first; of each caller first what is seen from outside sessions."""
    return tuple(sorted(found, key=lambda one: (one.who, one.origin != OUTSIDE, str(one))))


def _victims(world: World) -> Iterable[str]:
    yield from (name_of(one) for one in world.people if one.plants)
    yield TEAM


def _whose(mark: Mark) -> str:
    return TEAM if isinstance(mark.where, PlantedFile) and mark.where.owner is None else mark.whose


def _cells(
    label: str, marks: Sequence[Mark], by: Callable[[Mark], str], findings: Findings, sorts: Sequence[Sort]
) -> dict[str, Cell]:
    found: dict[str, list[int]] = {}
    seen, leaked = findings.seen[label], findings.leaked[label]
    for mark in marks:
        counts = found.setdefault(by(mark), [0, 0, 0])
        if mark in leaked:
            counts[2] += 1
        elif mark.sort in sorts:
            counts[0 if mark in seen else 1] += 1
    return {name: Cell(*counts) for name, counts in found.items()}


def _shape(matrix: dict[str, dict[str, Cell]]) -> dict[str, dict[str, dict[str, int]]]:
    return {one: {other: asdict(cell) for other, cell in cells.items()} for one, cells in matrix.items()}
