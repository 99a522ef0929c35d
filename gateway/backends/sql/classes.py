"""Turns what people hold into classes: everybody of the same kind with the same roles, who decide alike.

A policy speaks of roles, so that whoever asks "who can?" asks each class once and nobody in it. A row of
`people_classes` is written with whatever changes a profile or its roles, in the same transaction; merged and disabled
profiles have none.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from sqlalchemy import Connection, bindparam, func, select

from gateway.backends.sql import people
from gateway.backends.sql.prepared import Prepared
from gateway.backends.sql.tables import people_classes, profiles, roles
from gateway.model import AgentName, Profile, ProfileId, RoleAssignment, TenantId
from gateway.ports import PeopleClass

_OF_PROFILE = (people_classes.c.tenant == bindparam("of")) & (people_classes.c.profile == bindparam("one"))
_FORGET = people_classes.delete().where(_OF_PROFILE)
_ACTIVE = select(profiles.c.kind).where(
    profiles.c.tenant == bindparam("of"),
    profiles.c.id == bindparam("one"),
    profiles.c.merged_into.is_(None),
    profiles.c.disabled.is_(False),
)
_HELD = select(roles.c.role, roles.c.agent).where(
    roles.c.tenant == bindparam("of"), roles.c.profile == bindparam("one")
)
_EVERYBODY = (
    select(profiles.c.id, profiles.c.kind, profiles.c.merged_into, profiles.c.disabled)
    .where(profiles.c.tenant == bindparam("of"), profiles.c.id > bindparam("after"))
    .order_by(profiles.c.id)
    .limit(bindparam("most"))
)
_HELD_BY = select(roles.c.profile, roles.c.role, roles.c.agent).where(
    roles.c.tenant == bindparam("of"), roles.c.profile > bindparam("after"), roles.c.profile <= bindparam("last")
)
_WALK = Prepared(
    select(people_classes.c.profile)
    .where(
        people_classes.c.tenant == bindparam("of"),
        people_classes.c.role_set == bindparam("key"),
        people_classes.c.profile > bindparam("after"),
    )
    .order_by(people_classes.c.profile)
    .limit(bindparam("most"))
)


def key_of(kind: str, held: Iterable[RoleAssignment]) -> str:
    """How a class is spelled: `person member@* supervisor@flight`. No kind, role or agent holds a space or an @."""
    return " ".join([kind, *sorted({f"{one.role}@{one.agent}" for one in held})])


def roles_in(key: str) -> tuple[str, tuple[RoleAssignment, ...]]:
    """The kind and the roles that `key_of` spelled."""
    kind, *held = key.split(" ")
    pairs = (one.partition("@") for one in held)
    return kind, tuple(RoleAssignment(role=role, agent=AgentName(agent)) for role, _, agent in pairs)


def place(tenant: TenantId, profile: ProfileId, connection: Connection) -> None:
    """Puts a profile where it belongs by now: into one class, or into none."""
    one = {"of": tenant, "one": profile}
    connection.execute(_FORGET, one)
    kind = connection.scalar(_ACTIVE, one)
    if kind is not None:
        held = [RoleAssignment(role=role, agent=AgentName(agent)) for role, agent in connection.execute(_HELD, one)]
        row = {"tenant": tenant, "role_set": key_of(kind, held), "profile": profile}
        connection.execute(people_classes.insert(), row)


def place_everybody(connection: Connection, at_once: int = 10_000) -> None:
    """For a store from before there were classes. So many profiles are looked at together: a few statements for each of
    a million would hold the start up for minutes."""
    for tenant in connection.scalars(select(profiles.c.tenant).distinct()).all():
        after = ""
        while found := connection.execute(_EVERYBODY, {"of": tenant, "after": after, "most": at_once}).all():
            last = found[-1].id
            held: defaultdict[str, list[RoleAssignment]] = defaultdict(list)
            for one, role, agent in connection.execute(_HELD_BY, {"of": tenant, "after": after, "last": last}):
                held[one].append(RoleAssignment(role=role, agent=AgentName(agent)))
            rows = [
                {"tenant": tenant, "role_set": key_of(one.kind, held[one.id]), "profile": one.id}
                for one in found
                if one.merged_into is None and not one.disabled
            ]
            if rows:
                connection.execute(people_classes.insert(), rows)
            after = last


def there(tenant: TenantId, connection: Connection) -> list[PeopleClass]:
    """The classes that somebody is in: from one to the next in the index, however many people are between them."""
    smallest = select(func.min(people_classes.c.role_set)).where(people_classes.c.tenant == tenant)
    found = select(smallest.scalar_subquery().label("role_set")).cte("found", recursive=True)
    following = smallest.where(people_classes.c.role_set > found.c.role_set).scalar_subquery()
    found = found.union_all(select(following).where(found.c.role_set.is_not(None)))
    keys = connection.scalars(select(found.c.role_set).where(found.c.role_set.is_not(None)))
    return [_class(key, None) for key in keys]


def counted(tenant: TenantId, connection: Connection) -> list[PeopleClass]:
    """Every class with how many are in it."""
    query = (
        select(people_classes.c.role_set, func.count())
        .where(people_classes.c.tenant == tenant)
        .group_by(people_classes.c.role_set)
        .order_by(people_classes.c.role_set)
    )
    return [_class(key, number) for key, number in connection.execute(query).all()]


def members(
    tenant: TenantId, wanted: Sequence[str], after: ProfileId | None, limit: int, connection: Connection
) -> list[Profile]:
    """The next active profiles of these classes, ordered by id: so many of each at most are looked at."""
    found: list[str] = []
    for key in wanted:
        found.extend(one for (one,) in _WALK.rows(connection, of=tenant, key=key, after=after or "", most=limit))
    return people.some(tenant, sorted(found)[:limit], connection)


def _class(key: str, count: int | None) -> PeopleClass:
    kind, held = roles_in(key)
    return PeopleClass(key=key, kind=kind, roles=held, people=count)
