"""How long one decision takes: slices against one plain Casbin enforcer with all rows, in the same run.

    python -m bench.decision [--json]

*Warm*: the answer is remembered. *Cold*: nobody with these roles has asked about this agent and resource yet; the slice
and its Casbin enforcer are built and asked. Both are timed one decision at a time, the timer's own cost included, in
several rounds over all cases, of which the least disturbed counts. Documents grow by more agents; one subject has 10 or
32 rows on each. Then the people grow: each of them asks once before we measure.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import random
import statistics
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from itertools import product
from time import perf_counter_ns

from gateway.model import Action, AgentName, Chat, Question, Relation, Resource, Whose
from gateway.policy.documents import Document, parse
from gateway.policy.plain import PlainEnforcer
from gateway.policy.snapshot import Snapshot

NOW = datetime(2030, 1, 1, tzinfo=UTC)
ROWS = (10, 1_000, 100_000)
PEOPLE = (10, 1_000, 100_000, 1_000_000)
ROUNDS, WARM_SAMPLES, COLD_SAMPLES = 5, 10_000, 200
PLAIN_LIMIT_S = 2.0
PLAIN_BUDGET_S = 6.0

Figures = dict[str, float]
Asked = tuple[frozenset[str], Question]


def document_of(rows: int, each: int) -> Document:
    """`rows` rows, `each` of them for role:member on every agent, about all resources, one in ten a deny."""
    agents = -(-rows // each)
    lines = [line for number in range(agents) for line in rows_of(f"agent{number}", each)]
    return parse("\n".join(lines[:rows]))


def rows_of(agent: str, count: int) -> list[str]:
    """Different rows of one subject on one agent."""
    dice = random.Random(agent)
    patterns = (*(str(resource) for resource in Resource), "session/*", "memory/*", "memory/personal/*")
    words = product(patterns, ("self", "tree", "agent", "all"), ("own", "shared", "any"), ("private", "group", "*"))
    chosen = dice.sample(list(words), count)
    actions = ("*", "read", "write", "history", "load", "append")
    return [
        f"p, role:member, {agent}, {', '.join(fields)}, {dice.choice(actions)}, {dice.choice(['allow'] * 9 + ['deny'])}"
        for fields in chosen
    ]


def person(number: int) -> frozenset[str]:
    """The subject set of a plain member, built anew as a request does."""
    return frozenset({f"user:prf_{number:026d}", "role:member", "*"})


def question(dice: random.Random, agent: str) -> Question:
    """A question about anything of one agent."""
    return Question(
        AgentName(agent),
        dice.choice(tuple(Resource)),
        dice.choice(tuple(Relation)),
        dice.choice(tuple(Whose)),
        dice.choice(tuple(Chat)),
        dice.choice(tuple(Action)),
    )


def timed(ask: Callable[[Asked], object], requests: Sequence[Asked]) -> list[float]:
    """Microseconds of each call."""
    took = []
    for request in requests:
        start = perf_counter_ns()
        ask(request)
        took.append((perf_counter_ns() - start) / 1_000)
    return took


class Case:
    """One document and so many people, with the best of several rounds of each kind."""

    def __init__(self, name: str, document: Document, people: int) -> None:
        self.name = name
        self._document = document
        self._people = people
        self._agents = list(dict.fromkeys(row.agent for row in document.rows))
        self._snapshot = Snapshot(document, 1, NOW)
        self._dice = random.Random(name)
        self.warm: list[float] = []
        self.cold: list[float] = []
        self.plain: list[float] = []

    def everybody_asks(self) -> None:
        """One decision of each person, so that whatever people leave behind is there when we measure."""
        first = question(self._dice, self._agents[0])
        for number in range(self._people):
            self._snapshot.decide(person(number), first, NOW)

    def round(self) -> None:
        """Measures once more; the round that was disturbed least counts."""
        self.warm = quicker(self.warm, self._remembered())
        self.cold = quicker(self.cold, self._first())

    def _remembered(self) -> list[float]:
        questions = [question(self._dice, agent) for agent in self._agents[:8] for _ in range(16)]
        requests = [(self._somebody(), self._dice.choice(questions)) for _ in range(WARM_SAMPLES)]
        for each in questions:
            self._snapshot.decide(person(0), each, NOW)
        return timed(lambda asked: self._snapshot.decide(asked[0], asked[1], NOW), requests)

    def _first(self) -> list[float]:
        """Each on an agent and a resource that nobody asked about in that snapshot."""
        took: list[float] = []
        while len(took) < COLD_SAMPLES:
            snapshot = Snapshot(self._document, 1, NOW)
            places = [(agent, resource) for agent in self._agents[:COLD_SAMPLES] for resource in Resource]
            self._dice.shuffle(places)
            requests = [
                (self._somebody(), question(self._dice, agent)._replace(resource=resource))
                for agent, resource in places[: COLD_SAMPLES - len(took)]
            ]
            took += timed(lambda asked, fresh=snapshot: fresh.decide(asked[0], asked[1], NOW), requests)  # type: ignore[misc]  # bound now
        return took

    def ask_plain(self) -> None:
        """The same questions to one plain enforcer; none where a single decision takes over `PLAIN_LIMIT_S`."""
        enforcer = PlainEnforcer(self._document, NOW)
        took: list[float] = []
        while sum(took) < PLAIN_BUDGET_S * 1e6 and len(took) < COLD_SAMPLES:
            request = (self._somebody(), question(self._dice, self._dice.choice(self._agents)))
            took += timed(lambda asked: enforcer.decide(asked[0], asked[1]), [request])
            if took[-1] > PLAIN_LIMIT_S * 1e6:
                return
        self.plain = took

    def figures(self) -> Figures:
        """Microseconds, and how much the snapshot remembers."""
        slices, answers = self._snapshot.remembered
        kept: Figures = {"slices_kept": slices, "answers_kept": answers}
        return measured(self.warm, self.cold, self.plain) | kept

    def _somebody(self) -> frozenset[str]:
        return person(self._dice.randrange(self._people))


def quicker(one: list[float], other: list[float]) -> list[float]:
    """The samples with the lower median; an empty list is none."""
    return min((took for took in (one, other) if took), key=statistics.median)


def cases() -> list[Case]:
    """Growing documents for ten people, then growing numbers of people over 1,000 rows."""
    found = [
        Case(f"rows_{max(rows, each)}_each_{each}", document_of(max(rows, each), each), 10)
        for each, rows in product((10, 32), ROWS)
    ]
    thousand = document_of(1_000, 32)
    return [*found, *(Case(f"people_{people}", thousand, people) for people in PEOPLE)]


def measured(warm_us: list[float], cold_us: list[float], plain_us: list[float] | None) -> Figures:
    """p50 and p99 of each kind, in microseconds."""
    figures: Figures = {}
    for name, took in (("warm", warm_us), ("cold", cold_us), ("plain", plain_us)):
        if took:
            figures[f"{name}_p50_us"] = round(statistics.median(took), 3)
            figures[f"{name}_p99_us"] = round(sorted(took)[int(len(took) * 0.99)], 3)
    return figures


def table(name: str, figures: Figures) -> str:
    """One line for people."""
    cells = []
    for kind in ("warm", "cold", "plain"):
        for part in ("p50", "p99"):
            value = figures.get(f"{kind}_{part}_us")
            cells.append(f"{value:>13,.2f}" if value is not None else "  > 2 s, not run"[-13:])
    return f"{name:<24}" + "".join(cells)


def flatness(figures: Figures) -> Figures:
    """The slowest p50 over the fastest, along rows and along people."""
    found: Figures = {}
    for kind in ("warm", "cold"):
        for axis, pick in (("rows_each_10", "each_10"), ("rows_each_32", "each_32"), ("people", "people_")):
            p50 = [value for name, value in figures.items() if pick in name and name.endswith(f"{kind}_p50_us")]
            found[f"flat_{kind}_{axis}"] = round(max(p50) / min(p50), 2)
    return found


def run(measured_cases: list[Case]) -> list[Case]:
    """Everything, in rounds over all cases, so that a busy moment of the machine does not hit one case alone."""
    for case in measured_cases:
        case.everybody_asks()
    gc.collect()
    gc.freeze()  # the documents of all cases at once are our doing; no request pays for walking them
    for _ in range(ROUNDS):
        for case in measured_cases:
            case.round()
    for case in measured_cases:
        case.ask_plain()
    return measured_cases


def main() -> None:
    """Runs everything and prints it."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    arguments.add_argument("--json", action="store_true")
    as_json = arguments.parse_args().json
    heads = [f"{kind} {part} µs" for kind in ("warm", "cold", "plain") for part in ("p50", "p99")]
    if not as_json:
        print(f"{'':<24}" + "".join(f"{head:>13}" for head in heads))
    all_figures: Figures = {}
    for case in run(cases()):
        all_figures |= {f"{case.name}_{key}": value for key, value in case.figures().items()}
        if not as_json:
            print(table(case.name, case.figures()), flush=True)
    all_figures |= flatness(all_figures)
    machine = {"python": platform.python_version(), "system": platform.platform(), "cpus": os.cpu_count()}
    if as_json:
        print(json.dumps({"bench": "decision", "machine": machine, "figures": all_figures}))
    else:
        for name in (name for name in all_figures if name.startswith("flat_")):
            print(f"{name:<32}{all_figures[name]:>6.2f} ×")


if __name__ == "__main__":
    main()
