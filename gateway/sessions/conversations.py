"""What is done with sessions once a permit is there: open, spawn, read, write, change. Shared by tools and routes."""

from __future__ import annotations

from collections.abc import Awaitable, Collection, Sequence
from datetime import datetime

from gateway.errors import Conflict, Invalid, NotFound
from gateway.keys import direct_key, new_id
from gateway.model import AgentName, Message, Notice, ProfileId, Session, SessionFacts, TenantId
from gateway.policy.permit import Permit
from gateway.policy.relations import readable_after
from gateway.policy.targets import NewSessionTarget, SessionsTarget, SessionTarget
from gateway.ports import Clock, Identities, MessageDraft, Page, SessionFilter, Transcripts
from gateway.sessions.directory import SessionDirectory
from gateway.sessions.lineage import ARCHIVED, Creation, build, check, check_title
from gateway.sessions.participants import check_owner, check_participants

MAX_MESSAGE_UNITS = 200_000


class Conversations:
    """Sessions and their transcripts, behind permits."""

    def __init__(
        self, directory: SessionDirectory, transcripts: Transcripts, identities: Identities, clock: Clock
    ) -> None:
        self._directory = directory
        self._transcripts = transcripts
        self._identities = identities
        self._clock = clock

    async def find(self, tenant: TenantId, reference: str) -> SessionFacts | None:
        """The facts of a session, to ask the policy about it. They are shown to nobody before that."""
        return await self._directory.find(tenant, reference)

    async def private_of(self, tenant: TenantId, agent: AgentName, profile: ProfileId) -> SessionFacts | None:
        """A person's private session with an agent, where they have opened it."""
        return await self._directory.find(tenant, direct_key(agent, profile))

    async def create(self, permit: Permit[NewSessionTarget], creation: Creation) -> tuple[SessionFacts, bool]:
        """The new session and True, or the person's private one that was there already and False.

        Raises Invalid for a broken rule or an unknown participant, Conflict for the caller's own name used again.
        """
        check(creation)
        if creation.opens_the_private_session:
            known = await self.private_of(creation.tenant, creation.agent, creation.creator)
            if known is not None:
                return known, False
        await self.check_people(creation.tenant, creation.participants)
        session = build(creation, self._clock.now())
        people = () if creation.parent else (creation.creator, *sorted(creation.participants - {creation.creator}))
        try:
            return await self._directory.create(session, self._directory.store.create(session, people)), True
        except Conflict:
            if not creation.opens_the_private_session and creation.name is None:
                raise
            if not creation.opens_the_private_session:
                raise Conflict(f"You have a session named '{creation.name}' already.") from None
            known = await self._directory.store.find(creation.tenant, session.key)  # somebody was quicker: they, too
            if known is None:
                raise
            return known, False

    async def check_people(self, tenant: TenantId, people: Collection[ProfileId], field: str = "participants") -> None:
        """Raises Invalid for somebody who is not a current profile of the tenant; `field` is where they were named."""
        for person in sorted(people):
            profile = await self._identities.profile(tenant, person)
            if profile is None or profile.merged_into is not None or profile.disabled:
                raise Invalid.of(field, "unknown_person", "This names somebody who is not of your organisation.")

    async def list(
        self, permit: Permit[SessionsTarget], narrow: SessionFilter, *, limit: int, cursor: str | None
    ) -> Page[Session]:
        """The sessions in the permit's scope."""
        scope = permit.scope
        if scope is None or not scope.cells:
            return Page((), None)
        return await self._directory.store.list(permit.requester.tenant, scope, narrow, limit=limit, cursor=cursor)

    async def with_participants(self, sessions: Sequence[Session]) -> tuple[SessionFacts, ...]:
        """Listed sessions with those who take part in their roots, in one more read."""
        if not sessions:
            return ()
        roots = {session.root for session in sessions}
        people = await self._directory.store.participants(sessions[0].tenant, roots)
        return tuple(SessionFacts(session=one, participants=tuple(people.get(one.root, ()))) for one in sessions)

    async def history(self, permit: Permit[SessionTarget], *, limit: int, cursor: str | None) -> Page[Message]:
        """Messages, oldest first, from the requester's joining on. Raises NotFound where a reset came in between."""
        session = permit.target.facts.session
        page = await self._transcripts.history(
            session.tenant,
            session.id,
            incarnation=session.incarnation,
            after=readable_after(permit.target.facts, permit.requester.profile.id),
            limit=limit,
            cursor=cursor,
        )
        if page is None:
            raise NotFound
        return page

    async def latest(self, permit: Permit[SessionTarget], *, limit: int) -> Sequence[Message]:
        """The newest messages, oldest of them first, from the requester's joining on."""
        session = permit.target.facts.session
        found = await self._transcripts.latest(
            session.tenant,
            session.id,
            incarnation=session.incarnation,
            after=readable_after(permit.target.facts, permit.requester.profile.id),
            limit=limit,
        )
        if found is None:
            raise NotFound
        return found

    async def search(
        self, permit: Permit[SessionsTarget], query: str, *, within: Session | None, limit: int
    ) -> Sequence[tuple[Session, Message]]:
        """Messages in the permit's scope that hold every word of `query`, newest first."""
        scope = permit.scope
        if scope is None or not scope.cells:
            return ()
        return await self._transcripts.search(
            permit.requester.tenant, scope, query, session=within.id if within else None, limit=limit
        )

    async def post(
        self,
        permit: Permit[SessionTarget] | Permit[NewSessionTarget],
        facts: SessionFacts,
        content: str,
        role: str = "user",
    ) -> Message:
        """A message, durable on return: the person's, or the agent's where its runtime writes with a turn token.

        Raises Conflict for an archived session, NotFound for a reset one and for a person who took part when it was
        permitted and has left since.
        """
        session, person, turn = facts.session, permit.requester.profile, permit.requester.principal.turn
        check_message(session, content)
        now = self._clock.now()
        draft = MessageDraft(
            id=new_id("msg", now),
            session=session.id,
            incarnation=session.incarnation,
            role=role,
            name=person.name if turn is None else turn.agent,
            content=content,
            sender=person.id if turn is None else None,  # nobody is said to have typed what an agent wrote
            member=person.id if session.owner == person.id or facts.participant(person.id) is not None else None,
            created_at=now,
        )
        return await append(self._transcripts, self._directory, session, draft)

    async def rename(self, permit: Permit[SessionTarget], title: str | None) -> SessionFacts:
        """A new title, or none. Raises Invalid for one that is too long."""
        check_title(title)
        facts = permit.target.facts
        session, store = facts.session, self._directory.store
        return await self._changed(session, store.set_title(session.tenant, session.id, title, expected=facts))

    async def set_participants(
        self, permit: Permit[SessionTarget], people: Collection[ProfileId], told: Sequence[Notice] = ()
    ) -> SessionFacts:
        """Who takes part from now on; `told` is written with it. Raises Conflict or Invalid by the rules of
        `sessions/participants.py`."""
        facts = await self._with_people(permit, people)
        session, store = facts.session, self._directory.store
        change = store.set_participants(
            session.tenant, session.id, sorted(people), self._now(), expected=facts, told=told
        )
        return await self._changed(session, change)

    async def rename_and_set_participants(
        self,
        permit: Permit[SessionTarget],
        title: str | None,
        people: Collection[ProfileId],
        told: Sequence[Notice] = (),
    ) -> SessionFacts:
        """Both or neither. Raises Invalid and Conflict as `rename` and `set_participants`."""
        check_title(title)
        facts = await self._with_people(permit, people)
        session, store = facts.session, self._directory.store
        change = store.set_title_and_participants(
            session.tenant, session.id, title, sorted(people), self._now(), expected=facts, told=told
        )
        return await self._changed(session, change)

    async def _with_people(self, permit: Permit[SessionTarget], people: Collection[ProfileId]) -> SessionFacts:
        facts = permit.target.facts
        check_participants(facts, people)
        await self.check_people(facts.session.tenant, set(people) - {one.profile for one in facts.participants})
        return facts

    async def set_owner(
        self, permit: Permit[SessionTarget], owner: ProfileId, told: Sequence[Notice] = ()
    ) -> SessionFacts:
        """Gives a shared session to somebody else; `told` is written with it."""
        facts = permit.target.facts
        check_owner(facts)
        await self.check_people(facts.session.tenant, [owner], "profile")
        session, store = facts.session, self._directory.store
        change = store.set_owner(session.tenant, session.id, owner, self._now(), expected=facts, told=told)
        return await self._changed(session, change)

    async def archive(self, permit: Permit[SessionTarget]) -> SessionFacts:
        """No more messages; it can still be read."""
        facts = permit.target.facts
        session, store = facts.session, self._directory.store
        return await self._changed(session, store.archive(session.tenant, session.id, self._now(), expected=facts))

    async def reset(self, permit: Permit[SessionTarget]) -> SessionFacts:
        """Empty and open again, under the same id; a read that began before fails closed."""
        facts = permit.target.facts
        session, store = facts.session, self._directory.store
        return await self._changed(session, store.reset(session.tenant, session.id, expected=facts))

    async def delete(self, permit: Permit[SessionTarget]) -> int:
        """Removes it, its descendants and their transcripts; how many sessions went."""
        facts = permit.target.facts
        session, store = facts.session, self._directory.store
        gone = await self._directory.change(session, store.delete(session.tenant, session.id, expected=facts))
        if not gone:
            raise NotFound
        return gone

    async def _changed(self, session: Session, changing: Awaitable[SessionFacts | None]) -> SessionFacts:
        facts = await self._directory.change(session, changing)
        if facts is None:
            raise NotFound
        return facts

    def _now(self) -> datetime:
        return self._clock.now()


async def append(
    transcripts: Transcripts, directory: SessionDirectory, session: Session, draft: MessageDraft
) -> Message:
    """The message, durable on return. Raises NotFound where what permitted it no longer holds."""
    message = await transcripts.append(session.tenant, draft)
    if message is None:
        raise NotFound
    directory.spoken_in(session, draft.created_at)
    return message


def check_message(session: Session, content: str) -> None:
    """Raises Invalid for a message that is too long, Conflict for one to an archived session."""
    if len(content.encode("utf-16-le")) // 2 > MAX_MESSAGE_UNITS:
        raise Invalid.of("content", "too_long", f"Keep a message within {MAX_MESSAGE_UNITS} characters.")
    if session.archived_at is not None:
        raise Conflict(ARCHIVED)
