"""What a connector may do: bring a sender's turn, and say who is in a chat (design section 5, "channel identities").

The turn itself is the sender's and goes through the whole path as theirs: `operations/channel_turns.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

from pydantic import AfterValidator, Field

from gateway.identity.assertions import Assertion, assert_sender
from gateway.identity.channel_accounts import ChannelAccount, ChannelAccounts
from gateway.keys import LONGEST_PEER, channel_issuer, direct_key, is_name, is_peer
from gateway.model import Action, AgentName, Profile, Resource, SessionId, TenantId
from gateway.operations.found import LONGEST_NAME, few, function
from gateway.policy.permit import Permit
from gateway.policy.targets import FunctionTarget, MissingTarget
from gateway.ports import Identities
from gateway.sessions.channels import DIRECT, ChannelSessions, Place
from gateway.tools.arguments import Arguments
from gateway.tools.registry import AnyOperation, Operation
from gateway.turn import Turn

FAMILY = (Resource.GATEWAY,)
MOST_MEMBERS = 500
# The words for chats where several people listen.
_OF_SEVERAL = ("group", "room", "channel")


def _peer(text: str) -> str:
    if not is_peer(text):
        raise ValueError(f"must have 1 to {LONGEST_PEER} printable characters, as the channel gives it")
    return text


def _word(text: str) -> str:
    if not is_name(text):
        raise ValueError("must be a word, like direct, group or channel")
    return text


Peer = Annotated[str, AfterValidator(_peer)]
Text = Annotated[str, Field(min_length=1, max_length=512)]


class ChatBody(Arguments):
    """Where something was said. Say `direct` only where nobody but the sender hears the answer; a kind that the gateway
    does not know counts as a group."""

    kind: Annotated[str, AfterValidator(_word)]
    id: Peer


class ChannelTurnBody(Arguments):
    """`POST /v1/connectors/{channel}/turns`."""

    account: Text
    sender: Peer
    chat: ChatBody
    text: Annotated[str, Field(min_length=1)] | None = None


class MembersBody(Arguments):
    """`POST /v1/connectors/{channel}/members`: who came into a chat, who left it, or that the channel has left it."""

    account: Text
    chat: ChatBody
    joined: Annotated[list[Peer], Field(default_factory=list, max_length=MOST_MEMBERS)]
    left: Annotated[list[Peer], Field(default_factory=list, max_length=MOST_MEMBERS)]
    ended: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Brought:
    """What a connector brings: somebody's words. Without a sender it is a guest that the channel does not name."""

    channel: str
    account: str
    sender: str | None
    chat: str
    chat_id: str
    text: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Members:
    """What a connector says of a chat."""

    channel: str
    account: str
    chat: str
    chat_id: str
    joined: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    ended: bool = False


@dataclass(frozen=True, slots=True)
class Permitted:
    """A sender's turn that its connector may bring: whose, in which session, and what is still to be done as them."""

    sender: Assertion
    session: str  # its key
    agent: AgentName
    opens: bool  # their private session is not there yet
    text: str | None  # their message, where it is theirs to post


class ConnectorOperations:
    """Builds the operations of connectors."""

    def __init__(self, accounts: ChannelAccounts, sessions: ChannelSessions, identities: Identities) -> None:
        self._accounts = accounts
        self._sessions = sessions
        self._identities = identities
        self.turn: AnyOperation = Operation(
            name="connectors.turn",
            summary="Brings a message of a channel's sender, and answers with their context.",
            action=Action.CONNECT,
            family=FAMILY,
            find=self._find,
            run=self._run_turn,
            details=_turn_details,
            effect=True,
        )
        self.members: AnyOperation = Operation(
            name="connectors.members",
            summary="Says who came into a channel's chat and who left it.",
            action=Action.CONNECT,
            family=FAMILY,
            find=self._find,
            run=self._run_members,
            details=_member_details,
            effect=True,
        )

    async def _find(self, turn: Turn, arguments: Brought | Members) -> FunctionTarget | MissingTarget:
        """The account, which is missing for every service but its own."""
        account = self._accounts.of_connector(turn.requester, arguments.channel, arguments.account)
        if account is None or turn.agent(account.agent) is None:
            name = f"{arguments.channel}:{arguments.account}"[:LONGEST_NAME]
            return MissingTarget(turn.tenant, Resource.GATEWAY, name)
        return function(turn, Resource.GATEWAY, account.name)

    async def _run_turn(self, permit: Permit[FunctionTarget], turn: Turn, brought: Brought) -> Permitted:
        account = self._account(turn, brought)
        tenant = permit.requester.tenant
        brought = await self._as_known(tenant, account, brought)
        person = await self._linked(tenant, brought, brought.sender)
        if brought.chat == DIRECT and person is not None:
            key = direct_key(account.agent, person.id)  # theirs alone: only they themselves open and enter it
            opens = await self._sessions.find(tenant, key) is None
            return Permitted(_sender(permit, brought, None), key, account.agent, opens, brought.text)
        facts = await self._sessions.open(permit, _place(account, brought))
        text = brought.text
        if person is not None and not person.disabled and person.merged_into is None:
            await self._sessions.join(permit, facts, person.id)
        elif person is None and text is not None:
            await self._sessions.deliver(permit, facts, text)
            text = None
        sender = _sender(permit, brought, facts.session.id)
        return Permitted(sender, facts.session.key, account.agent, False, text)

    async def _run_members(self, permit: Permit[FunctionTarget], turn: Turn, members: Members) -> None:
        place = _place(self._account(turn, members), members)
        tenant = permit.requester.tenant
        if members.ended:
            await self._sessions.leave(permit, place)
            return
        left = [one.id for one in await self._people(tenant, members, members.left)]
        if left:
            await self._sessions.leave(permit, place, left)
        joined = [one for one in await self._people(tenant, members, members.joined) if one.id not in left]
        if joined:
            facts = await self._sessions.open(permit, place)
            for person in joined:
                facts = await self._sessions.join(permit, facts, person.id)

    async def _as_known(self, tenant: TenantId, account: ChannelAccount, brought: Brought) -> Brought:
        """What was brought; a chat that was said to be of several stays so. What is said of a turn only ever narrows
        (design section 6), or one wrong word would tell a group what is somebody's own."""
        if brought.chat != DIRECT:
            return brought
        for word in _OF_SEVERAL:
            known = replace(brought, chat=word)
            if await self._sessions.find(tenant, _place(account, known).key) is not None:
                return known
        return brought

    def _account(self, turn: Turn, arguments: Brought | Members) -> ChannelAccount:
        account = self._accounts.of_connector(turn.requester, arguments.channel, arguments.account)
        assert account is not None  # noqa: S101 - `_find` has found it for this requester, and settings don't change
        return account

    async def _people(self, tenant: TenantId, arguments: Members, senders: tuple[str, ...]) -> list[Profile]:
        """The active people among these senders; whoever is not linked takes part in nothing."""
        found = [await self._linked(tenant, arguments, one) for one in senders]
        return [one for one in found if one is not None and not one.disabled and one.merged_into is None]

    async def _linked(self, tenant: TenantId, arguments: Brought | Members, sender: str | None) -> Profile | None:
        if sender is None:
            return None
        return await self._identities.profile_of(tenant, channel_issuer(arguments.channel, arguments.account), sender)


def _place(account: ChannelAccount, arguments: Brought | Members) -> Place:
    """Where it is. A chat with one sender alone is called after them, and any other by its own id."""
    peer = arguments.chat_id
    if isinstance(arguments, Brought) and arguments.chat == DIRECT:
        peer = arguments.sender or peer
    return Place(agent=account.agent, channel=account.channel, account=account.account, chat=arguments.chat, peer=peer)


def _sender(permit: Permit[FunctionTarget], brought: Brought, place: SessionId | None) -> Assertion:
    return assert_sender(
        permit.requester, channel=brought.channel, account=brought.account, sender=brought.sender or "", place=place
    )


async def _turn_details(_permit: Permit[FunctionTarget], _turn: Turn, brought: Brought) -> dict[str, object]:
    return {"sender": brought.sender, "chat": f"{brought.chat}:{brought.chat_id}"}


async def _member_details(_permit: Permit[FunctionTarget], _turn: Turn, members: Members) -> dict[str, object]:
    chat = f"{members.chat}:{members.chat_id}"
    return {"chat": chat, "joined": few(members.joined), "left": few(members.left), "ended": members.ended}
