"""Where several replicas tell each other what changed, and lock what they share (design section 11)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import SplitResult, urlsplit

from pydantic import AfterValidator, Field, ValidationInfo, field_validator

from gateway.settings.tables import Group, NonEmpty, no_setting


def _address(value: str) -> str:
    """`host:port`. Raises ValueError for anything else."""
    try:
        parts = urlsplit(f"//{value}")
        good = bool(parts.hostname) and parts.port is not None and parts.netloc == value and "@" not in value
    except ValueError:
        good = False
    if not good:
        raise ValueError("must be host:port")
    return value


Address = Annotated[str, AfterValidator(_address)]


class Redis(Group):
    """Redis, for several replicas. Without `url` there is one gateway, and it needs none."""

    url: NonEmpty | None = Field(
        default=None,
        description="`redis://user@host:6379/0`, or `rediss://…` for TLS. The password has its own setting.",
    )
    mode: Literal["standalone", "sentinel", "cluster"] = Field(
        default="standalone", description="What `url` is the address of: a server, a Sentinel, or a node of a cluster."
    )
    more: tuple[Address, ...] = Field(default=(), description="Further Sentinels or nodes, each `host:port`.")
    sentinel_master: NonEmpty = Field(default="mymaster", description="What the Sentinels call the server.")
    password_file: Path | None = Field(
        default=None, description="A file that holds the user's password and nothing else."
    )
    password_env: NonEmpty | None = Field(
        default=None,
        validate_default=True,
        description="The environment variable that holds the user's password.",
    )
    ca_file: Path | None = Field(
        default=None, description="The authorities that the server's certificate may come from; else the machine's."
    )
    prefix: NonEmpty = Field(
        default="gateway",
        pattern=r"^[A-Za-z0-9_.-]+$",
        description="What every key begins with. The same for all replicas of one installation, and for no other's.",
    )
    timeout_s: float = Field(
        default=1.0, gt=0, le=2, description="Seconds for a connection or an answer; then Redis counts as away."
    )
    connections: int = Field(default=16, ge=2, le=1000, description="Most connections of one replica.")

    @field_validator("url")
    @classmethod
    def _usable(cls, value: str | None) -> str | None:
        # Said without the value: it may hold the password that must not be there.
        if value is not None and not _is_redis(value):
            raise ValueError("must be redis://[user@]host[:port][/number], or rediss:// with the same")
        if value is not None and urlsplit(value).password is not None:
            raise ValueError("must hold no password: name password_file or password_env")
        return value

    @field_validator("password_env")
    @classmethod
    def _one_source_of_the_password(cls, value: str | None, info: ValidationInfo) -> str | None:
        if value is not None and info.data.get("password_file") is not None:
            raise ValueError("name password_file or password_env, not both")
        return no_setting(value)


def _is_redis(text: str) -> bool:
    try:
        url: SplitResult = urlsplit(text)
        host, _ = url.hostname, url.port
    except ValueError:
        return False
    number = url.path.removeprefix("/")
    known = url.scheme in ("redis", "rediss") and bool(host) and not url.query and not url.fragment
    return known and text == text.strip() and (not number or (number.isascii() and number.isdecimal()))
