"""Where the gateway listens and what it keeps: the tables that have nothing to do with who calls."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

from pydantic import Field, SecretStr, field_validator

from gateway.settings.tables import Group, NonEmpty

_POSTGRES = re.compile(r"postgres(ql)?://[^/?#\s]+/[^/?#\s]+(\?[^#\s]*)?")


class Server(Group):
    """Where the gateway listens, and what one request may cost."""

    host: NonEmpty = Field(default="127.0.0.1", description="Address to listen on.")
    port: int = Field(default=8080, ge=0, le=65535, description="Port to listen on; 0 takes any free one.")
    body_limit_bytes: int = Field(
        default=1024 * 1024, ge=1024, description="Largest request body; a larger one is a 413."
    )
    request_timeout_s: float = Field(
        default=30.0,
        gt=0,
        le=3600,
        description="Seconds until an answer must have begun; then it is a 503.",
    )
    metrics: Literal["loopback", "off"] = Field(
        default="loopback",
        description="Who may read `/metrics`: callers on this machine that no proxy forwards, or nobody.",
    )


class State(Group):
    """What the embedded gateway keeps on this machine."""

    folder: Path = Field(default=Path(".gateway"), description="Folder of the database, the keys and the workspaces.")


class DatabaseServer(Group):
    """The PostgreSQL that holds the store. Without one it is a file in `state.folder`, beside keys and workspaces."""

    url: SecretStr | None = Field(
        default=None,
        description="`postgresql://user@host/name`, and `?sslmode=verify-full` for TLS that is checked. The password is"
        " in it, or where PostgreSQL's own clients look: the variable `PGPASSWORD` or a `.pgpass` file.",
    )
    connections: int = Field(default=10, ge=2, le=200, description="Connections that one gateway holds at most.")
    statement_timeout_s: float = Field(
        default=10.0, gt=0, le=600, description="Seconds that one statement may take; then its request is a 503."
    )

    @field_validator("url")
    @classmethod
    def _is_postgres(cls, url: SecretStr | None) -> SecretStr | None:
        if url is not None and not _POSTGRES.fullmatch(url.get_secret_value()):
            raise ValueError("is no address of a PostgreSQL database: write postgresql://user:password@host:5432/name")
        return url


class Demo(Group):
    """The demo tenant, with people whose tokens are printed."""

    enabled: bool = Field(
        default=False, description="Makes the tenant `demo` at the first start. Only on a loopback address."
    )


class Audit(Group):
    """How records of reads reach the disk; those of writes are always durable before the write."""

    reads: Literal["buffered", "durable"] = Field(
        default="buffered",
        description="`buffered` answers first and writes within `flush_ms`; `durable` waits for the disk.",
    )
    buffer_records: int = Field(
        default=10_000,
        ge=1,
        le=1_000_000,
        description="Records that may wait; when full, requests are refused (503).",
    )
    flush_ms: int = Field(default=50, ge=1, le=50, description="Longest time that a record waits, in milliseconds.")


class Policy(Group):
    """How old an answer may be."""

    refuse_after_s: float = Field(
        default=5.0,
        gt=0,
        le=5,
        description="Seconds without word from the store after which decisions are refused with a 503.",
    )


class Log(Group):
    """What the gateway writes about itself, on standard error."""

    level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="The least that is written."
    )
    format: Literal["json", "console"] = Field(
        default="json", description="One JSON object a line, or lines for people."
    )
