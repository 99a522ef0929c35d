"""Turns rows of people into profiles, with the principals, roles and emails that are theirs (design section 5)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from functools import partial

from sqlalchemy import Connection, func, select, true

from gateway.backends.sql import classes, cursors, merging, people
from gateway.backends.sql.access_tokens import SqlAccessTokens
from gateway.backends.sql.notices import tell
from gateway.backends.sql.tables import access_tokens, emails, identities, profiles, roles
from gateway.backends.sql.tenants import raise_epoch
from gateway.errors import Conflict
from gateway.identity.emails import fold
from gateway.identity.reserved import OPERATOR_ISSUER
from gateway.keys import LONGEST_WORD
from gateway.model import Identity, Notice, Profile, ProfileId, RoleAssignment, ServiceCredential, TenantId
from gateway.ports import MergeReport, Page, PeopleClass

_CURSOR = "people"
_EMAIL_HELD = "One of these emails belongs to another profile, or this profile is there already."
_LINKED_ELSEWHERE = "This identity belongs to another profile, or there is no such profile. Unlink it there first."


class SqlIdentities(SqlAccessTokens):
    """`ports.Identities` on the store."""

    async def profile(self, tenant: TenantId, profile: ProfileId) -> Profile | None:
        """The profile with its emails and roles, a merged or disabled one too."""
        if len(profile) > LONGEST_WORD:
            return None
        return await self._database.read(partial(people.find, tenant, profile))

    async def profile_of(self, tenant: TenantId, issuer: str, subject: str) -> Profile | None:
        """The profile that (issuer, subject) is linked to, compared byte for byte; a merged one as its survivor."""
        return await self._database.read(partial(_profile_of, tenant, issuer, subject))

    async def profile_with_email(self, tenant: TenantId, email: str) -> Profile | None:
        """The unmerged profile that holds this email now."""
        return await self._database.read(partial(_profile_with_email, tenant, fold(email)))

    async def people(self, tenant: TenantId, *, limit: int, cursor: str | None) -> Page[Profile]:
        """Unmerged profiles, ordered by id. Raises Invalid for what is no cursor."""
        after = None if cursor is None else cursors.read(_CURSOR, cursor)
        found = await self._database.read(partial(people.unmerged, tenant, after, limit + 1))
        return cursors.page(_CURSOR, found, limit, lambda profile: profile.id)

    async def count_people(self, tenant: TenantId) -> int:
        """Unmerged, enabled profiles of kind "person"."""
        return await self._database.read(partial(_count_people, tenant))

    async def profiles(self, tenant: TenantId, ids: Collection[ProfileId]) -> Sequence[Profile]:
        """Those of these profiles that are there, merged and disabled ones too, ordered by id."""
        return await self._database.read(partial(people.some, tenant, sorted(ids)))

    async def classes(self, tenant: TenantId, *, counted: bool = True) -> Sequence[PeopleClass]:
        """Everybody active, by kind and roles."""
        return await self._database.read(partial(classes.counted if counted else classes.there, tenant))

    async def of_classes(
        self, tenant: TenantId, keys: Sequence[str], *, after: ProfileId | None, limit: int
    ) -> Sequence[Profile]:
        """The next active profiles in these classes, ordered by id."""
        return await self._database.read(partial(classes.members, tenant, keys, after, limit))

    async def add_profile(self, profile: Profile) -> None:
        """A new profile with its emails and roles. Raises Conflict where an email is held by another profile."""

        def insert(connection: Connection) -> None:
            people.insert(profile, connection)
            classes.place(profile.tenant, profile.id, connection)
            raise_epoch(connection, profile.tenant)

        await self._database.write(insert, taken=_EMAIL_HELD)

    async def change_profile(
        self,
        tenant: TenantId,
        profile: ProfileId,
        *,
        name: str | None,
        emails: Sequence[str] | None,
        disabled: bool | None,
        told: Sequence[Notice] = (),
    ) -> Profile | None:
        """Changes what is not None; None where there is no such profile. Raises Conflict for a held email and
        for a merged profile."""

        def change(found: Profile, connection: Connection) -> None:
            people.change(found, name, disabled, connection)
            if emails is not None:
                people.replace_emails(found, emails, connection)
            tell(told, connection)

        return await self._change(tenant, profile, change)

    async def set_roles(
        self, tenant: TenantId, profile: ProfileId, roles: Sequence[RoleAssignment], *, told: Sequence[Notice] = ()
    ) -> Profile | None:
        """Replaces the roles given by hand; None where there is no such profile."""

        def change(found: Profile, connection: Connection) -> None:
            people.replace_roles(found, roles, connection)
            tell(told, connection)

        return await self._change(tenant, profile, change)

    async def link(
        self,
        tenant: TenantId,
        identity: Identity,
        now: datetime,
        *,
        by: ProfileId | None = None,
        told: Sequence[Notice] = (),
    ) -> None:
        """Links a principal; linking it again to the same profile is a no-op. Raises Conflict if it is another's."""
        await self._database.write(partial(_link, tenant, identity, now, by, told), taken=_LINKED_ELSEWHERE)

    async def unlink(self, tenant: TenantId, identity: Identity, *, told: Sequence[Notice] = ()) -> bool:
        """Whether this exact link was there and is gone."""
        return await self._database.write(partial(_unlink, tenant, identity, told))

    async def merge(
        self,
        tenant: TenantId,
        retired: ProfileId,
        survivor: ProfileId,
        now: datetime,
        *,
        told: Sequence[Notice] = (),
    ) -> MergeReport | None:
        """Makes one of two, in one transaction; see `ports.Identities.merge`."""
        return await self._database.write(partial(merging.merge, tenant, retired, survivor, now, told))

    async def preview_merge(self, tenant: TenantId, retired: ProfileId, survivor: ProfileId) -> MergeReport | None:
        """What `merge` would answer."""
        return await self._database.read(partial(merging.preview, tenant, retired, survivor))

    async def identities(self, tenant: TenantId, profile: ProfileId) -> Sequence[Identity]:
        """The principals linked to a profile."""
        return await self._database.read(partial(_identities, tenant, profile))

    async def service_credentials(self, tenant: TenantId, now: datetime) -> Sequence[ServiceCredential]:
        """Each pair of a service and who made a way in to it, a disabled service too: it may be switched on again."""
        return await self._database.read(partial(_service_credentials, tenant, now))

    async def holding(self, tenant: TenantId, wanted: Collection[str]) -> frozenset[ProfileId]:
        """The unmerged profiles that hold one of these roles by hand, on whatever agent."""
        return await self._database.read(partial(_holding, tenant, tuple(wanted)))

    async def _change(
        self, tenant: TenantId, profile: ProfileId, change: Callable[[Profile, Connection], None]
    ) -> Profile | None:
        def work(connection: Connection) -> Profile | None:
            found = people.find(tenant, profile, connection)
            if found is None:
                return None
            people.check_unmerged(found)
            change(found, connection)
            classes.place(tenant, profile, connection)
            raise_epoch(connection, tenant)
            return people.find(tenant, profile, connection)

        return await self._database.write(work, taken=_EMAIL_HELD)


def _profile_of(tenant: TenantId, issuer: str, subject: str, connection: Connection) -> Profile | None:
    query = select(identities.c.profile).where(
        identities.c.tenant == tenant, identities.c.issuer == issuer, identities.c.subject == subject
    )
    linked = connection.scalar(query)
    found = None if linked is None else people.find(tenant, ProfileId(linked), connection)
    if found is None or found.merged_into is None:
        return found
    # One hop and no more: a survivor that was merged itself is answered as the merged profile it is.
    return people.find(tenant, found.merged_into, connection)


def _profile_with_email(tenant: TenantId, email: str, connection: Connection) -> Profile | None:
    query = select(emails.c.profile).where(emails.c.tenant == tenant, emails.c.email == email, emails.c.live == true())
    holder = connection.scalar(query)
    return None if holder is None else people.find(tenant, ProfileId(holder), connection)


def _count_people(tenant: TenantId, connection: Connection) -> int:
    query = select(func.count()).where(
        profiles.c.tenant == tenant,
        profiles.c.kind == "person",
        profiles.c.disabled.is_(False),
        profiles.c.merged_into.is_(None),
    )
    return connection.scalar(query) or 0


def _link(  # one argument for each thing that is written
    tenant: TenantId,
    identity: Identity,
    now: datetime,
    by: ProfileId | None,
    told: Sequence[Notice],
    connection: Connection,
) -> None:
    holder = connection.scalar(
        select(identities.c.profile).where(
            identities.c.tenant == tenant,
            identities.c.issuer == identity.issuer,
            identities.c.subject == identity.subject,
        )
    )
    if holder == identity.profile:
        return
    people.require_unmerged(tenant, identity.profile, connection)
    if holder is not None:
        raise Conflict(_LINKED_ELSEWHERE)
    row = {
        "tenant": tenant,
        "issuer": identity.issuer,
        "subject": identity.subject,
        "profile": identity.profile,
        "linked_at": now,
        "linked_by": by,
    }
    connection.execute(identities.insert(), row)
    tell(told, connection)
    raise_epoch(connection, tenant)


def _unlink(tenant: TenantId, identity: Identity, told: Sequence[Notice], connection: Connection) -> bool:
    gone = connection.execute(
        identities.delete().where(
            identities.c.tenant == tenant,
            identities.c.issuer == identity.issuer,
            identities.c.subject == identity.subject,
            identities.c.profile == identity.profile,
        )
    ).rowcount
    if gone:
        tell(told, connection)
        raise_epoch(connection, tenant)
    return bool(gone)


def _service_credentials(tenant: TenantId, now: datetime, connection: Connection) -> list[ServiceCredential]:
    services = (profiles.c.tenant == tenant) & (profiles.c.kind == "service") & profiles.c.merged_into.is_(None)
    in_force = access_tokens.c.revoked_at.is_(None) & (access_tokens.c.expires_at > now)
    tokens = (
        select(profiles.c.id, access_tokens.c.made_by)
        .join(access_tokens, (access_tokens.c.tenant == profiles.c.tenant) & (access_tokens.c.profile == profiles.c.id))
        .where(services, in_force)
    )
    links = (
        select(profiles.c.id, identities.c.linked_by)
        .join(identities, (identities.c.tenant == profiles.c.tenant) & (identities.c.profile == profiles.c.id))
        .where(services, identities.c.issuer != OPERATOR_ISSUER)
    )
    found = connection.execute(tokens.union(links))
    return [
        ServiceCredential(service=ProfileId(service), made_by=None if maker is None else ProfileId(maker))
        for service, maker in found
    ]


def _holding(tenant: TenantId, wanted: Sequence[str], connection: Connection) -> frozenset[ProfileId]:
    query = (
        select(roles.c.profile)
        .join(profiles, (profiles.c.tenant == roles.c.tenant) & (profiles.c.id == roles.c.profile))
        .where(roles.c.tenant == tenant, roles.c.role.in_(wanted), profiles.c.merged_into.is_(None))
    )
    return frozenset(map(ProfileId, connection.scalars(query)))


def _identities(tenant: TenantId, profile: ProfileId, connection: Connection) -> list[Identity]:
    query = (
        select(identities.c.issuer, identities.c.subject)
        .where(identities.c.tenant == tenant, identities.c.profile == profile)
        .order_by(identities.c.issuer, identities.c.subject)
    )
    return [Identity(issuer=row.issuer, subject=row.subject, profile=profile) for row in connection.execute(query)]
