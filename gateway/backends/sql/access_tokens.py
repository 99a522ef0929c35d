"""Turns rows of access tokens into tokens; the secret itself is nowhere, only its hash (design section 5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial

from sqlalchemy import Connection, bindparam, or_, select

from gateway.backends.sql import people
from gateway.backends.sql.notices import tell
from gateway.backends.sql.store import Store
from gateway.backends.sql.tables import AnyRow, access_tokens, column_names
from gateway.backends.sql.tenants import raise_epoch
from gateway.model import AccessToken, Notice, ProfileId, TenantId

_TOUCH = (
    access_tokens.update()
    .where(
        access_tokens.c.id == bindparam("token"),
        or_(access_tokens.c.last_used_at.is_(None), access_tokens.c.last_used_at < bindparam("at")),
    )
    .values(last_used_at=bindparam("at"))
)


class SqlAccessTokens:
    """The part of `ports.Identities` about tokens."""

    def __init__(self, database: Store) -> None:
        self._database = database

    async def token_by_hash(self, digest: bytes) -> AccessToken | None:
        """The token stored under this hash, a revoked or expired one too."""
        return await self._database.read(partial(_by_hash, digest))

    async def add_token(self, token: AccessToken, digest: bytes, *, told: Sequence[Notice] = ()) -> None:
        """Stores a new token under the hash of its secret. Raises Conflict where there is no such profile, or where
        it was merged into another."""
        row = {name: getattr(token, name) for name in column_names(access_tokens) if name != "digest"}
        row |= {"digest": digest, "scopes": " ".join(sorted(token.scopes))}

        def insert(connection: Connection) -> None:
            people.require_unmerged(token.tenant, token.profile, connection)
            connection.execute(access_tokens.insert(), row)
            tell(told, connection)

        await self._database.write(insert, taken="This token is stored already, or its profile is gone.")

    async def tokens(self, tenant: TenantId, profile: ProfileId) -> Sequence[AccessToken]:
        """A profile's tokens, newest first, without those revoked."""
        return await self._database.read(partial(_of_profile, tenant, profile))

    async def revoke_token(
        self, tenant: TenantId, profile: ProfileId, token: str, now: datetime, *, told: Sequence[Notice] = ()
    ) -> bool:
        """Whether this profile had such an unrevoked token; it is revoked now, and the epoch rises."""
        return await self._database.write(partial(_revoke, tenant, profile, token, now, told))

    async def touch_tokens(self, used: Mapping[str, datetime]) -> None:
        """Writes the last use of each token id; never moves one back. Does not raise the epoch."""
        rows = [{"token": token, "at": at} for token, at in used.items()]

        def touch(connection: Connection) -> None:
            connection.execute(_TOUCH, rows)

        if rows:
            await self._database.write(touch)


def _by_hash(digest: bytes, connection: Connection) -> AccessToken | None:
    row = connection.execute(select(access_tokens).where(access_tokens.c.digest == digest)).one_or_none()
    return None if row is None else _token(row)


def _of_profile(tenant: TenantId, profile: ProfileId, connection: Connection) -> list[AccessToken]:
    query = select(access_tokens).where(
        access_tokens.c.tenant == tenant, access_tokens.c.profile == profile, access_tokens.c.revoked_at.is_(None)
    )
    return [_token(row) for row in connection.execute(query.order_by(access_tokens.c.id.desc()))]


def _revoke(  # one argument for each thing that is written
    tenant: TenantId,
    profile: ProfileId,
    token: str,
    now: datetime,
    told: Sequence[Notice],
    connection: Connection,
) -> bool:
    revoked = connection.execute(
        access_tokens.update()
        .where(
            access_tokens.c.id == token,
            access_tokens.c.tenant == tenant,
            access_tokens.c.profile == profile,
            access_tokens.c.revoked_at.is_(None),
        )
        .values(revoked_at=now)
    ).rowcount
    if revoked:
        tell(told, connection)
        raise_epoch(connection, tenant)
    return bool(revoked)


def _token(row: AnyRow) -> AccessToken:
    return AccessToken(
        id=row.id,
        tenant=TenantId(row.tenant),
        profile=ProfileId(row.profile),
        name=row.name,
        scopes=frozenset(row.scopes.split()),
        created_at=row.created_at,
        expires_at=row.expires_at,
        last_used_at=row.last_used_at,
        revoked_at=row.revoked_at,
        made_by=None if row.made_by is None else ProfileId(row.made_by),
    )
