"""Turns the groups that an issuer names in a claim into roles (design section 5, "roles")."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gateway.identity.issuers import ClaimRules
from gateway.identity.refusals import Reason, refused
from gateway.model import RoleAssignment

_MOST_GROUPS = 1_000


def roles_in(claims: Mapping[str, Any], rules: ClaimRules) -> tuple[RoleAssignment, ...]:
    """The roles of the groups that `rules` map, each once, in the order of the settings; other groups are nothing here.

    Raises Unauthenticated for a claim that is not a list of names, or is one of more than a thousand.
    """
    if not rules.roles or _are_elsewhere(claims, rules.groups_claim):
        return ()
    groups = _groups(claims.get(rules.groups_claim))
    held = (roles for group, roles in rules.roles.items() if group in groups)
    return tuple(dict.fromkeys(role for roles in held for role in roles))


def _groups(value: object) -> frozenset[str]:
    if value is None:
        return frozenset()
    if not isinstance(value, list) or len(value) > _MOST_GROUPS or not all(isinstance(one, str) for one in value):
        raise refused(Reason.CLAIM_MALFORMED)
    return frozenset(value)


def _are_elsewhere(claims: Mapping[str, Any], claim: str) -> bool:
    """Whether the issuer left the groups out since they are too many for a token, and says where to ask for them.

    Entra ID names the claim in `_claim_names` (OpenID Connect Core section 5.6.2), or writes `hasgroups`. We ask
    nobody, so the groups are not known and give nothing.
    """
    names = claims.get("_claim_names", {})
    if not isinstance(names, Mapping):
        raise refused(Reason.CLAIM_MALFORMED)
    return claim in names or claims.get("hasgroups") is True
