"""Turns the answer that an issuer sends a browser back with into who signed in, or a refusal (design section 5.6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gateway.identity import emails
from gateway.identity.claims import signed_in
from gateway.identity.refusals import Reason, refused
from gateway.model import Principal
from gateway.ports import Clock
from gateway.web.sign_in.client import Authorization, Client, Tokens
from gateway.web.sign_in.flows import Flow, Flows

_LONGEST_CODE = 4_096
_EMAIL = frozenset({"email", "email_verified"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The parameters of an authorization response, each as often as it was sent."""

    state: Sequence[str]
    code: Sequence[str]
    iss: Sequence[str]
    error: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """Somebody who is who they say, and where they wanted to go."""

    principal: Principal
    id_token: str
    next: str
    ends_at_issuer: bool  # the issuer has a place to sign out at, and wants the ID token there


class SignInFlow:
    """Begins sign-ins at one issuer, and ends them. Every method raises Unavailable where the issuer is away."""

    def __init__(self, client: Client, flows: Flows, clock: Clock) -> None:
        self.client = client
        self._flows = flows
        self._clock = clock

    async def begin(self, browser: str, following: str, *, another_account: bool) -> str:
        """Where to send the browser."""
        made: Authorization = await self.client.authorization(another_account=another_account)
        flow = Flow(issuer=self.client.name, nonce=made.nonce, code_verifier=made.code_verifier, next=following)
        self._flows.begin(made.state, browser, flow)
        return made.url

    async def end(self, answer: Answer, browser: str | None) -> Arrival:
        """Who arrived. Raises Unauthenticated with its reason for everything that is not exactly what we asked for.

        The state comes first: only of a browser that began here is anything else believed, an error too.
        """
        flow = self._flows.take(_one(answer.state, Reason.STATE_UNKNOWN), browser)
        if flow.issuer != self.client.name:
            raise refused(Reason.ISSUER_WRONG)
        await self._check_issuer(answer.iss)
        if answer.error:
            raise refused(Reason.ISSUER_REFUSED)
        code = _one(answer.code, Reason.CODE_MISSING)
        if len(code) > _LONGEST_CODE or not code.isascii() or not code.isprintable():
            raise refused(Reason.CODE_MISSING)
        tokens = await self.client.exchange(code, flow.code_verifier)
        issuer = self.client.issuer
        claims = await issuer.claims(tokens.id_token, nonce=flow.nonce, access_token=tokens.access_token)
        principal = signed_in(await self._completed(claims, tokens), issuer.settings, self._clock.now())
        ends_at_issuer = await self.client.ends_at() is not None
        return Arrival(principal=principal, id_token=tokens.id_token, next=flow.next, ends_at_issuer=ends_at_issuer)

    async def _check_issuer(self, iss: Sequence[str]) -> None:
        """RFC 9207 section 2.4: whoever answered is whom we asked; a code of one issuer is never sent to another."""
        provider = await self.client.issuer.providers.current()
        if not iss and not provider.says_issuer:
            return
        if list(iss) != [self.client.issuer.settings.issuer]:
            raise refused(Reason.ISSUER_WRONG)

    async def _completed(self, claims: Mapping[str, Any], tokens: Tokens) -> Mapping[str, Any]:
        """The claims, and those that this issuer keeps for its userinfo endpoint (OpenID Connect Core section 5.4)."""
        wanted = [name for name in self._wanted() if name not in claims]
        if not wanted or tokens.access_token is None:
            return claims
        said = await self.client.userinfo(tokens.access_token)
        if said is None:
            return claims
        if said.get("sub") != claims.get("sub"):
            raise refused(Reason.USERINFO_WRONG)  # section 5.3.2: it must be of the same person
        completed = {**{name: said[name] for name in wanted if name in said}, **claims}
        # "Verified" is said of the address beside it. With one from each source, whoever changes their address between
        # the two answers would have another person's.
        whole = claims.keys() >= _EMAIL or _name_one_address(claims, said)
        return completed if whole else {name: value for name, value in completed.items() if name not in _EMAIL}

    def _wanted(self) -> Sequence[str]:
        settings = self.client.issuer.settings
        wanted = ["email", "email_verified"] if settings.trust_email else []
        if settings.tenant_claim:
            wanted.append(settings.tenant_claim)
        if settings.roles:
            wanted.append(settings.groups_claim)
        return wanted


def _name_one_address(claims: Mapping[str, Any], said: Mapping[str, Any]) -> bool:
    """Whether `said` has both the address and whether it is verified, and `claims` says nothing else of either."""
    if not said.keys() >= _EMAIL or claims.get("email_verified", said["email_verified"]) != said["email_verified"]:
        return False
    here, there = claims.get("email", said["email"]), said["email"]
    return isinstance(here, str) and isinstance(there, str) and emails.fold(here) == emails.fold(there)


def _one(values: Sequence[str], otherwise: Reason) -> str:
    """The value of a parameter that was sent once (RFC 6749 section 3.1: none may be sent twice)."""
    if len(values) != 1 or not values[0]:
        raise refused(otherwise)
    return values[0]
