"""Turns a probe into a request, and its answer into findings: whatever is in it has to be somebody's to see."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, unquote

import orjson

from gateway.leak_test.asgi import Answer, App, ask
from gateway.leak_test.expectation import Expectation
from gateway.leak_test.findings import Findings
from gateway.leak_test.markers import Hit, Mark, Sort
from gateway.leak_test.world import Caller, PlantedSession, World
from gateway.model import Action, Resource

OUTSIDE = "outside"
NO_SESSION = "ses_00000000000000000000000000"
_CHANGES = re.compile(rb"(?:req|dec|msg|ses|trn)_[0-9A-HJKMNP-TV-Z]{26}|\"epoch\":\s*\d+")
_PASSING_HEADERS = (b"x-request-id", b"gateway-epoch", b"content-length")

Shows = Mapping[Sort, Action]


@dataclass(frozen=True, slots=True, kw_only=True)
class Twin:
    """The same request about what is not there: where the thing itself is denied, the answers must be the same."""

    target: str
    body: object = None
    real: str  # what only the request names, and what the twin names in its place
    other: str
    whose: str
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """One request, and what may be in its answer: `shows` says by which right each sort of thing may be there.

    A sort that is not named may never be there. `by_function` names those that a right over a function of the gateway
    shows, whoever's they are: the audit names sessions by their keys.
    """

    caller: Caller
    row: str
    method: str
    target: str
    body: object = None
    headers: tuple[tuple[bytes, bytes], ...] = ()
    origin: PlantedSession | None = None
    turn: str | None = None
    shows: Shows = field(default_factory=dict)
    by_function: Mapping[Sort, tuple[Action, Resource]] = field(default_factory=dict)
    quotes: bool = False  # it repeats what anybody of the organisation called something: ids are not told by it
    due: tuple[Mark, ...] = ()  # what has to be in the answer where it may be
    twin: Twin | None = None  # only where the thing is denied


@dataclass(frozen=True, slots=True)
class Seen:
    """An answer, and the marks that were in it."""

    answer: Answer
    marks: frozenset[Mark]

    @property
    def json(self) -> Any:
        """The body; an empty object where it is no JSON object."""
        try:
            found = orjson.loads(self.answer.body)
        except orjson.JSONDecodeError:
            return {}
        return found if isinstance(found, dict) else {}


class Driver:
    """Sends probes and notes what comes of them."""

    def __init__(
        self,
        app: App,
        world: World,
        expectation: Expectation,
        findings: Findings,
        wanted: Callable[[str], bool] = lambda _row: True,
    ) -> None:
        """`wanted` leaves rows of the table out, for a run that is about some of them."""
        self.world = world
        self.expectation = expectation
        self.findings = findings
        self.wanted = wanted
        self.words: dict[str, set[str]] = {}  # the arguments that were sent, by row
        self.decisions: dict[str, str] = {}  # the id of somebody's decision, by caller, for others to ask about
        self.cursors: dict[str, str] = {}  # somebody's place in a list, for others to try
        self._app = app
        self._twins: dict[tuple[object, ...], tuple[object, ...]] = {}

    async def send(self, probe: Probe) -> Seen:
        """The answer to a probe, judged."""
        if not self.wanted(probe.row):
            return Seen(Answer(0, (), b""), frozenset())
        answer = await self._ask(probe, probe.target, probe.body)
        marks = frozenset(self._judge(probe, answer))
        self._structure(probe, answer)
        for mark in probe.due:
            if mark not in marks and self.may_show(probe, mark):
                self.findings.miss(probe.caller, mark, probe.row, place(probe.origin))
        if probe.twin is not None:
            await self._compare(probe, probe.twin, answer)
        return Seen(answer, marks)

    def due(self, probe: Probe, marks: Iterable[Mark], seen: frozenset[Mark]) -> None:
        """What all pages of a list together have to show."""
        for mark in marks if self.wanted(probe.row) else ():
            if mark not in seen and self.may_show(probe, mark):
                self.findings.miss(probe.caller, mark, probe.row, place(probe.origin))

    def may_show(self, probe: Probe, mark: Mark) -> bool:
        """Whether the answer to this probe may hold the mark."""
        caller = probe.caller
        function = probe.by_function.get(mark.sort)
        ours = probe.quotes or _tenant_of(mark, caller) == caller.tenant
        if function is not None and ours and self.expectation.function(caller, *function):
            return True
        return self.expectation.shows(caller, probe.origin, probe.turn, probe.shows.get(mark.sort), mark)

    # ── one answer ───────────────────────────────────────────────────────────────────────────────────────────────────

    async def _ask(self, probe: Probe, target: str, body: object) -> Answer:
        self._note_words(probe, target, body)
        sent = _sent(body)
        headers = (*probe.caller.headers, *probe.headers)
        answer = await ask(self._app, probe.method, target, headers, sent)
        self.findings.requests[probe.row] += 1
        self.findings.statuses[answer.status] += 1
        return answer

    def _note_words(self, probe: Probe, target: str, body: object) -> None:
        words = self.words.setdefault(probe.row, set())
        if isinstance(body, dict):
            words.update(body)
        query = target.partition("?")[2]
        words.update(pair.partition("=")[0] for pair in query.split("&") if pair)

    def _judge(self, probe: Probe, answer: Answer) -> Iterator[Mark]:
        sent = unquote(probe.target).lower().encode()
        sent += (_sent(probe.body) or b"").lower()
        for hit in self.world.marks.find(answer.bytes):
            if hit.text in sent:  # an echo of the caller's own words
                continue
            yield hit.mark
            self._one(probe, hit)

    def _one(self, probe: Probe, hit: Hit) -> None:
        if self.may_show(probe, hit.mark):
            if not (probe.quotes and _tenant_of(hit.mark, probe.caller) != probe.caller.tenant):
                self.findings.seen[probe.caller.label].add(hit.mark)
            return
        how = "shown" if hit.form == "as it is" else f"shown ({hit.form})"
        self.findings.leak(probe.caller, hit.mark, probe.row, place(probe.origin), how)

    def _structure(self, probe: Probe, answer: Answer) -> None:
        """What is left out of a context has neither a hash nor a size (design section 6); an audit is one tenant's."""
        if probe.quotes and answer.status == 200:
            for record in orjson.loads(answer.body).get("items", ()):
                if record["tenant"] != probe.caller.tenant:
                    how = "a record of another organisation"
                    self.findings.told(probe.caller, record["tenant"], "audit", probe.row, OUTSIDE, how)
        if b'"manifest"' not in answer.body:
            return
        found = orjson.loads(answer.body)
        for entry in found.get("manifest") or found.get("context", {}).get("manifest", ()):
            if not entry["included"] and (entry["sha256"] is not None or entry["units"] is not None):
                how = "left out of the context, and yet its hash or size is told"
                self.findings.told(probe.caller, "", entry["path"], probe.row, place(probe.origin), how)

    # ── refusals ─────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _compare(self, probe: Probe, twin: Twin, answer: Answer) -> None:
        """Denied looks like missing: the same status, headers and body, but for the ids of the request."""
        body = _sent(twin.body)
        key = (probe.caller.label, probe.method, twin.target, body, probe.headers)
        missing = self._twins.get(key)
        if missing is None:
            missing = self._twins[key] = _plain(await self._ask(probe, twin.target, twin.body), twin)
        self.findings.compared += 1
        if _plain(answer, twin) != missing:
            how = f"the answer ({answer.status}) is not that of something that is not there ({missing[0]})"
            self.findings.told(probe.caller, twin.whose, twin.what, probe.row, place(probe.origin), how)


def place(origin: PlantedSession | None) -> str:
    """Where a request is made from, for people."""
    return OUTSIDE if origin is None else f"{origin.owner.name}'s {origin.what}"


def in_path(reference: str) -> str:
    """A session's key or id as it stands in a path."""
    return quote(reference, safe="")


def _tenant_of(mark: Mark, caller: Caller) -> str:
    return str(getattr(mark.where, "tenant", caller.tenant))


def _sent(body: object) -> bytes | None:
    """A body as it is sent; bytes are sent as they are."""
    return body if isinstance(body, bytes) or body is None else orjson.dumps(body)


def _plain(answer: Answer, twin: Twin) -> tuple[object, ...]:
    """An answer without what may differ between two that are alike."""
    body = answer.body
    for word in (twin.real, twin.other):
        for spelled in {word, in_path(word)} if word else ():
            body = body.replace(spelled.encode(), b"<it>")
    headers = sorted((name, _CHANGES.sub(b"<id>", value)) for name, value in answer.headers
                     if name not in _PASSING_HEADERS)  # fmt: skip
    return answer.status, tuple(headers), _CHANGES.sub(b"<id>", body)
