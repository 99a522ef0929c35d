"""Session keys, storage keys and ids; the only module that spells any of them (design sections 6 and 11)."""

from __future__ import annotations

import re
from datetime import datetime

from ulid_transform import ulid_at_time

from gateway.model import AgentName, Kind, ProfileId, TenantId

LONGEST_WORD = 512  # nothing that a caller can name is longer: such a word is missing, and is not looked up or kept

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
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


def storage_key(tenant: TenantId, *parts: str) -> str:
    """An unambiguous key of cache or lock: each part with its length, tenant first, so that no two lists collide."""
    return "".join(f"{len(part)}:{part}" for part in (tenant, *parts))
