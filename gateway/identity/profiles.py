"""Turns a principal into the person it belongs to, with the roles they hold now (design section 5, "identity key")."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, replace

from gateway.bounded import keep
from gateway.errors import Conflict
from gateway.identity.access_tokens import LOCAL_ISSUER
from gateway.identity.assertions import CHANNEL
from gateway.identity.claims import INTROSPECTION, OIDC, PROXY_ASSERTION
from gateway.identity.proxy_headers import PROXY_HEADER
from gateway.identity.refusals import NOT_ACTIVE, NOT_ADDED, Reason, refused
from gateway.identity.roles import GUEST, GUESTHOOD, MEMBERSHIP, PERSON, with_claimed
from gateway.keys import guest_id, new_id
from gateway.model import AuditRecord, Identity, Principal, Profile, ProfileId, Requester, TenantId
from gateway.ports import Clock, Identities, Tenants

Record = Callable[[AuditRecord], Awaitable[None]]
_Key = tuple[TenantId, str, str]
_ROUNDS = 3
# What names somebody by another issuer: they may be new here, and are never one of our own principals.
_FROM_OUTSIDE = frozenset({OIDC, INTROSPECTION, PROXY_ASSERTION, PROXY_HEADER})


@dataclass(frozen=True, slots=True)
class Asked:
    """The request that a principal came with, for the audit of a first sign-in."""

    request: str
    surface: str
    epoch: int


@dataclass(frozen=True, slots=True)
class _Resolved:
    """A profile as it was stored in this epoch of its tenant, and the requester that the last principal made of it."""

    stored: Profile
    requester: Requester

    @property
    def epoch(self) -> int:
        """The epoch."""
        return self.requester.epoch

    def asking(self, principal: Principal) -> _Resolved:
        """The same profile with another credential, which may carry other scopes and other roles of a claim."""
        same = self.requester.principal.roles == principal.roles
        profile = self.requester.profile if same else _with_roles_of(principal, self.stored)
        return _Resolved(self.stored, replace(self.requester, profile=profile, principal=principal))


class ProfileResolver:
    """Finds profiles in the store, or as the store had them in the same epoch.

    Every change of roles, links and profiles raises the epoch (ports), so an entry of another epoch counts for nothing.
    """

    def __init__(
        self,
        identities: Identities,
        tenants: Tenants,
        clock: Clock,
        epochs: Callable[[TenantId], int],
        record: Record,
        *,
        provisioning: Collection[str] = (),
        capacity: int = 10_000,
    ) -> None:
        """`provisioning` names the issuers whose people get a profile at their first request. What that changes is on
        disk when `record` returns, or it raises Unavailable."""
        self._tenants = tenants
        self._identities = identities
        self._epochs = epochs
        self._newcomers = Newcomers(identities, clock, record, frozenset(provisioning))
        self._capacity = capacity
        self._resolved: dict[_Key, _Resolved] = {}

    async def resolve(self, principal: Principal, *, request: str, surface: str) -> Requester:
        """The requester, with the roles that are stored and those of the principal's claim; its epoch is one that the
        profile is at least as new as. A first sign-in is recorded as of `request` and `surface`.

        Raises Unauthenticated: no such tenant, nobody's principal, or a profile that is disabled or retired;
        Unavailable.
        """
        key = (principal.tenant, principal.issuer, principal.subject)
        known = self._resolved.get(key)
        if known is None or known.epoch != self._epochs(principal.tenant):
            known = await self._load(key, principal, request, surface)
        if principal.service and known.stored.kind == PERSON:
            raise refused(Reason.SERVICE_NOT_LINKED, NOT_ADDED)
        if known.requester.principal is not principal:
            known = known.asking(principal)
            self._resolved[key] = known
        return known.requester

    async def _load(self, key: _Key, principal: Principal, request: str, surface: str) -> _Resolved:
        if await self._tenants.find(principal.tenant) is None:
            raise refused(Reason.TENANT_UNKNOWN)
        epoch = self._epochs(principal.tenant)
        stored = await self._profile(principal, Asked(request, surface, epoch))
        profile = _with_roles_of(principal, stored)
        requester = Requester(tenant=principal.tenant, profile=profile, principal=principal, epoch=epoch)
        resolved = _Resolved(stored, requester)
        # A change that arrived in between may or may not be in what was read: good for this request, which began before
        # it, and not for the next.
        if self._epochs(principal.tenant) == epoch:
            keep(self._resolved, key, resolved, self._capacity)
        return resolved

    async def _profile(self, principal: Principal, asked: Asked) -> Profile:
        if principal.issuer == LOCAL_ISSUER:
            return await self._own(principal)
        profile = await self._identities.profile_of(principal.tenant, principal.issuer, principal.subject)
        if profile is None and principal.credential == CHANNEL:
            return _guest(principal)  # never a person, and not kept: whoever is linked later is somebody else
        if profile is None:
            profile = await self._newcomers.welcome(principal, asked)
        # `profile_of` went to the survivor of a merge. One that is itself merged is refused: one hop and no more.
        return _active(profile)

    async def _own(self, principal: Principal) -> Profile:
        """The profile that a credential of our own names. One of a retired profile fails closed (design, "merge")."""
        if principal.credential in _FROM_OUTSIDE:
            raise refused(Reason.PRINCIPAL_MALFORMED)
        profile = await self._identities.profile(principal.tenant, ProfileId(principal.subject))
        if profile is None:
            raise refused(Reason.PROFILE_UNKNOWN)
        return _active(profile)


class Newcomers:
    """Finds a place for a principal that is linked to nobody: by a trusted email, or by provisioning, or not at all.

    What it is about to change is in the audit first (design section 12); where that can't be written, nobody comes in.
    """

    def __init__(self, identities: Identities, clock: Clock, record: Record, provisioning: frozenset[str]) -> None:
        self._identities = identities
        self._clock = clock
        self._record = record
        self._provisioning = provisioning
        # Two first requests of one person must not make two profiles.
        self._one_at_a_time = asyncio.Lock()

    async def welcome(self, principal: Principal, asked: Asked) -> Profile:
        """The profile that `principal` is linked to now. Raises Unauthenticated where an admin must add them, and
        Unavailable."""
        if principal.service or principal.credential not in _FROM_OUTSIDE:
            raise refused(Reason.SERVICE_NOT_LINKED, NOT_ADDED)
        async with self._one_at_a_time:
            for _ in range(_ROUNDS):
                try:
                    return await self._place(principal, asked)
                except Conflict:  # another process was first: look again at what it made
                    continue
        raise refused(Reason.PERSON_UNKNOWN, NOT_ADDED)

    async def _place(self, principal: Principal, asked: Asked) -> Profile:
        linked = await self._identities.profile_of(principal.tenant, principal.issuer, principal.subject)
        if linked is not None:
            return linked
        email = principal.email
        holder = None if email is None else await self._identities.profile_with_email(principal.tenant, email)
        if holder is not None:
            return await self._link_by_email(principal, holder, asked)
        if principal.issuer not in self._provisioning:
            raise refused(Reason.PERSON_UNKNOWN, NOT_ADDED)
        return await self._provision(principal, asked)

    async def _link_by_email(self, principal: Principal, holder: Profile, asked: Asked) -> Profile:
        """Links to the holder of the email, unless the issuer knows another account for them.

        Then the address was reassigned, and whoever has it now does not inherit the profile of whoever had it before.
        """
        if holder.kind != PERSON:
            raise refused(Reason.SERVICE_NOT_LINKED, NOT_ADDED)
        if holder.disabled:
            raise refused(Reason.PROFILE_DISABLED, NOT_ADDED)
        if await self._is_reassigned(principal, holder):
            raise refused(Reason.EMAIL_REASSIGNED, NOT_ADDED)
        identity = _identity(principal, holder)
        await self._record(self._arrival("identity.link", principal, holder, asked))
        await self._identities.link(principal.tenant, identity, self._clock.now())
        # Another process may have linked the other account between our look and our link.
        if await self._is_reassigned(principal, holder):
            await self._identities.unlink(principal.tenant, identity)  # even if it can't be recorded
            await self._record(self._arrival("identity.unlink", principal, holder, asked))
            raise refused(Reason.EMAIL_REASSIGNED, NOT_ADDED)
        return holder

    async def _is_reassigned(self, principal: Principal, holder: Profile) -> bool:
        known = await self._identities.identities(principal.tenant, holder.id)
        return any(one.issuer == principal.issuer and one.subject != principal.subject for one in known)

    async def _provision(self, principal: Principal, asked: Asked) -> Profile:
        now = self._clock.now()
        profile = Profile(
            id=ProfileId(new_id("prf", now)),
            tenant=principal.tenant,
            name=principal.email or principal.subject,
            kind=PERSON,
            emails=(principal.email,) if principal.email else (),
            roles=(MEMBERSHIP,),
            created_at=now,
        )
        await self._record(self._arrival("identity.provision", principal, profile, asked))
        await self._identities.add_profile(profile)
        try:
            await self._identities.link(principal.tenant, _identity(principal, profile), now)
        except Conflict:
            # Somebody else linked this principal: the profile that nobody needs must not count as a person.
            await self._identities.change_profile(principal.tenant, profile.id, name=None, emails=(), disabled=True)
            raise
        return profile

    def _arrival(self, operation: str, principal: Principal, profile: Profile, asked: Asked) -> AuditRecord:
        return AuditRecord(
            at=self._clock.now(),
            kind="access",
            tenant=principal.tenant,
            request=asked.request,
            surface=asked.surface,
            operation=operation,
            effect="allow",
            code="ok",
            epoch=asked.epoch,
            profile=profile.id,
            principal=principal.called,
            target=profile.id,
            details={"issuer": principal.issuer, "subject": principal.subject},
        )


def _identity(principal: Principal, profile: Profile) -> Identity:
    return Identity(issuer=principal.issuer, subject=principal.subject, profile=profile.id)


def _with_roles_of(principal: Principal, stored: Profile) -> Profile:
    """A service's roles are given by hand alone, so that whoever lets one in sees what it may do."""
    return with_claimed(stored, principal.roles) if stored.kind == PERSON else stored


def _guest(principal: Principal) -> Profile:
    """What an unlinked sender is (design section 5, "channel identities")."""
    return Profile(
        id=guest_id(principal.tenant, principal.issuer, principal.subject),
        tenant=principal.tenant,
        name=GUEST,
        kind=GUEST,
        roles=(GUESTHOOD,),
    )


def _active(profile: Profile) -> Profile:
    if profile.merged_into is not None:
        raise refused(Reason.PROFILE_RETIRED, NOT_ACTIVE)
    if profile.disabled:
        raise refused(Reason.PROFILE_DISABLED, NOT_ACTIVE)
    return profile
