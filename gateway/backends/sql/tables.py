"""The tables of the store, as one MetaData; every row carries its tenant (design section 11)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    true,
)
from sqlalchemy.engine import Dialect, Row
from sqlalchemy.types import TypeDecorator

SCHEMA_VERSION = 3

AnyRow = Row[*tuple[Any, ...]]

# Byte for byte in both databases: SQLite's own default is BINARY, PostgreSQL is told so (never a language's rules).
Exact = Text().with_variant(Text(collation="C"), "postgresql")

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def to_instant(value: datetime) -> int:
    """Microseconds since 1970 in UTC, exactly; a time without a zone is refused with ValueError."""
    if value.tzinfo is None:
        raise ValueError("a time without a zone can't be stored")
    return (value - EPOCH) // _MICROSECOND


def from_instant(value: int) -> datetime:
    """The time in UTC that `to_instant` stored."""
    return EPOCH + timedelta(microseconds=value)


class Instant(TypeDecorator[datetime]):
    """A time, stored as microseconds since 1970, so that both databases order and compare it alike."""

    impl = BigInteger
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> int | None:
        """What the driver is given."""
        return None if value is None else to_instant(value)

    def process_result_value(self, value: int | None, dialect: Dialect) -> datetime | None:
        """What the caller is given."""
        return None if value is None else from_instant(value)


def column_names(table: Table) -> list[str]:
    """The names of a table's columns, in order."""
    return [column.name for column in table.columns]


metadata = MetaData()

schema_version = Table(
    "schema_version",
    metadata,
    Column("only", Integer, CheckConstraint('"only" = 1'), primary_key=True, autoincrement=False),
    Column("version", Integer, nullable=False),
)

tenants = Table(
    "tenants",
    metadata,
    Column("id", Exact, primary_key=True),
    Column("epoch", BigInteger, nullable=False),
    Column("demo", Boolean, nullable=False),
    Column("last_message", BigInteger, nullable=False, default=0),  # never falls, also when messages are deleted
    Column("created_at", Instant, nullable=False),
    sqlite_with_rowid=False,
)


def _tenant() -> Column[str]:
    return Column("tenant", Exact, primary_key=True)


def _of_tenant() -> ForeignKeyConstraint:
    return ForeignKeyConstraint(["tenant"], ["tenants.id"])


def _of_profile() -> ForeignKeyConstraint:
    return ForeignKeyConstraint(["tenant", "profile"], ["profiles.tenant", "profiles.id"])


# ── people ───────────────────────────────────────────────────────────────────────────────────────────────────────────

profiles = Table(
    "profiles",
    metadata,
    _tenant(),
    Column("id", Exact, primary_key=True),
    Column("name", Text, nullable=False),
    Column("kind", Exact, nullable=False),
    Column("merged_into", Exact),
    Column("disabled", Boolean, nullable=False),
    Column("created_at", Instant),
    _of_tenant(),
    sqlite_with_rowid=False,
)
# Counting people walks this alone, and a page of them skips the merged ones.
Index(
    "profiles_unmerged",
    profiles.c.tenant,
    profiles.c.kind,
    profiles.c.disabled,
    sqlite_where=profiles.c.merged_into.is_(None),
    postgresql_where=profiles.c.merged_into.is_(None),
)
# Each profile that is read asks who was merged into it; few were.
Index(
    "profiles_merged",
    profiles.c.tenant,
    profiles.c.merged_into,
    sqlite_where=profiles.c.merged_into.is_not(None),
    postgresql_where=profiles.c.merged_into.is_not(None),
)

emails = Table(
    "emails",
    metadata,
    _tenant(),
    Column("profile", Exact, primary_key=True),
    Column("email", Exact, primary_key=True),
    Column("position", Integer, nullable=False),
    Column("live", Boolean, nullable=False),  # false once its profile is merged away: then another may hold it
    _of_profile(),
    sqlite_with_rowid=False,
)
Index(
    "emails_live",
    emails.c.tenant,
    emails.c.email,
    unique=True,
    sqlite_where=emails.c.live == true(),
    postgresql_where=emails.c.live == true(),
)

roles = Table(
    "roles",
    metadata,
    _tenant(),
    Column("profile", Exact, primary_key=True),
    Column("role", Exact, primary_key=True),
    Column("agent", Exact, primary_key=True),
    Column("position", Integer, nullable=False),
    _of_profile(),
    sqlite_with_rowid=False,
)

people_classes = Table(
    "people_classes",  # each active profile by its kind and roles, so that a policy is asked of a class and not of each
    metadata,
    _tenant(),
    Column("role_set", Exact, primary_key=True),
    Column("profile", Exact, primary_key=True),
    _of_profile(),
    Index("people_classes_of_profile", "tenant", "profile", unique=True),
    sqlite_with_rowid=False,
)

identities = Table(
    "identities",
    metadata,
    _tenant(),
    Column("issuer", Exact, primary_key=True),
    Column("subject", Exact, primary_key=True),
    Column("profile", Exact, nullable=False),
    Column("linked_at", Instant, nullable=False),
    Column("linked_by", Exact),  # a profile; none where nobody asked for it, and on links from before version 3
    _of_profile(),
    Index("identities_of_profile", "tenant", "profile"),
    sqlite_with_rowid=False,
)

access_tokens = Table(
    "access_tokens",
    metadata,
    Column("id", Exact, primary_key=True),
    Column("tenant", Exact, nullable=False),
    Column("profile", Exact, nullable=False),
    Column("name", Text, nullable=False),
    Column("scopes", Text, nullable=False),  # sorted, one space between
    Column("digest", LargeBinary, nullable=False, unique=True),  # the secret itself is nowhere
    Column("created_at", Instant, nullable=False),
    Column("expires_at", Instant, nullable=False),
    Column("last_used_at", Instant),
    Column("revoked_at", Instant),
    Column("made_by", Exact),  # a profile; none on tokens from before version 3
    _of_profile(),
    Index("access_tokens_of_profile", "tenant", "profile", "id"),
    sqlite_with_rowid=False,
)

sign_ins = Table(
    "sign_ins",  # of browsers
    metadata,
    Column("id", Exact, primary_key=True),
    Column("tenant", Exact, nullable=False),
    Column("profile", Exact, nullable=False),
    Column("issuer", Exact, nullable=False),
    Column("subject", Exact, nullable=False),
    Column("email", Exact),
    Column("roles", LargeBinary, nullable=False),  # JSON of those that the issuer's groups gave
    Column("digest", LargeBinary, nullable=False, unique=True),  # of the cookie, which itself is nowhere
    Column("user_agent", Text, nullable=False),
    Column("id_token", Text),  # names the sign-in to the issuer when it is ended; gone with its end
    Column("created_at", Instant, nullable=False),
    Column("last_seen_at", Instant, nullable=False),
    Column("expires_at", Instant, nullable=False),
    Column("revoked_at", Instant),
    _of_profile(),
    Index("sign_ins_of_profile", "tenant", "profile", "id"),
    sqlite_with_rowid=False,
)

notices = Table(
    "notices",  # what a person is told: that somebody with more rights changed what they may do
    metadata,
    _tenant(),
    Column("profile", Exact, primary_key=True),
    Column("id", Exact, primary_key=True),
    Column("at", Instant, nullable=False),
    Column("code", Exact, nullable=False),
    Column("by", Exact, nullable=False),
    Column("about", Text, nullable=False),
    _of_profile(),
    sqlite_with_rowid=False,
)

merges = Table(
    "merges",  # one row for each retired profile: what its merge answered, for whoever asks for the same one again
    metadata,
    _tenant(),
    Column("retired", Exact, primary_key=True),
    Column("survivor", Exact, nullable=False),
    Column("merged_at", Instant, nullable=False),
    Column("report", Text, nullable=False),  # JSON
    ForeignKeyConstraint(["tenant", "retired"], ["profiles.tenant", "profiles.id"]),
    sqlite_with_rowid=False,
)

agents = Table(
    "agents",
    metadata,
    _tenant(),
    Column("name", Exact, primary_key=True),
    Column("workspace", Exact, nullable=False),
    Column("title", Text, nullable=False),
    Column("timezone", Exact, nullable=False),
    Column("created_at", Instant, nullable=False),
    _of_tenant(),
    Index("agents_workspace", "tenant", "workspace", unique=True),
    sqlite_with_rowid=False,
)

policy_versions = Table(
    "policy_versions",
    metadata,
    _tenant(),
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("text", Text, nullable=False),
    Column("comment", Text, nullable=False),
    Column("author", Exact, nullable=False),
    Column("published_at", Instant, nullable=False),
    Column("rolled_back_to", Integer),
    _of_tenant(),
)

# ── sessions ─────────────────────────────────────────────────────────────────────────────────────────────────────────

sessions = Table(
    "sessions",
    metadata,
    _tenant(),
    Column("id", Exact, primary_key=True),
    Column("key", Exact, nullable=False),
    Column("agent", Exact, nullable=False),
    Column("kind", Exact, nullable=False),
    Column("private", Boolean, nullable=False),
    Column("title", Text),
    Column("title_folded", Exact),
    Column("owner", Exact, nullable=False),  # of the root, on each session of its tree
    Column("creator", Exact, nullable=False),
    Column("parent", Exact),
    Column("parent_key", Exact),
    Column("root", Exact, nullable=False),
    Column("root_agent", Exact, nullable=False),
    Column("path", Exact, nullable=False),
    Column("incarnation", Integer, nullable=False),
    Column("incognito", Boolean, nullable=False),
    Column("sandboxed", Boolean, nullable=False),
    Column("created_at", Instant, nullable=False),
    Column("last_message_at", Instant),
    Column("archived_at", Instant),
    _of_tenant(),
    Index("sessions_key", "tenant", "key", unique=True),
    # A list of other people's sessions walks this from the newest down. It holds all that the walk asks for: SQLite
    # would rather walk the whole tenant than an index that does not.
    Index("sessions_listed", "tenant", "agent", "private", "incognito", "id"),
    sqlite_with_rowid=False,
)
lineage = Table(
    "lineage",  # one row for each session and each of its ancestors: a tree's newest sessions without a sort
    metadata,
    _tenant(),
    Column("ancestor", Exact, primary_key=True),
    Column("session", Exact, primary_key=True),
    ForeignKeyConstraint(["tenant", "session"], ["sessions.tenant", "sessions.id"], ondelete="CASCADE"),
    Index("lineage_of_session", "tenant", "session"),
    sqlite_with_rowid=False,
)

participants = Table(
    "participants",
    metadata,
    _tenant(),
    Column("root", Exact, primary_key=True),
    Column("profile", Exact, primary_key=True),
    Column("joined_after", BigInteger, nullable=False),
    Column("joined_at", Instant, nullable=False),
    ForeignKeyConstraint(["tenant", "root"], ["sessions.tenant", "sessions.id"], ondelete="CASCADE"),
    sqlite_with_rowid=False,
)

memberships = Table(
    "memberships",  # for each person every listed session that is theirs or shared with them: their lists walk this
    metadata,
    _tenant(),
    Column("profile", Exact, primary_key=True),
    Column("agent", Exact, primary_key=True),
    Column("session", Exact, primary_key=True),
    Column("private", Boolean, nullable=False),
    Column("own", Boolean, nullable=False),
    ForeignKeyConstraint(["tenant", "session"], ["sessions.tenant", "sessions.id"], ondelete="CASCADE"),
    Index("memberships_of_session", "tenant", "session"),
    sqlite_with_rowid=False,
)

messages = Table(
    "messages",
    metadata,
    _tenant(),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("id", Exact, nullable=False),
    Column("session", Exact, nullable=False),
    Column("incarnation", Integer, nullable=False),
    Column("role", Exact, nullable=False),
    Column("name", Text),
    Column("content", Text, nullable=False),
    Column("folded", Exact, nullable=False),  # NFKC and case-folded, so that a search is a plain "contains"
    Column("sender", Exact),
    Column("created_at", Instant, nullable=False),
    ForeignKeyConstraint(["tenant", "session"], ["sessions.tenant", "sessions.id"], ondelete="CASCADE"),
    Index("messages_id", "tenant", "id", unique=True),
    Index("messages_of_session", "tenant", "session", "incarnation", "number"),
)

# ── records ──────────────────────────────────────────────────────────────────────────────────────────────────────────

audit = Table(
    "audit",
    metadata,
    _tenant(),
    Column("sequence", BigInteger, primary_key=True, autoincrement=False),
    Column("at", BigInteger, nullable=False),  # microseconds: the hot path converts nothing twice
    Column("kind", Exact, nullable=False),
    Column("profile", Exact),
    Column("agent", Exact),
    Column("session", Exact),
    Column("action", Exact),
    Column("effect", Exact, nullable=False),
    Column("code", Exact, nullable=False),
    Column("decision", Exact),
    Column("body", LargeBinary, nullable=False),  # the JSON that the hash covers
    Column("hash", LargeBinary, nullable=False),
    # Every index is paid for by every record of every request, so there are three, for the questions that are asked of
    # a long audit: what did this person do, who was in this session, what was this decision. A time narrows by `at`
    # while walking one of them or the chain itself.
    Index("audit_profile", "tenant", "profile", "sequence"),
    Index("audit_session", "tenant", "session", "sequence"),
    Index("audit_decision", "tenant", "decision", "sequence"),
)
notes = Table(
    "notes",
    metadata,
    _tenant(),
    Column("id", Exact, primary_key=True),
    Column("agent", Exact, nullable=False),
    Column("path", Exact, nullable=False),
    Column("sha256", Exact, nullable=False),
    Column("provenance", Exact, nullable=False),
    Column("author", Exact, nullable=False),
    Column("session", Exact),
    Column("created_at", Instant, nullable=False),
    _of_tenant(),
    Index("notes_of_path", "tenant", "agent", "path", "created_at", "id"),
    sqlite_with_rowid=False,
)
tainted_turns = Table(
    "tainted_turns",
    metadata,
    _tenant(),
    Column("turn", Exact, primary_key=True),
    Column("until", Instant, nullable=False),  # its token has ended then, and the row can go
    _of_tenant(),
    Index("tainted_turns_until", "until"),
    sqlite_with_rowid=False,
)

channel_events = Table(
    "channel_events",  # of webhooks: what was handled is not handled again
    metadata,
    _tenant(),
    Column("channel", Exact, primary_key=True),
    Column("account", Exact, primary_key=True),
    Column("event", Exact, primary_key=True),
    Column("done", Boolean, nullable=False),
    Column("taken_until", Instant, nullable=False),
    Column("until", Instant, nullable=False),
    _of_tenant(),
    Index("channel_events_until", "tenant", "until"),
    sqlite_with_rowid=False,
)
