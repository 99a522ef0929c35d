"""Turns rows of tenants into tenants with their epochs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial

from sqlalchemy import Connection, bindparam, select, update

from gateway.backends.sql.store import Store, note_raised
from gateway.backends.sql.tables import AnyRow, tenants
from gateway.errors import Conflict
from gateway.model import Tenant, TenantId

_COLUMNS = (tenants.c.id, tenants.c.epoch, tenants.c.demo)
_RAISE = (
    update(tenants)
    .where(tenants.c.id == bindparam("tenant"))
    .values(epoch=tenants.c.epoch + 1)
    .returning(tenants.c.epoch)
)


def raise_epoch(connection: Connection, tenant: TenantId) -> int:
    """The tenant's next epoch, in the running write. Raises Conflict where there is no such tenant."""
    epoch = connection.scalar(_RAISE, {"tenant": tenant})
    if epoch is None:
        raise Conflict("There is no such tenant.")
    note_raised(connection, tenant, epoch)
    return int(epoch)


class SqlTenants:
    """`ports.Tenants` on the store."""

    def __init__(self, database: Store) -> None:
        self._database = database

    async def all(self) -> Sequence[Tenant]:
        """Every tenant, by name. No search and no write keeps it waiting: it tells whether the store is there."""
        return await self._database.read_at_once(_all)

    async def find(self, tenant: TenantId) -> Tenant | None:
        """The tenant with its epoch as it is in the store now."""
        return await self._database.read(partial(_find, tenant))

    async def add(self, tenant: TenantId, *, demo: bool, now: datetime) -> Tenant:
        """A new tenant with epoch 1. Raises Conflict where the name is taken."""
        row = {"id": tenant, "epoch": 1, "demo": demo, "last_message": 0, "created_at": now}

        def insert(connection: Connection) -> None:
            connection.execute(tenants.insert(), row)
            note_raised(connection, tenant, 1)

        await self._database.write(insert, taken=f"There is a tenant {tenant!r} already. Choose another name.")
        return Tenant(id=tenant, epoch=1, demo=demo)


def _all(connection: Connection) -> list[Tenant]:
    return [_tenant(row) for row in connection.execute(select(*_COLUMNS).order_by(tenants.c.id))]


def _find(tenant: TenantId, connection: Connection) -> Tenant | None:
    row = connection.execute(select(*_COLUMNS).where(tenants.c.id == tenant)).one_or_none()
    return None if row is None else _tenant(row)


def _tenant(row: AnyRow) -> Tenant:
    return Tenant(id=TenantId(row.id), epoch=row.epoch, demo=row.demo)
