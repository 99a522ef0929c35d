"""Turns rows of browser sign-ins into sign-ins; the cookie itself is nowhere, only its digest (design section 5.6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial

import orjson
from sqlalchemy import Connection, bindparam, select

from gateway.backends.sql import people
from gateway.backends.sql.store import Store
from gateway.backends.sql.tables import AnyRow, column_names, sign_ins
from gateway.backends.sql.tenants import raise_epoch
from gateway.model import AgentName, ProfileId, RoleAssignment, SignIn, TenantId

MOST_SIGN_INS = 50  # of one profile; a new one ends the oldest
KEPT_AFTER_END = timedelta(days=30)

_GONE = "This sign-in is stored already, or its profile is gone."
_TOUCH = (
    sign_ins.update()
    .where(sign_ins.c.id == bindparam("sign_in"), sign_ins.c.last_seen_at < bindparam("at"))
    .values(last_seen_at=bindparam("at"))
)


class SqlSignIns:
    """`ports.SignIns` on the store."""

    def __init__(self, database: Store) -> None:
        self._database = database

    async def add(self, sign_in: SignIn, digest: bytes, *, instead_of: bytes | None) -> None:
        """Stores a sign-in under the digest of its cookie; the one under `instead_of`, of the same browser, ends.
        Raises Conflict for a profile that is gone, or was merged into another."""
        row = {name: getattr(sign_in, name) for name in column_names(sign_ins) if name != "digest"}
        row |= {"digest": digest, "roles": orjson.dumps([[held.role, held.agent] for held in sign_in.roles])}

        def insert(connection: Connection) -> None:
            people.require_unmerged(sign_in.tenant, sign_in.profile, connection)
            _make_room(sign_in, instead_of, connection)
            connection.execute(sign_ins.insert(), row)

        await self._database.write(insert, taken=_GONE)

    async def by_digest(self, digest: bytes) -> SignIn | None:
        """The sign-in stored under this digest, an ended or expired one too."""
        return await self._database.read(partial(_by_digest, digest))

    async def of_profile(self, tenant: TenantId, profile: ProfileId) -> Sequence[SignIn]:
        """A profile's sign-ins, newest first, without those ended."""
        return await self._database.read(partial(_of_profile, tenant, profile))

    async def end(self, tenant: TenantId, profile: ProfileId, sign_in: str, now: datetime) -> bool:
        """Whether this profile had such a sign-in that was not ended; it is ended now, and the epoch rises."""

        def work(connection: Connection) -> bool:
            mine = [one.id for one in _of_profile(tenant, profile, connection) if one.id == sign_in]
            return _end(tenant, mine, now, connection)

        return await self._database.write(work)

    async def touch(self, seen: Mapping[str, datetime]) -> None:
        """Writes when each sign-in was last seen; never moves one back. Does not raise the epoch."""
        rows = [{"sign_in": sign_in, "at": at} for sign_in, at in seen.items()]

        def work(connection: Connection) -> None:
            connection.execute(_TOUCH, rows)

        if rows:
            await self._database.write(work)


def _make_room(new: SignIn, instead_of: bytes | None, connection: Connection) -> None:
    """Ends what the new sign-in replaces, and forgets what ended long ago."""
    now = new.created_at
    replaced = None if instead_of is None else _by_digest(instead_of, connection)
    if replaced is not None:
        _end(replaced.tenant, [replaced.id], now, connection)
    surplus = _of_profile(new.tenant, new.profile, connection)[MOST_SIGN_INS - 1 :]
    _end(new.tenant, [one.id for one in surplus], now, connection)
    theirs = (sign_ins.c.tenant == new.tenant) & (sign_ins.c.profile == new.profile)
    connection.execute(sign_ins.delete().where(theirs, sign_ins.c.expires_at < now - KEPT_AFTER_END))
    # Nobody signs out of what is over, so nobody needs what its person is called there any more.
    over = sign_ins.update().where(theirs, sign_ins.c.expires_at <= now, sign_ins.c.id_token.is_not(None))
    connection.execute(over.values(id_token=None))


def _end(tenant: TenantId, ids: Sequence[str], now: datetime, connection: Connection) -> bool:
    ended = connection.execute(
        sign_ins.update()
        .where(sign_ins.c.tenant == tenant, sign_ins.c.id.in_(ids), sign_ins.c.revoked_at.is_(None))
        .values(revoked_at=now, id_token=None)
    ).rowcount
    if ended:
        raise_epoch(connection, tenant)
    return bool(ended)


def _by_digest(digest: bytes, connection: Connection) -> SignIn | None:
    row = connection.execute(select(sign_ins).where(sign_ins.c.digest == digest)).one_or_none()
    return None if row is None else _sign_in(row)


def _of_profile(tenant: TenantId, profile: ProfileId, connection: Connection) -> list[SignIn]:
    query = select(sign_ins).where(
        sign_ins.c.tenant == tenant, sign_ins.c.profile == profile, sign_ins.c.revoked_at.is_(None)
    )
    return [_sign_in(row) for row in connection.execute(query.order_by(sign_ins.c.id.desc()))]


def _sign_in(row: AnyRow) -> SignIn:
    return SignIn(
        id=row.id,
        tenant=TenantId(row.tenant),
        profile=ProfileId(row.profile),
        issuer=row.issuer,
        subject=row.subject,
        email=row.email,
        roles=tuple(RoleAssignment(role=role, agent=AgentName(agent)) for role, agent in orjson.loads(row.roles)),
        user_agent=row.user_agent,
        id_token=row.id_token,
        created_at=row.created_at,
        last_seen_at=row.last_seen_at,
        expires_at=row.expires_at,
        revoked_at=row.revoked_at,
    )
