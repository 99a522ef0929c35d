"""Turns rows of profiles, emails and roles into profiles, and back, inside a running transaction."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from sqlalchemy import Connection, bindparam, select

from gateway.backends.sql.tables import AnyRow, column_names, emails, profiles, roles
from gateway.errors import Conflict
from gateway.identity.emails import fold
from gateway.model import AgentName, Profile, ProfileId, RoleAssignment, TenantId

_FIND = select(profiles).where(profiles.c.tenant == bindparam("of"), profiles.c.id == bindparam("profile"))
_EMAILS = (
    select(emails.c.profile, emails.c.email)
    .where(emails.c.tenant == bindparam("of"), emails.c.profile.in_(bindparam("people", expanding=True)))
    .order_by(emails.c.position)
)
_ROLES = (
    select(roles.c.profile, roles.c.role, roles.c.agent)
    .where(roles.c.tenant == bindparam("of"), roles.c.profile.in_(bindparam("people", expanding=True)))
    .order_by(roles.c.position)
)
# Sorted by whoever reads it: asked for an order, SQLite walks everybody in it instead of the index of the few merged.
_ALIASES = select(profiles.c.merged_into, profiles.c.id).where(
    profiles.c.tenant == bindparam("of"), profiles.c.merged_into.in_(bindparam("people", expanding=True))
)


def find(tenant: TenantId, profile: ProfileId, connection: Connection) -> Profile | None:
    """One profile with its emails, its roles and those that were merged into it."""
    row = connection.execute(_FIND, {"of": tenant, "profile": profile}).one_or_none()
    return None if row is None else _complete(tenant, [row], connection)[0]


def check_unmerged(profile: Profile) -> None:
    """Raises Conflict for a retired profile: nothing of it is changed any more, also by who looked before the merge."""
    if profile.merged_into is not None:
        facts: dict[str, object] = {"merged_into": profile.merged_into}
        raise Conflict("This profile was merged into another; change that one.", facts=facts)


def require_unmerged(tenant: TenantId, profile: ProfileId, connection: Connection) -> None:
    """The same by id; one that is not there is left to the foreign key of what is about to be written."""
    found = find(tenant, profile, connection)
    if found is not None:
        check_unmerged(found)


def unmerged(tenant: TenantId, after: str | None, limit: int, connection: Connection) -> list[Profile]:
    """The next unmerged profiles by id."""
    query = select(profiles).where(profiles.c.tenant == tenant, profiles.c.merged_into.is_(None))
    if after is not None:
        query = query.where(profiles.c.id > after)
    rows = connection.execute(query.order_by(profiles.c.id).limit(limit)).all()
    return _complete(tenant, rows, connection)


def some(tenant: TenantId, ids: Sequence[str], connection: Connection) -> list[Profile]:
    """Those profiles that are there, ordered by id."""
    query = select(profiles).where(profiles.c.tenant == tenant, profiles.c.id.in_(ids)).order_by(profiles.c.id)
    return _complete(tenant, connection.execute(query).all(), connection)


def insert(profile: Profile, connection: Connection) -> None:
    """Stores a new profile, its emails and roles."""
    row = {name: getattr(profile, name) for name in column_names(profiles)}
    connection.execute(profiles.insert(), row)
    replace_emails(profile, profile.emails, connection)
    replace_roles(profile, profile.roles, connection)


def change(profile: Profile, name: str | None, disabled: bool | None, connection: Connection) -> None:
    """Changes what is not None."""
    values = {"name": profile.name if name is None else name}
    connection.execute(
        profiles.update()
        .where(profiles.c.tenant == profile.tenant, profiles.c.id == profile.id)
        .values(values | {"disabled": profile.disabled if disabled is None else disabled})
    )


def replace_emails(profile: Profile, addresses: Sequence[str], connection: Connection) -> None:
    """Stores these emails, folded and each once, instead of those before."""
    of_profile = (emails.c.tenant == profile.tenant) & (emails.c.profile == profile.id)
    connection.execute(emails.delete().where(of_profile))
    rows = [
        {
            "tenant": profile.tenant,
            "profile": profile.id,
            "email": email,
            "position": position,
            "live": profile.merged_into is None,
        }
        for position, email in enumerate(dict.fromkeys(fold(address) for address in addresses))
    ]
    if rows:
        connection.execute(emails.insert(), rows)


def replace_roles(profile: Profile, assignments: Sequence[RoleAssignment], connection: Connection) -> None:
    """Stores these roles, each once, instead of those before."""
    of_profile = (roles.c.tenant == profile.tenant) & (roles.c.profile == profile.id)
    connection.execute(roles.delete().where(of_profile))
    rows = [
        {
            "tenant": profile.tenant,
            "profile": profile.id,
            "role": held.role,
            "agent": held.agent,
            "position": position,
        }
        for position, held in enumerate(dict.fromkeys(assignments))
    ]
    if rows:
        connection.execute(roles.insert(), rows)


def _complete(tenant: TenantId, rows: Sequence[AnyRow], connection: Connection) -> list[Profile]:
    asked = {"of": tenant, "people": [row.id for row in rows]}
    addresses: defaultdict[str, list[str]] = defaultdict(list)
    for profile, email in connection.execute(_EMAILS, asked):
        addresses[profile].append(email)
    held: defaultdict[str, list[RoleAssignment]] = defaultdict(list)
    for profile, role, agent in connection.execute(_ROLES, asked):
        held[profile].append(RoleAssignment(role=role, agent=AgentName(agent)))
    merged: defaultdict[str, list[ProfileId]] = defaultdict(list)
    for survivor, retired in connection.execute(_ALIASES, asked):
        merged[survivor].append(ProfileId(retired))
    return [_profile(row, addresses[row.id], held[row.id], sorted(merged[row.id])) for row in rows]


def _profile(
    row: AnyRow, addresses: Sequence[str], held: Sequence[RoleAssignment], merged: Sequence[ProfileId]
) -> Profile:
    return Profile(
        id=ProfileId(row.id),
        tenant=TenantId(row.tenant),
        name=row.name,
        kind=row.kind,
        emails=tuple(addresses),
        roles=tuple(held),
        merged_into=None if row.merged_into is None else ProfileId(row.merged_into),
        disabled=row.disabled,
        created_at=row.created_at,
        aliases=tuple(merged),
    )
