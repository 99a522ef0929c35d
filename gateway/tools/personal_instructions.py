"""`personal_instructions`: the requester's own file, whoever owns the session (design section 6).

No argument names a person: whose file it is comes from the permit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from gateway.errors import PreconditionFailed
from gateway.model import Action, Resource
from gateway.policy.permit import Permit
from gateway.policy.targets import MemoryTarget, MissingTarget
from gateway.tools.arguments import Arguments
from gateway.tools.registry import AnyOperation, Operation, Tool
from gateway.turn import Turn
from gateway.workspace.folders import AgentFolders, from_thread
from gateway.workspace.paths import instructions_path
from gateway.workspace.personal import INSTRUCTIONS_LIMIT, Instructions, instructions_in, save_instructions

FAMILY = (Resource.PERSONAL_INSTRUCTIONS,)
Hash = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class InstructionsArguments(Arguments):
    """`personal_instructions`. `set` needs `content`, and `expectedHash` as it was read (null for a new file)."""

    action: Literal["get", "set"]
    agent_id: Annotated[str | None, Field(alias="agentId", min_length=1, max_length=64)] = None
    content: str | None = None
    expected_hash: Annotated[Hash | None, Field(alias="expectedHash")] = None

    @model_validator(mode="after")
    def _a_set_is_complete(self) -> Self:
        if self.action == "set" and (self.content is None or "expected_hash" not in self.model_fields_set):
            raise ValueError("'set' needs 'content' and 'expectedHash': the hash that was read, or null for a new file")
        return self


@dataclass(frozen=True, slots=True)
class Reading:
    """Which agent's file to read; None is the agent of the session."""

    agent: str | None


@dataclass(frozen=True, slots=True)
class Saving:
    """A new text, and the hash of the one that was read (None: there was no file)."""

    agent: str | None
    content: str
    expected: str | None


class PersonalInstructions:
    """The two operations, for the tool and for REST."""

    def __init__(self, folders: AgentFolders) -> None:
        self._folders = folders
        self.read: AnyOperation = Operation(
            name="personal_instructions.get",
            summary="Reads your own instructions for this agent.",
            action=Action.GET,
            family=FAMILY,
            find=_find,
            run=self._run_read,
        )
        self.save: AnyOperation = Operation(
            name="personal_instructions.set",
            summary="Replaces your own instructions for this agent.",
            action=Action.EDIT,
            family=FAMILY,
            find=_find,
            run=self._run_save,
            effect=True,
        )

    def tool(self) -> Tool:
        """The tool, which is one of the two by its `action`."""
        get: AnyOperation = replace(self.read, find=_find_by_tool, run=self._tool_read, by_turn_token=True)
        put: AnyOperation = replace(self.save, find=_find_by_tool, run=self._tool_save, by_turn_token=True)
        return Tool(
            name="personal_instructions",
            description=(
                "Reads or replaces the personal instructions of the person you are talking to: lasting preferences "
                f"about how to answer them, at most {INSTRUCTIONS_LIMIT} characters. Get first, then set with the hash."
            ),
            arguments=InstructionsArguments,
            operations=(get, put),
            choose=lambda arguments: put if arguments.action == "set" else get,
        )

    async def _run_read(self, permit: Permit[MemoryTarget], turn: Turn, _arguments: Reading) -> Instructions:
        workspace = self._folders.of(turn.state.agents[permit.target.agent])
        path = instructions_path(permit.requester.profile.id)
        return instructions_in((await self._folders.read(workspace, (path,)))[path])

    async def _tool_read(
        self, permit: Permit[MemoryTarget], turn: Turn, arguments: InstructionsArguments
    ) -> dict[str, object]:
        return _shown(permit, await self._run_read(permit, turn, Reading(arguments.agent_id)))

    async def _tool_save(
        self, permit: Permit[MemoryTarget], turn: Turn, arguments: InstructionsArguments
    ) -> dict[str, object]:
        """As saved, or `status: "conflict"` with the hash that is there now; then nothing was changed."""
        wanted = Saving(arguments.agent_id, arguments.content or "", arguments.expected_hash)
        try:
            return _shown(permit, await self._run_save(permit, turn, wanted))
        except PreconditionFailed as stale:
            return {"status": "conflict", "error": stale.detail, "hash": stale.current}

    async def _run_save(self, permit: Permit[MemoryTarget], turn: Turn, arguments: Saving) -> Instructions:
        """Rights and merge are looked at again under the lock, just before the rename. Raises PreconditionFailed."""
        workspace = self._folders.of(turn.state.agents[permit.target.agent])
        check = from_thread(lambda: turn.confirm(permit))
        return await self._folders.run(
            lambda: save_instructions(
                workspace,
                self._folders.locks,
                turn.tenant,
                permit.requester.profile.id,
                arguments.content,
                arguments.expected,
                check,
            )
        )


async def _find(turn: Turn, arguments: Reading | Saving) -> MemoryTarget | MissingTarget:
    return _own_file(turn, arguments.agent)


async def _find_by_tool(turn: Turn, arguments: InstructionsArguments) -> MemoryTarget | MissingTarget:
    return _own_file(turn, arguments.agent_id)


def _own_file(turn: Turn, name: str | None) -> MemoryTarget | MissingTarget:
    """The requester's own file for the named agent, or for the agent of the session."""
    here = turn.origin.session
    agent = turn.agent(name if name is not None else here.agent if here else "")
    me = turn.requester.profile.id
    if agent is None:
        return MissingTarget(turn.tenant, Resource.PERSONAL_INSTRUCTIONS, instructions_path(me))
    return MemoryTarget(turn.tenant, agent.name, Resource.PERSONAL_INSTRUCTIONS, me, instructions_path(me))


def _shown(permit: Permit[MemoryTarget], instructions: Instructions) -> dict[str, object]:
    return {
        "status": "ok",
        "agentId": permit.target.agent,
        "missing": instructions.sha256 is None,
        "content": instructions.content,
        "hash": instructions.sha256,
    }
