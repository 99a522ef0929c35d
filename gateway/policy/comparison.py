"""Turns two states of a policy into what anybody gains or loses by going from one to the other (design section 5).

Only facts that a request can have count, and of them only those that no invariant refuses: a row that speaks of others
gives nobody anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import product
from typing import Final

from gateway.model import Action, Chat, Relation, Resource, Whose
from gateway.policy.rights import Fact, FactSet, Rights, set_of
from gateway.policy.rows import ANY

OF_SESSIONS: Final = frozenset(
    {
        Action.CREATE,
        Action.ENTER,
        Action.LIST,
        Action.HISTORY,
        Action.SEARCH,
        Action.STATUS,
        Action.SEND,
        Action.SPAWN,
        Action.POST,
        Action.PARTICIPANTS,
        Action.OWNER,
        Action.ARCHIVE,
        Action.RESET,
        Action.DELETE,
    }
)
OF_MEMORY: Final = frozenset(
    {
        Action.LOAD,
        Action.SEARCH,
        Action.GET,
        Action.APPEND,
        Action.EDIT,
        Action.REMEMBER,
        Action.FORGET,
        Action.PROPOSE,
        Action.PROMOTE,
        Action.VOUCH,
    }
)
_OF_FUNCTIONS: Final = frozenset(
    {
        Action.READ,
        Action.EDIT,
        Action.PUBLISH,
        Action.EXPORT,
        Action.ERASE,
        Action.MERGE,
        Action.IMPERSONATE,
        Action.DECIDE,
        Action.CONNECT,
    }
)
_OF_ONESELF: Final = ((Relation.SELF, Whose.OWN),)
_OF_THE_TEAM: Final = ((Relation.SAME_AGENT, Whose.SHARED), (Relation.OTHER_AGENT, Whose.SHARED))


def _askable() -> Iterator[Fact]:
    for resource in Resource:
        if resource.startswith("session/"):
            actions, stands = OF_SESSIONS, tuple(product(Relation, Whose))
        elif resource.startswith("memory/personal/"):
            actions, stands = OF_MEMORY, _OF_ONESELF
        elif resource.startswith("memory/"):
            actions, stands = OF_MEMORY, _OF_THE_TEAM
        else:
            actions, stands = _OF_FUNCTIONS, _OF_ONESELF
        for (relation, whose), chat, action in product(stands, Chat, actions):
            yield Fact(resource, relation, whose, chat, action)


def _out_of_reach(fact: Fact) -> bool:
    """Whether an invariant refuses it whatever the rows say (`invariants.py`)."""
    if fact.resource not in (Resource.MEMORY_LONGTERM, Resource.PERSONAL_LONGTERM):
        return False
    if fact.action in (Action.APPEND, Action.EDIT):
        return True
    reads = fact.action in (Action.LOAD, Action.GET, Action.SEARCH)
    return fact.resource is Resource.MEMORY_LONGTERM and reads and fact.chat is Chat.GROUP


# The facts that a request can have and that no invariant refuses: only these can be gained or lost.
POSSIBLE: Final[FactSet] = set_of(fact for fact in _askable() if not _out_of_reach(fact))

SubjectsOn = Callable[[str], frozenset[str]]  # of an agent: the subjects that somebody is there


class Change:
    """Two states of a policy, and what anybody gains or loses by going from one to the other."""

    def __init__(self, before: Rights, after: Rights, agents: Iterable[str]) -> None:
        """`agents` are the tenant's; those that the documents name are looked at besides, for they may be added."""
        self.before = before
        self.after = after
        self.agents = tuple(sorted({ANY, *agents} | before.agents | after.agents))

    def gains(self, was: SubjectsOn, becomes: SubjectsOn | None = None) -> dict[str, FactSet]:
        """By agent what somebody may do after and not before; `becomes` says who they are then, if that changes too."""
        return {agent: facts for agent, facts in self._more(was, becomes or was, gained=True) if facts}

    def losses(self, was: SubjectsOn, becomes: SubjectsOn | None = None) -> dict[str, FactSet]:
        """By agent what somebody may do before and not after."""
        return {agent: facts for agent, facts in self._more(was, becomes or was, gained=False) if facts}

    def _more(self, was: SubjectsOn, becomes: SubjectsOn, *, gained: bool) -> Iterator[tuple[str, FactSet]]:
        for agent in self.agents:
            before, after = self.before.of(was(agent), agent), self.after.of(becomes(agent), agent)
            yield agent, (after & ~before if gained else before & ~after) & POSSIBLE
