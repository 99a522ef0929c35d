"""Turns the settings of connectors into accounts on channels, and says which service may speak for which."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from gateway.identity.roles import SERVICE
from gateway.model import AgentName, ProfileId, Requester, TenantId


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """Where the agent's runtime is told of a message, and what it recognises the gateway by."""

    url: str
    secret: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelAccount:
    """One account of the organisation on a channel, with the agent that answers there."""

    channel: str
    account: str
    tenant: TenantId
    agent: AgentName
    service: ProfileId  # who brings its messages; it must hold the role `connector`
    secret: bytes | None = field(default=None, repr=False)  # what the channel signs its webhooks with
    destination: str | None = None  # what the channel itself calls the account
    delivery: Delivery | None = None

    @property
    def name(self) -> str:
        """What the audit and the logs call it."""
        return f"{self.channel}:{self.account}"


class ChannelAccounts:
    """The accounts by channel and name; each is of one tenant."""

    def __init__(self, accounts: Iterable[ChannelAccount] = ()) -> None:
        self._accounts = {(one.channel, one.account): one for one in accounts}

    def find(self, channel: str, account: str) -> ChannelAccount | None:
        """The account. Who asks for it is not looked at."""
        return self._accounts.get((channel, account))

    def of_connector(self, requester: Requester, channel: str, account: str) -> ChannelAccount | None:
        """The account, where `requester` is the service that brings its messages (design section 5)."""
        found = self.find(channel, account)
        if found is None or found.tenant != requester.tenant or requester.profile.kind != SERVICE:
            return None
        return found if found.service in (requester.profile.id, *requester.profile.aliases) else None
