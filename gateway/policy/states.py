"""What the decisions of a tenant are made by: policy, agents and people, read at one epoch and kept while it holds."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from gateway.errors import Invalid, Unavailable
from gateway.model import Agent, AgentName, Profile, TenantId
from gateway.policy.collector import let_go, spared
from gateway.policy.documents import Document, parse
from gateway.policy.snapshot import Snapshot
from gateway.ports import Agents, Clock, Identities, Policies, PolicyVersion


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantState:
    """What decisions of one tenant are made by, all read at one epoch."""

    tenant: TenantId
    epoch: int
    snapshot: Snapshot
    agents: Mapping[AgentName, Agent]
    people: int  # unmerged, enabled persons; services don't count
    # What roles include: each answer with the profile that it is of.
    functions: dict[Hashable, tuple[Profile, bool]] = field(default_factory=dict, repr=False, compare=False)


class TenantStates:
    """One immutable state for each tenant, swapped by one assignment when the epoch rises."""

    def __init__(
        self,
        *,
        policies: Policies,
        agents: Agents,
        identities: Identities,
        epoch_of: Callable[[TenantId], int],
        clock: Clock,
    ) -> None:
        self._policies = policies
        self._agents = agents
        self._identities = identities
        self._epoch_of = epoch_of
        self._clock = clock
        self._in_force: Callable[[float], None] = lambda _seconds: None
        self._heard: dict[TenantId, datetime] = {}
        self._states: dict[TenantId, TenantState] = {}
        self._loading: defaultdict[TenantId, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def current(self, tenant: TenantId) -> TenantState:
        """The state at the tenant's epoch. Raises Unavailable where that is unknown or stale, or no policy is in force.

        A row whose `until` has come is gone from the moment it comes.
        """
        state = self._states.get(tenant)
        if state is None or state.epoch < self._epoch_of(tenant):
            state = await self._load(tenant)
        expires_at = state.snapshot.expires_at
        if expires_at is not None and expires_at <= self._clock.now():
            state = replace(state, snapshot=state.snapshot.live(self._clock.now()), functions={})
            self._states[tenant] = state
        return state

    def when_in_force(self, listener: Callable[[float], None]) -> None:
        """Tells `listener` how long after it was published a version was in force here: from when its epoch was heard
        nothing is decided by an older one, whenever the next question comes."""
        self._in_force = listener

    def heard(self, tenant: TenantId) -> None:
        """Notes that the tenant's epoch has risen."""
        self._heard.setdefault(tenant, self._clock.now())

    async def _load(self, tenant: TenantId) -> TenantState:
        async with self._loading[tenant]:
            known = self._states.get(tenant)
            if known is not None and known.epoch >= self._epoch_of(tenant):
                return known
            state, published_at = await self._read(tenant, known)
            self._states[tenant] = state
            if known is not None and known.snapshot is not state.snapshot:
                asyncio.get_running_loop().run_in_executor(None, let_go, list(known.snapshot.document.rows))
            # The first state of a process says nothing of how quick it is: its version may be a year old.
            heard = self._heard.pop(tenant, self._clock.now())
            if known is not None and known.snapshot.version != state.snapshot.version:
                self._in_force((heard - published_at).total_seconds())
            return state

    async def _read(self, tenant: TenantId, known: TenantState | None) -> tuple[TenantState, datetime]:
        """The state as the store has it, and when its policy was published."""
        found = await self._policies.current(tenant)
        if found is None:
            raise Unavailable("This organisation has no policy in force yet. The operator can publish one.")
        version, epoch = found
        if known is not None and known.snapshot.version == version.version:
            snapshot = known.snapshot
        else:
            # Everybody else is answered while a long document is read.
            snapshot = await asyncio.to_thread(_snapshot, version, self._clock.now())
        agents = await self._agents.all(tenant)
        # The epoch was read first: a change between the reads raises it again, and this state is read anew.
        state = TenantState(
            tenant=tenant,
            epoch=epoch,
            snapshot=snapshot,
            agents={agent.name: agent for agent in agents},
            people=await self._identities.count_people(tenant),
        )
        return state, version.published_at


def _snapshot(version: PolicyVersion, now: datetime) -> Snapshot:
    """Built on a thread of its own; it is asked on the event loop's alone."""
    with spared(len(version.text)):
        return Snapshot(_document(version), version.version, now)


def _document(version: PolicyVersion) -> Document:
    """The document of a version. One that was checked when it was published and can't be read now decides nothing, and
    whoever asks for something else is not the one to be shown its faults."""
    try:
        return parse(version.text)
    except Invalid:
        raise Unavailable(
            "The policy in force can't be read. The operator can lint it, and publish a good one."
        ) from None
