"""Turns a session or a file and an action into the people who may do it, page by page, without asking everybody.

Each class of people is asked once, as somebody whom no row names; who is named by a row, and who owns the session or
takes part, is asked alone. Whoever comes out is decided as they would be decided themselves.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from gateway.model import (
    Action,
    Origin,
    Profile,
    ProfileId,
    Question,
    Relation,
    SessionFacts,
    Whose,
)
from gateway.operations.somebody import as_requester
from gateway.policy.documents import Document
from gateway.policy.relations import origin_of, readable_after
from gateway.policy.rows import ACTION_WORDS, ANY, covers_resource
from gateway.policy.targets import MemoryTarget, SessionTarget, SingleTarget
from gateway.ports import Identities, Page, PeopleClass
from gateway.turn import Turn

_UNNAMED: Final = ProfileId("prf_of_a_class")  # no row can name it: it stands for whoever no row names
_PERSON: Final = "user:"
_AT_ONCE: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Who may do `action` on `target`, asking from `origin`? `here` is the session that they would have to enter."""

    action: Action
    target: SingleTarget
    origin: Origin
    here: SessionFacts | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Able:
    """Somebody who may, how it stands to them, and the row that allows it."""

    profile: Profile
    relation: Relation
    whose: Whose
    rule: str | None
    reads_after: int  # messages up to this number are not for them: they joined later


class WhoCan:
    """Answers for the people and services of a tenant as they are stored; what a credential adds is not known."""

    def __init__(self, identities: Identities) -> None:
        self._identities = identities

    async def page(self, turn: Turn, wanted: Wanted, *, limit: int, after: ProfileId | None) -> Page[Able]:
        """The next people, by id; the cursor is the id of the last one."""
        found: list[Able] = []
        async for profile in self._candidates(turn, wanted, after or ProfileId(""), limit + 1):
            able = _able(turn, wanted, profile)
            if able is not None:
                found.append(able)
            if len(found) > limit:
                return Page(tuple(found[:limit]), found[limit - 1].profile.id)
        return Page(tuple(found), None)

    async def _candidates(self, turn: Turn, wanted: Wanted, after: ProfileId, size: int) -> AsyncIterator[Profile]:
        """By id: those who are asked alone, and the members of each class of which somebody unnamed may."""
        alone = await self._alone(turn, wanted)
        kinds = await self._identities.classes(turn.tenant, counted=False)
        classes = [one.key for one in kinds if _may(turn, wanted, one)]
        some = self._by_id(turn, [one for one in alone if one > after])
        others = self._members(turn, classes, frozenset(alone), after, size)
        first, second = await anext(some, None), await anext(others, None)
        while first is not None and second is not None:
            if first.id < second.id:
                yield first
                first = await anext(some, None)
            else:
                yield second
                second = await anext(others, None)
        for head, rest in ((first, some), (second, others)):
            if head is not None:
                yield head
                async for profile in rest:
                    yield profile

    async def _members(
        self, turn: Turn, classes: Sequence[str], without: frozenset[ProfileId], after: ProfileId, size: int
    ) -> AsyncIterator[Profile]:
        while True:
            found = await self._identities.of_classes(turn.tenant, classes, after=after, limit=size)
            for profile in found:
                if profile.id not in without:
                    yield profile
            if len(found) < size:
                return
            after = found[-1].id

    async def _by_id(self, turn: Turn, ids: Sequence[ProfileId]) -> AsyncIterator[Profile]:
        for begin in range(0, len(ids), _AT_ONCE):
            for profile in await self._identities.profiles(turn.tenant, ids[begin : begin + _AT_ONCE]):
                yield profile

    async def _alone(self, turn: Turn, wanted: Wanted) -> list[ProfileId]:
        """Whoever is not like the others of their class: owners and participants, and whom a row names that could speak
        of this. A row that names a merged profile holds for its survivor."""
        ids = set(_related(wanted))
        document = turn.state.snapshot.document
        # Of a long document this takes a moment, in which others are answered.
        named = await asyncio.to_thread(lambda: list(_named(document, wanted, turn)))
        for begin in range(0, len(named), _AT_ONCE):
            found = await self._identities.profiles(turn.tenant, named[begin : begin + _AT_ONCE])
            ids |= {profile.merged_into or profile.id for profile in found}
        return sorted(ids)


def _related(wanted: Wanted) -> Iterator[ProfileId]:
    target = wanted.target
    for facts in (wanted.here, target.facts if isinstance(target, SessionTarget) else None):
        if facts is not None:
            yield facts.session.owner
            yield from (one.profile for one in facts.participants)
    if isinstance(target, MemoryTarget) and target.owner is not None:
        yield target.owner


def _named(document: Document, wanted: Wanted, turn: Turn) -> Iterator[ProfileId]:
    """People named by rows about this resource and action, or about entering where they would ask from."""
    asked = [_question(turn, wanted)]
    if wanted.here is not None:
        entering = Wanted(action=Action.ENTER, target=SessionTarget(wanted.here), origin=_inside(wanted.here))
        asked.append(_question(turn, entering))
    agents = {ANY, *(one.agent for one in asked), *([wanted.here.session.root_agent] if wanted.here else ())}
    if isinstance(wanted.target, SessionTarget):
        agents |= {wanted.target.facts.session.agent, wanted.target.facts.session.root_agent}
    words = [(one.resource, ACTION_WORDS[one.action]) for one in asked]
    seen: set[str] = set()
    for row in document.rows:
        names_one = row.subject.startswith(_PERSON) and row.agent in agents and row.subject not in seen
        if names_one and any(row.action in actions and covers_resource(row.resource, one) for one, actions in words):
            seen.add(row.subject)
            yield ProfileId(row.subject.removeprefix(_PERSON))


def _question(turn: Turn, wanted: Wanted) -> Question:
    unnamed = Profile(id=_UNNAMED, tenant=turn.tenant, name="", kind="person")
    return wanted.target.question(as_requester(turn, unnamed), wanted.origin, wanted.action)


def _may(turn: Turn, wanted: Wanted, them: PeopleClass) -> bool:
    """Whether somebody of the class may whom no row names and who has no part in the session."""
    unnamed = Profile(id=_UNNAMED, tenant=turn.tenant, name="", kind=them.kind, roles=them.roles)
    return _able(turn, wanted, unnamed) is not None


def _able(turn: Turn, wanted: Wanted, profile: Profile) -> Able | None:
    """The answer for one of them, as if they asked; noted nowhere, since the question itself is."""
    asked = as_requester(turn, profile)
    if wanted.here is not None:
        inside = _inside(wanted.here)
        if not turn.authorize.weigh(turn, asked, inside, Action.ENTER, SessionTarget(wanted.here)).allowed:
            return None
    verdict = turn.authorize.weigh(turn, asked, wanted.origin, wanted.action, wanted.target)
    if not verdict.allowed:
        return None
    question = wanted.target.question(asked, wanted.origin, wanted.action)
    facts = wanted.target.facts if isinstance(wanted.target, SessionTarget) else None
    return Able(
        profile=profile,
        relation=question.relation,
        whose=question.whose,
        rule=verdict.rule,
        reads_after=0 if facts is None else readable_after(facts, profile.id),
    )


def _inside(here: SessionFacts) -> Origin:
    return origin_of(here.session, None, tainted=False)
