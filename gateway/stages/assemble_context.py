"""Turns a turn inside a session into its context: which files it may see, read in one hop (design section 6).

What is out by the table or by the policy is never opened. One exception reads and shows nothing: in a shared session
root MEMORY.md is opened to drop whatever is a copy of it, whatever it is called.
"""

from __future__ import annotations

from collections.abc import Mapping
from zoneinfo import ZoneInfo

from gateway.errors import NotFound
from gateway.identity.roles import GUEST, PERSON
from gateway.model import Action, Agent, Chat, FileKind, Kind, Omission, ProfileId, Resource, Session
from gateway.policy.targets import MemoryTarget
from gateway.ports import Clock, Identities
from gateway.sessions.directory import SessionDirectory
from gateway.turn import Turn
from gateway.workspace.bootstrap import Candidate, assemble, candidates, could_be_anywhere, is_copy_of, part
from gateway.workspace.files import FileText
from gateway.workspace.folders import AgentFolders
from gateway.workspace.paths import longterm_path
from gateway.workspace.problems import FileProblem

RESOURCES: Mapping[FileKind, Resource] = {
    FileKind.RULES: Resource.MEMORY_RULES,
    FileKind.SHARED: Resource.MEMORY_SHARED,
    FileKind.PERSONAL: Resource.PERSONAL_INSTRUCTIONS,
    FileKind.LONGTERM: Resource.MEMORY_LONGTERM,
    FileKind.DAILY: Resource.MEMORY_DAILY,
    FileKind.PERSONAL_LONGTERM: Resource.PERSONAL_LONGTERM,
    FileKind.PERSONAL_DAILY: Resource.PERSONAL_DAILY,
}
PERSONAL = frozenset({FileKind.PERSONAL, FileKind.PERSONAL_LONGTERM, FileKind.PERSONAL_DAILY})
_EVERYWHERE = frozenset({FileKind.RULES, FileKind.SHARED})


class AssembleContext:
    """Asks for each candidate file, reads those that are allowed, and puts them together."""

    def __init__(self, folders: AgentFolders, sessions: SessionDirectory, identities: Identities, clock: Clock) -> None:
        self._folders = folders
        self._sessions = sessions
        self._identities = identities
        self._clock = clock

    async def __call__(self, turn: Turn) -> Turn:
        """The turn with its context. Raises Unavailable where the agent's folder can't be opened, NotFound where the
        agent is gone."""
        session = turn.origin.session
        assert session is not None  # noqa: S101 - an operation that assembles is asked from inside a session
        agent = turn.agent(session.agent)
        if agent is None:  # it was taken away, and its sessions with it
            raise NotFound
        today = self._clock.now().astimezone(ZoneInfo(agent.timezone)).date()
        owner = await self._is_owner(turn, session)
        person = turn.requester.profile
        listed = candidates(None if person.kind == GUEST else person.id, today)  # a guest has no folder
        wanted = {one: self._omission(turn, agent, one, owner) for one in listed}
        paths = [one.path for one, omission in wanted.items() if omission is None]
        secret = longterm_path(None) if turn.origin.chat is Chat.GROUP else None
        found = await self._folders.read(self._folders.of(agent), paths if secret is None else [*paths, secret])
        hidden = None if secret is None else found[secret]
        turn.context = assemble(
            [part(one, omission or _unless_copy(one, found[one.path], hidden)) for one, omission in wanted.items()]
        )
        return turn

    async def _is_owner(self, turn: Turn, session: Session) -> bool:
        """Whether this turn is the session owner's; the creator's, where the owner is not a person.

        A child belongs to whom its root belongs, so whoever made the child alone does not count. The creator is written
        once, so whoever was merged into the requester since is the requester.
        """
        requester = turn.requester.profile
        if requester.kind != PERSON:
            return False
        if session.owner == requester.id:
            return True
        if await self._root_creator(session) not in (requester.id, *requester.aliases):
            return False
        owner = await self._identities.profile(turn.tenant, session.owner)
        return owner is not None and owner.kind != PERSON

    async def _root_creator(self, session: Session) -> ProfileId | None:
        if session.parent is None:
            return session.creator
        root = await self._sessions.find(session.tenant, session.root)
        return None if root is None else root.session.creator

    def _omission(self, turn: Turn, agent: Agent, candidate: Candidate, owner: bool) -> Omission | None:
        """Why the file stays out, or None where it may be read. The policy is asked last."""
        if not belongs(turn.origin.kind, candidate):
            return Omission.SESSION_KIND
        if candidate.kind in PERSONAL and not owner:
            return Omission.NOT_PERMITTED
        if candidate.kind is FileKind.PERSONAL and turn.state.people < 2:
            return Omission.SINGLE_PERSON_TENANT
        if turn.permit(Action.LOAD, _target(turn, agent, candidate)) is not None:
            return None
        # The table gives every group the rules and the shared file: where those are out, it is not for the group.
        because_of_the_group = turn.origin.chat is Chat.GROUP and candidate.kind not in _EVERYWHERE
        return Omission.GROUP_SESSION if because_of_the_group else Omission.NOT_PERMITTED


def belongs(kind: Kind | None, candidate: Candidate) -> bool:
    """The table of design section 6, for the kinds that never load more whatever the policy says."""
    if kind is Kind.SUBAGENT:
        return candidate.path == "AGENTS.md"
    return kind is not Kind.CRON or candidate.kind in _EVERYWHERE


def _target(turn: Turn, agent: Agent, candidate: Candidate) -> MemoryTarget:
    owner = turn.requester.profile.id if candidate.kind in PERSONAL else None
    return MemoryTarget(turn.tenant, agent.name, RESOURCES[candidate.kind], owner, candidate.path)


def _unless_copy(
    candidate: Candidate, found: FileText | FileProblem, secret: FileText | FileProblem | None
) -> FileText | FileProblem | Omission:
    """In a shared session, a file that is root MEMORY.md under another name or holds its text stays out; where
    it can't be read, everything but the rules does, since any of it could."""
    if secret is None or not isinstance(found, FileText):
        return found
    hidden = candidate.kind is not FileKind.RULES and could_be_anywhere(secret)
    return Omission.GROUP_SESSION if hidden or is_copy_of(secret, found) else found
