"""Turns rows of policy versions into published documents; versions only rise (design section 7)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial

from sqlalchemy import Connection, select

from gateway.backends.sql import cursors
from gateway.backends.sql.notices import tell
from gateway.backends.sql.store import Store
from gateway.backends.sql.tables import AnyRow, column_names, policy_versions, tenants
from gateway.backends.sql.tenants import raise_epoch
from gateway.model import Notice, TenantId
from gateway.ports import Page, PolicyVersion, overtaken

_CURSOR = "policy"


class SqlPolicies:
    """`ports.Policies` on the store."""

    def __init__(self, database: Store) -> None:
        self._database = database

    async def current(self, tenant: TenantId) -> tuple[PolicyVersion, int] | None:
        """The version in force and the epoch, read together."""
        return await self._database.read(partial(_current, tenant))

    async def version(self, tenant: TenantId, version: int) -> PolicyVersion | None:
        """One version."""
        return await self._database.read(partial(_version, tenant, version))

    async def history(self, tenant: TenantId, *, limit: int, cursor: str | None) -> Page[PolicyVersion]:
        """Newest first. Raises Invalid for what is no cursor."""
        before = None if cursor is None else cursors.read_number(_CURSOR, cursor)
        versions = await self._database.read(partial(_history, tenant, before, limit + 1))
        return cursors.page(_CURSOR, versions, limit, lambda version: version.version)

    async def publish(
        self,
        tenant: TenantId,
        text: str,
        *,
        base_version: int,
        comment: str,
        author: str,
        now: datetime,
        rolled_back_to: int | None = None,
        told: Sequence[Notice] = (),
    ) -> tuple[PolicyVersion, int]:
        """A new version and the new epoch; the first is based on 0. Raises Conflict with `facts["version"]` where the
        base is not in force."""
        new = PolicyVersion(
            tenant=tenant,
            version=base_version + 1,
            text=text,
            comment=comment,
            author=author,
            published_at=now,
            rolled_back_to=rolled_back_to,
        )
        return new, await self._database.write(partial(_publish, new, told))


def _current(tenant: TenantId, connection: Connection) -> tuple[PolicyVersion, int] | None:
    query = (
        select(policy_versions, tenants.c.epoch)
        .join(tenants, tenants.c.id == policy_versions.c.tenant)
        .where(policy_versions.c.tenant == tenant)
        .order_by(policy_versions.c.version.desc())
        .limit(1)
    )
    row = connection.execute(query).one_or_none()
    return None if row is None else (_of_row(row), row.epoch)


def _version(tenant: TenantId, version: int, connection: Connection) -> PolicyVersion | None:
    query = select(policy_versions).where(policy_versions.c.tenant == tenant, policy_versions.c.version == version)
    row = connection.execute(query).one_or_none()
    return None if row is None else _of_row(row)


def _history(tenant: TenantId, before: int | None, limit: int, connection: Connection) -> list[PolicyVersion]:
    query = select(policy_versions).where(policy_versions.c.tenant == tenant)
    if before is not None:
        query = query.where(policy_versions.c.version < before)
    rows = connection.execute(query.order_by(policy_versions.c.version.desc()).limit(limit))
    return [_of_row(row) for row in rows]


def _publish(new: PolicyVersion, told: Sequence[Notice], connection: Connection) -> int:
    newest = (
        select(policy_versions.c.version)
        .where(policy_versions.c.tenant == new.tenant)
        .order_by(policy_versions.c.version.desc())
        .limit(1)
    )
    in_force = connection.scalar(newest) or 0
    if in_force != new.version - 1:
        raise overtaken(in_force)
    row = {name: getattr(new, name) for name in column_names(policy_versions)}
    connection.execute(policy_versions.insert(), row)
    tell(told, connection)
    return raise_epoch(connection, new.tenant)


def _of_row(row: AnyRow) -> PolicyVersion:
    return PolicyVersion(
        tenant=TenantId(row.tenant),
        version=row.version,
        text=row.text,
        comment=row.comment,
        author=row.author,
        published_at=row.published_at,
        rolled_back_to=row.rolled_back_to,
    )
