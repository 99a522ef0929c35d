"""Turns a compact JWT and a public key into checked claims, or a refusal (RFC 7515, RFC 8725, RFC 9864).

The algorithm never comes from the token: each key stands for exactly one, and a header that names another is refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson
from joserfc import jws
from joserfc.errors import JoseError
from joserfc.jwk import Key
from joserfc.util import urlsafe_b64decode

from gateway.identity.refusals import Reason, refused

_COMPACT = re.compile(r"([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)")
_LONGEST_HEADER = 2_048
# Headers that bring a key of their own, change what is signed, or demand what we don't do (RFC 8725 section 3.10).
_REFUSED_HEADERS = frozenset({"crit", "b64", "jwk", "jku", "x5c", "x5u", "zip", "enc"})


@dataclass(frozen=True, slots=True)
class Family:
    """A kind of key and the one algorithm it is used with, under each name that tokens give it."""

    name: str  # joserfc's name of the algorithm
    aliases: frozenset[str]


RSA = Family("RS256", frozenset({"RS256"}))
P256 = Family("ES256", frozenset({"ES256"}))
ED25519 = Family("Ed25519", frozenset({"Ed25519", "EdDSA"}))  # RFC 9864 renamed it; most issuers still say EdDSA


@dataclass(frozen=True, slots=True)
class VerificationKey:
    """A public key of an issuer."""

    kid: str | None
    family: Family
    key: Key


@dataclass(frozen=True, slots=True)
class Unverified:
    """A token that was taken apart. Nothing in it is true until `check_signature` returned."""

    text: str
    algorithm: str
    kid: str | None
    type: str | None
    claims: Mapping[str, Any]  # JSON of whoever sent it


def take_apart(token: str) -> Unverified:
    """The parts of a compact JWS. Raises Unauthenticated for anything that is not one with a plain header."""
    match = _COMPACT.fullmatch(token)
    if match is None:
        raise refused(Reason.TOKEN_MALFORMED)
    if len(match[1]) > _LONGEST_HEADER:
        raise refused(Reason.TOKEN_TOO_LONG)
    header = _object_in(match[1], Reason.HEADER_MALFORMED)
    if not _REFUSED_HEADERS.isdisjoint(header):
        raise refused(Reason.HEADER_NOT_ALLOWED)
    if "alg" not in header or not all(isinstance(value, str) for value in header.values()):
        raise refused(Reason.HEADER_MALFORMED)
    claims = _object_in(match[2], Reason.CLAIM_MALFORMED)
    return Unverified(token, header["alg"], header.get("kid"), header.get("typ"), claims)


def _object_in(segment: str, otherwise: Reason) -> dict[str, Any]:
    # orjson and not json: it stops at a depth of its own, so a nest of brackets can't exhaust the stack.
    try:
        value = orjson.loads(urlsafe_b64decode(segment.encode("ascii")))
    except ValueError as error:
        raise refused(otherwise) from error
    if not isinstance(value, dict):
        raise refused(otherwise)
    return value


class _Pinned(jws.JWSRegistry):
    """A registry that knows one algorithm and answers with it whatever the header says."""

    max_header_length = _LONGEST_HEADER

    def __init__(self, family: Family) -> None:
        super().__init__(strict_check_header=False)
        self._model = self.algorithms[family.name]

    def get_alg(self, name: str) -> Any:  # joserfc's own class of algorithms is not public
        return self._model


_REGISTRIES = {family.name: _Pinned(family) for family in (RSA, P256, ED25519)}


def check_signature(token: Unverified, key: VerificationKey) -> None:
    """Returns if `key` signed `token` with the key's own algorithm. Raises Unauthenticated."""
    if token.algorithm not in key.family.aliases:
        raise refused(Reason.ALGORITHM_NOT_ALLOWED)
    try:
        jws.deserialize_compact(token.text, key.key, registry=_REGISTRIES[key.family.name])
    except JoseError as error:
        raise refused(Reason.SIGNATURE_WRONG) from error
