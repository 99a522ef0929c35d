"""Turns what a turn token says into its claims and back; nothing that is not spelled exactly so is one of ours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from gateway.identity.access_tokens import LOCAL_ISSUER
from gateway.identity.claims import INTROSPECTION
from gateway.identity.refusals import Reason, refused
from gateway.identity.turn_keys import LIFETIME
from gateway.model import AgentName, Principal, RoleAssignment, SessionId, TenantId, TurnBinding

TURN_TOKEN = "turn_token"  # noqa: S105 - the kind of a credential, not one
AUDIENCE = "tools"
_LEEWAY_S = 60  # between the clocks of two replicas


@dataclass(frozen=True, slots=True)
class Source:
    """A credential that a turn token was made from. When it ends, the token does."""

    kind: str
    id: str | None  # tok_… of an access token, sgn_… of a sign-in
    issuer: str
    subject: str


@dataclass(frozen=True, slots=True)
class TurnClaims:
    """What a turn token says."""

    principal: Principal
    sources: tuple[Source, ...]
    expires: int


def sources_of(principal: Principal) -> tuple[Source, ...]:
    """Every credential that the request was made with."""
    everything = (principal, *principal.beside)
    return tuple(Source(one.credential, one.credential_id, one.issuer, one.subject) for one in everything)


def roles_of(principal: Principal) -> tuple[RoleAssignment, ...]:
    """The roles that go with the token. Those that an introspection told, alone or beside another credential, are left
    out: they may be gone within seconds (issue 3, "groups to roles"), and a turn token lasts for minutes."""
    told = any(one.credential == INTROSPECTION for one in (principal, *principal.beside))
    return () if told else principal.roles


def claims_of(  # one argument for each thing that a token is bound to
    principal: Principal, profile: str, binding: TurnBinding, issued: int, expires: int
) -> dict[str, Any]:
    """The claims of a token that is made with `principal` for the turn `binding`."""
    return {
        "iss": LOCAL_ISSUER,
        "aud": AUDIENCE,
        "sub": profile,
        "tenant": principal.tenant,
        "turn": binding.turn,
        "session": binding.session,
        "incarnation": binding.incarnation,
        "agent": binding.agent,
        "kind": binding.kind,
        "scopes": sorted(principal.scopes),
        "roles": [[held.role, held.agent] for held in roles_of(principal)],
        "from": [[one.kind, one.id, one.issuer, one.subject] for one in sources_of(principal)],
        "iat": issued,
        "exp": expires,
    }


def read_claims(claims: Mapping[str, Any], now: datetime) -> TurnClaims:
    """What verified claims say. Raises Unauthenticated: for something else, too old, too new, or not as we write it."""
    if claims.get("iss") != LOCAL_ISSUER:
        raise refused(Reason.ISSUER_UNKNOWN)
    if claims.get("aud") != AUDIENCE:
        raise refused(Reason.AUDIENCE_WRONG)
    issued, expires = _number(claims, "iat"), _number(claims, "exp")
    if now.timestamp() >= expires:
        raise refused(Reason.TOKEN_EXPIRED)
    if now.timestamp() + _LEEWAY_S < issued:
        raise refused(Reason.NOT_YET_VALID)
    if expires - issued > LIFETIME.total_seconds():
        raise refused(Reason.CLAIM_MALFORMED)
    binding = TurnBinding(
        turn=_word(claims, "turn"),
        session=SessionId(_word(claims, "session")),
        incarnation=_number(claims, "incarnation"),
        agent=AgentName(_word(claims, "agent")),
        kind=None if claims.get("kind") is None else _word(claims, "kind"),
    )
    principal = Principal(
        tenant=TenantId(_word(claims, "tenant")),
        issuer=LOCAL_ISSUER,
        subject=_word(claims, "sub"),
        credential=TURN_TOKEN,
        credential_id=binding.turn,
        scopes=frozenset(_words(claims.get("scopes"))),
        expires_at=datetime.fromtimestamp(expires, UTC),
        roles=tuple(RoleAssignment(role=role, agent=AgentName(agent)) for role, agent in _rows(claims, "roles", 2)),
        turn=binding,
    )
    return TurnClaims(principal, _sources(claims), expires)


def _sources(claims: Mapping[str, Any]) -> tuple[Source, ...]:
    found = tuple(Source(kind, id_, issuer, subject) for kind, id_, issuer, subject in _rows(claims, "from", 4))
    if not found:
        raise refused(Reason.CLAIM_MALFORMED)
    return found


def _number(claims: Mapping[str, Any], name: str) -> int:
    value = claims.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**40:
        raise refused(Reason.CLAIM_MALFORMED)
    return value


def _word(claims: Mapping[str, Any], name: str) -> str:
    value = claims.get(name)
    if not isinstance(value, str) or not value:
        raise refused(Reason.CLAIM_MALFORMED)
    return value


def _words(value: object) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise refused(Reason.CLAIM_MALFORMED)
    return value


def _rows(claims: Mapping[str, Any], name: str, width: int) -> list[list[Any]]:
    """Rows of words; the second of a source is the id, which not every kind has."""
    value = claims.get(name)
    if not isinstance(value, list):
        raise refused(Reason.CLAIM_MALFORMED)
    for row in value:
        if not isinstance(row, list) or len(row) != width:
            raise refused(Reason.CLAIM_MALFORMED)
        _words([word for index, word in enumerate(row) if word is not None or index != 1])
    return value
