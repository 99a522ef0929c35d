"""Turns an opaque token into what the server that issued it says of it now (RFC 7662)."""

from __future__ import annotations

import asyncio
import base64
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Any
from urllib.parse import quote_plus

import httpx2
import orjson

from gateway.errors import ConfigurationFaults, Fault, Unavailable
from gateway.identity.issuers import ClaimRules, claim_faults, is_safe_url
from gateway.identity.secret_sources import ClientSecret

_AWAY = "The server that issued this token can't be asked about it. Try again in a moment."
_PREFIX = re.compile(r"[A-Za-z0-9._~+/-]{0,64}", re.ASCII)  # what a bearer token may begin with (RFC 6750 section 2.1)
_OURS = re.compile(r"gw[a-z]_")


class ClientMethod(StrEnum):
    """How the gateway says who it is: in a header, or in the form (RFC 6749 section 2.3.1)."""

    BASIC = "client_secret_basic"
    POST = "client_secret_post"


@dataclass(frozen=True, slots=True, kw_only=True)
class IntrospectionSettings(ClaimRules):
    """One server to ask. Raises ConfigurationFaults, with every fault at once, for settings that must not be used."""

    endpoint: str
    client_id: str
    client_secret: ClientSecret
    client_method: ClientMethod = ClientMethod.BASIC
    prefix: str = ""  # what its tokens begin with, so that no other server is asked about them
    timeout_s: float = 5  # for one question, waiting for its turn included
    max_bytes: int = 65_536  # of one answer
    most_at_once: int = 8  # questions to the server; at least one place in four is for tokens that were good before
    most_waiting: int = 256  # questions of either kind; more are refused at once, so that made-up tokens can't pile up

    def __post_init__(self) -> None:
        faults = [*_server_faults(self), *claim_faults(self)]
        if faults:
            raise ConfigurationFaults(faults)


def is_of_the_gateway(token: str) -> bool:
    """Whether `token` looks like one of a gateway's own, which is nobody else's business."""
    return _OURS.match(token) is not None


def _server_faults(settings: IntrospectionSettings) -> Iterator[Fault]:
    if not is_safe_url(settings.endpoint, loopback=True):
        yield Fault(field="endpoint", rule="https", message="must be an https URL (http only on this machine)")
    if not is_safe_url(settings.issuer, loopback=True) or "?" in settings.issuer:
        yield Fault(field="issuer", rule="https", message="must be an https URL (http only on this machine)")
    if not settings.client_id.strip() or not settings.client_id.isprintable():
        yield Fault(field="client_id", rule="required", message="what the gateway is known by at this server")
    if _PREFIX.fullmatch(settings.prefix) is None or _OURS.match(settings.prefix):
        message = "must be at most 64 characters that a token may have, and not the beginning of the gateway's own"
        yield Fault(field="prefix", rule="prefix", message=message)
    for name in ("timeout_s", "max_bytes", "most_at_once", "most_waiting"):
        if getattr(settings, name) <= 0:
            yield Fault(field=name, rule="range", message="must be more than 0")


class _BadAnswer(Exception):
    """The server answered with something that is not the answer to an introspection."""


class _Lane:
    """Questions of one kind: so many at once, and so many that wait."""

    def __init__(self, at_once: int, most_waiting: int) -> None:
        self._turn = asyncio.Semaphore(at_once)
        self._places = most_waiting

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """A place among those that are asked now. Raises Unavailable where too many wait for one already."""
        if self._places <= 0:
            raise Unavailable(_AWAY)
        self._places -= 1
        try:
            async with self._turn:
                yield
        finally:
            self._places += 1


class IntrospectionServer:
    """Asks one server, a few questions at a time.

    Tokens that nobody has seen yet wait in a lane of their own: a flood of made-up ones keeps out nobody whose token
    was good a moment ago.
    """

    def __init__(self, settings: IntrospectionSettings, http: httpx2.AsyncClient) -> None:
        self.settings = settings
        self.fault: str | None = None  # why the last question had no answer; None after one that had
        self._http = http
        kept_free = max(1, settings.most_at_once // 4)
        self._known = _Lane(kept_free, settings.most_waiting)
        self._strange = _Lane(max(1, settings.most_at_once - kept_free), settings.most_waiting)

    async def ask(self, token: str, *, known: bool) -> Mapping[str, Any]:
        """The answer, whatever it says; `known` is a token that was active when it was last asked about.

        Raises Unavailable where there is none: nobody is let in on a guess.
        """
        lane = self._known if known else self._strange
        try:
            async with asyncio.timeout(self.settings.timeout_s), lane.turn():
                answer = await self._answer(token)
        except (httpx2.HTTPError, httpx2.InvalidURL, TimeoutError, _BadAnswer, ConfigurationFaults) as error:
            self.fault = f"{type(error).__name__}: {error}"
            raise Unavailable(_AWAY) from error
        self.fault = None
        return answer

    async def _answer(self, token: str) -> Mapping[str, Any]:
        settings = self.settings
        form = {"token": token, "token_type_hint": "access_token"}
        # Nothing compressed, so that the limit counts what is read into memory.
        headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
        if settings.client_method is ClientMethod.BASIC:
            headers["Authorization"] = _basic(settings.client_id, settings.client_secret.read())
        else:
            form |= {"client_id": settings.client_id, "client_secret": settings.client_secret.read()}
        body = bytearray()
        # A redirect would send the token, and our secret, to wherever it points.
        async with self._http.stream(
            "POST", settings.endpoint, data=form, headers=headers, follow_redirects=False
        ) as response:
            _check_head(response)
            async for chunk in response.aiter_raw():
                body += chunk
                if len(body) > settings.max_bytes:
                    raise _BadAnswer(f"more than {settings.max_bytes} bytes")
        return _object(body)


def _basic(client: str, secret: str) -> str:
    """Both are encoded like a form first (RFC 6749 section 2.3.1), so that a colon in them is no separator."""
    pair = f"{quote_plus(client)}:{quote_plus(secret)}"
    return f"Basic {base64.b64encode(pair.encode('ascii')).decode('ascii')}"


def _check_head(response: httpx2.Response) -> None:
    if response.status_code != httpx2.codes.OK:
        raise _BadAnswer(f"status {response.status_code}")
    media_type = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
    if media_type != "application/json" or response.headers.get("Content-Encoding", "identity") != "identity":
        raise _BadAnswer("not plain JSON")


def _object(body: bytearray) -> Mapping[str, Any]:
    try:
        answer = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise _BadAnswer("not JSON") from error
    if not isinstance(answer, dict):
        raise _BadAnswer("not an object")
    return answer
