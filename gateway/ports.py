"""What the stages need from below, as Protocols; `backends/` fulfils them and `app.py` hands them over.

Every method that changes who may do what (roles, links, revocations, policy) raises the tenant's epoch in the same
transaction. What people are told of a change (`told`) is written with it. All of them raise `Unavailable` when the
store beneath can't answer; none answers an outage with "empty".
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Generic, NamedTuple, Protocol, TypeVar

from gateway.errors import Conflict
from gateway.model import (
    AccessToken,
    Agent,
    AgentName,
    AuditRecord,
    Identity,
    Kind,
    Message,
    Notice,
    Participant,
    Profile,
    ProfileId,
    Relation,
    RoleAssignment,
    Scope,
    ServiceCredential,
    Session,
    SessionFacts,
    SessionId,
    SignIn,
    Tenant,
    TenantId,
)


class Clock(Protocol):
    """The time, as an argument, so that no test sleeps."""

    def now(self) -> datetime:
        """The time now, in UTC."""

    def monotonic(self) -> float:
        """Seconds that only rise; for ages and deadlines."""


T = TypeVar("T", covariant=True)


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """A part of a list; `next_cursor` is None at its end. Never a total."""

    items: tuple[T, ...]
    next_cursor: str | None


class Tenants(Protocol):
    """Tenants and their epochs."""

    async def all(self) -> Sequence[Tenant]:
        """Every tenant, by name."""

    async def find(self, tenant: TenantId) -> Tenant | None:
        """The tenant with its epoch as it is in the store now."""

    async def add(self, tenant: TenantId, *, demo: bool, now: datetime) -> Tenant:
        """A new tenant with epoch 1. Raises Conflict where the name is taken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeReport:
    """What a merge moved and ended; of a preview, what it would. Sessions are counted and named by id or by the key of
    a private one, which holds a profile's id and nothing that anybody wrote."""

    retired: ProfileId
    survivor: ProfileId
    merged_at: datetime | None  # None: a preview, and nothing was changed
    identities: tuple[Identity, ...]  # of sign-ins and of senders on channels: the survivor's from now on
    emails: tuple[str, ...]
    aliases: tuple[ProfileId, ...]  # merged into the retired one before; they point to the survivor now
    tokens: tuple[str, ...]  # tok_… of the retired one, revoked
    sign_ins: tuple[str, ...]  # of the retired one in browsers, ended
    roles_ended: tuple[RoleAssignment, ...]  # the survivor keeps its own and gets none
    sessions_owned: int  # roots that the survivor owns from now on
    sessions_shared: int  # further ones that the survivor takes part in from now on
    private_sessions: tuple[str, ...]  # keys of both people's private sessions: all stay
    groups_of_both: tuple[SessionId, ...]  # where both took part: one person with the earlier joining


@dataclass(frozen=True, slots=True, kw_only=True)
class PeopleClass:
    """Everybody active of one kind with the same roles by hand: a policy answers them alike, unless it names one."""

    key: str
    kind: str
    roles: tuple[RoleAssignment, ...]
    people: int | None  # None where nobody asked how many


class Identities(Protocol):
    """Profiles, the principals linked to them, their roles and tokens. Emails are kept trimmed and case-folded."""

    async def profile(self, tenant: TenantId, profile: ProfileId) -> Profile | None:
        """The profile with its emails and roles, a merged or disabled one too."""

    async def profile_of(self, tenant: TenantId, issuer: str, subject: str) -> Profile | None:
        """The profile that (issuer, subject) is linked to, compared byte for byte; a merged one as its survivor."""

    async def profile_with_email(self, tenant: TenantId, email: str) -> Profile | None:
        """The unmerged profile that holds this email now."""

    async def people(self, tenant: TenantId, *, limit: int, cursor: str | None) -> Page[Profile]:
        """Unmerged profiles, ordered by id."""

    async def profiles(self, tenant: TenantId, ids: Collection[ProfileId]) -> Sequence[Profile]:
        """Those of these profiles that are there, merged and disabled ones too, ordered by id."""

    async def classes(self, tenant: TenantId, *, counted: bool = True) -> Sequence[PeopleClass]:
        """Every active profile is in exactly one class. Where they are not `counted`, it takes no longer for a million
        people than for ten."""

    async def of_classes(
        self, tenant: TenantId, keys: Sequence[str], *, after: ProfileId | None, limit: int
    ) -> Sequence[Profile]:
        """The next active profiles in any of these classes, ordered by id."""

    async def count_people(self, tenant: TenantId) -> int:
        """Unmerged, enabled profiles of kind "person"."""

    async def add_profile(self, profile: Profile) -> None:
        """A new profile with its emails and roles. Raises Conflict where an email is held by another profile."""

    async def change_profile(
        self,
        tenant: TenantId,
        profile: ProfileId,
        *,
        name: str | None,
        emails: Sequence[str] | None,
        disabled: bool | None,
        told: Sequence[Notice] = (),
    ) -> Profile | None:
        """Changes what is not None; None where there is no such profile. Raises Conflict for a held email."""

    async def set_roles(
        self, tenant: TenantId, profile: ProfileId, roles: Sequence[RoleAssignment], *, told: Sequence[Notice] = ()
    ) -> Profile | None:
        """Replaces the roles given by hand."""

    async def link(
        self,
        tenant: TenantId,
        identity: Identity,
        now: datetime,
        *,
        by: ProfileId | None = None,
        told: Sequence[Notice] = (),
    ) -> None:
        """Links a principal, since `by` asked for it; linking it again to the same profile is a no-op. Raises Conflict
        if it is another's."""

    async def unlink(self, tenant: TenantId, identity: Identity, *, told: Sequence[Notice] = ()) -> bool:
        """Whether this exact link was there and is gone."""

    async def identities(self, tenant: TenantId, profile: ProfileId) -> Sequence[Identity]:
        """The principals linked to a profile."""

    async def service_credentials(self, tenant: TenantId, now: datetime) -> Sequence[ServiceCredential]:
        """Each pair of a service and who made a way in to it, a disabled service too: it may be switched on again."""

    async def holding(self, tenant: TenantId, wanted: Collection[str]) -> frozenset[ProfileId]:
        """The unmerged profiles that hold one of these roles by hand, on whatever agent."""

    async def merge(
        self,
        tenant: TenantId,
        retired: ProfileId,
        survivor: ProfileId,
        now: datetime,
        *,
        told: Sequence[Notice] = (),
    ) -> MergeReport | None:
        """One transaction: `retired` points to `survivor`, and so do those that pointed to it; identities, emails and
        sessions move; tokens are revoked, and sign-ins in browsers and roles end. The same merge again changes nothing
        and gives the same report. None where one of them is not there. Raises Conflict for two that can't be one
        (`identity/merging.py`)."""

    async def preview_merge(self, tenant: TenantId, retired: ProfileId, survivor: ProfileId) -> MergeReport | None:
        """What `merge` would answer, and raises what it would raise; nothing is changed."""

    async def token_by_hash(self, digest: bytes) -> AccessToken | None:
        """The token stored under this hash, a revoked or expired one too."""

    async def add_token(self, token: AccessToken, digest: bytes, *, told: Sequence[Notice] = ()) -> None:
        """Stores a new token under the hash of its secret."""

    async def tokens(self, tenant: TenantId, profile: ProfileId) -> Sequence[AccessToken]:
        """A profile's tokens, newest first, without those revoked."""

    async def revoke_token(
        self, tenant: TenantId, profile: ProfileId, token: str, now: datetime, *, told: Sequence[Notice] = ()
    ) -> bool:
        """Whether this profile had such an unrevoked token; it is revoked now."""

    async def touch_tokens(self, used: Mapping[str, datetime]) -> None:
        """Writes the last use of each token id; never moves one back. Does not raise the epoch."""


class SignIns(Protocol):
    """The browsers that people are signed in with."""

    async def add(self, sign_in: SignIn, digest: bytes, *, instead_of: bytes | None) -> None:
        """Stores a sign-in under the digest of its cookie; the one under `instead_of`, of the same browser, ends.

        The oldest of a profile that has as many as one may have end too. Raises Conflict where the profile is gone.
        """

    async def by_digest(self, digest: bytes) -> SignIn | None:
        """The sign-in stored under this digest, an ended or expired one too."""

    async def of_profile(self, tenant: TenantId, profile: ProfileId) -> Sequence[SignIn]:
        """A profile's sign-ins, newest first, without those ended."""

    async def end(self, tenant: TenantId, profile: ProfileId, sign_in: str, now: datetime) -> bool:
        """Whether this profile had such a sign-in that was not ended; it is ended now, and the epoch rises."""

    async def touch(self, seen: Mapping[str, datetime]) -> None:
        """Writes when each sign-in was last seen; never moves one back. Does not raise the epoch."""


class Notices(Protocol):
    """What people are told of changes by somebody with more rights."""

    async def of_profile(self, tenant: TenantId, profile: ProfileId) -> Sequence[Notice]:
        """All that are kept for a person, newest first: the newest hundred, of a year."""

    async def count(self, tenant: TenantId, profile: ProfileId) -> int:
        """How many those are."""


class Agents(Protocol):
    """The configured agents of a tenant."""

    async def all(self, tenant: TenantId) -> Sequence[Agent]:
        """Every agent, by name."""

    async def find(self, tenant: TenantId, name: AgentName) -> Agent | None:
        """One agent."""

    async def add(self, agent: Agent, now: datetime) -> None:
        """A new agent. Raises Conflict where the name or the folder is taken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionFilter:
    """How a caller narrows a list; it can only narrow what the scope allows."""

    agent: AgentName | None = None
    kinds: frozenset[Kind] | None = None
    relations: frozenset[Relation] | None = None
    title: str | None = None  # a part of the title, case-folded
    active_since: datetime | None = None
    archived: bool | None = None  # None: both


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionTally:
    """How many private or shared sessions an agent has (`*`: all of them), and the keys of the newest."""

    agent: AgentName
    private: bool
    sessions: int
    newest: tuple[str, ...]


class Sessions(Protocol):
    """Sessions, their lineage and who takes part.

    `expected` is what a permit was decided by: where owner, incarnation, archive or participants are others by the time
    of the write, nothing is written and the answer is that of a session that is gone. None expects nothing.
    """

    async def create(self, session: Session, participants: Sequence[ProfileId]) -> SessionFacts:
        """Stores a new session; participants (of a root only) join now. Raises Conflict where the key is taken."""

    async def find(self, tenant: TenantId, reference: str) -> SessionFacts | None:
        """By key or `ses_…` id, byte for byte; with the participants of its root."""

    async def list(
        self, tenant: TenantId, scope: Scope, narrow: SessionFilter, *, limit: int, cursor: str | None
    ) -> Page[Session]:
        """The sessions in `scope`, newest first by id, as one SQL statement (design section 7)."""

    async def tally(
        self, tenant: TenantId, kinds: Sequence[tuple[AgentName, bool]], *, most: int, newest: int
    ) -> Sequence[SessionTally]:
        """Of each agent (`*`: all) and whether private, how many there are, counted up to `most`, and so many keys.
        Without incognito sessions, which nobody else reaches."""

    async def participants(
        self, tenant: TenantId, roots: Collection[SessionId]
    ) -> Mapping[SessionId, Sequence[Participant]]:
        """Who takes part in each of these roots now."""

    async def set_title(
        self, tenant: TenantId, session: SessionId, title: str | None, *, expected: SessionFacts | None
    ) -> SessionFacts | None:
        """Renames."""

    async def set_participants(
        self,
        tenant: TenantId,
        root: SessionId,
        people: Sequence[ProfileId],
        now: datetime,
        *,
        expected: SessionFacts | None,
        told: Sequence[Notice] = (),
    ) -> SessionFacts | None:
        """Those who stay keep their joining; new ones join now; the rest leave. Raises Conflict without the owner."""

    async def set_title_and_participants(
        self,
        tenant: TenantId,
        root: SessionId,
        title: str | None,
        people: Sequence[ProfileId],
        now: datetime,
        *,
        expected: SessionFacts | None,
        told: Sequence[Notice] = (),
    ) -> SessionFacts | None:
        """Both in one transaction, or neither. Raises Conflict as `set_participants`."""

    async def set_owner(
        self,
        tenant: TenantId,
        root: SessionId,
        owner: ProfileId,
        now: datetime,
        *,
        expected: SessionFacts | None,
        told: Sequence[Notice] = (),
    ) -> SessionFacts | None:
        """Reassigns the whole tree; a new owner who did not take part joins now."""

    async def takes_part(self, tenant: TenantId, profile: ProfileId) -> bool:
        """Whether a profile owns a listed session or takes part in one."""

    async def agents_of_tree(self, tenant: TenantId, root: SessionId) -> Sequence[AgentName]:
        """The agents of a root and all that it spawned, each once."""

    async def join(self, tenant: TenantId, root: SessionId, person: ProfileId, now: datetime) -> SessionFacts | None:
        """One more who takes part; who does already keeps their joining. None where there is no such root."""

    async def leave(
        self, tenant: TenantId, root: SessionId, people: Collection[ProfileId], heir: ProfileId, now: datetime
    ) -> SessionFacts | None:
        """These take part no longer; what one of them owned is `heir`'s. None where there is no such root."""

    async def archive(
        self, tenant: TenantId, session: SessionId, now: datetime, *, expected: SessionFacts | None
    ) -> SessionFacts | None:
        """Archives; repeating it keeps the first time."""

    async def reset(
        self, tenant: TenantId, session: SessionId, *, expected: SessionFacts | None
    ) -> SessionFacts | None:
        """Starts the next incarnation, which is not archived and has no messages yet; id, key and lineage stay."""

    async def delete(self, tenant: TenantId, session: SessionId, *, expected: SessionFacts | None) -> int:
        """Removes the session, its descendants and their transcripts; how many sessions went."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageDraft:
    """A message before the store has numbered it."""

    id: str
    session: SessionId
    incarnation: int
    role: str
    name: str | None
    content: str
    sender: ProfileId | None
    member: ProfileId | None  # who owned or took part when it was authorised, and must still; None: nobody has to
    created_at: datetime


class Transcripts(Protocol):
    """Messages, in order."""

    async def append(self, tenant: TenantId, draft: MessageDraft) -> Message | None:
        """Durable when it returns, and the session's `last_message_at` with it. None where the session is gone,
        archived, or another incarnation by now, or where a draft is from a member who no longer is one."""

    async def history(
        self, tenant: TenantId, session: SessionId, *, incarnation: int, after: int, limit: int, cursor: str | None
    ) -> Page[Message] | None:
        """Messages numbered above `after`, oldest first; None where the session is gone or another incarnation by now
        (checked in the same transaction, so a read that began before a reset fails closed)."""

    async def latest(
        self, tenant: TenantId, session: SessionId, *, incarnation: int, after: int, limit: int
    ) -> Sequence[Message] | None:
        """The newest `limit` messages above `after`, oldest of them first; None as in `history`."""

    async def search(
        self, tenant: TenantId, scope: Scope, query: str, *, session: SessionId | None, limit: int
    ) -> Sequence[tuple[Session, Message]]:
        """Messages in scope that hold every word of `query` (case-folded), newest first, each participant only from
        their joining on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyVersion:
    """A published policy document."""

    tenant: TenantId
    version: int
    text: str
    comment: str
    author: str
    published_at: datetime
    rolled_back_to: int | None = None


def overtaken(version: int) -> Conflict:
    """What whoever publishes on top of another version than the one in force is told."""
    detail = f"The policy is at version {version} by now. Look at what changed, and publish on top of that."
    return Conflict(detail, facts={"version": version})


class Policies(Protocol):
    """Published policy documents of a tenant; versions only rise."""

    async def current(self, tenant: TenantId) -> tuple[PolicyVersion, int] | None:
        """The version in force and the epoch, read together."""

    async def version(self, tenant: TenantId, version: int) -> PolicyVersion | None:
        """One version."""

    async def history(self, tenant: TenantId, *, limit: int, cursor: str | None) -> Page[PolicyVersion]:
        """Newest first."""

    async def publish(
        self,
        tenant: TenantId,
        text: str,
        *,
        base_version: int,
        comment: str,
        author: str,
        now: datetime,
        rolled_back_to: int | None = None,
        told: Sequence[Notice] = (),
    ) -> tuple[PolicyVersion, int]:
        """A new version and the new epoch. Raises Conflict with `facts["version"]` where the base is not in force."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditFilter:
    """What a reader of the audit asks for; None does not narrow."""

    kind: str | None = None
    person: str | None = None
    agent: str | None = None
    session: str | None = None
    action: str | None = None
    effect: str | None = None
    code: str | None = None
    decision: str | None = None
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRecord:
    """An audit record in its place in the tenant's chain."""

    sequence: int
    record: AuditRecord
    hash: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainReport:
    """What `verify` found: how many records were read, and each fault in a sentence with its sequence number."""

    records: int
    faults: tuple[str, ...]


class Recorded(NamedTuple):
    """What a decision was made of, as the audit has it: words, and whoever reads them checks them."""

    profile: str | None
    subjects: frozenset[str]
    agent: str | None
    resource: str | None
    relation: str | None
    whose: str | None
    chat: str | None
    action: str | None
    operation: str
    code: str
    session: str | None
    period: int = 0  # how many of the moments that were asked for had come


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeBy:
    """Narrows recorded decisions to those that one version of the policy made, and tells them apart by time."""

    version: int
    until: datetime | None  # when the next one was published: older records don't say which version made them
    moments: Sequence[datetime] = ()  # in order


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedDecisions:
    """Each different decision and how often it was made. Of very many only a share; 1 where all were read."""

    counts: dict[Recorded, int]
    seen: int
    share: float
    unreadable: int  # of a body that somebody broke
    about_others: int  # answers to a question about somebody, who did nothing


class Audit(Protocol):
    """The append-only, keyed hash chain of each tenant."""

    async def append(self, records: Sequence[AuditRecord]) -> None:
        """Durable when it returns; records of several tenants each go to their own chain, in order."""

    async def read(
        self, tenant: TenantId, narrow: AuditFilter, *, limit: int, cursor: str | None, ascending: bool = False
    ) -> Page[StoredRecord]:
        """Newest first, or oldest first."""

    async def decisions(
        self, tenant: TenantId, since: datetime, *, most: int, made_by: MadeBy | None = None
    ) -> RecordedDecisions:
        """What was decided from `since` on, by any version or by one; of more than `most` a fair sample."""

    async def verify(self, tenant: TenantId) -> ChainReport:
        """Reads the whole chain and the signed checkpoint outside the database."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteRecord:
    """Where a note came from, kept outside its text (design section 9)."""

    id: str
    tenant: TenantId
    agent: AgentName
    path: str
    sha256: str  # of the appended text
    provenance: str  # "person", "agent", "untrusted", "system"
    author: ProfileId
    session: SessionId | None
    created_at: datetime


class EpochSignals(Protocol):
    """How replicas tell each other that an epoch has risen. A signal may be lost, late or wrong: the store is asked."""

    def follow(self, announced: Callable[[TenantId, int], None], heard: Callable[[float], None]) -> None:
        """Calls `announced` with what any replica announces, and `heard` with when each answered question was asked."""

    def announce(self, tenant: TenantId, epoch: int) -> None:
        """Tells every replica soon; never waits and never fails."""


class TaintedTurns(Protocol):
    """Turns whose runtime said that they have read untrusted text (design section 9)."""

    async def add(self, tenant: TenantId, turn: str, until: datetime, now: datetime) -> None:
        """Durable when it returns; adding one again is a no-op. What has ended by `now` is forgotten."""

    async def holds(self, tenant: TenantId, turn: str) -> bool:
        """Whether this turn was added, here or by another process."""


class Notes(Protocol):
    """Provenance of notes."""

    async def add(self, note: NoteRecord) -> None:
        """Stores it before the note is written; a note without a record is `untrusted`."""

    async def of_path(self, tenant: TenantId, agent: AgentName, path: str) -> Sequence[NoteRecord]:
        """The records of one file, oldest first."""


class EventState(StrEnum):
    """What is known of a channel's event when it comes."""

    TAKEN = "taken"  # it is this caller's to handle now
    BUSY = "busy"  # somebody is handling it
    DONE = "done"  # it was handled


class ChannelEvents(Protocol):
    """Which events of a channel were handled: a replayed one does nothing, one that was never finished is handled."""

    async def take(
        self,
        tenant: TenantId,
        channel: str,
        account: str,
        event: str,
        *,
        now: datetime,
        lease: timedelta,
        keep: timedelta,
    ) -> EventState:
        """Takes the event for `lease`, unless it is done or taken. What is older than `keep` is forgotten."""

    async def finish(self, tenant: TenantId, channel: str, account: str, event: str) -> None:
        """It was handled; durable on return."""

    async def release(self, tenant: TenantId, channel: str, account: str, event: str) -> None:
        """It was not handled: whoever sends it again has it handled."""
