"""What everybody has for themselves: who am I, which agents and tools may I use, my tokens."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gateway.identity.sign_ins import OwnSignIns
from gateway.identity.tokens import AccessTokens
from gateway.model import ANY_AGENT, AccessToken, Action, Agent, Notice, Requester, Resource, SignIn
from gateway.operations.found import function
from gateway.operations.people import make_token
from gateway.operations.people_arguments import NewToken, TokenBody
from gateway.operations.people_details import token_details
from gateway.policy.permit import Permit
from gateway.policy.targets import FunctionTarget
from gateway.ports import Notices, Page
from gateway.tools.registry import AnyOperation, Operation, Registry, Tool
from gateway.turn import Turn

FAMILY = (Resource.GATEWAY,)


@dataclass(frozen=True, slots=True)
class OfToken:
    """Arguments about one of my tokens."""

    token: str


@dataclass(frozen=True, slots=True)
class OfSignIn:
    """Arguments about one of my sign-ins."""

    sign_in: str


@dataclass(frozen=True, slots=True)
class MySignIn:
    """A browser that I am signed in with; whether it is the one that asks."""

    sign_in: SignIn
    current: bool


@dataclass(frozen=True, slots=True)
class Myself:
    """Who I am, and how many notices are kept for me."""

    requester: Requester
    notices: int


class MyOperations:
    """Builds the operations on oneself."""

    def __init__(self, tokens: AccessTokens, sign_ins: OwnSignIns, notices: Notices, tools: Registry) -> None:
        self._tokens = tokens
        self._sign_ins = sign_ins
        self._notices = notices
        self._registry = tools
        self.show: AnyOperation = Operation(
            name="me.show",
            summary="Says who you are.",
            action=Action.READ,
            family=FAMILY,
            find=_find_read,
            run=self._run_show,
        )
        self.notices: AnyOperation = Operation(
            name="me.notices",
            summary="Lists what owners changed of your rights and sign-ins, newest first.",
            action=Action.READ,
            family=FAMILY,
            find=_find_read,
            run=self._run_notices,
        )
        self.agents: AnyOperation = Operation(
            name="agents.mine",
            summary="Lists the agents that you may use.",
            action=Action.READ,
            family=FAMILY,
            find=_find_read,
            run=_run_agents,
        )
        self.tools: AnyOperation = Operation(
            name="tools.list",
            summary="Lists the tools that your roles include.",
            action=Action.READ,
            family=FAMILY,
            find=_find_read,
            run=self._run_tools,
        )
        self.tokens: AnyOperation = Operation(
            name="me.tokens.list",
            summary="Lists your access tokens.",
            action=Action.READ,
            family=FAMILY,
            find=_find_read,
            run=self._run_tokens,
        )
        self.create_token: AnyOperation = Operation(
            name="me.tokens.create",
            summary="Makes an access token; its secret is shown once.",
            action=Action.EDIT,
            family=FAMILY,
            find=_find_me,
            run=self._run_create_token,
            details=token_details,
            effect=True,
            raises_epoch=True,
        )
        self.revoke_token: AnyOperation = Operation(
            name="me.tokens.revoke",
            summary="Ends one of your access tokens at once.",
            action=Action.EDIT,
            family=FAMILY,
            find=_find_token,
            run=self._run_revoke_token,
            effect=True,
            raises_epoch=True,
        )

        self.sign_ins: AnyOperation = Operation(
            name="me.sign_ins.list",
            summary="Lists the browsers that you are signed in with.",
            action=Action.READ,
            family=FAMILY,
            find=_find_read,
            run=self._run_sign_ins,
        )
        self.revoke_sign_in: AnyOperation = Operation(
            name="me.sign_ins.revoke",
            summary="Signs one of your browsers out at once.",
            action=Action.EDIT,
            family=FAMILY,
            find=_find_sign_in,
            run=self._run_revoke_sign_in,
            effect=True,
            raises_epoch=True,
        )

    async def _run_show(self, permit: Permit[FunctionTarget], _turn: Turn, _arguments: None) -> Myself:
        requester = permit.requester
        return Myself(requester, await self._notices.count(requester.tenant, requester.profile.id))

    async def _run_notices(self, permit: Permit[FunctionTarget], _turn: Turn, _arguments: None) -> Page[Notice]:
        requester = permit.requester
        return Page(tuple(await self._notices.of_profile(requester.tenant, requester.profile.id)), None)

    async def _run_tools(self, _permit: Permit[FunctionTarget], turn: Turn, _arguments: None) -> Page[Tool]:
        return Page(tuple(tool for tool in self._registry.all() if _may_ever(turn, tool)), None)

    async def _run_tokens(self, permit: Permit[FunctionTarget], _turn: Turn, _arguments: None) -> Page[AccessToken]:
        found = await self._tokens.list(permit.requester, permit.requester.profile.id)
        return Page(tuple(found), None)

    async def _run_create_token(self, permit: Permit[FunctionTarget], _turn: Turn, body: TokenBody) -> NewToken:
        return await make_token(self._tokens, permit, permit.requester.profile.id, body)

    async def _run_revoke_token(self, permit: Permit[FunctionTarget], _turn: Turn, arguments: OfToken) -> None:
        await self._tokens.revoke(permit.requester, permit.requester.profile.id, arguments.token)

    async def _run_sign_ins(self, permit: Permit[FunctionTarget], _turn: Turn, _arguments: None) -> Page[MySignIn]:
        found = await self._sign_ins.list(permit.requester)
        asking = {one.credential_id for one in (permit.requester.principal, *permit.requester.principal.beside)}
        return Page(tuple(MySignIn(one, one.id in asking) for one in found), None)

    async def _run_revoke_sign_in(self, permit: Permit[FunctionTarget], _turn: Turn, arguments: OfSignIn) -> None:
        await self._sign_ins.revoke(permit.requester, arguments.sign_in)


async def _find_read(turn: Turn, _arguments: object) -> FunctionTarget:
    return of_oneself(turn, Action.READ, None)


async def _find_me(turn: Turn, _body: TokenBody) -> FunctionTarget:
    return of_oneself(turn, Action.EDIT, turn.requester.profile.id)


async def _find_token(turn: Turn, arguments: OfToken) -> FunctionTarget:
    return of_oneself(turn, Action.EDIT, arguments.token)


async def _find_sign_in(turn: Turn, arguments: OfSignIn) -> FunctionTarget:
    return of_oneself(turn, Action.EDIT, arguments.sign_in)


def of_oneself(turn: Turn, action: Action, name: str | None) -> FunctionTarget:
    """One's profile is no agent's: whoever holds a role on one agent alone asks by the rows of that one."""
    places = (ANY_AGENT, *sorted(turn.state.agents))
    may = (agent for agent in places if turn.authorize.could_ever(turn, agent, action, FAMILY))
    return replace(function(turn, Resource.GATEWAY, name), agent=next(may, ANY_AGENT))


async def _run_agents(_permit: Permit[FunctionTarget], turn: Turn, _arguments: None) -> Page[Agent]:
    """Those on which the person may open a session or enter one; asked like a list, so that a deny counts too."""
    scopes = [turn.scope(action).scope for action in (Action.CREATE, Action.ENTER)]
    mine = {agent for scope in scopes if scope is not None for agent, *_ in scope.cells}
    return Page(tuple(agent for name, agent in turn.state.agents.items() if name in mine), None)


def _may_ever(turn: Turn, tool: Tool) -> bool:
    return any(
        turn.authorize.could_ever(turn, agent, operation.action, operation.family)
        for operation in tool.operations
        for agent in turn.state.agents
    )
