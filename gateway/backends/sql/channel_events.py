"""Turns the events of a channel into rows, so that each is handled once whatever is sent again."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial

from sqlalchemy import ColumnElement, Connection, select

from gateway.backends.sql.store import Store
from gateway.backends.sql.tables import EPOCH, channel_events
from gateway.model import TenantId
from gateway.ports import EventState


class SqlChannelEvents:
    """`ports.ChannelEvents` on the store."""

    def __init__(self, database: Store) -> None:
        self._database = database

    async def take(
        self,
        tenant: TenantId,
        channel: str,
        account: str,
        event: str,
        *,
        now: datetime,
        lease: timedelta,
        keep: timedelta,
    ) -> EventState:
        """Takes the event for `lease`, unless it is done or taken. What is older than `keep` is forgotten."""
        key = {"tenant": tenant, "channel": channel, "account": account, "event": event}
        return await self._database.write(partial(_take, key, now, lease, keep))

    async def finish(self, tenant: TenantId, channel: str, account: str, event: str) -> None:
        """It was handled; durable on return."""
        await self._change(tenant, channel, account, event, done=True)

    async def release(self, tenant: TenantId, channel: str, account: str, event: str) -> None:
        """It was not handled: whoever sends it again has it handled."""
        await self._change(tenant, channel, account, event, done=False)

    async def _change(self, tenant: TenantId, channel: str, account: str, event: str, *, done: bool) -> None:
        key = {"tenant": tenant, "channel": channel, "account": account, "event": event}

        def work(connection: Connection) -> None:
            connection.execute(channel_events.update().where(*_is(key)).values(done=done, taken_until=EPOCH))

        await self._database.write(work)


def _take(key: dict[str, str], now: datetime, lease: timedelta, keep: timedelta, connection: Connection) -> EventState:
    old = (channel_events.c.tenant == key["tenant"]) & (channel_events.c.until < now)
    connection.execute(channel_events.delete().where(old))
    found = connection.execute(
        select(channel_events.c.done, channel_events.c.taken_until).where(*_is(key))
    ).one_or_none()
    if found is None:
        row = {**key, "done": False, "taken_until": now + lease, "until": now + keep}
        connection.execute(channel_events.insert(), row)
        return EventState.TAKEN
    if found.done:
        return EventState.DONE
    if found.taken_until > now:
        return EventState.BUSY
    connection.execute(channel_events.update().where(*_is(key)).values(taken_until=now + lease))
    return EventState.TAKEN


def _is(key: dict[str, str]) -> list[ColumnElement[bool]]:
    return [channel_events.c[name] == value for name, value in key.items()]
