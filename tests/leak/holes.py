"""The holes that are put in on purpose: real code, each time without one of its filters."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
from sqlalchemy import literal, select

from gateway.backends.sql import listing, scopes, searching
from gateway.backends.sql.tables import sessions
from gateway.errors import GatewayError, NotFound
from gateway.identity import profiles
from gateway.identity.tokens import AccessTokens
from gateway.leak_test.world import World
from gateway.model import Chat, FileKind, Kind, ProfileId, Relation, RoleAssignment, Whose
from gateway.operations import sessions as session_operations
from gateway.operations.people import PeopleOperations
from gateway.operations.sessions import SessionOperations
from gateway.policy import invariants, relations, targets
from gateway.policy.targets import FunctionTarget, MemoryTarget, MissingTarget, SessionTarget
from gateway.ports import Page
from gateway.sessions import conversations
from gateway.sessions.conversations import Conversations
from gateway.stages import authorize, refusals
from gateway.stages.assemble_context import AssembleContext
from gateway.tools import memory
from gateway.tools import sessions as session_tools
from gateway.workspace import bootstrap, files, paths
from gateway.workspace.files import FileText
from gateway.workspace.problems import FileMissing
from tests.leak.planted import DEMO

Patch = Callable[[pytest.MonkeyPatch, World], None]
LISTS = "GET /v1/sessions"
ONE = "GET /v1/sessions/{session}"
TOOLS = "POST /v1/sessions/{session}/tools/"
TURNS = "POST /v1/connectors/{channel}/turns"
CONTEXT = "POST /v1/sessions/{session}/context"
# Rows that make a hole visible: without them the policy would stop what the filter stops too.
NOTES_IN_GROUPS = "p, role:member, *, memory/*, agent, shared, *, read, allow\n"
EVERYBODYS_FILES = "p, role:member, *, memory/personal/*, all, any, *, read, allow\n"
OWN_FILES_ANYWHERE = "p, role:member, *, memory/personal/*, self, own, *, read, allow\n"
NO_HISTORY = "p, role:member, *, session/shared, all, any, *, history, deny\n"


@dataclass(frozen=True)
class Hole:
    """A filter that is taken out. `finds` are the words that a leak has to be named with: who, whose, by what."""

    name: str
    patch: Patch
    callers: tuple[str, ...]
    rows: str | tuple[str, ...]
    finds: tuple[str, ...]
    more: str = ""  # rows beside the demo's


# ── lists and searches ───────────────────────────────────────────────────────────────────────────────────────────────


def _everything(_rights: object, _narrow: object) -> list[scopes.Walk]:
    query = select(sessions.c.id).where(sessions.c.tenant == scopes.TENANT)
    return [scopes.Walk(query, sessions.c.id, joined=True, whole_tenant=True)]


def list_without_scope(patch: pytest.MonkeyPatch, _world: World) -> None:
    """The WHERE clause of lists."""
    patch.setattr(listing, "walks", _everything)


def search_without_scope(patch: pytest.MonkeyPatch, _world: World) -> None:
    """The WHERE clause of searches."""
    patch.setattr(searching, "walks", _everything)


def list_without_cells(patch: pytest.MonkeyPatch, _world: World) -> None:
    """What is in reach of the session that a list is asked from."""
    patch.setattr(authorize, "is_in_reach", lambda *_arguments: True)
    patch.setattr(scopes._Planner, "_relation_of_rest", lambda *_arguments: Relation.SELF)


def search_before_joining(patch: pytest.MonkeyPatch, _world: World) -> None:
    """Who joined later finds from then on."""
    patch.setattr(searching, "_joined_after", lambda: literal(0))


def history_before_joining(patch: pytest.MonkeyPatch, _world: World) -> None:
    """Who joined later reads from then on."""
    patch.setattr(conversations, "readable_after", lambda _facts, _requester: 0)


def titles_before_scope(patch: pytest.MonkeyPatch, world: World) -> None:
    """A filter by title that looks at everybody's titles, and says that there is more."""
    real = SessionOperations._run_list

    async def run(self: Any, permit: Any, turn: Any, arguments: Any) -> Page[Any]:
        page = await real(self, permit, turn, arguments)
        if arguments.query and not page.items and any(one.bait == arguments.query for one in world.people):
            return Page((), "more")
        return page

    patch.setattr(SessionOperations, "_run_list", run)


def messages_of_a_list(patch: pytest.MonkeyPatch, _world: World) -> None:
    """The last messages in a list are asked for by themselves."""

    async def latest(self: Any, turn: Any, session: Any, limit: int) -> list[dict[str, object]]:
        facts = await self._conversations.find(turn.tenant, session.id)
        found = await self._conversations._transcripts.latest(
            turn.tenant, session.id, incarnation=facts.session.incarnation, after=0, limit=limit
        )
        return [{"content": one.content} for one in found or ()]

    patch.setattr(session_tools.SessionTools, "_latest", latest)


def parents_elsewhere(patch: pytest.MonkeyPatch, _world: World) -> None:
    """The parent on another agent is for the people of its tree. This one was there when the command was written."""
    for module in (session_operations, session_tools):
        patch.setattr(module, "as_known_to", lambda _reader, facts: facts)


# ── invariants ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _without(patch: pytest.MonkeyPatch, check: Callable[..., object]) -> None:
    for target, checks in invariants._CHECKS_OF.items():
        patch.setitem(invariants._CHECKS_OF, target, tuple(one for one in checks if one is not check))


def no_longterm_rule(patch: pytest.MonkeyPatch, _world: World) -> None:
    """Root MEMORY.md in a shared session; that it is not read by another name there either is a second filter."""
    _without(patch, invariants._longterm)
    patch.setattr(memory, "is_copy_of", lambda _longterm, _other: False)


def no_personal_rule(patch: pytest.MonkeyPatch, _world: World) -> None:
    """Another person's personal files."""
    _without(patch, invariants._personal)


def no_incognito_rule(patch: pytest.MonkeyPatch, _world: World) -> None:
    """An incognito session to anybody but itself."""
    _without(patch, invariants._incognito)


def no_sandbox(patch: pytest.MonkeyPatch, _world: World) -> None:
    """A sandboxed session's tree."""
    for module in (invariants, authorize):
        patch.setattr(module, "sandbox_excludes", lambda _here, _relation: False)


def turn_token_anywhere(patch: pytest.MonkeyPatch, _world: World) -> None:
    """A turn token in other sessions than its own."""
    for module in (invariants, authorize):
        patch.setattr(module, "elsewhere", lambda _requester, _origin: None)


def scopes_of_tokens(patch: pytest.MonkeyPatch, _world: World) -> None:
    """A token that was made for one area alone."""
    for module in (invariants, authorize):
        patch.setattr(module, "scope_violation", lambda _requester, _resource, _action: None)


def other_tenants(patch: pytest.MonkeyPatch, world: World) -> None:
    """A session is looked for in every organisation, and its tenant is not looked at: both checks at once."""
    real = Conversations.find

    async def find(self: Any, tenant: Any, reference: str) -> Any:
        found = [await real(self, one, reference) for one in (tenant, *world.documents)]
        return next((one for one in found if one is not None), None)

    patch.setattr(Conversations, "find", find)
    patch.setattr(SessionTarget, "tenant", property(lambda self: None))
    real_always = invariants._always

    def always(requester: Any, origin: Any, target: Any, question: Any) -> str | None:
        code = real_always(requester, origin, target, question)
        return None if code == "tenant_mismatch" else code

    for target, checks in invariants._CHECKS_OF.items():
        patch.setitem(invariants._CHECKS_OF, target, tuple(always if one is real_always else one for one in checks))
    patch.setattr(relations, "whose_of", lambda _facts, _requester: Whose.OWN)
    patch.setattr(relations, "whose_to", lambda _facts, _requester: Whose.OWN)
    patch.setattr(targets, "whose_to", lambda _facts, _requester: Whose.OWN)


# ── sessions ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def everybody_owns(patch: pytest.MonkeyPatch, _world: World) -> None:
    """Whose a session is."""
    patch.setattr(targets, "whose_to", lambda _facts, _requester: Whose.OWN)


def child_of_a_group_is_private(patch: pytest.MonkeyPatch, _world: World) -> None:
    """A group can't send a child for what it may not read itself."""
    real = relations.chat_of
    patch.setattr(
        relations, "chat_of", lambda session: Chat.PRIVATE if session.kind is Kind.SUBAGENT else real(session)
    )


# ── memory ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def aliases_of_longterm(patch: pytest.MonkeyPatch, _world: World) -> None:
    """Whatever is spelled like MEMORY.md is long-term memory."""
    patch.setattr(paths, "_is_longterm", lambda names: names == ("MEMORY.md",))
    patch.setattr(memory, "memory_resource", paths.memory_resource.__wrapped__)


def copies_of_longterm(patch: pytest.MonkeyPatch, _world: World) -> None:
    """A file that holds the bytes of MEMORY.md is it."""
    patch.setattr(memory, "is_copy_of", lambda _longterm, _other: False)


def longterm_in_contexts(patch: pytest.MonkeyPatch, _world: World) -> None:
    """A context asks for each file."""
    real = AssembleContext._omission

    def omission(self: Any, turn: Any, agent: Any, candidate: Any, owner: bool) -> Any:
        return None if candidate.kind is FileKind.LONGTERM else real(self, turn, agent, candidate, owner)

    patch.setattr(AssembleContext, "_omission", omission)
    patch.setattr("gateway.stages.assemble_context._unless_copy", lambda _candidate, found, _secret: found)


def personal_in_others_turns(patch: pytest.MonkeyPatch, _world: World) -> None:
    """Personal files load where the requester owns the session."""

    async def owner(self: Any, turn: Any, session: Any) -> bool:
        return True

    patch.setattr(AssembleContext, "_is_owner", owner)


def kinds_of_turns(patch: pytest.MonkeyPatch, _world: World) -> None:
    """The table of what each kind of session loads."""
    patch.setattr("gateway.stages.assemble_context.belongs", lambda _kind, _candidate: True)


def hash_of_what_is_out(patch: pytest.MonkeyPatch, _world: World) -> None:
    """What is left out of a context has neither a hash nor a size."""
    real = bootstrap._entry
    patch.setattr(
        bootstrap, "_entry", lambda piece: replace(real(piece), units=17) if not real(piece).included else real(piece)
    )


def files_of_other_agents(patch: pytest.MonkeyPatch, _world: World) -> None:
    """Another agent's files stand to a session as `other_agent`."""
    real = MemoryTarget._stands_to

    def stands_to(self: MemoryTarget, requester: ProfileId, origin: Any) -> Any:
        relation, whose = real(self, requester, origin)
        return (Relation.SAME_AGENT if relation is Relation.OTHER_AGENT else relation), whose

    patch.setattr(MemoryTarget, "_stands_to", stands_to)


def links_are_followed(patch: pytest.MonkeyPatch, _world: World) -> None:
    """Files are opened component by component without following links."""

    def read_many(self: Any, wanted: Any, *, limit: int = 0) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for path in wanted:
            try:
                data = (self.root / self.folder / path).read_bytes()
            except OSError:
                found[path] = FileMissing(path)
            else:
                found[path] = FileText(path=path, data=data, text=data.decode(), identity=(1, len(found)))
        return found

    patch.setattr(files.Workspace, "read_many", read_many)


# ── refusals ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def denied_is_not_missing(patch: pytest.MonkeyPatch, _world: World) -> None:
    """A refusal says 403 where a missing session says 404."""

    def refusal(target: Any, action: Any, _code: str) -> Exception:
        told = isinstance(target, FunctionTarget | SessionTarget)
        return refusals.not_allowed(action) if told else NotFound()

    patch.setattr(authorize, "refusal", refusal)


class Talkative(GatewayError):
    """A refusal with words of its own."""

    status = 404
    code = "not_found"
    title = "Not found"


def refusals_with_titles(spell: Callable[[str], str]) -> Patch:
    """A refusal that quotes the title, spelled in some way."""

    def patched(patch: pytest.MonkeyPatch, _world: World) -> None:
        def refusal(target: Any, _action: Any, _code: str) -> Exception:
            if isinstance(target, SessionTarget) and target.facts.session.title:
                return Talkative(f"You may not see {spell(target.facts.session.title)}.")
            return NotFound()

        patch.setattr(authorize, "refusal", refusal)

    return patched


def problems_with_headers(patch: pytest.MonkeyPatch, _world: World) -> None:
    """A refusal whose header names what it is about."""

    def refusal(target: Any, _action: Any, _code: str) -> Exception:
        title = target.facts.session.title if isinstance(target, SessionTarget) else None
        return Talkative("It is not there.", headers={"X-Debug": title}) if title else NotFound()

    patch.setattr(authorize, "refusal", refusal)


def missing_is_looked_up(patch: pytest.MonkeyPatch, _world: World) -> None:
    """What is not there is denied like what may not be seen: here it is told from it by its rule."""
    real = refusals.refusal

    def refusal(target: Any, action: Any, code: str) -> Exception:
        return Talkative("There is none.") if isinstance(target, MissingTarget) else real(target, action, code)

    patch.setattr(authorize, "refusal", refusal)


# ── people, audit ────────────────────────────────────────────────────────────────────────────────────────────────────


def guests_are_somebody(patch: pytest.MonkeyPatch, _world: World) -> None:
    """An unlinked sender is a guest, never a default person."""
    member = (RoleAssignment(role="member", agent="*"),)  # type: ignore[arg-type]  # a name of an agent
    real = profiles._guest
    patch.setattr(profiles, "_guest", lambda principal: replace(real(principal), roles=member))


def titles_in_the_audit(patch: pytest.MonkeyPatch, _world: World) -> None:
    """The audit says what was done, without what was said."""
    name = property(lambda self: f"{self.facts.session.key} {self.facts.session.title}")
    patch.setattr(SessionTarget, "name", name)


def sessions_of_people(patch: pytest.MonkeyPatch, world: World) -> None:
    """A person, as an admin sees one, without their sessions."""
    real = PeopleOperations._person

    async def person(self: Any, permit: Any, profile: ProfileId) -> Any:
        found = await real(self, permit, profile)
        titles = [one.title.word for one in world.sessions if one.owner.id == profile and one.title is not None]
        return replace(found, profile=replace(found.profile, name=" ".join(titles[:3]) or found.profile.name))

    patch.setattr(PeopleOperations, "_person", person)


def tokens_of_everybody(patch: pytest.MonkeyPatch, world: World) -> None:
    """One's own access tokens are those of one's own profile."""

    async def tokens(self: Any, actor: Any, _profile: ProfileId) -> list[Any]:
        found = [await self._identities.tokens(actor.tenant, ProfileId(one.id)) for one in world.people]
        return [token for some in found for token in some]

    patch.setattr(AccessTokens, "list", tokens)


def _percent(text: str) -> str:
    return "".join(f"%{ord(sign):02X}" for sign in text)


def _json_escapes(text: str) -> str:
    return "".join(f"\\u{ord(sign):04x}" for sign in text)


SPELLINGS: tuple[tuple[str, Callable[[str], str]], ...] = (
    ("as it is", str),
    ("in capitals", str.upper),
    ("in base64", lambda text: base64.b64encode(text.encode()).decode()),
    ("in base64 for URLs, shifted", lambda text: base64.urlsafe_b64encode(b"?" + text.encode()).decode()),
    ("in hexadecimal", lambda text: text.encode().hex()),
    ("in percent escapes", _percent),
    ("in JSON escapes", _json_escapes),
    ("as its hash", lambda text: hashlib.sha256(text.encode()).hexdigest()),
)

HOLES: tuple[Hole, ...] = (
    Hole("lists ignore the scope", list_without_scope, ("bob",), LISTS, ("bob", "alice's private session", LISTS)),
    Hole(
        "searches ignore the scope",
        search_without_scope,
        ("bob",),
        f"{TOOLS}sessions_search",
        ("bob", "alice's private session (message)", "sessions_search"),
    ),
    Hole(
        "lists ignore where they are asked from",
        list_without_cells,
        ("bob",),
        f"{TOOLS}sessions_list",
        ("bob", "bob's", "sessions_list", "team room"),
    ),
    Hole(
        "histories ignore when somebody joined",
        history_before_joining,
        ("bob",),
        f"{ONE}/messages",
        ("bob", "alice's group (message)", "/messages"),
    ),
    Hole(
        "searches ignore when somebody joined",
        search_before_joining,
        ("bob",),
        f"{TOOLS}sessions_search",
        ("bob", "alice's group (message)", "sessions_search"),
    ),
    Hole(
        "titles are filtered before the scope", titles_before_scope, ("bob",), LISTS, ("bob", "carol's titles", LISTS)
    ),
    Hole(
        "a list shows messages that were not asked for",
        messages_of_a_list,
        ("bob",),
        f"{TOOLS}sessions_list",
        ("bob", "team room (message)", "sessions_list"),
        NO_HISTORY,
    ),
    Hole(
        "a parent on another agent is named",
        parents_elsewhere,
        ("sue",),
        LISTS,
        ("sue", "alice's private session (session id)", LISTS),
    ),
    Hole(
        "MEMORY.md is read in a group",
        no_longterm_rule,
        ("bob",),
        f"{TOOLS}memory_get",
        ("bob", "MEMORY.md", "memory_get", "team room"),
        NOTES_IN_GROUPS,
    ),
    Hole(
        "personal files are read by others",
        no_personal_rule,
        ("bob",),
        f"{TOOLS}memory_get",
        ("bob", "alice's personal instructions", "memory_get"),
        EVERYBODYS_FILES,
    ),
    Hole(
        "incognito sessions are read by supervisors",
        no_incognito_rule,
        ("dana",),
        ONE,
        ("dana", "alice's incognito session", ONE),
    ),
    Hole(
        "a sandbox reaches beyond its tree",
        no_sandbox,
        ("bob",),
        f"{TOOLS}sessions_list",
        ("bob", "sandboxed child", "sessions_list"),
    ),
    Hole(
        "a turn token is good anywhere",
        turn_token_anywhere,
        ("the runtime of alice's turn",),
        (f"{TOOLS}sessions_list", f"{TOOLS}sessions_history"),
        ("the runtime of alice's turn", "alice's", "tools/"),
    ),
    Hole(
        "a token reaches more than its scopes",
        scopes_of_tokens,
        ("alice (a token for gateway)",),
        LISTS,
        ("alice (a token for gateway)", "alice's private session (title)", LISTS),
    ),
    Hole("another organisation's sessions are found", other_tenants, ("bob",), ONE, ("bob", "gina (elsewhere)'s", ONE)),
    Hole("everybody owns everything", everybody_owns, ("bob",), ONE, ("bob", "alice's private session (title)", ONE)),
    Hole(
        "a group's child is private",
        child_of_a_group_is_private,
        ("bob",),
        f"{TOOLS}sessions_list",
        ("bob", "bob's private session", "sessions_list", "child of the group"),
    ),
    Hole(
        "another spelling of MEMORY.md is a note",
        aliases_of_longterm,
        ("contractor",),
        f"{TOOLS}memory_get",
        ("contractor", "memory/Memory.md", "memory_get"),
    ),
    Hole(
        "a copy of MEMORY.md is a note",
        copies_of_longterm,
        ("bob",),
        f"{TOOLS}memory_get",
        ("bob", "MEMORY.md (file)", "memory_get", "team room"),
        NOTES_IN_GROUPS,
    ),
    Hole(
        "a context loads MEMORY.md in a group",
        longterm_in_contexts,
        ("bob",),
        CONTEXT,
        ("bob", "flight's MEMORY.md", CONTEXT, "team room"),
    ),
    Hole(
        "personal files load in somebody else's session",
        personal_in_others_turns,
        ("bob",),
        CONTEXT,
        ("bob", "bob's personal", CONTEXT, "alice's team room"),
        OWN_FILES_ANYWHERE,
    ),
    Hole(
        "every kind of session loads everything", kinds_of_turns, ("bob",), CONTEXT, ("bob", "(file)", CONTEXT, "child")
    ),
    Hole(
        "a manifest tells the size of what is out",
        hash_of_what_is_out,
        ("bob",),
        CONTEXT,
        ("bob", CONTEXT, "left out of the context"),
    ),
    Hole(
        "another agent's files are one's own agent's",
        files_of_other_agents,
        ("bob",),
        f"{TOOLS}memory_get",
        ("bob", "hotel's", "memory_get", "bob's private session"),
    ),
    Hole(
        "links are followed",
        links_are_followed,
        ("bob",),
        f"{TOOLS}memory_get",
        ("bob", "file outside of the workspace", "memory_get"),
    ),
    Hole(
        "a refusal is a 403",
        denied_is_not_missing,
        ("bob",),
        ONE,
        ("bob", "alice's private session (that it is there)", ONE, "403"),
    ),
    Hole(
        "what is missing is told from what is denied",
        missing_is_looked_up,
        ("bob",),
        ONE,
        ("bob", "alice's private session (that it is there)", ONE),
    ),
    Hole(
        "a refusal has a title in a header",
        problems_with_headers,
        ("bob",),
        ONE,
        ("bob", "alice's private session (title)", ONE),
    ),
    *(
        Hole(
            f"a refusal quotes the title {how}",
            refusals_with_titles(spell),
            ("bob",),
            ONE,
            ("bob", "alice's private session (title)", ONE),
        )
        for how, spell in SPELLINGS
    ),
    Hole(
        "a guest is a member",
        guests_are_somebody,
        ("guest",),
        TURNS,
        ("guest", "flight's memory/", TURNS),
        NOTES_IN_GROUPS,
    ),
    Hole(
        "the audit quotes titles",
        titles_in_the_audit,
        ("audrey", "bob"),
        ("GET /v1/admin/audit", ONE),
        ("audrey", "(title)", "/v1/admin/audit"),
    ),
    Hole(
        "a person is shown with their sessions",
        sessions_of_people,
        ("erin",),
        "GET /v1/admin/people/{profile}",
        ("erin", "alice's", "(title)", "/v1/admin/people/{profile}"),
    ),
    Hole(
        "one's tokens are everybody's",
        tokens_of_everybody,
        ("bob",),
        "GET /v1/me/tokens",
        ("bob", "alice's access token", "/v1/me/tokens"),
    ),
)


def document(hole: Hole) -> str:
    """The demo's rows with those that make the hole visible."""
    return DEMO + hole.more
