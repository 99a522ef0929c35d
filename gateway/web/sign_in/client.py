"""Turns a sign-in into the requests that OAuth asks of a client; the only place that knows Authlib.

Authlib makes PKCE, the addresses and the token request. What the issuer answers is checked by us, with one set of rules
for all tokens (`identity/id_tokens`).
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote_plus

import httpx2
import orjson
from authlib.common.errors import AuthlibBaseError
from authlib.integrations.starlette_client import StarletteOAuth2App

from gateway.errors import Unavailable
from gateway.identity.providers import AWAY, Provider, SignInIssuer
from gateway.identity.refusals import Reason, refused

_TIMEOUT_S = 10
_MAX_BYTES = 262_144
# RFC 6749 section 5.2: it is the settings that are wrong, and not the code.
_NOT_THIS_CLIENT = ("invalid_client", "unauthorized_client")


@dataclass(frozen=True, slots=True, kw_only=True)
class Authorization:
    """Where to send a browser, and what to remember until it comes back."""

    url: str
    state: str
    nonce: str
    code_verifier: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """What a code was exchanged for."""

    id_token: str = field(repr=False)
    access_token: str | None = field(repr=False)


class Client:
    """The gateway as a client of one issuer."""

    def __init__(
        self,
        name: str,
        issuer: SignInIssuer,
        http: httpx2.AsyncClient,
        *,
        client_id: str,
        client_secret: str | None,
        scopes: tuple[str, ...],
        public_url: str,
    ) -> None:
        self.name = name
        self.issuer = issuer
        self._transport = _Through(http)
        self._client_id = client_id
        self._client_secret = client_secret
        self._scope = " ".join(scopes)
        self._callback = f"{public_url}/sign-in/{name}/callback"

    async def authorization(self, *, another_account: bool) -> Authorization:
        """A fresh authorization request (RFC 6749 section 4.1.1) with PKCE (RFC 7636). Raises Unavailable.

        `another_account`: the issuer is to ask who it is, also of somebody who is signed in there (`prompt=login`).
        """
        app = self._app(await self.issuer.providers.current())
        made = await app.create_authorization_url(self._callback, **({"prompt": "login"} if another_account else {}))
        return Authorization(
            url=made["url"], state=made["state"], nonce=made["nonce"], code_verifier=made["code_verifier"]
        )

    async def exchange(self, code: str, code_verifier: str) -> Tokens:
        """The tokens for a code. Raises Unauthenticated where the issuer gives none; Unavailable."""
        app = self._app(await self.issuer.providers.current())
        try:
            async with asyncio.timeout(_TIMEOUT_S):
                token = await app.fetch_access_token(self._callback, code=code, code_verifier=code_verifier)
        except httpx2.HTTPStatusError as error:
            if error.response.is_server_error:
                raise Unavailable(AWAY) from error
            raise refused(Reason.CODE_REFUSED) from error
        except (httpx2.HTTPError, TimeoutError) as error:
            raise Unavailable(AWAY) from error
        except AuthlibBaseError as error:
            reason = Reason.CLIENT_REFUSED if error.error in _NOT_THIS_CLIENT else Reason.CODE_REFUSED
            raise refused(reason) from error
        except (ValueError, TypeError, AttributeError, OverflowError, RecursionError) as error:
            raise refused(Reason.CODE_REFUSED) from error  # an answer that is none of OAuth's
        id_token, access_token = token.get("id_token"), token.get("access_token")
        if not isinstance(id_token, str):
            raise refused(Reason.ID_TOKEN_MISSING)
        return Tokens(id_token=id_token, access_token=access_token if isinstance(access_token, str) else None)

    async def userinfo(self, access_token: str) -> Mapping[str, Any] | None:
        """What the issuer says at its userinfo endpoint; None where it has none. Raises as `exchange`."""
        provider = await self.issuer.providers.current()
        if provider.userinfo_endpoint is None:
            return None
        token = {"access_token": access_token, "token_type": "Bearer"}
        try:
            async with asyncio.timeout(_TIMEOUT_S):
                answer = await self._app(provider).get(provider.userinfo_endpoint, token=token)
            claims = orjson.loads(answer.content) if answer.status_code == httpx2.codes.OK else None
        except (httpx2.HTTPError, TimeoutError) as error:
            raise Unavailable(AWAY) from error
        except (AuthlibBaseError, ValueError) as error:
            raise refused(Reason.USERINFO_WRONG) from error
        if not isinstance(claims, dict):
            raise refused(Reason.USERINFO_WRONG)
        return claims

    async def ends_at(self) -> str | None:
        """Where the issuer ends its own sign-ins; None where it has no such place, or can't be asked."""
        provider = await self._reachable()
        return None if provider is None else provider.end_session_endpoint

    async def end_session(self, id_token: str | None, back_to: str) -> str | None:
        """Where to send a browser that signed out (OpenID Connect RP-Initiated Logout); None where there is no such
        place: the sign-in here has ended all the same."""
        provider = await self._reachable()
        if provider is None or provider.end_session_endpoint is None:
            return None
        made = await self._app(provider).create_logout_url(
            post_logout_redirect_uri=back_to, id_token_hint=id_token, client_id=self._client_id
        )
        url: str = made["url"]
        return url

    async def _reachable(self) -> Provider | None:
        try:
            return await self.issuer.providers.current()
        except Unavailable:
            return None

    def _app(self, provider: Provider) -> Any:  # Authlib has no types
        secret = self._client_secret
        return StarletteOAuth2App(
            None,  # what it would keep in Starlette's session is kept by `flows`
            self.name,
            client_id=self._client_id,
            client_secret=secret,
            authorize_url=provider.authorization_endpoint,
            access_token_url=provider.token_endpoint,
            client_auth_methods=[("client_secret_basic", _basic)],
            client_kwargs={
                "scope": self._scope,
                "code_challenge_method": "S256",
                "token_endpoint_auth_method": "none" if secret is None else provider.secret_method,
                "transport": self._transport,
            },
            end_session_endpoint=provider.end_session_endpoint,
        )


def _basic(
    client: Any, _method: str, uri: str, headers: dict[str, str], body: str | bytes
) -> tuple[str, dict[str, str], str | bytes]:
    """RFC 6749 section 2.3.1: both are form-encoded before they are joined, which Authlib leaves out."""
    pair = f"{quote_plus(client.client_id)}:{quote_plus(client.client_secret)}"
    headers["Authorization"] = f"Basic {base64.b64encode(pair.encode('ascii')).decode('ascii')}"
    return uri, headers, body


class _Through(httpx2.AsyncBaseTransport):
    """Sends over the gateway's own client, and reads no more than an answer of OAuth's may have.

    Authlib makes a client for each request; with this none of them has connections or TLS of its own.
    """

    def __init__(self, http: httpx2.AsyncClient) -> None:
        self._http = http

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """The whole answer. Raises ReadError for one that is too long or compressed; nothing is redirected."""
        request.headers["Accept-Encoding"] = "identity"
        answer = await self._http.send(request, stream=True, follow_redirects=False)
        try:
            if answer.headers.get("Content-Encoding", "identity") != "identity":
                raise httpx2.ReadError("compressed", request=request)
            body = bytearray()
            async for chunk in answer.aiter_raw():
                body += chunk
                if len(body) > _MAX_BYTES:
                    raise httpx2.ReadError("too long", request=request)
        finally:
            await answer.aclose()
        return httpx2.Response(answer.status_code, content=bytes(body), request=request)
