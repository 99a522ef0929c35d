"""Turns a chat of a channel into the gateway's session for it: opened, joined, left, spoken in (design section 6).

What a channel reports is a fact, not somebody's wish: who is in the chat takes part, who has left does not. The permit
is that of its connector, for the one account that it acts for.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from gateway.errors import Conflict, NotFound
from gateway.keys import channel_key, new_id
from gateway.model import AgentName, Kind, Message, ProfileId, Session, SessionFacts, SessionId, TenantId
from gateway.policy.permit import Permit
from gateway.policy.targets import FunctionTarget
from gateway.ports import Clock, MessageDraft, Transcripts
from gateway.sessions.conversations import append, check_message
from gateway.sessions.directory import SessionDirectory

DIRECT = "direct"
_ANYBODY = "guest"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A chat of a channel; `chat` is the channel's word for its kind."""

    agent: AgentName
    channel: str
    account: str
    chat: str
    peer: str

    @property
    def key(self) -> str:
        """The key of its session."""
        return channel_key(self.agent, self.channel, self.account, self.chat, self.peer)

    @property
    def kind(self) -> Kind:
        """What its session is stored as: never private, since no person of the organisation owns it. A word that is
        not known counts as a group (design section 2)."""
        return Kind.CHANNEL if self.chat in (DIRECT, Kind.CHANNEL) else Kind.GROUP


class ChannelSessions:
    """Sessions of channels; they belong to the connector's service."""

    def __init__(self, directory: SessionDirectory, transcripts: Transcripts, clock: Clock) -> None:
        self._directory = directory
        self._transcripts = transcripts
        self._clock = clock

    async def find(self, tenant: TenantId, key: str) -> SessionFacts | None:
        """The session under that key, to know whether it is there. It is shown to nobody before they may see it."""
        return await self._directory.find(tenant, key)

    async def open(self, permit: Permit[FunctionTarget], place: Place) -> SessionFacts:
        """The session of the chat, opened on first use; of two who open it at once both get the same."""
        tenant, service = permit.requester.tenant, permit.requester.profile.id
        known = await self.find(tenant, place.key)
        if known is not None:
            return known
        session = self._session(tenant, service, place)
        try:
            return await self._directory.create(session, self._directory.store.create(session, [service]))
        except Conflict:
            made = await self._directory.store.find(tenant, place.key)
            if made is None:
                raise
            return made

    async def join(self, permit: Permit[FunctionTarget], facts: SessionFacts, person: ProfileId) -> SessionFacts:
        """Somebody who was seen in the chat takes part from now on. Raises NotFound where the session is gone."""
        session, store = facts.session, self._directory.store
        if facts.participant(person) is not None:
            return facts
        joining = store.join(session.tenant, session.id, person, self._clock.now())
        joined = await self._directory.change(session, joining)
        if joined is None:
            raise NotFound
        return joined

    async def leave(
        self, permit: Permit[FunctionTarget], place: Place, people: Collection[ProfileId] | None = None
    ) -> None:
        """These people, or all of them, are in the chat no longer and read nothing of it any more (design section 6).
        What one of them owned is the connector's again."""
        tenant, heir, store = permit.requester.tenant, permit.requester.profile.id, self._directory.store
        facts = await store.find(tenant, place.key)  # as the store has it now: nobody who has just joined may stay
        if facts is None:
            return
        taking_part = {one.profile for one in facts.participants}
        leaving = sorted((taking_part if people is None else taking_part.intersection(people)) - {heir})
        if leaving:
            leave = store.leave(tenant, facts.session.id, leaving, heir, self._clock.now())
            await self._directory.change(facts.session, leave)

    async def deliver(self, permit: Permit[FunctionTarget], facts: SessionFacts, content: str) -> Message:
        """A guest's message, durable on return. It has no sender: nobody of the organisation wrote it.

        Raises Invalid for one that is too long, Conflict for an archived session, NotFound for one that is gone.
        """
        session, now = facts.session, self._clock.now()
        check_message(session, content)
        draft = MessageDraft(
            id=new_id("msg", now),
            session=session.id,
            incarnation=session.incarnation,
            role="user",
            name=_ANYBODY,
            content=content,
            sender=None,
            member=None,
            created_at=now,
        )
        return await append(self._transcripts, self._directory, session, draft)

    def _session(self, tenant: TenantId, service: ProfileId, place: Place) -> Session:
        now = self._clock.now()
        session_id = SessionId(new_id("ses", now))
        return Session(
            tenant=tenant,
            id=session_id,
            key=place.key,
            agent=place.agent,
            kind=place.kind,
            private=False,
            title=None,
            owner=service,
            creator=service,
            parent=None,
            parent_key=None,
            root=session_id,
            root_agent=place.agent,
            path=f"{session_id}/",
            incarnation=1,
            incognito=False,
            sandboxed=False,
            created_at=now,
            last_message_at=None,
            archived_at=None,
        )
