"""Turns rows of notices into what a person is told; few are kept, and not for long (design section 5)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from functools import partial

from sqlalchemy import Connection, delete, func, select

from gateway.backends.sql.store import Store
from gateway.backends.sql.tables import column_names, notices, profiles
from gateway.identity.roles import PERSON
from gateway.model import Notice, ProfileId, TenantId

MOST_NOTICES = 100  # of one person; the oldest give way
KEPT = timedelta(days=365)


class SqlNotices:
    """`ports.Notices` on the store."""

    def __init__(self, database: Store) -> None:
        self._database = database

    async def of_profile(self, tenant: TenantId, profile: ProfileId) -> Sequence[Notice]:
        """All that are kept for a person, newest first."""
        return await self._database.read(partial(_of_profile, tenant, profile))

    async def count(self, tenant: TenantId, profile: ProfileId) -> int:
        """How many those are."""
        return await self._database.read(partial(_count, tenant, profile))


def tell(told: Sequence[Notice], connection: Connection) -> None:
    """Stores notices, in the transaction of the change that they are about: for people who are here, a merged one as
    the survivor. Services read none."""
    names = column_names(notices)
    for one in told:
        reader = _reader(one, connection)
        if reader is None:
            continue
        row = {name: getattr(one, name) for name in names} | {"profile": reader}
        connection.execute(notices.insert(), row)
        theirs = (notices.c.tenant == one.tenant) & (notices.c.profile == reader)
        newest = select(notices.c.id).where(theirs).order_by(notices.c.id.desc()).limit(MOST_NOTICES)
        connection.execute(delete(notices).where(theirs, notices.c.at <= one.at - KEPT))
        connection.execute(delete(notices).where(theirs, notices.c.id.not_in(newest)))


def _reader(notice: Notice, connection: Connection) -> str | None:
    found = select(profiles.c.id, profiles.c.kind, profiles.c.merged_into)
    row = connection.execute(
        found.where(profiles.c.tenant == notice.tenant, profiles.c.id == notice.profile)
    ).one_or_none()
    if row is None or row.kind != PERSON:
        return None
    return str(row.merged_into or row.id)


def _of_profile(tenant: TenantId, profile: ProfileId, connection: Connection) -> list[Notice]:
    query = select(notices).where(notices.c.tenant == tenant, notices.c.profile == profile)
    return [
        Notice(
            id=row.id,
            tenant=TenantId(row.tenant),
            profile=ProfileId(row.profile),
            at=row.at,
            code=row.code,
            by=ProfileId(row.by),
            about=row.about,
        )
        for row in connection.execute(query.order_by(notices.c.id.desc()))
    ]


def _count(tenant: TenantId, profile: ProfileId, connection: Connection) -> int:
    query = select(func.count()).select_from(notices)
    return connection.scalar(query.where(notices.c.tenant == tenant, notices.c.profile == profile)) or 0
