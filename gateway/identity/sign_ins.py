"""Turns a principal that an issuer vouched for into a browser that is signed in, and ends that again (design 5.6)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Protocol

from gateway.errors import GatewayError, NotFound, Unauthenticated
from gateway.identity import cookies
from gateway.identity.login import BROWSER
from gateway.identity.refusals import NOT_ADDED, Reason, refused
from gateway.identity.roles import PERSON
from gateway.identity.seen import Seen
from gateway.identity.user_agents import shortened
from gateway.keys import new_id
from gateway.model import AuditRecord, Principal, Requester, SignIn, TenantId
from gateway.ports import Clock, SignIns

SIGN_IN = "sign_in"
SIGN_OUT = "sign_out"


class Profiles(Protocol):
    """Finds, links or makes the profile of a principal."""

    async def resolve(self, principal: Principal, *, request: str, surface: str) -> Requester:
        """The person. Raises Unauthenticated where there is none, or a retired one, and Unavailable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """What a browser came with to the end of a sign-in."""

    request: str
    user_agent: str
    cookie: str | None  # the one it had before
    id_token: str | None  # to be kept, since the issuer wants it back when the sign-in is ended


class OwnSignIns:
    """The browsers that somebody is signed in with. Every method raises Unavailable when the store is away."""

    def __init__(self, sign_ins: SignIns, seen: Seen, clock: Clock, *, idle: timedelta) -> None:
        self._sign_ins = sign_ins
        self._seen = seen
        self._clock = clock
        self._idle = idle

    async def list(self, actor: Requester) -> Sequence[SignIn]:
        """The actor's own that still hold, newest first, each with when it was last seen."""
        found = await self._sign_ins.of_profile(actor.tenant, actor.profile.id)
        return [
            replace(one, last_seen_at=self._seen.last(one)) for one in found if self._seen.in_force(one, self._idle)
        ]

    async def revoke(self, actor: Requester, sign_in: str) -> None:
        """Ends one of the actor's own at once. Raises NotFound, also for one that has ended."""
        if not await self._sign_ins.end(actor.tenant, actor.profile.id, sign_in, self._clock.now()):
            raise NotFound


class BrowserSignIns:
    """Signs browsers in and out. Every method raises Unavailable when the store is away."""

    def __init__(
        self,
        sign_ins: SignIns,
        profiles: Profiles,
        seen: Seen,
        clock: Clock,
        record: Callable[[AuditRecord], Awaitable[None]],
        refused_without_tenant: Callable[[str, str], None],
        epoch_of: Callable[[TenantId], int | None],
        *,
        idle: timedelta,
        lasts: timedelta,
    ) -> None:
        """What was recorded is on disk when `record` returns. `epoch_of` is None for a tenant that is not there."""
        self._sign_ins = sign_ins
        self._profiles = profiles
        self._seen = seen
        self._clock = clock
        self._record = record
        self._refused_without_tenant = refused_without_tenant
        self._epoch_of = epoch_of
        self._idle = idle
        self._lasts = lasts

    async def sign_in(self, principal: Principal, attempt: Attempt) -> tuple[str, SignIn]:
        """The value of a new cookie, and the sign-in; the one that the browser had before has ended.

        Whoever is signed in already is not looked at: signing in links nothing to them.
        Raises Unauthenticated where this principal is nobody here, recorded with its reason.
        """
        try:
            requester = await self._profiles.resolve(principal, request=attempt.request, surface=BROWSER)
            if requester.profile.kind != PERSON:
                raise refused(Reason.NOT_A_PERSON, NOT_ADDED)
        except GatewayError as error:
            await self._not_signed_in(principal, attempt, error)
            raise
        value, sign_in = cookies.mint(), self._new(principal, requester, attempt)
        # The audit first: where it can't be written, nobody is signed in (design section 12).
        await self._record(self._access(SIGN_IN, sign_in, attempt.request))
        await self._sign_ins.add(sign_in, cookies.digest(value), instead_of=await self._replaced(attempt))
        return value, sign_in

    async def sign_out(self, sign_in: SignIn, request: str) -> None:
        """Ends it, recorded first."""
        await self._record(self._access(SIGN_OUT, sign_in, request))
        await self._sign_ins.end(sign_in.tenant, sign_in.profile, sign_in.id, self._clock.now())

    async def not_signed_out(self, sign_in: SignIn, request: str, reason: str) -> None:
        """Records a request to end it that may not have been its person's."""
        await self._record(self._access(SIGN_OUT, sign_in, request, effect="deny", code=reason))

    def count(self, reason: str) -> None:
        """Counts a refusal of somebody who is not known, so that a flood of them fills no audit."""
        self._refused_without_tenant(reason, BROWSER)

    async def _replaced(self, attempt: Attempt) -> bytes | None:
        """The digest of what this browser was signed in with, if it still is: ending what is over would raise the epoch
        for nothing, and everybody's memory with it, each time that somebody comes back in the morning."""
        if attempt.cookie is None or not cookies.is_well_formed(attempt.cookie):
            return None
        digest = cookies.digest(attempt.cookie)
        before = await self._sign_ins.by_digest(digest)
        return digest if before is not None and self._seen.in_force(before, self._idle) else None

    def _new(self, principal: Principal, requester: Requester, attempt: Attempt) -> SignIn:
        now = self._clock.now()
        return SignIn(
            id=new_id("sgn", now),
            tenant=requester.tenant,
            profile=requester.profile.id,
            issuer=principal.issuer,
            subject=principal.subject,
            email=principal.email,
            roles=principal.roles,
            user_agent=shortened(attempt.user_agent),
            id_token=attempt.id_token,
            created_at=now,
            last_seen_at=now,
            expires_at=now + self._lasts,
        )

    async def _not_signed_in(self, principal: Principal, attempt: Attempt, error: GatewayError) -> None:
        effect, code = ("deny", error.reason) if isinstance(error, Unauthenticated) else ("error", error.code)
        epoch = self._epoch_of(principal.tenant)
        if epoch is None:
            self.count(code)
            return
        await self._record(
            AuditRecord(
                at=self._clock.now(),
                kind="access",
                tenant=principal.tenant,
                request=attempt.request,
                surface=BROWSER,
                operation=SIGN_IN,
                effect=effect,
                code=code,
                epoch=epoch,
                principal=f"{BROWSER}:{principal.issuer}#{principal.subject}",
            )
        )

    def _access(
        self, operation: str, sign_in: SignIn, request: str, *, effect: str = "allow", code: str = "ok"
    ) -> AuditRecord:
        return AuditRecord(
            at=self._clock.now(),
            kind="access",
            tenant=sign_in.tenant,
            request=request,
            surface=BROWSER,
            operation=operation,
            effect=effect,
            code=code,
            epoch=self._epoch_of(sign_in.tenant) or 0,
            profile=sign_in.profile,
            principal=f"{BROWSER}:{sign_in.id}",
            target=sign_in.id,
            details={"issuer": sign_in.issuer, "subject": sign_in.subject},
        )
