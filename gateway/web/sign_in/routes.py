"""Turns signing in and out into routes. They need no credential: who calls is what they are there to find out."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import cast
from urllib.parse import parse_qsl, quote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from gateway.errors import GatewayError, NotFound, Unauthenticated
from gateway.identity import cookies
from gateway.identity.credentials import Credentials
from gateway.identity.login import BROWSER, CookieVerifier
from gateway.identity.sign_ins import Attempt, BrowserSignIns
from gateway.model import SignIn
from gateway.operations.me import Myself
from gateway.pipeline import Call, Pipeline
from gateway.stages.record_audit import Trail
from gateway.tools.registry import AnyOperation
from gateway.web.request_ids import request_id_of
from gateway.web.sign_in import flows
from gateway.web.sign_in.flow import Answer, Arrival, SignInFlow
from gateway.web.sign_in.pages import Choice, Pages
from gateway.web.sign_in.paths import AFTER_SIGN_IN, on_this_origin
from gateway.web.sign_in.texts import ANOTHER_ACCOUNT, NOT_OURS, NOT_SIGNED_IN, Text, text_of

_MOST_FIELDS = 20
_PRIVATE = {"Referrer-Policy": "no-referrer", "Cache-Control": "no-store"}


class Door:
    """What the routes do. Where nobody can sign in with a browser, none of them is there."""

    def __init__(
        self,
        choices: Mapping[str, tuple[Choice, SignInFlow]],
        verifier: CookieVerifier,
        sign_ins: BrowserSignIns,
        pipeline: Pipeline,
        who_am_i: AnyOperation,
        *,
        public_url: str,
        cookie_lives_s: int,
    ) -> None:
        self._choices = choices
        self._verifier = verifier
        self._sign_ins = sign_ins
        self._pipeline = pipeline
        self._who_am_i = who_am_i
        self._public_url = public_url
        self._cookie_lives_s = cookie_lives_s
        self._pages = Pages(public_url)

    # ── in ───────────────────────────────────────────────────────────────────────────────────────────────────────────

    async def choose(self, request: Request) -> Response:
        """The only issuer at once, else a page to choose from."""
        following = _next(request)
        if len(self._choices) > 1:
            return self._pages.choose([choice for choice, _ in self._choices.values()], following)
        return self._to(_begin(next(iter(self._choices)), following))

    async def begin(self, request: Request) -> Response:
        """To the issuer, with a cookie that binds the flow to this browser."""
        flow, following = self._flow(request), _next(request)
        try:
            browser = flows.browser_of(_cookie(request, flows.COOKIE))
            url = await flow.begin(browser, following, another_account="another_account" in request.query_params)
        except GatewayError as error:
            self._count(error)
            return self._trouble(request, text_of(error), _begin(flow.client.name, following))
        answer = RedirectResponse(url, 302, headers=_PRIVATE)
        _set(answer, flows.COOKIE, browser, flows.LIVES_S)
        return answer

    async def come_back(self, request: Request) -> Response:
        """From the issuer: a new sign-in and its cookie, or a page that says why not."""
        flow = self._flow(request)
        try:
            arrival = await self._arrival(request, flow)
            value, _ = await self._sign_ins.sign_in(arrival.principal, _attempt(request, arrival))
        except GatewayError as error:
            text = text_of(error)
            # Whoever is signed in at the issuer would come back here at once, as the same account.
            other = "&another_account" if text.link == ANOTHER_ACCOUNT else ""
            return self._trouble(request, text, f"{_begin(flow.client.name)}{other}")
        answer = self._to(arrival.next)
        _set(answer, cookies.COOKIE, value, self._cookie_lives_s)
        return answer  # the flow's cookie stays its ten minutes: another tab may be on its way back

    async def _arrival(self, request: Request, flow: SignInFlow) -> Arrival:
        try:
            arrival = await flow.end(_answer(request), _cookie(request, flows.COOKIE))
            _cookie(request, cookies.COOKIE)  # two of them are refused before anybody is signed in
        except GatewayError as error:
            self._count(error)
            raise
        return arrival

    def _count(self, error: GatewayError) -> None:
        """Nobody is known yet, so there is no organisation whose audit it could be in."""
        self._sign_ins.count(error.reason if isinstance(error, Unauthenticated) else error.code)

    # ── here, and out ────────────────────────────────────────────────────────────────────────────────────────────────

    async def signed_in(self, request: Request) -> Response:
        """Who you are; asked over the one path, as everything that shows anything of anybody."""
        call = Call.of(_credentials(request), self._who_am_i)
        trail = Trail(request_id_of(request.scope), BROWSER, self._who_am_i.name)
        try:
            myself = cast("Myself", await self._pipeline.run(call, trail))
            value = _cookie(request, cookies.COOKIE) or ""
            sign_in, principal = await self._verifier.signed_in(value)
        except Unauthenticated:
            return self._trouble(request, NOT_SIGNED_IN, "/sign-in")
        except GatewayError as error:
            return self._trouble(request, text_of(error), str(request.url.path))
        flow = self._flow_at(sign_in)
        ends_at = await flow.client.ends_at() if flow else None
        return self._pages.signed_in(
            name=myself.requester.profile.name,
            tenant=myself.requester.tenant,
            csrf_token=principal.csrf_token or "",
            leads_to=[] if ends_at is None else [ends_at],
        )

    async def sign_out(self, request: Request) -> Response:
        """Ends the sign-in here, then at the issuer. A form that is not of a page of ours ends nothing."""
        back_to = f"{self._public_url}/signed-out"
        try:
            value = _cookie(request, cookies.COOKIE)
            sign_in, _ = await self._verifier.signed_in(value or "")
        except Unauthenticated:
            return self._ended_already(request, back_to)
        request_id = request_id_of(request.scope)
        try:
            self._verifier.check_write(value or "", await _csrf_token(request), _credentials(request))
        except Unauthenticated as error:
            await self._sign_ins.not_signed_out(sign_in, request_id, error.reason)
            return self._trouble(request, NOT_OURS, AFTER_SIGN_IN)
        await self._sign_ins.sign_out(sign_in, request_id)
        flow = self._flow_at(sign_in)
        at_issuer = await flow.client.end_session(sign_in.id_token, back_to) if flow else None
        return _signed_out(at_issuer or back_to)

    def _ended_already(self, request: Request, back_to: str) -> Response:
        """A form without a sign-in. One of another site's page comes without the cookie, which the browser keeps back
        (SameSite): clearing it in the answer would sign out whoever is signed in there."""
        try:
            self._verifier.check_origin(_credentials(request))
        except Unauthenticated as error:
            self._sign_ins.count(error.reason)
            return self._trouble(request, NOT_OURS, AFTER_SIGN_IN)
        return _signed_out(back_to)

    async def signed_out(self, _request: Request) -> Response:
        """Good-bye."""
        return self._pages.signed_out()

    # ── what they share ──────────────────────────────────────────────────────────────────────────────────────────────

    def _flow(self, request: Request) -> SignInFlow:
        found = self._choices.get(request.path_params["issuer"])
        if found is None:
            raise NotFound
        return found[1]

    def _flow_at(self, sign_in: SignIn) -> SignInFlow | None:
        """None where the settings no longer name its issuer."""
        all_of_them = (flow for _, flow in self._choices.values())
        return next((one for one in all_of_them if one.client.issuer.settings.issuer == sign_in.issuer), None)

    def _to(self, path: str) -> Response:
        # With our own origin before it, a path can't be read as another one.
        return RedirectResponse(f"{self._public_url}{path}", 303, headers=_PRIVATE)

    def _trouble(self, request: Request, text: Text, again: str) -> Response:
        return self._pages.trouble(text, request_id=request_id_of(request.scope), again=again)


def sign_in_routes(door: Door | None) -> list[Route]:
    """The routes; without a door none of them leads anywhere."""

    def route(path: str, method: str, handler: Callable[[Door, Request], Awaitable[Response]]) -> Route:
        async def answer(request: Request) -> Response:
            if door is None:
                raise NotFound
            return await handler(door, request)

        return Route(path, answer, methods=[method])

    return [
        route("/sign-in", "GET", Door.choose),
        route("/sign-in/{issuer}", "GET", Door.begin),
        route("/sign-in/{issuer}/callback", "GET", Door.come_back),
        route("/signed-in", "GET", Door.signed_in),
        route("/sign-out", "POST", Door.sign_out),
        route("/signed-out", "GET", Door.signed_out),
    ]


def _begin(name: str, following: str = AFTER_SIGN_IN) -> str:
    return f"/sign-in/{name}?next={quote(following, safe='')}"


def _next(request: Request) -> str:
    wanted = request.query_params.getlist("next")
    return on_this_origin(wanted[0] if len(wanted) == 1 else None)


def _credentials(request: Request) -> Credentials:
    client = request.client
    return Credentials(request.scope["headers"], client.host if client else None, request.method)


def _cookie(request: Request, name: str) -> str | None:
    sent = [value.decode("latin-1") for header, value in request.scope["headers"] if header == b"cookie"]
    return cookies.named(sent, name)


def _answer(request: Request) -> Answer:
    sent = request.query_params.getlist
    return Answer(state=sent("state"), code=sent("code"), iss=sent("iss"), error=sent("error"))


def _attempt(request: Request, arrival: Arrival) -> Attempt:
    return Attempt(
        request=request_id_of(request.scope),
        user_agent=request.headers.get("user-agent", ""),
        cookie=_cookie(request, cookies.COOKIE),
        id_token=arrival.id_token if arrival.ends_at_issuer else None,
    )


async def _csrf_token(request: Request) -> str:
    """The form's field `csrf_token`; nothing where it is not there once."""
    body = (await request.body()).decode("utf-8", "replace")
    try:
        fields = parse_qsl(body, keep_blank_values=True, max_num_fields=_MOST_FIELDS)
    except ValueError:
        return ""
    tokens = [value for name, value in fields if name == "csrf_token"]
    return tokens[0] if len(tokens) == 1 else ""


def _signed_out(url: str) -> Response:
    answer = RedirectResponse(url, 303, headers=_PRIVATE)
    _clear(answer, cookies.COOKIE)
    _clear(answer, flows.COOKIE)
    return answer


def _set(answer: Response, name: str, value: str, lives_s: int) -> None:
    answer.set_cookie(name, value, max_age=lives_s, path="/", secure=True, httponly=True, samesite="lax")


def _clear(answer: Response, name: str) -> None:
    answer.delete_cookie(name, path="/", secure=True, httponly=True, samesite="lax")
