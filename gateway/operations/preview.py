"""What a draft would change, and what a publishing did change: replayed and compared; nothing is published."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Annotated, Final

from pydantic import Field

from gateway.errors import Conflict, NotFound, RateLimited
from gateway.model import Action, Profile, ProfileId, Resource, TenantId
from gateway.operations.comparing import Compared, Decisions, Documents, LookedBackOn, compare
from gateway.operations.found import function
from gateway.operations.population import Holders, Population
from gateway.policy.collector import without_full_walks
from gateway.policy.documents import parse
from gateway.policy.flips import Summary
from gateway.policy.in_force import RightsInForce
from gateway.policy.lockout import publishable
from gateway.policy.permit import Permit
from gateway.policy.population import GUEST, Affected, SessionsChanged, affected, sessions_in
from gateway.policy.replay import periods
from gateway.policy.rows import Row
from gateway.policy.targets import FunctionTarget
from gateway.ports import Audit, Policies, Sessions, SessionTally
from gateway.raising.publishing import PublishingIsWeighed
from gateway.tools.arguments import Arguments
from gateway.tools.registry import AnyOperation, Operation
from gateway.turn import Turn

FAMILY = (Resource.ADMIN_POLICY,)
MOST_DECISIONS: Final = 200_000
MOST_SESSIONS: Final = 10_000  # of a kind that are counted
MOST_KINDS: Final = 20
_NEWEST: Final = 3
RETRY_AFTER_S: Final = 10  # no preview takes longer


class PreviewBody(Arguments):
    """`POST /v1/admin/policy/preview`."""

    text: str
    days: Annotated[int, Field(ge=1, le=90)] = 7


@dataclass(frozen=True, slots=True)
class Watching:
    """Arguments of a watch: since which version; None for the one in force."""

    version: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """What would change, or did."""

    base: int  # the version that is compared with
    version: int | None  # the one that is looked back on; None for a draft
    epoch: int
    since: datetime
    until: datetime
    decisions: Decisions
    summary: Summary
    affected: Sequence[Affected]  # first those whom nobody knows, then by how many they are
    sessions: Sequence[tuple[SessionsChanged, SessionTally]]
    left_out: int  # people named by rows that are too many to be looked at one by one
    names: dict[ProfileId, Profile]
    ends: Sequence[Row]
    faults: Sequence[str] = ()  # why publishing would be refused, whoever asks
    raises: Sequence[str] = ()  # why only an owner can publish it


class PreviewOperations:
    """Builds the operations. One preview of a tenant runs at a time: it reads much."""

    def __init__(
        self,
        *,
        policies: Policies,
        audit: Audit,
        sessions: Sessions,
        population: Population,
        publishing: PublishingIsWeighed,
        rights: RightsInForce,
    ) -> None:
        self._policies = policies
        self._audit = audit
        self._sessions = sessions
        self._population = population
        self._publishing = publishing
        self._rights = rights
        self._running: set[TenantId] = set()
        self.preview: AnyOperation = Operation(
            name="policy.preview",
            summary="Says who would gain and lose what by a draft; nothing is published.",
            action=Action.READ,
            family=FAMILY,
            find=_find_preview,
            run=self._run_preview,
        )
        self.watch: AnyOperation = Operation(
            name="policy.watch",
            summary="Says which decisions since a publishing came out otherwise because of it.",
            action=Action.READ,
            family=FAMILY,
            find=_find_watch,
            run=self._run_watch,
        )

    async def _run_preview(self, _permit: Permit[FunctionTarget], turn: Turn, body: PreviewBody) -> Preview:
        with self._alone(turn), without_full_walks():
            after = await asyncio.to_thread(parse, body.text)
            snapshot, since = turn.state.snapshot, turn.at - timedelta(days=body.days)
            documents = Documents(before=snapshot.document, after=after, base=snapshot.version, since=since)
            found, compared = await self._compared(turn, documents)
            weighed = await self._publishing.weigh(turn.requester, turn.state, compared.draft, turn.at)
            faults = await asyncio.to_thread(publishable, after)
            return replace(
                found, faults=[one.message for one in faults], raises=[one.detail for one in weighed.reasons]
            )

    async def _run_watch(self, _permit: Permit[FunctionTarget], turn: Turn, asked: Watching) -> Preview:
        """What the version decided while it was in force, against the document before it as it stood then."""
        number = turn.state.snapshot.version if asked.version is None else asked.version
        earlier, version, later = [await self._policies.version(turn.tenant, number + step) for step in (-1, 0, 1)]
        if version is None:
            raise NotFound
        if earlier is None:
            raise Conflict(f"Version {number} was the first: there is none before it to compare it with.")
        with self._alone(turn), without_full_walks():
            before, after = await asyncio.to_thread(lambda: (parse(earlier.text), parse(version.text)))
            until = later.published_at if later is not None else None
            begins = await asyncio.to_thread(periods, before, version.published_at, until or turn.at)
            looked_at = LookedBackOn(number=number, since=version.published_at, until=until, begins=begins)
            documents = Documents(
                before=before, after=after, base=earlier.version, since=looked_at.since, version=looked_at
            )
            return (await self._compared(turn, documents))[0]

    @contextmanager
    def _alone(self, turn: Turn) -> Iterator[None]:
        """Held while one runs. Raises RateLimited where another one of the tenant does."""
        if turn.tenant in self._running:
            raise RateLimited(
                "A preview of your organisation is running. Try again when it is done.",
                headers={"Retry-After": str(RETRY_AFTER_S)},
            )
        self._running.add(turn.tenant)
        try:
            yield
        finally:
            self._running.discard(turn.tenant)

    async def _compared(self, turn: Turn, documents: Documents) -> tuple[Preview, Compared]:
        version = documents.version
        made_by = version.made() if version is not None else None
        recorded = await self._audit.decisions(turn.tenant, documents.since, most=MOST_DECISIONS, made_by=made_by)
        rights = await self._rights.of(turn.state, turn.at) if version is None else None
        agents = tuple(turn.state.agents)
        compared = await asyncio.to_thread(compare, documents, rights, agents, recorded, turn.at)
        holders, left_out = await self._holders(turn, compared)
        found = await asyncio.to_thread(affected, compared.change, holders)
        summary = compared.summary
        concerned = {one.name for one in summary.by_person} | {one.recorded.profile for one in summary.examples}
        preview = Preview(
            base=documents.base,
            version=version.number if version is not None else None,
            epoch=turn.state.epoch,
            since=documents.since,
            until=turn.at if version is None or version.until is None else version.until,
            decisions=compared.decisions,
            summary=summary,
            sessions=await self._sessions_in(turn.tenant, found),
            affected=sorted(found, key=lambda one: (one.holder.kind != GUEST, -one.people)),
            left_out=left_out,
            names={one.id: one for one in await self._population.profiles(turn.tenant, _ids(concerned))},
            ends=compared.ends,
        )
        return preview, compared

    async def _holders(self, turn: Turn, compared: Compared) -> tuple[Holders, int]:
        if not compared.draft.rows and not compared.draft.links:
            return [], 0
        return await self._population.holders(turn.tenant, compared.named, compared.subjects)

    async def _sessions_in(
        self, tenant: TenantId, found: Sequence[Affected]
    ) -> Sequence[tuple[SessionsChanged, SessionTally]]:
        """The kinds of sessions, with how many there are of each."""
        changed = sessions_in(found)[:MOST_KINDS]
        kinds = [(one.agent, one.resource is Resource.SESSION_PRIVATE) for one in changed]
        counted = await self._sessions.tally(tenant, kinds, most=MOST_SESSIONS, newest=_NEWEST) if kinds else ()
        return list(zip(changed, counted, strict=True))


def _ids(some: Iterable[str | None]) -> list[ProfileId]:
    return [ProfileId(one) for one in sorted(filter(None, some))]


async def _find_preview(turn: Turn, body: PreviewBody) -> FunctionTarget:
    """The draft by its hash: its text is in nobody's record."""
    digest = await asyncio.to_thread(lambda: hashlib.sha256(body.text.encode(errors="surrogatepass")).hexdigest())
    return function(turn, Resource.ADMIN_POLICY, f"draft {digest}")


async def _find_watch(turn: Turn, asked: Watching) -> FunctionTarget:
    return function(turn, Resource.ADMIN_POLICY, "watch" if asked.version is None else f"watch {asked.version}")
