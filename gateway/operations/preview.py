"""What a draft would change, and what a publishing did change: replayed and compared; nothing is published."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Annotated, Final

from pydantic import Field

from gateway.errors import Conflict, NotFound, RateLimited
from gateway.model import Action, Profile, ProfileId, Resource, RoleAssignment, TenantId
from gateway.operations.found import function
from gateway.policy.ahead import RowsBySubject
from gateway.policy.comparison import Change
from gateway.policy.documents import Document, parse
from gateway.policy.drafts import Draft, draft
from gateway.policy.in_force import RightsInForce
from gateway.policy.lockout import publishable
from gateway.policy.permit import Permit
from gateway.policy.population import GUEST, Affected, affected, by_credential, named_in
from gateway.policy.replay import Replay, RightsThen, look_back, periods, replay
from gateway.policy.rights import Rights
from gateway.policy.rows import Row
from gateway.policy.targets import FunctionTarget
from gateway.ports import Audit, Identities, MadeBy, Policies, RecordedDecisions
from gateway.raising.publishing import PublishingIsWeighed
from gateway.tools.arguments import Arguments
from gateway.tools.registry import AnyOperation, Operation
from gateway.turn import Turn

FAMILY = (Resource.ADMIN_POLICY,)
MOST_DECISIONS: Final = 200_000
MOST_NAMED: Final = 5_000  # people named by rows who are looked at one by one
ENDS_WITHIN: Final = timedelta(days=30)
RETRY_AFTER_S: Final = 10  # no preview takes longer
_AT_ONCE: Final = 500


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
    recorded: RecordedDecisions
    replay: Replay
    affected: Sequence[Affected]  # first those whom nobody knows, then by how many they are
    left_out: int  # people named by rows that are too many to be looked at one by one
    names: dict[ProfileId, Profile]
    ends: Sequence[Row]
    faults: Sequence[str] = ()  # why publishing would be refused, whoever asks
    raises: Sequence[str] = ()  # why only an owner can publish it


@dataclass(frozen=True, slots=True, kw_only=True)
class _Version:
    """A version that is looked back on: its number, its time in force, and when rows before it would have ended."""

    number: int
    since: datetime
    until: datetime | None
    begins: Sequence[datetime]

    def made(self) -> MadeBy:
        """The decisions that are its own."""
        return MadeBy(version=self.number, until=self.until, moments=self.begins[1:])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Documents:
    """Two documents that are compared; a `version` is the later one's, where it is published."""

    before: Document
    after: Document
    base: int
    since: datetime
    version: _Version | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Compared:
    change: Change
    draft: Draft
    replay: Replay


class PreviewOperations:
    """Builds the operations. One preview of a tenant runs at a time: it reads much."""

    def __init__(
        self, policies: Policies, audit: Audit, identities: Identities, publishing: PublishingIsWeighed
    ) -> None:
        self._policies = policies
        self._audit = audit
        self._identities = identities
        self._publishing = publishing
        self._rights = RightsInForce()
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
        with self._alone(turn):
            after = await asyncio.to_thread(parse, body.text)
            snapshot, since = turn.state.snapshot, turn.at - timedelta(days=body.days)
            documents = _Documents(before=snapshot.document, after=after, base=snapshot.version, since=since)
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
        with self._alone(turn):
            before, after = await asyncio.to_thread(lambda: (parse(earlier.text), parse(version.text)))
            until = later.published_at if later is not None else None
            begins = await asyncio.to_thread(periods, before, version.published_at, until or turn.at)
            looked_at = _Version(number=number, since=version.published_at, until=until, begins=begins)
            documents = _Documents(
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

    async def _compared(self, turn: Turn, documents: _Documents) -> tuple[Preview, _Compared]:
        version, after = documents.version, documents.after
        made_by = version.made() if version is not None else None
        recorded = await self._audit.decisions(turn.tenant, documents.since, most=MOST_DECISIONS, made_by=made_by)
        rights = await self._rights.of(turn.state, turn.at) if version is None else None
        agents = tuple(turn.state.agents)
        compared = await asyncio.to_thread(_compare, documents, rights, agents, recorded, turn.at)
        holders, left_out = await self._holders(turn, compared)
        found = await asyncio.to_thread(affected, compared.change, holders)
        concerned = {ProfileId(one.recorded.profile) for one in compared.replay.flips if one.recorded.profile}
        preview = Preview(
            base=documents.base,
            version=version.number if version is not None else None,
            epoch=turn.state.epoch,
            since=documents.since,
            until=turn.at if version is None or version.until is None else version.until,
            recorded=recorded,
            replay=compared.replay,
            affected=sorted(found, key=lambda one: (one.holder.kind != GUEST, -one.people)),
            left_out=left_out,
            names={one.id: one for one in await self._profiles(turn.tenant, sorted(concerned))},
            ends=[row for row in after.rows if row.until and turn.at < row.until <= turn.at + ENDS_WITHIN],
        )
        return preview, compared

    async def _holders(self, turn: Turn, compared: _Compared) -> tuple[list[tuple[Profile, int]], int]:
        """Everybody: each class as one, without those whom a row names, who are looked at alone; and who is stored
        nowhere. Of very many whom rows name, those come first whose rows are other ones."""
        if not compared.draft.rows and not compared.draft.links:
            return [], 0
        subjects = compared.change.before.named | compared.change.after.named
        changed = named_in(compared.draft.subjects)
        named = [*changed, *sorted(set(named_in(subjects)).difference(changed))]
        some = await self._profiles(turn.tenant, [ProfileId(one) for one in named[:MOST_NAMED]])
        ids = {one.merged_into or one.id for one in some}
        alone = [one for one in await self._profiles(turn.tenant, sorted(ids)) if not one.disabled]
        holders = [(one, 1) for one in alone if one.merged_into is None]
        in_class: dict[tuple[str, frozenset[object]], int] = {}
        for one, _ in holders:
            key = (one.kind, frozenset(one.roles))
            in_class[key] = in_class.get(key, 0) + 1
        classes = await self._identities.classes(turn.tenant)
        for each in classes:
            others = (each.people or 0) - in_class.get((each.kind, frozenset(each.roles)), 0)
            if others > 0:
                holders.append((_of_class(turn.tenant, each.kind, each.roles, each.key), others))
        stored = {role.role for each in classes for role in each.roles}
        holders.extend((one, 0) for one in by_credential(turn.tenant, subjects, stored))
        return holders, max(0, len(named) - MOST_NAMED)

    async def _profiles(self, tenant: TenantId, ids: Sequence[ProfileId]) -> list[Profile]:
        found: list[Profile] = []
        for begin in range(0, len(ids), _AT_ONCE):
            found.extend(await self._identities.profiles(tenant, ids[begin : begin + _AT_ONCE]))
        return found


def _compare(
    documents: _Documents,
    in_force: Rights | None,
    agents: Sequence[str],
    recorded: RecordedDecisions,
    now: datetime,
) -> _Compared:
    """All that reads long documents and many decisions, for a thread of its own."""
    before, after = documents.before, documents.after
    change = Change(in_force or Rights(before, now), Rights(after, now), agents)
    if documents.version is None:
        found = replay(recorded.counts, change.before, change.after)
    else:
        found = look_back(recorded.counts, RightsThen(RowsBySubject(before), documents.version.begins))
    return _Compared(change=change, draft=draft(documents.base, before, after), replay=found)


def _of_class(tenant: TenantId, kind: str, roles: tuple[RoleAssignment, ...], key: str) -> Profile:
    """Somebody of a class whom no row names."""
    return Profile(id=ProfileId(key), tenant=tenant, name="", kind=kind, roles=roles)


async def _find_preview(turn: Turn, body: PreviewBody) -> FunctionTarget:
    """The draft by its hash: its text is in nobody's record."""
    digest = hashlib.sha256(body.text.encode(errors="surrogatepass")).hexdigest()
    return function(turn, Resource.ADMIN_POLICY, f"draft {digest}")


async def _find_watch(turn: Turn, asked: Watching) -> FunctionTarget:
    return function(turn, Resource.ADMIN_POLICY, "watch" if asked.version is None else f"watch {asked.version}")
