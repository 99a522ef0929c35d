"""Turns an opaque bearer token into the principal that the server which issued it vouches for now (RFC 7662)."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import httpx2

from gateway.bounded import keep
from gateway.errors import ConfigurationFaults, Fault, Unauthenticated
from gateway.identity.claims import INTROSPECTION, principal_of
from gateway.identity.introspection_server import IntrospectionServer, IntrospectionSettings, is_of_the_gateway
from gateway.identity.refusals import Reason, refused
from gateway.model import Principal
from gateway.ports import Clock

ACTIVE_FOR_S = 30  # a token that its server revoked is refused after this long
INACTIVE_FOR_S = 300  # what was once not active does not come back by itself
_TOKEN = re.compile(r"[A-Za-z0-9._~+/-]+=*", re.ASCII)  # RFC 6750 section 2.1, `b64token`


@dataclass(frozen=True, slots=True)
class _Answered:
    """What an answer was worth: a principal, or why there is none; and how long it counts."""

    principal: Principal | None
    reason: str
    until: float  # wall clock, for `exp`
    until_monotonic: float

    def worth(self) -> Principal:
        """The principal. Raises Unauthenticated."""
        if self.principal is None:
            raise refused(Reason(self.reason))
        return self.principal


class IntrospectionVerifier:
    """Verifies opaque tokens by asking; close it with `aclose` to end questions in flight.

    A token belongs to one server, by its prefix, and no other is asked about it.
    """

    def __init__(
        self,
        servers: Sequence[IntrospectionSettings],
        http: httpx2.AsyncClient,
        clock: Clock,
        *,
        capacity: int = 10_000,
    ) -> None:
        """Raises ConfigurationFaults where it is not clear whose a token would be."""
        faults = list(_ambiguities(servers))
        if faults:
            raise ConfigurationFaults(faults)
        self._servers = [IntrospectionServer(settings, http) for settings in servers]
        self._clock = clock
        self._capacity = capacity
        # Apart, so that a flood of made-up tokens pushes out nobody who is signed in.
        self._active: dict[bytes, _Answered] = {}
        self._refused: dict[bytes, _Answered] = {}
        self._in_flight: dict[bytes, asyncio.Task[_Answered]] = {}

    async def verify(self, token: str) -> Principal:
        """The principal. Raises Unauthenticated, with one text for every reason; Unavailable where nobody answers."""
        server = self._server_of(token)
        fingerprint = hashlib.blake2b(token.encode("ascii"), digest_size=32).digest()
        known = self._active.get(fingerprint) or self._refused.get(fingerprint)
        if known is not None and self._still_holds(known):
            return known.worth()
        question = self._in_flight.get(fingerprint)
        if question is None:
            question = self._begin(fingerprint, token, server)
        # One caller who hangs up must not end the question of the others.
        return (await asyncio.shield(question)).worth()

    @property
    def settings(self) -> tuple[IntrospectionSettings, ...]:
        """The servers that are asked."""
        return tuple(server.settings for server in self._servers)

    def faults(self) -> Mapping[str, str | None]:
        """Why the last question to each issuer's server had no answer; None where it had."""
        return {server.settings.issuer: server.fault for server in self._servers}

    async def aclose(self) -> None:
        """Ends questions in flight."""
        questions = list(self._in_flight.values())
        for question in questions:
            question.cancel()
        if questions:
            await asyncio.wait(questions)

    def _server_of(self, token: str) -> IntrospectionServer:
        if is_of_the_gateway(token):  # of a kind that is not switched on here; its secret is not told to others
            raise refused(Reason.TOKEN_UNKNOWN)
        for server in self._servers:
            if token.startswith(server.settings.prefix):
                if len(token) > server.settings.max_token_length:
                    raise refused(Reason.TOKEN_TOO_LONG)
                if _TOKEN.fullmatch(token) is None:
                    raise refused(Reason.TOKEN_MALFORMED)
                return server
        raise refused(Reason.TOKEN_UNKNOWN)

    def _still_holds(self, known: _Answered) -> bool:
        return self._clock.now().timestamp() < known.until and self._clock.monotonic() < known.until_monotonic

    def _begin(self, fingerprint: bytes, token: str, server: IntrospectionServer) -> asyncio.Task[_Answered]:
        question = asyncio.create_task(self._ask(fingerprint, token, server))
        self._in_flight[fingerprint] = question
        question.add_done_callback(lambda done: self._end(fingerprint, done))
        return question

    def _end(self, fingerprint: bytes, question: asyncio.Task[_Answered]) -> None:
        del self._in_flight[fingerprint]
        if not question.cancelled():
            question.exception()  # seen here, since all who waited for it may have hung up

    async def _ask(self, fingerprint: bytes, token: str, server: IntrospectionServer) -> _Answered:
        asked = self._clock.monotonic()
        answer = await server.ask(token, known=fingerprint in self._active)
        answered = _judged(answer, server.settings, self._clock.now(), asked)
        self._active.pop(fingerprint, None)
        self._refused.pop(fingerprint, None)
        kept = self._refused if answered.principal is None else self._active
        keep(kept, fingerprint, answered, self._capacity)
        return answered


def _judged(answer: Mapping[str, Any], settings: IntrospectionSettings, now: datetime, asked: float) -> _Answered:
    """What `answer` is worth. It counts from when it was asked for: the token may have been revoked since then."""
    try:
        principal = _principal(answer, settings, now)
    except Unauthenticated as refusal:
        lasts = INACTIVE_FOR_S if refusal.reason == Reason.TOKEN_INACTIVE else ACTIVE_FOR_S
        return _Answered(None, refusal.reason, float("inf"), asked + lasts)
    return _Answered(principal, "", answer["exp"], asked + ACTIVE_FOR_S)


def _principal(answer: Mapping[str, Any], settings: IntrospectionSettings, now: datetime) -> Principal:
    """Who an active token speaks for: RFC 7662 section 2.2, and what `principal_of` checks of any claims."""
    if answer.get("active") is not True:
        raise refused(Reason.TOKEN_INACTIVE if answer.get("active") is False else Reason.CLAIM_MALFORMED)
    if answer.get("iss", settings.issuer) != settings.issuer:
        raise refused(Reason.ISSUER_UNKNOWN)
    kind = answer.get("token_type", "Bearer")
    if not isinstance(kind, str) or kind.lower() != "bearer":
        raise refused(Reason.TYPE_NOT_ALLOWED)
    return principal_of(_with_subject(answer), None, settings, now, credential=INTROSPECTION)


def _with_subject(answer: Mapping[str, Any]) -> Mapping[str, Any]:
    """A token that a client got for itself may have no `sub`, since there is no person; then it speaks for the client.

    RFC 7662 section 2.2 leaves `sub` out where no resource owner authorized the token; RFC 9068 section 2.2 has `sub`
    name the client then. An answer with a `username` is about a person, and a person needs a `sub`.
    """
    if answer.keys() & {"sub", "username"} or "client_id" not in answer:
        return answer
    return {**answer, "sub": answer["client_id"]}


def _ambiguities(servers: Sequence[IntrospectionSettings]) -> Iterator[Fault]:
    """Where two servers could be asked about one token, or say two things of one issuer."""
    for index, server in enumerate(servers):
        before = servers[:index]
        if any(one.issuer == server.issuer for one in before):
            yield Fault(
                field=f"introspection.servers[{index}].issuer",
                rule="unique",
                message="an earlier entry has this issuer; name each one once",
            )
        if any(one.prefix.startswith(server.prefix) or server.prefix.startswith(one.prefix) for one in before):
            yield Fault(
                field=f"introspection.servers[{index}].prefix",
                rule="unambiguous",
                message="with several servers each needs a prefix, none the beginning of another: "
                "a token is shown to one server alone",
            )
