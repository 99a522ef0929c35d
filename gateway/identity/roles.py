"""Turns the roles of two people into whether one may change the other (design section 5, "nobody raises themselves").

This is the part of the rule that needs no decisions: nobody but an owner changes their own roles, only an owner gives
or takes `admin` and `owner`, and only an owner changes a person who holds one of them. An admin gives no role that they
don't hold, `member` and `guest` aside. The other part compares decisions (`raising/people.py`).

A role from a claim lasts as long as the credential that carries it. Whoever has it may use it, but it counts for
nothing here: neither does it make an owner, nor can it be given on by hand to somebody who would keep it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from gateway.errors import Fault
from gateway.identity.outcome import Reason
from gateway.keys import is_name
from gateway.model import ANY_AGENT, AgentName, Profile, Requester, RoleAssignment

GUEST = "guest"
MEMBER = "member"
ADMIN = "admin"
OWNER = "owner"
RAISED = frozenset({ADMIN, OWNER})
HARMLESS = frozenset({GUEST, MEMBER})  # they reach one's own and what is shared with one, so any admin gives them
PERSON = "person"
SERVICE = "service"
GUESTHOOD = RoleAssignment(role=GUEST, agent=ANY_AGENT)
MEMBERSHIP = RoleAssignment(role=MEMBER, agent=ANY_AGENT)
OWNERSHIP = RoleAssignment(role=OWNER, agent=ANY_AGENT)

_ROLE = re.compile(r"[a-z][a-z0-9_-]{0,31}")
_MOST_ROLES = 100


def is_owner(profile: Profile) -> bool:
    """Whether they own the tenant; an `owner` on one agent does not, nor one from a claim."""
    return OWNERSHIP in by_hand(profile)


def by_hand(profile: Profile) -> tuple[RoleAssignment, ...]:
    """The roles that somebody gave: those that are stored, and stay when the credential ends."""
    return tuple(role for role in profile.roles if role not in profile.claimed)


def with_claimed(profile: Profile, claimed: Collection[RoleAssignment]) -> Profile:
    """The stored `profile` as its person with the roles of a claim besides; never as an owner."""
    more = tuple(role for role in dict.fromkeys(claimed) if role not in profile.roles and role.role != OWNER)
    return replace(profile, roles=profile.roles + more, claimed=more) if more else profile


def held_by_all(held: Collection[Collection[RoleAssignment]]) -> tuple[RoleAssignment, ...]:
    """The roles that each of several credentials carries: what one says of `*`, it says of every agent."""
    every = dict.fromkeys(role for roles in held for role in roles)
    return tuple(role for role in every if all(_includes(roles, role) for roles in held))


def role_of(text: str) -> RoleAssignment:
    """The role that `supervisor` or `supervisor@flight` is written for; `role_faults` says whether there can be one."""
    role, at, agent = text.partition("@")
    return RoleAssignment(role=role, agent=AgentName(agent) if at else ANY_AGENT)


def role_name(held: RoleAssignment) -> str:
    """A role as it is written on the command line: `member`, `supervisor@flight`."""
    return held.role if held.agent == ANY_AGENT else f"{held.role}@{held.agent}"


def role_faults(roles: Collection[RoleAssignment]) -> list[Fault]:
    """Every assignment that is not spelled like a role on an agent, or on `*`."""
    if len(roles) > _MOST_ROLES:
        return [Fault(field="roles", rule="count", message=f"at most {_MOST_ROLES} roles")]
    faults = []
    for index, held in enumerate(roles):
        if _ROLE.fullmatch(held.role) is None:
            message = "must begin with a to z and hold only a to z, 0 to 9, _ and -, at most 32 in all"
            faults.append(Fault(field=f"roles[{index}].role", rule="name", message=message))
        if held.agent != ANY_AGENT and not is_name(held.agent):
            message = 'must be an agent\'s name, or "*" for all of them'
            faults.append(Fault(field=f"roles[{index}].agent", rule="name", message=message))
    return faults


def mapping_faults(groups: Mapping[str, Collection[RoleAssignment]]) -> Iterator[Fault]:
    """Every fault of a mapping from groups to roles: as in `role_faults`, and `owner`, which only an owner gives."""
    if len({role for roles in groups.values() for role in roles}) > _MOST_ROLES:
        yield Fault(field="roles", rule="count", message=f"at most {_MOST_ROLES} roles for all groups together")
        return
    for group, roles in groups.items():
        if not group.strip() or not roles:
            yield Fault(field=f"roles.{group}", rule="required", message="name a group, and at least one role for it")
        for fault in role_faults(roles):
            yield replace(fault, field=f"roles.{group}{fault.field.removeprefix('roles')}")
        if any(one.role == OWNER for one in roles):
            message = "an owner is made by hand, never by a group: gateway people roles NAME --set owner"
            yield Fault(field=f"roles.{group}", rule="by_hand", message=message)


# What follows is for whoever is no owner; an owner can. `raising/people.py` asks, and compares the decisions besides.


def may_not_change(target: Profile) -> Reason | None:
    """Why nobody but an owner changes `target`."""
    if any(held.role in RAISED for held in target.roles):
        return Reason(detail="Only an owner may change somebody who is an admin or an owner.")
    return None


def may_not_assign(actor: Requester, target: Profile | None, roles: Collection[RoleAssignment]) -> Reason | None:
    """Why `actor` may not turn the roles of `target` (None: a new person) into `roles`."""
    if target is not None and target.id == actor.profile.id:
        return Reason(detail="Only an owner may change their own roles. Ask an owner.")
    held = set() if target is None else set(target.roles)
    changed = held ^ set(roles)
    if any(one.role in RAISED for one in changed):
        return Reason(detail="Only an owner may give or take the roles admin and owner.")
    beyond = sorted({one.role for one in changed if one.role not in HARMLESS and not holds(actor.profile, one)})
    if beyond:
        # Whoever gives it to a friend or to a service of their own would read through them.
        return Reason(detail=f"You don't hold {', '.join(beyond)} yourself there, so an owner can give or take it.")
    return None


def may_not_merge() -> Reason:
    """Why nobody but an owner merges.

    Both sides of a merge could gain: who signed in as the retired profile gets the survivor's rights, and the survivor
    gets its sessions. An admin may do neither by a link, and so not by a merge.
    """
    return Reason(detail="A merge joins the sign-ins and sessions of two people, so an owner can do that.")


def holds(profile: Profile, role: RoleAssignment) -> bool:
    """Whether the role was given to them by hand, there or everywhere."""
    return _includes(by_hand(profile), role)


def _includes(roles: Collection[RoleAssignment], role: RoleAssignment) -> bool:
    return role in roles or RoleAssignment(role=role.role, agent=ANY_AGENT) in roles
