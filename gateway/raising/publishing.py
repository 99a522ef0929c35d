"""Turns a draft of the policy into whether its author may publish it: compared by the decisions before and after.

Whoever is no owner gains nothing by it, in any shape of theirs, now or when a row ends; takes nothing from an owner, an
admin or whoever else runs the place; and gives nobody the right to run it. One agent's rows may be somebody's to edit:
that is a row, and by it they change nothing but who sees what there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from gateway.identity.outcome import Outcome, Reason
from gateway.identity.roles import ADMIN, GUEST, OWNER, RAISED, is_owner
from gateway.model import ANY_AGENT, Action, AgentName, Chat, Profile, ProfileId, Relation, Requester, Resource, Whose
from gateway.policy.ahead import Gain, Holder, RowsBySubject, everywhere, first_gain
from gateway.policy.comparison import POSSIBLE, SubjectsOn
from gateway.policy.drafts import Draft
from gateway.policy.rights import Fact, FactSet, set_of
from gateway.policy.rows import ANY, written
from gateway.policy.running import POWER, powerful
from gateway.policy.states import TenantState
from gateway.ports import Identities
from gateway.raising.identities import Held, HeldIdentities, let_in, subjects_of
from gateway.raising.words import gain_in_words, in_a_row

_USER: Final = "user:"
_KEEPERS: Final = (f"role:{OWNER}", f"role:{ADMIN}")
_PUBLISH: Final = set_of(Fact(Resource.ADMIN_POLICY, Relation.SELF, Whose.OWN, chat, Action.PUBLISH) for chat in Chat)


class PublishingIsWeighed:
    """Compares what a draft would decide with what is decided now. Raises Unavailable when the store is away."""

    def __init__(self, identities: Identities, held: HeldIdentities) -> None:
        self._identities = identities
        self._held = held

    async def weigh(self, actor: Requester, state: TenantState, draft: Draft, now: datetime) -> Outcome:
        """Whether `actor` may publish it, and what to note of it where they may since they are an owner."""
        held = await self._held.of(actor)
        raised = await self._identities.holding(actor.tenant, RAISED)
        named = {ProfileId(one.removeprefix(_USER)) for one in draft.subjects if one.startswith(_USER)}
        people = await self._of_them(actor, raised, named) if named else []
        found = await asyncio.to_thread(_Comparison, draft, state.agents, actor.profile, held, people, now)
        return Outcome(
            owner=is_owner(actor.profile),
            reasons=found.reasons,
            touches=tuple(found.touches),
            # Those who run the place, and whom a row names; the others may be a million.
            tells=(*sorted(raised), *sorted(named - raised)),
        )

    async def _of_them(self, actor: Requester, raised: Set[ProfileId], named: Set[ProfileId]) -> list[Profile]:
        """Those with more rights whom a row names, by whatever id of theirs."""
        found = [await self._identities.profile(actor.tenant, one) for one in sorted(raised) if one != actor.profile.id]
        return [one for one in found if one is not None and not named.isdisjoint({one.id, *one.aliases})]


@dataclass(frozen=True, slots=True)
class _Sides:
    """One subject set under both documents."""

    before: Holder
    after: Holder


class _Comparison:
    """Every reason against a draft. Reads long documents: made in a thread."""

    def __init__(
        self,
        draft: Draft,
        agents: Iterable[AgentName],
        author: Profile,
        held: Held,
        people: Sequence[Profile],
        now: datetime,
    ) -> None:
        """`people` are those with more rights whom the changed rows name."""
        self._draft = draft
        self._before, self._after = RowsBySubject(draft.before), RowsBySubject(draft.after)
        everybody = (*held.faces, *held.services, *held.perhaps, *people)
        theirs = {role.agent for one in everybody for role in one.roles}
        self._agents = everywhere({*agents, *theirs}, self._before, self._after)
        self._now = now
        self._author = author
        self._held = held
        self._people = people
        mine = (f"{_USER}{one}" for one in (author.id, *author.aliases))
        self._others = (self._before.subjects | self._after.subjects).difference(mine)
        self.touches: list[ProfileId] = []
        # Where nothing but comments changes there is nothing to compare.
        self.reasons = tuple(self._reasons()) if draft.rows or draft.links else ()

    def _reasons(self) -> Iterator[Reason]:
        yield from self._own_gains()
        yield from self._gains_of_guests()
        yield from self._gains_of_services()
        yield from self._losses_of_others()
        yield from self._power_of_others()
        yield from self._beyond_one_agent()

    # ── what the author gains ────────────────────────────────────────────────────────────────────────────────────────

    def _own_gains(self) -> Iterator[Reason]:
        for face in self._held.faces:
            sides = self._sides(subjects_of(face))
            gain = self._gain([sides.before], sides.after)
            if gain is not None:
                yield self._gained(
                    gain, "You can't publish what gives you more yourself. You would gain {gains}{when}."
                )
                return

    def _gains_of_guests(self) -> Iterator[Reason]:
        """Whoever writes to a channel from an account that is linked to nobody."""
        sides = self._sides(_being(f"role:{GUEST}"))
        gain = self._gain([sides.before], sides.after)
        if gain is not None:
            said = "Anybody can be a guest of a channel, you too. A guest would gain {gains}{when}."
            yield self._gained(gain, said)

    def _gains_of_services(self) -> Iterator[Reason]:
        author = self._sides(subjects_of(self._held.by_hand))
        for service in let_in(self._held, self._before, self._agents, self._now):
            sides = self._sides(subjects_of(service))
            gain = self._gain([sides.before, author.before], sides.after)
            if gain is not None:
                said = f"You have a way in as the service {service.name}, which would gain "
                yield self._gained(gain, said + "{gains}{when}, more than you may yourself.")
                return

    def _gained(self, gain: Gain, said: str) -> Reason:
        gains = gain_in_words(gain)
        when = "" if gain.since == self._now else f" from {written(gain.since)} on"
        return Reason(detail=f"{said.format(gains=in_a_row(gains), when=when)} An owner can publish it.", gains=gains)

    # ── what it does to others ───────────────────────────────────────────────────────────────────────────────────────

    def _losses_of_others(self) -> Iterator[Reason]:
        keepers = [one for one in self._keepers() if self._loses(_being(one))]
        self.touches = [one.id for one in self._people if self._loses(subjects_of(one))]
        if keepers or self.touches:
            detail = "This takes rights from an owner, an admin or somebody else who runs the place."
            yield Reason(detail=f"{detail} An owner can publish it.")

    def _loses(self, subjects_on: SubjectsOn) -> bool:
        sides = self._sides(subjects_on)
        return self._gain([sides.after], sides.before) is not None

    def _keepers(self) -> Iterator[str]:
        """The subjects that run the place everywhere, by whatever name."""
        yield from _KEEPERS
        for subject in sorted(powerful(self._before, self._others.difference(_KEEPERS))):
            if self._gain([], Holder(self._before, _being(subject)), POWER, {ANY_AGENT}) is not None:
                yield subject

    def _power_of_others(self) -> Iterator[Reason]:
        for subject in sorted(powerful(self._after, self._others.difference(_KEEPERS[:1]))):
            sides = self._sides(_being(subject))
            gain = self._gain([sides.before], sides.after, POWER, {ANY_AGENT})
            if gain is not None:
                gives = f"This gives {subject} {in_a_row(gain_in_words(gain))}, and so a part in running the place."
                yield Reason(detail=f"{gives} An owner can publish it.")
                return

    def _beyond_one_agent(self) -> Iterator[Reason]:
        """Who may edit the rows of one agent edits who sees what there, and hands on nothing of that."""
        if self._draft.about_the_place and not self._publishes_everywhere():
            detail = "Rows about admin/*, gateway and * are for whoever may publish for every agent."
            yield Reason(detail=f"{detail} You may for {self._draft.agent}.")

    def _publishes_everywhere(self) -> bool:
        author = Holder(self._before, subjects_of(self._author))
        found = self._gain([], author, _PUBLISH, {ANY_AGENT})
        return found is not None and found.since == self._now

    # ── comparing ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _sides(self, subjects_on: SubjectsOn) -> _Sides:
        return _Sides(Holder(self._before, subjects_on), Holder(self._after, subjects_on))

    def _gain(
        self, was: list[Holder], becomes: Holder, within: FactSet = POSSIBLE, agents: Iterable[str] | None = None
    ) -> Gain | None:
        return first_gain(was, becomes, self._agents if agents is None else agents, self._now, within)


def _being(subject: str) -> Callable[[str], frozenset[str]]:
    subjects = frozenset({subject, ANY})
    return lambda _agent: subjects
