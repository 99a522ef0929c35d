"""The memory tools that need no index: `memory_get` reads a file, `memory_append` adds a note (design section 8)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal
from zoneinfo import ZoneInfo

from pydantic import Field

from gateway.keys import new_id
from gateway.model import Action, Agent, Chat, Resource, TenantId
from gateway.policy.permit import Permit
from gateway.policy.targets import MemoryTarget, MissingTarget
from gateway.ports import Clock, NoteRecord, Notes
from gateway.tools.arguments import Arguments
from gateway.tools.excerpts import excerpt
from gateway.tools.registry import Operation, Tool, tool
from gateway.turn import Turn
from gateway.workspace.bootstrap import could_be_anywhere, is_copy_of
from gateway.workspace.files import FileText
from gateway.workspace.folders import AgentFolders, Found, from_thread
from gateway.workspace.notes import append_note, check_room, entry_sha256
from gateway.workspace.paths import daily_path, longterm_path, memory_resource
from gateway.workspace.problems import FileMissing, FileProblem

READABLE = (
    Resource.MEMORY_SHARED,
    Resource.MEMORY_LONGTERM,
    Resource.MEMORY_DAILY,
    Resource.MEMORY_DREAMS,
    Resource.PERSONAL_INSTRUCTIONS,
    Resource.PERSONAL_LONGTERM,
    Resource.PERSONAL_DAILY,
)
Word = Annotated[str, Field(min_length=1, max_length=512)]


class GetArguments(Arguments):
    """`memory_get`."""

    path: Word
    start: Annotated[int, Field(alias="from", ge=1)] = 1
    lines: Annotated[int, Field(ge=1, le=10_000)] = 120
    agent_id: Annotated[Word | None, Field(alias="agentId")] = None


class AppendArguments(Arguments):
    """`memory_append`: a note for oneself, or for the team."""

    scope: Literal["personal", "shared"]
    text: Annotated[str, Field(min_length=1, max_length=4_000)]


class MemoryTools:
    """Builds the two tools over the agents' folders."""

    def __init__(self, folders: AgentFolders, notes: Notes, clock: Clock) -> None:
        self._folders = folders
        self._notes = notes
        self._clock = clock

    def all(self) -> Sequence[Tool]:
        """The tools, in a fixed order."""
        get = Operation(
            name="memory_get",
            summary="Reads a memory file by its path in the workspace, from a line on.",
            action=Action.GET,
            family=READABLE,
            find=_find_file,
            run=self._run_get,
            absent=_not_found,
        )
        append = Operation(
            name="memory_append",
            summary="Adds a fact or a decision to today's note, for yourself or for the team.",
            action=Action.APPEND,
            family=(Resource.MEMORY_DAILY, Resource.PERSONAL_DAILY),
            find=self._find_note,
            run=self._run_append,
            effect=True,
        )
        return (tool(get, GetArguments), tool(append, AppendArguments))

    async def _run_get(self, permit: Permit[MemoryTarget], turn: Turn, arguments: GetArguments) -> dict[str, object]:
        """The lines. A file that is missing, or that may not be opened safely, is `not_found` or `error`."""
        target = permit.target
        workspace = self._folders.of(turn.state.agents[target.agent])
        secret = longterm_path(None) if turn.origin.chat is Chat.GROUP else None
        paths = (target.path,) if secret is None else (target.path, secret)
        found = _unless_copy(await self._folders.read(workspace, paths), target.path, secret)
        if isinstance(found, FileMissing):
            return _not_found(arguments)
        if isinstance(found, FileProblem):
            return {"status": "error", "path": arguments.path, "error": found.detail, "code": found.code}
        return {"status": "ok", "path": arguments.path, **excerpt(found.text, arguments.start, arguments.lines)}

    async def _find_note(self, turn: Turn, arguments: AppendArguments) -> MemoryTarget | MissingTarget:
        agent = _agent_of(turn, None)
        if agent is None:
            return MissingTarget(turn.tenant, Resource.MEMORY_DAILY, "today's note")
        today = self._clock.now().astimezone(ZoneInfo(agent.timezone)).date()
        if arguments.scope == "shared":
            return MemoryTarget(turn.tenant, agent.name, Resource.MEMORY_DAILY, None, daily_path(today, None))
        me = turn.requester.profile.id
        return MemoryTarget(turn.tenant, agent.name, Resource.PERSONAL_DAILY, me, daily_path(today, me))

    async def _run_append(
        self, permit: Permit[MemoryTarget], turn: Turn, arguments: AppendArguments
    ) -> dict[str, object]:
        """Where the note went. Its origin is on record before it is written; a note without one is `untrusted`."""
        target = permit.target
        workspace = self._folders.of(turn.state.agents[target.agent])
        # A full note must not collect the origins of entries that are never written.
        await self._folders.run(lambda: check_room(workspace, target.path, arguments.text))
        await self._notes.add(self._provenance(permit, turn, arguments.text))
        check = from_thread(lambda: turn.confirm(permit))
        note = await self._folders.run(
            lambda: append_note(workspace, self._folders.locks, turn.tenant, target.path, arguments.text, recheck=check)
        )
        return {"status": "ok", "path": note.path, "scope": arguments.scope}

    def _provenance(self, permit: Permit[MemoryTarget], turn: Turn, text: str) -> NoteRecord:
        here = turn.origin.session
        return NoteRecord(
            id=new_id("note", self._clock.now()),
            tenant=turn.tenant,
            agent=permit.target.agent,
            path=permit.target.path,
            sha256=entry_sha256(text),
            provenance=_provenance_of(turn),
            author=turn.requester.profile.id,
            session=here.id if here else None,
            created_at=self._clock.now(),
        )


def _provenance_of(turn: Turn) -> str:
    """Whose words they are (design section 9): a runtime's are the agent's, and untrusted once its turn is tainted."""
    if turn.origin.tainted:
        return "untrusted"
    typed = turn.requester.profile.kind == "person" and turn.requester.principal.turn is None
    return "person" if typed else "agent"


def _unless_copy(found: Found, path: str, secret: str | None) -> FileText | FileProblem:
    """The file. Where `secret` is named, whatever holds its text is missing: it is the same file under another name.
    Where that can't be read, everything is missing, since any of it could."""
    mine = found[path]
    if secret is None or isinstance(mine, FileProblem):
        return mine
    hidden = found[secret]
    return FileMissing(path) if could_be_anywhere(hidden) or is_copy_of(hidden, mine) else mine


def _agent_of(turn: Turn, name: str | None) -> Agent | None:
    here = turn.origin.session
    return turn.agent(name if name is not None else here.agent if here else "")


async def _find_file(turn: Turn, arguments: GetArguments) -> MemoryTarget | MissingTarget:
    return file_target(turn.tenant, _agent_of(turn, arguments.agent_id), arguments.path)


def file_target(tenant: TenantId, agent: Agent | None, path: str) -> MemoryTarget | MissingTarget:
    """The file by what its path says it is; a path that is no memory file is missing like one that is not there."""
    found = memory_resource(path)
    if agent is None or found is None:
        return MissingTarget(tenant, Resource.MEMORY_DAILY, path)
    resource, owner = found
    return MemoryTarget(tenant, agent.name, resource, owner, path)


def _not_found(arguments: GetArguments) -> dict[str, object]:
    """Missing and not yours are one answer (design section 7)."""
    return {"status": "not_found", "path": arguments.path, "text": "", "from": arguments.start, "lines": 0}
