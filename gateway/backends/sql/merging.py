"""Turns two profiles into one inside a running transaction, and says what that moved (design section 5, "merge").

What decides about a session is stored with it, so its owner and who takes part are rewritten and no read ever follows
an alias: a list, a search and a single read see the same. Creators, senders and keys are history, and stay.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Select, Table, Text, and_, delete, exists, func, literal, select, update

from gateway.backends.sql import people
from gateway.backends.sql.notices import tell
from gateway.backends.sql.tables import (
    access_tokens,
    agents,
    emails,
    identities,
    memberships,
    merges,
    notices,
    participants,
    people_classes,
    profiles,
    roles,
    sessions,
    sign_ins,
)
from gateway.backends.sql.tenants import raise_epoch
from gateway.identity.merging import check_can_be_one
from gateway.keys import direct_key
from gateway.model import AgentName, Identity, Notice, Profile, ProfileId, RoleAssignment, SessionId, TenantId
from gateway.ports import MergeReport


def merge(  # one argument for each thing that is written
    tenant: TenantId,
    retired: ProfileId,
    survivor: ProfileId,
    now: datetime,
    told: Sequence[Notice],
    connection: Connection,
) -> MergeReport | None:
    """Merges; the same one again changes nothing, and answers what it answered. None where somebody is not there."""
    found = preview(tenant, retired, survivor, connection)
    if found is None or found.merged_at is not None:
        return found
    report = replace(found, merged_at=now)
    _retire(report, tenant, now, connection)
    _move_sign_ins(report, tenant, connection)
    _move_sessions(report, tenant, connection)
    row = {"tenant": tenant, "retired": retired, "survivor": survivor, "merged_at": now, "report": _written(report)}
    connection.execute(merges.insert(), row)
    tell(told, connection)
    raise_epoch(connection, tenant)
    return report


def preview(tenant: TenantId, retired: ProfileId, survivor: ProfileId, connection: Connection) -> MergeReport | None:
    """What a merge would answer, or did answer. Raises Conflict for two that can't be one."""
    going, staying = people.find(tenant, retired, connection), people.find(tenant, survivor, connection)
    if going is None or staying is None:
        return None
    if going.merged_into == survivor:
        done = _done(tenant, retired, survivor, connection)
        if done is not None:
            return done
    check_can_be_one(going, staying)
    return _planned(tenant, going, staying, connection)


# ── saying ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _planned(tenant: TenantId, going: Profile, staying: Profile, connection: Connection) -> MergeReport:
    owned = _count(select(sessions.c.id).where(*_roots(tenant, going.id)), connection)
    taking_part = select(participants.c.root).where(participants.c.tenant == tenant, participants.c.profile == going.id)
    not_owned = ~exists().where(*_roots(tenant, going.id), sessions.c.id == participants.c.root)
    signs_in = select(identities.c.issuer, identities.c.subject).where(
        identities.c.tenant == tenant, identities.c.profile == going.id
    )
    tokens = select(access_tokens.c.id).where(*_live(access_tokens, tenant, going.id)).order_by(access_tokens.c.id)
    browsers = select(sign_ins.c.id).where(*_live(sign_ins, tenant, going.id)).order_by(sign_ins.c.id)
    linked = connection.execute(signs_in.order_by(identities.c.issuer, identities.c.subject))
    return MergeReport(
        retired=going.id,
        survivor=staying.id,
        merged_at=None,
        identities=tuple(Identity(issuer=issuer, subject=subject, profile=staying.id) for issuer, subject in linked),
        emails=going.emails,
        aliases=going.aliases,
        tokens=tuple(connection.scalars(tokens)),
        sign_ins=tuple(connection.scalars(browsers)),
        roles_ended=going.roles,
        sessions_owned=owned,
        sessions_shared=_count(taking_part.where(not_owned), connection),
        private_sessions=_private_sessions(tenant, (going, staying), connection),
        groups_of_both=_groups_of_both(tenant, going.id, staying.id, connection),
    )


def _roots(tenant: TenantId, owner: ProfileId) -> tuple[Any, ...]:
    return sessions.c.tenant == tenant, sessions.c.owner == owner, sessions.c.parent.is_(None)


def _live(table: Table, tenant: TenantId, profile: ProfileId) -> tuple[Any, ...]:
    """The profile's tokens, or its sign-ins, that were not ended."""
    return table.c.tenant == tenant, table.c.profile == profile, table.c.revoked_at.is_(None)


def _count(rows: Select[Any], connection: Connection) -> int:
    return connection.scalar(select(func.count()).select_from(rows.subquery())) or 0


def _private_sessions(tenant: TenantId, both: tuple[Profile, Profile], connection: Connection) -> tuple[str, ...]:
    """The keys under which each of them, and those merged into them before, opened a private session."""
    names = connection.scalars(select(agents.c.name).where(agents.c.tenant == tenant)).all()
    everybody = [one for profile in both for one in (profile.id, *profile.aliases)]
    keys = [direct_key(AgentName(name), one) for name in names for one in everybody]
    found = select(sessions.c.key).where(sessions.c.tenant == tenant, sessions.c.key.in_(keys))
    return tuple(connection.scalars(found.order_by(sessions.c.key)))


def _groups_of_both(
    tenant: TenantId, one: ProfileId, other: ProfileId, connection: Connection
) -> tuple[SessionId, ...]:
    beside = participants.alias()
    found = (
        select(participants.c.root)
        .join(beside, and_(beside.c.tenant == participants.c.tenant, beside.c.root == participants.c.root))
        .where(participants.c.tenant == tenant, participants.c.profile == one, beside.c.profile == other)
    )
    return tuple(SessionId(root) for root in connection.scalars(found.order_by(participants.c.root)))


def _written(report: MergeReport) -> str:
    return json.dumps(asdict(report) | {"merged_at": None}, ensure_ascii=False)


def _done(tenant: TenantId, retired: ProfileId, survivor: ProfileId, connection: Connection) -> MergeReport | None:
    row = connection.execute(
        select(merges.c.merged_at, merges.c.report).where(
            merges.c.tenant == tenant, merges.c.retired == retired, merges.c.survivor == survivor
        )
    ).one_or_none()
    if row is None:
        return None
    read: dict[str, Any] = json.loads(row.report)
    said: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in read.items()}
    said["merged_at"] = row.merged_at
    said["identities"] = tuple(Identity(**one) for one in said["identities"])
    said["roles_ended"] = tuple(RoleAssignment(**one) for one in said["roles_ended"])
    return MergeReport(**said)


# ── moving ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _retire(report: MergeReport, tenant: TenantId, now: datetime, connection: Connection) -> None:
    """The profile and those before it point to the survivor, one hop; what spoke or decided for it ends."""
    chain = (report.retired, *report.aliases)
    connection.execute(
        update(profiles)
        .where(profiles.c.tenant == tenant, profiles.c.id.in_(chain))
        .values(merged_into=report.survivor)
    )
    for table, ended in ((access_tokens, {}), (sign_ins, {"id_token": None})):
        mine = _live(table, tenant, report.retired)
        connection.execute(update(table).where(*mine).values(revoked_at=now, **ended))
    connection.execute(delete(roles).where(roles.c.tenant == tenant, roles.c.profile == report.retired))
    connection.execute(
        delete(people_classes).where(people_classes.c.tenant == tenant, people_classes.c.profile.in_(chain))
    )
    # What one was told the other has not read.
    told = (notices.c.tenant == tenant) & (notices.c.profile == report.retired)
    connection.execute(update(notices).where(told).values(profile=report.survivor))


def _move_sign_ins(report: MergeReport, tenant: TenantId, connection: Connection) -> None:
    held = select(func.coalesce(func.max(emails.c.position) + 1, 0)).where(
        emails.c.tenant == tenant, emails.c.profile == report.survivor
    )
    after = connection.scalar(held)
    for table, values in ((identities, {}), (emails, {"position": emails.c.position + after})):
        mine = (table.c.tenant == tenant) & (table.c.profile == report.retired)
        connection.execute(update(table).where(mine).values(profile=report.survivor, **values))


def _move_sessions(report: MergeReport, tenant: TenantId, connection: Connection) -> None:
    retired, survivor = report.retired, report.survivor
    connection.execute(
        update(sessions).where(sessions.c.tenant == tenant, sessions.c.owner == retired).values(owner=survivor)
    )
    _join_as_one(report, tenant, connection)
    # Where both had a row in their lists one goes; the other then says whose the session is now.
    of_retired = (memberships.c.tenant == tenant) & (memberships.c.profile == retired)
    of_both = memberships.c.session.in_(select(memberships.c.session).where(of_retired))
    connection.execute(
        delete(memberships).where(memberships.c.tenant == tenant, memberships.c.profile == survivor, of_both)
    )
    owner = (
        select(sessions.c.owner)
        .where(sessions.c.tenant == tenant, sessions.c.id == memberships.c.session)
        .scalar_subquery()
    )
    connection.execute(
        update(memberships).where(of_retired).values(profile=survivor, own=owner == literal(survivor, Text()))
    )


def _join_as_one(report: MergeReport, tenant: TenantId, connection: Connection) -> None:
    """Who takes part twice does so once, from the earlier joining on: it is one human."""
    for root in report.groups_of_both:
        here = (participants.c.tenant == tenant) & (participants.c.root == root)
        both = here & participants.c.profile.in_((report.retired, report.survivor))
        after, at = connection.execute(
            select(func.min(participants.c.joined_after), func.min(participants.c.joined_at)).where(both)
        ).one()
        connection.execute(delete(participants).where(here, participants.c.profile == report.retired))
        connection.execute(
            update(participants)
            .where(here, participants.c.profile == report.survivor)
            .values(joined_after=after, joined_at=at)
        )
    connection.execute(
        update(participants)
        .where(participants.c.tenant == tenant, participants.c.profile == report.retired)
        .values(profile=report.survivor)
    )
