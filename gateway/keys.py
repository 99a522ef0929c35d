"""Session keys, storage keys and ids; the only module that spells any of them (design sections 6 and 11)."""

from __future__ import annotations

import hashlib
import re
from datetime import datetime

from ulid_transform import ulid_at_time

from gateway.model import AgentName, Kind, ProfileId, TenantId

LONGEST_PEER = 200
LONGEST_WORD = 512  # nothing that a caller can name is longer: such a word is missing, and is not looked up or kept

CHANNEL_ISSUERS = "channel:"  # what the issuer of a channel's senders begins with, and no other issuer may

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_ACCOUNT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,127}")
_CHANNEL_ISSUER = re.compile(r"channel:([0-9]+):(.+)", re.DOTALL)
_GUEST = "gst_"
# The words that come after the agent in a key of another kind.
_OTHER_KEYS = frozenset({"direct", "explicit", "dashboard", "web", "subagent", "cron", "main"})
_PROFILE_ID = re.compile(r"prf_[0-9A-HJKMNP-TV-Z]{26}")


def new_id(prefix: str, now: datetime) -> str:
    """A fresh ULID with its prefix: `new_id("ses", now)` is `ses_01JD…`."""
    return f"{prefix}_{ulid_at_time(now.timestamp())}"


def is_name(text: str) -> bool:
    """Whether `text` may name a tenant, an agent or a caller's session: `[a-z0-9][a-z0-9_-]{0,63}`, byte for byte."""
    return _NAME.fullmatch(text) is not None


def is_profile_id(text: str) -> bool:
    """Whether `text` is spelled like a profile id, and so is safe as a folder's name."""
    return _PROFILE_ID.fullmatch(text) is not None


def direct_key(agent: AgentName, profile: ProfileId) -> str:
    """The key of a person's private session with an agent."""
    return f"agent:{agent}:direct:{profile}"


def explicit_key(agent: AgentName, profile: ProfileId, name: str) -> str:
    """The key of a session that its creator named; it holds the creator's id, so nobody can squat another's name."""
    return f"agent:{agent}:explicit:{profile}:{name}"


def generated_key(agent: AgentName, kind: Kind, ulid: str, *, incognito: bool) -> str:
    """The key of a session that nobody named, in OpenClaw's shapes (reference, openclaw-visibility 1.10)."""
    if incognito:
        return f"agent:{agent}:dashboard:incognito-{ulid}"
    shapes = {
        Kind.DIRECT: f"dashboard:{ulid}",
        Kind.GROUP: f"web:group:{ulid}",
        Kind.CHANNEL: f"web:channel:{ulid}",
        Kind.SUBAGENT: f"subagent:{ulid}",
        Kind.CRON: f"cron:{ulid}",
    }
    return f"agent:{agent}:{shapes[kind]}"


def is_channel(text: str) -> bool:
    """Whether `text` may name a channel: a name that no other kind of session key has in its place."""
    return is_name(text) and text not in _OTHER_KEYS


def is_account(text: str) -> bool:
    """Whether `text` may name an account on a channel: without a colon, so that keys and issuers can't be mistaken."""
    return _ACCOUNT.fullmatch(text) is not None


def is_peer(text: str) -> bool:
    """Whether `text` may be a channel's id of a sender or a chat: 1 to 200 printable characters, kept as they are."""
    return 1 <= len(text) <= LONGEST_PEER and text.isprintable() and text == text.strip()


def channel_issuer(channel: str, account: str) -> str:
    """The issuer of the senders of one account; length-prefixed, so that no two accounts or channels share one."""
    return f"{CHANNEL_ISSUERS}{len(channel)}:{channel}{len(account)}:{account}"


def channel_account(issuer: str) -> tuple[str, str] | None:
    """The channel and account that `channel_issuer` made `issuer` of; None for any other text."""
    found = _CHANNEL_ISSUER.fullmatch(issuer)
    if found is None:
        return None
    channel = found[2][: int(found[1][:3])]
    account = found[2][len(channel) :].partition(":")[2]
    return (channel, account) if channel_issuer(channel, account) == issuer else None


def agent_in(key: str) -> AgentName:
    """The agent that a session's key begins with, whichever kind it is of."""
    return AgentName(key.split(":", 2)[1])


def channel_key(agent: AgentName, channel: str, account: str, chat: str, peer: str) -> str:
    """The key of a conversation on a channel; `chat` and `peer` are the channel's own words for it."""
    return f"agent:{agent}:{channel}:{account}:{chat}:{peer}"


def guest_id(tenant: TenantId, issuer: str, subject: str) -> ProfileId:
    """What an unlinked sender is called: always the same, and nothing that a stored profile can be called."""
    told_apart = storage_key(tenant, issuer, subject)
    return ProfileId(_GUEST + hashlib.sha256(told_apart.encode("utf-8", "surrogatepass")).hexdigest()[:26])


def is_guest_id(text: str) -> bool:
    """Whether `text` is spelled like what `guest_id` makes."""
    return text.startswith(_GUEST)


def storage_key(tenant: TenantId, *parts: str) -> str:
    """An unambiguous key of cache or lock: each part with its length, tenant first, so that no two lists collide."""
    return "".join([f"{len(part)}:{part}" for part in (tenant, *parts)])


def redis_key(prefix: str, tenant: TenantId, *parts: str) -> str:
    """A `storage_key` in Redis. The tenant in braces is the hash tag, so that a cluster keeps a tenant in one slot."""
    return f"{prefix}:{{{len(tenant)}:{tenant}}}{''.join([f'{len(part)}:{part}' for part in parts])}"


def redis_channel(prefix: str, subject: str) -> str:
    """What replicas of one installation tell each other on; messages name their tenant."""
    return f"{prefix}:{subject}"


def redis_lock(prefix: str, key: str) -> str:
    """A lock's key in Redis; `key` is a `storage_key`, and so holds its tenant."""
    return f"{prefix}:lock:{key}"
