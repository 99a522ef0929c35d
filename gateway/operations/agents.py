"""The agents of a tenant over REST and the command line: list, show, add with a workspace (design section 6)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Annotated
from zoneinfo import available_timezones

from pydantic import Field

from gateway.errors import Conflict, Fault, Invalid, NotFound
from gateway.keys import is_name
from gateway.model import Action, Agent, AgentName, Resource
from gateway.operations.found import function
from gateway.policy.permit import Permit
from gateway.policy.targets import FunctionTarget
from gateway.ports import Agents, Clock, Page
from gateway.tools.arguments import Arguments
from gateway.tools.registry import AnyOperation, Operation
from gateway.turn import Turn
from gateway.workspace.folders import AgentFolders
from gateway.workspace.scaffold import scaffold

FAMILY = (Resource.ADMIN_AGENTS,)
Text = Annotated[str, Field(min_length=1, max_length=200)]


class AgentBody(Arguments):
    """`POST /v1/admin/agents`. `workspace` is a folder under the tenant's root; one that is there is taken as it is."""

    name: Text
    workspace: Text | None = None
    title: Text | None = None
    timezone: Text = "UTC"


@dataclass(frozen=True, slots=True)
class OfAgent:
    """Arguments about one agent."""

    agent: str


class AgentOperations:
    """Builds the operations on agents."""

    def __init__(self, agents: Agents, folders: AgentFolders, clock: Clock) -> None:
        self._agents = agents
        self._folders = folders
        self._clock = clock
        self.list: AnyOperation = Operation(
            name="agents.list",
            summary="Lists every agent of the organisation.",
            action=Action.READ,
            family=FAMILY,
            find=_find,
            run=self._run_list,
        )
        self.show: AnyOperation = Operation(
            name="agents.show",
            summary="Shows one agent.",
            action=Action.READ,
            family=FAMILY,
            find=_find_agent,
            run=self._run_show,
        )
        self.add: AnyOperation = Operation(
            name="agents.add",
            summary="Adds an agent, with a new workspace or an existing folder.",
            action=Action.EDIT,
            family=FAMILY,
            find=_find_agent,
            run=self._run_add,
            details=_details,
            effect=True,
            raises_epoch=True,
        )

    async def _run_list(self, permit: Permit[FunctionTarget], _turn: Turn, _arguments: None) -> Page[Agent]:
        return Page(tuple(await self._agents.all(permit.requester.tenant)), None)

    async def _run_show(self, permit: Permit[FunctionTarget], _turn: Turn, arguments: OfAgent) -> Agent:
        found = await self._agents.find(permit.requester.tenant, AgentName(arguments.agent))
        if found is None:
            raise NotFound
        return found

    async def _run_add(self, permit: Permit[FunctionTarget], turn: Turn, body: AgentBody) -> Agent:
        """Raises Invalid with every fault, Conflict where the name or the folder belongs to an agent already."""
        agent = _agent(permit, body, await self._folders.run(available_timezones))
        if any(
            agent.name == one.name or agent.workspace == one.workspace for one in await self._agents.all(agent.tenant)
        ):
            raise Conflict("An agent has that name or that folder already. Choose another.")
        await turn.again()  # a folder is not taken back
        # The folder first: an agent whose folder could not be made would be there and refuse every turn.
        await self._folders.run(
            lambda: scaffold(self._folders.root / agent.tenant, agent.workspace, agent.name, agent.title)
        )
        await self._agents.add(agent, self._clock.now())
        return agent


def _agent(permit: Permit[FunctionTarget], body: AgentBody, timezones: Collection[str]) -> Agent:
    workspace = body.workspace or body.name
    rule = "Use 1 to 64 of a-z, 0-9, '-' and '_', beginning with a letter or a digit."
    faults = [
        Fault(field=field, rule="name", message=rule)
        for field, value in (("name", body.name), ("workspace", workspace))
        if not is_name(value)
    ]
    if body.timezone not in timezones:
        faults.append(Fault(field="timezone", rule="timezone", message="Name an IANA time zone, such as Asia/Taipei."))
    if faults:
        raise Invalid(faults)
    return Agent(
        tenant=permit.requester.tenant,
        name=AgentName(body.name),
        workspace=workspace,
        title=body.title or body.name,
        timezone=body.timezone,
    )


async def _find(turn: Turn, _arguments: object) -> FunctionTarget:
    return function(turn, Resource.ADMIN_AGENTS)


async def _find_agent(turn: Turn, arguments: AgentBody | OfAgent) -> FunctionTarget:
    name = arguments.agent if isinstance(arguments, OfAgent) else arguments.name
    return function(turn, Resource.ADMIN_AGENTS, name)


async def _details(_permit: Permit[FunctionTarget], _turn: Turn, body: AgentBody) -> dict[str, object]:
    return {"workspace": body.workspace or body.name, "timezone": body.timezone}
