"""Turns planted facts into what somebody may see.

The whole document in one plain Casbin enforcer answers, and the rules of the design (sections 5 to 7) stand here again.
None of it is the code that the gateway decides by: a test that asks what it tests finds nothing. What is shared are the
checked rows of the document and Casbin's model.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from gateway.leak_test.markers import Mark, Sort
from gateway.leak_test.world import Caller, Person, PlantedFile, PlantedMessage, PlantedSession
from gateway.model import Action, AgentName, Chat, Question, Relation, Resource, Whose
from gateway.policy.documents import parse
from gateway.policy.plain import PlainEnforcer

_SHARED_KINDS = ("group", "channel", "cron")
_LEAST_LAST = ("direct", "group", "channel", "cron", "subagent")
_TREE = (Relation.SELF, Relation.CHILD, Relation.CHILD_CROSS)
_PERSONAL = ("personal", "personal_longterm", "personal_daily")
_CONTENT = (Sort.TITLE, Sort.MESSAGE)
# What somebody may know of a session that they may do anything with.
_ABOUT_SESSIONS = (
    Action.LIST, Action.STATUS, Action.HISTORY, Action.SEARCH, Action.ENTER, Action.SEND, Action.SPAWN, Action.POST,
    Action.PARTICIPANTS, Action.OWNER, Action.ARCHIVE, Action.RESET, Action.DELETE,
)  # fmt: skip


class Expectation:
    """What the policy lets everybody see."""

    def __init__(self, documents: Mapping[str, str], now: datetime, agents: tuple[str, ...]) -> None:
        self._plain = {tenant: PlainEnforcer(parse(text), now) for tenant, text in documents.items()}
        self._known: dict[tuple[str, frozenset[str], Question], bool] = {}
        self._agents = agents
        self.asked = 0

    # ── what an answer may show ──────────────────────────────────────────────────────────────────────────────────────

    def shows(
        self, who: Caller, origin: PlantedSession | None, turn: str | None, action: Action | None, mark: Mark
    ) -> bool:
        """Whether an answer to `who`, who asks from `origin`, may hold the mark by the right of `action`."""
        where = mark.where
        if isinstance(where, PlantedMessage):
            return action is not None and self.message(who, origin, action, where)
        if isinstance(where, PlantedFile):
            return action is not None and self.file(who, origin, action, where, turn, copies=action is Action.GET)
        if isinstance(where, PlantedSession):
            if mark.sort is Sort.TITLE:
                return action is not None and self.session(who, origin, action, where)
            return self.knows_of(who, origin, where)
        return isinstance(where, Person) and action is not None and self._is_own(who, where, action)

    def _is_own(self, who: Caller, whom: Person, action: Action) -> bool:
        """What everybody has of themselves: a profile and tokens."""
        person = who.person
        own = person is not None and whom.id in (person.id, *person.aliases)
        return own and self.function(who, action, Resource.GATEWAY)

    # ── sessions ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def session(self, who: Caller, origin: PlantedSession | None, action: Action, target: PlantedSession) -> bool:
        """Whether `who` may do `action` to the session, asking from `origin`, which they must be able to enter."""
        if origin is not None and not self.enters(who, origin):
            return False
        return self._on_session(who, origin, action, target)

    def knows_of(self, who: Caller, origin: PlantedSession | None, target: PlantedSession) -> bool:
        """Whether they may know that the session is there: who may do anything with it does, from here or, where
        nobody else listens, from anywhere; and so does who takes part in its tree, from inside it or alone."""
        person = who.person
        if person is not None and who.holds and _whose(who, person, target) is not Whose.OTHER:
            alone = origin is None or origin.private
            return not target.gone and (alone or (origin is not None and origin.root is target.root))
        places = (origin,) if origin is not None and not origin.private else (origin, None)
        return any(self.session(who, place, one, target) for place in places for one in _ABOUT_SESSIONS)

    def enters(self, who: Caller, origin: PlantedSession) -> bool:
        """Whether they get into the session that a request is made from."""
        return self._on_session(who, origin, Action.ENTER, origin)

    def message(self, who: Caller, origin: PlantedSession | None, action: Action, one: PlantedMessage) -> bool:
        """The same for a message: who joined later reads from then on, and what a reset took away is gone."""
        session, person = one.session, who.person
        if one.gone or person is None or not self.session(who, origin, action, session):
            return False
        root = session.root
        joined = root.people.get(person.id)
        if joined is not None:
            return one.number > joined
        return session.private or root.owner is not person

    def _on_session(self, who: Caller, origin: PlantedSession | None, action: Action, target: PlantedSession) -> bool:
        person = who.person
        if person is None or target.gone:
            return False
        whose = _whose(who, person, target)
        relation = _relation(origin, target, whose)
        denials = (
            not who.holds,
            who.tenant != target.tenant or (origin is not None and origin.tenant != who.tenant),
            not _in_scope(who, "session"),
            who.bound is not None and origin is not who.bound,
            target.incognito and not (origin is target and whose is Whose.OWN),
            origin is not None and origin.sandboxed and relation not in _TREE,
        )
        if any(denials):
            return False
        agent = target.root.agent if relation is Relation.CHILD_CROSS else target.agent
        resource = Resource.SESSION_PRIVATE if target.private else Resource.SESSION_SHARED
        return self._asks(who, person, agent, resource, relation, whose, _chat(origin), action)

    # ── files ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def file(
        self,
        who: Caller,
        origin: PlantedSession | None,
        action: Action,
        file: PlantedFile,
        turn: str | None = None,
        *,
        copies: bool = False,
    ) -> bool:
        """Whether `who` may read (or edit) the file from `origin`; a load follows the table of design section 6.

        With `copies`: or another file that holds the same text.
        """
        person = who.person
        if person is None or file.never or (origin is not None and not self.enters(who, origin)):
            return False
        chat = _chat(origin, turn)
        personal = file.owner is not None
        denials = (
            not who.holds,
            who.tenant != file.tenant or (origin is not None and origin.tenant != who.tenant),
            not _in_scope(who, "memory"),
            who.bound is not None and origin is not who.bound,
            who.bound is not None and personal and file.agent != who.bound.agent,
            personal and file.owner is not person,
            file.resource == Resource.MEMORY_LONGTERM and chat is not Chat.PRIVATE,
            action is Action.LOAD and not self._loads(person, origin, file, turn),
        )
        if any(denials):
            return False
        same = origin is None or origin.agent == file.agent
        relation = Relation.SELF if personal else Relation.SAME_AGENT if same else Relation.OTHER_AGENT
        whose = Whose.OWN if personal else Whose.SHARED
        words = (file.resource, file.copied_as if copies else None)
        resources = [Resource(one) for one in words if one is not None]
        return any(self._asks(who, person, file.agent, one, relation, whose, chat, action) for one in resources)

    @staticmethod
    def _loads(person: Person, origin: PlantedSession | None, file: PlantedFile, turn: str | None) -> bool:
        """The table: what a turn of this kind loads at most."""
        if origin is None or file.loads_as is None or file.agent != origin.agent:
            return False
        kind = origin.kind if turn is None else max(origin.kind, _known_kind(turn), key=_LEAST_LAST.index)
        if kind == "subagent":
            return file.path == "AGENTS.md"
        if kind == "cron":
            return file.loads_as in ("rules", "shared")
        if file.loads_as in _PERSONAL:
            return person.kind == "person" and origin.root.owner is person
        return True

    # ── functions ────────────────────────────────────────────────────────────────────────────────────────────────────

    def function(self, who: Caller, action: Action, resource: Resource) -> bool:
        """Whether `who` may do `action` with a function of the gateway, from outside any session."""
        person = who.person
        if person is None or not who.holds or who.bound is not None:
            return False
        area = resource.partition("/")[0]
        # Decisions about others are for a service, with a token that names them.
        named = person.kind == "service" and "decide" in who.scopes
        if not (named if action is Action.DECIDE else _in_scope(who, area)):
            return False
        places = ("*", *self._agents) if resource is Resource.GATEWAY else ("*",)
        return any(
            self._asks(who, person, agent, resource, Relation.SELF, Whose.OWN, Chat.PRIVATE, action) for agent in places
        )

    def _asks(
        self,
        who: Caller,
        person: Person,
        agent: str,
        resource: Resource,
        relation: Relation,
        whose: Whose,
        chat: Chat,
        action: Action,
    ) -> bool:
        roles = {f"role:{role}" for role, on in person.roles if on in ("*", agent)}
        subjects = frozenset({"*", *roles, *(f"user:{one}" for one in (person.id, *person.aliases))})
        question = Question(AgentName(agent), resource, relation, whose, chat, action)
        key = (who.tenant, subjects, question)
        if key not in self._known:
            self.asked += 1
            self._known[key] = self._plain[who.tenant].decide(subjects, question).allowed
        return self._known[key]


def _whose(who: Caller, person: Person, target: PlantedSession) -> Whose:
    root = target.root
    if person.kind == "guest":
        return Whose.SHARED if who.place is root else Whose.OTHER
    if root.owner is person:
        return Whose.OWN
    return Whose.SHARED if person.id in root.people else Whose.OTHER


def _relation(origin: PlantedSession | None, target: PlantedSession, whose: Whose) -> Relation:
    if origin is None:
        return Relation.SAME_AGENT if whose is Whose.OTHER else Relation.SELF
    if origin is target:
        return Relation.SELF
    same = origin.agent == target.agent
    if target.is_below(origin):
        return Relation.CHILD if same else Relation.CHILD_CROSS
    return Relation.SAME_AGENT if same else Relation.OTHER_AGENT


def _chat(origin: PlantedSession | None, turn: str | None = None) -> Chat:
    if origin is None:
        return Chat.PRIVATE
    narrowed = turn is not None and _known_kind(turn) in _SHARED_KINDS
    return Chat.GROUP if narrowed or not origin.private else Chat.PRIVATE


def _known_kind(word: str) -> str:
    return word if word in _LEAST_LAST else "group"


def _in_scope(who: Caller, area: str) -> bool:
    return not who.scopes.isdisjoint({"*", area})
