"""The nouns of the gateway (design section 2), as frozen values that import nothing of ours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple, NewType

TenantId = NewType("TenantId", str)
ProfileId = NewType("ProfileId", str)  # prf_…
SessionId = NewType("SessionId", str)  # ses_…
AgentName = NewType("AgentName", str)  # flight

ANY_AGENT = AgentName("*")


# ── words of the policy ──────────────────────────────────────────────────────────────────────────────────────────────


class Kind(StrEnum):
    """What a session is. Stored as given by the creating call, never parsed from a key."""

    DIRECT = "direct"
    GROUP = "group"
    CHANNEL = "channel"
    SUBAGENT = "subagent"
    CRON = "cron"


class Relation(StrEnum):
    """How the target session stands to the requester's."""

    SELF = "self"
    CHILD = "child"
    CHILD_CROSS = "child_cross"
    SAME_AGENT = "same_agent"
    OTHER_AGENT = "other_agent"


class Whose(StrEnum):
    """Whether the requester owns the target's root, takes part in it, or neither."""

    OWN = "own"
    SHARED = "shared"
    OTHER = "other"


class Chat(StrEnum):
    """Where a request is made from; outside any session counts as private."""

    PRIVATE = "private"
    GROUP = "group"


class Resource(StrEnum):
    """What a request wants to reach; the closed list of design section 7."""

    SESSION_PRIVATE = "session/private"
    SESSION_SHARED = "session/shared"
    MEMORY_RULES = "memory/rules"
    MEMORY_SHARED = "memory/shared"
    MEMORY_LONGTERM = "memory/longterm"
    MEMORY_DAILY = "memory/daily"
    MEMORY_DREAMS = "memory/dreams"
    PERSONAL_INSTRUCTIONS = "memory/personal/instructions"
    PERSONAL_LONGTERM = "memory/personal/longterm"
    PERSONAL_DAILY = "memory/personal/daily"
    ADMIN_POLICY = "admin/policy"
    ADMIN_PEOPLE = "admin/people"
    ADMIN_AGENTS = "admin/agents"
    ADMIN_AUDIT = "admin/audit"
    ADMIN_DREAMING = "admin/dreaming"
    ADMIN_TENANTS = "admin/tenants"
    GATEWAY = "gateway"


class Action(StrEnum):
    """What a request wants to do; the closed list of design section 7."""

    CREATE = "create"
    ENTER = "enter"
    LIST = "list"
    HISTORY = "history"
    SEARCH = "search"
    STATUS = "status"
    SEND = "send"
    SPAWN = "spawn"
    POST = "post"
    PARTICIPANTS = "participants"
    OWNER = "owner"
    ARCHIVE = "archive"
    RESET = "reset"
    DELETE = "delete"
    LOAD = "load"
    GET = "get"
    APPEND = "append"
    EDIT = "edit"
    REMEMBER = "remember"
    FORGET = "forget"
    PROPOSE = "propose"
    PROMOTE = "promote"
    VOUCH = "vouch"
    READ = "read"
    PUBLISH = "publish"
    EXPORT = "export"
    ERASE = "erase"
    MERGE = "merge"
    IMPERSONATE = "impersonate"
    DECIDE = "decide"
    CONNECT = "connect"


# ── who ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleAssignment:
    """A role held on one agent, or on every agent ("*")."""

    role: str  # "member", without the "role:" of a policy row
    agent: AgentName


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnBinding:
    """The one turn that a turn token is good for: a session as it was when the turn began."""

    turn: str  # trn_…
    session: SessionId
    incarnation: int
    agent: AgentName
    kind: str | None = None  # what the runtime said that this turn is; it narrows its tools as it narrowed its context


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """Who calls, as the credential says: (issuer, subject), and what that credential carries."""

    tenant: TenantId
    issuer: str
    subject: str
    credential: str  # "access_token", "oidc", "operator", "turn_token", …: the kind
    scopes: frozenset[str]  # areas of resources: "session", "memory", "admin", "gateway", or "*"
    expires_at: datetime | None = None
    credential_id: str | None = None  # tok_… of an access token
    email: str | None = None  # only one that the issuer verified
    service: bool = False  # a client that got the token for itself, not for a person (RFC 9068 section 2.2)
    roles: tuple[RoleAssignment, ...] = ()  # from the issuer's groups: they last as long as this credential
    turn: TurnBinding | None = None  # only a turn token has one
    place: SessionId | None = None  # the shared session that a sender of a channel speaks in
    beside: tuple[Principal, ...] = ()  # other credentials of the same request
    csrf_token: str | None = field(default=None, repr=False)  # what a write from this browser has to show besides

    @property
    def called(self) -> str:
        """What the audit calls it: the credential by its id, or by whom it names."""
        return f"{self.credential}:{self.credential_id or f'{self.issuer}#{self.subject}'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """The canonical person (or service) of a tenant; or a guest, who is stored nowhere."""

    id: ProfileId
    tenant: TenantId
    name: str
    kind: str  # "person", "service" or "guest"
    emails: tuple[str, ...] = ()
    roles: tuple[RoleAssignment, ...] = ()
    claimed: tuple[
        RoleAssignment, ...
    ] = ()  # those of `roles` that only a claim of this credential gives: never stored
    merged_into: ProfileId | None = None
    disabled: bool = False
    created_at: datetime | None = None
    aliases: tuple[ProfileId, ...] = ()  # retired profiles that were merged into this one
    _subjects: dict[AgentName, frozenset[str]] = field(default_factory=dict, init=False, repr=False, compare=False)

    def subjects_on(self, agent: AgentName) -> frozenset[str]:
        """The profile and its aliases, everybody, and the roles held on `agent`; worked out once.

        A row that names a merged profile holds for its survivor (design section 5, "merge").
        """
        known = self._subjects.get(agent)
        if known is None:
            roles = {f"role:{held.role}" for held in self.roles if held.agent in (agent, ANY_AGENT)}
            people = {f"user:{one}" for one in (self.id, *self.aliases)}
            known = self._subjects[agent] = frozenset({"*"} | people | roles)
        return known


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """A principal that is linked to a profile."""

    issuer: str
    subject: str
    profile: ProfileId


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessToken:
    """A personal access token as it is stored: its hash, never its secret."""

    id: str  # tok_…
    tenant: TenantId
    profile: ProfileId
    name: str
    scopes: frozenset[str]
    created_at: datetime
    expires_at: datetime
    last_used_at: datetime | None = None
    revoked_at: datetime | None = None
    made_by: ProfileId | None = None  # None: it is not known any more


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceCredential:
    """A token of a service that is in force, or a sign-in that is linked to it: who has it can call as that service."""

    service: ProfileId
    made_by: ProfileId | None  # None: it is not known any more


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """What a person is told: that somebody changed what they may do, or how they sign in."""

    id: str  # ntc_…
    tenant: TenantId
    profile: ProfileId
    at: datetime
    code: str  # "roles", "policy", …: what was changed
    by: ProfileId
    about: str  # a few words for the code: the new roles, the version


@dataclass(frozen=True, slots=True, kw_only=True)
class SignIn:
    """A browser that somebody signed in with, as it is stored: never the value of its cookie."""

    id: str  # sgn_…
    tenant: TenantId
    profile: ProfileId
    issuer: str
    subject: str
    user_agent: str  # shortened; empty where the browser says none
    created_at: datetime
    last_seen_at: datetime  # as far as it is written: a minute behind at most
    expires_at: datetime
    email: str | None = None  # only one that the issuer verified
    roles: tuple[RoleAssignment, ...] = ()  # from the issuer's groups
    id_token: str | None = field(default=None, repr=False)
    revoked_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tenant:
    """An organisation. `epoch` rises with every change of policy, roles, merges and revocations."""

    id: TenantId
    epoch: int
    demo: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """A configured agent of a tenant, with one workspace folder below the tenant's root."""

    tenant: TenantId
    name: AgentName
    workspace: str  # the folder's name under the tenant's root
    title: str
    timezone: str  # IANA name; says what "today" is for daily notes


@dataclass(frozen=True, slots=True, kw_only=True)
class Requester:
    """The profile whose request this is, with everything that a decision needs to know of them."""

    tenant: TenantId
    profile: Profile
    principal: Principal
    epoch: int

    def subjects_on(self, agent: AgentName) -> frozenset[str]:
        """The subject set of a decision on `agent`, not yet closed under `g` (design section 7)."""
        return self.profile.subjects_on(agent)


# ── sessions ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One conversation. `root_*` are those of its tree's root, which decide whose it is (design section 6)."""

    tenant: TenantId
    id: SessionId
    key: str
    agent: AgentName
    kind: Kind
    private: bool
    title: str | None
    owner: ProfileId  # of the root
    creator: ProfileId
    parent: SessionId | None
    parent_key: str | None
    root: SessionId
    root_agent: AgentName
    path: str  # ids from the root to this one, each followed by "/": the whole chain, so a prefix is an ancestor
    incarnation: int  # a reset starts the next one; the id stays
    incognito: bool
    sandboxed: bool
    created_at: datetime
    last_message_at: datetime | None
    archived_at: datetime | None

    def descends_from(self, other: Session) -> bool:
        """Whether this is a child of `other`, at any depth."""
        return self.id != other.id and self.path.startswith(other.path)


ABOVE_ALL_MESSAGES = 2**63 - 1  # the largest number that a store counts with: whoever reads after it reads nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class Participant:
    """Somebody who takes part in a root session; they read messages numbered above `joined_after`."""

    profile: ProfileId
    joined_after: int
    joined_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionFacts:
    """A session and who takes part in its tree's root: all that a decision about it needs."""

    session: Session
    participants: tuple[Participant, ...]

    def participant(self, profile: ProfileId) -> Participant | None:
        """The row of `profile`, or None where they don't take part."""
        return next((one for one in self.participants if one.profile == profile), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message. `number` rises over the whole tenant, so that "from their joining on" is exact."""

    id: str  # msg_…
    number: int
    session: SessionId
    incarnation: int
    role: str  # "user", "assistant", "system", "tool"
    name: str | None
    content: str
    sender: ProfileId | None
    created_at: datetime


class Origin(NamedTuple):
    """Where a request is made from: inside a session, or outside any (`session` is None)."""

    session: Session | None
    chat: Chat
    kind: Kind | None  # of this turn; the stored kind may only be narrowed by it
    tainted: bool = False  # the turn has read untrusted text from the network (design section 9)


OUTSIDE = Origin(session=None, chat=Chat.PRIVATE, kind=None)


# ── decisions ────────────────────────────────────────────────────────────────────────────────────────────────────────


class Question(NamedTuple):
    """What Casbin is asked, once the facts are known (design section 7).

    A tuple, like `Decision`: several are made for every request, and a frozen dataclass takes three times as long.
    """

    agent: AgentName
    resource: Resource
    relation: Relation
    whose: Whose
    chat: Chat
    action: Action


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a snapshot answers: allow or deny, the reason code, and the row that decided, as "line N: text"."""

    allowed: bool
    code: str
    rule: str | None


class Decision(NamedTuple):
    """A verdict with the question it answers, the epoch it was made in and its id; what the audit keeps."""

    id: str  # dec_…
    question: Question
    verdict: Verdict
    subjects: frozenset[str]
    target: str | None  # a session key or a workspace path
    epoch: int
    policy_version: int
    session: str | None = None  # the key, where the target is a session that is there


@dataclass(frozen=True, slots=True)
class Scope:
    """For a list or a search: the (agent, resource, relation, whose) that an action is allowed on, from one origin."""

    requester: ProfileId
    origin: Origin
    cells: frozenset[tuple[AgentName, Resource, Relation, Whose]]


# ── context ──────────────────────────────────────────────────────────────────────────────────────────────────────────


class FileKind(StrEnum):
    """What a file is to a turn: the `kind` of a manifest entry."""

    RULES = "rules"
    SHARED = "shared"
    PERSONAL = "personal"
    LONGTERM = "longterm"
    DAILY = "daily"
    PERSONAL_LONGTERM = "personal_longterm"
    PERSONAL_DAILY = "personal_daily"


class Omission(StrEnum):
    """Why a candidate file is not in the context: the `reason` of a manifest entry."""

    GROUP_SESSION = "group_session"
    NOT_PERMITTED = "not_permitted"
    MISSING = "missing"
    TOO_LARGE = "too_large"
    SINGLE_PERSON_TENANT = "single_person_tenant"
    UNSAFE_FILE = "unsafe_file"
    BUDGET = "budget"
    SESSION_KIND = "session_kind"


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestEntry:
    """One candidate file of a turn. What is out carries a reason and neither hash nor size."""

    path: str
    kind: FileKind
    included: bool
    reason: Omission | None
    sha256: str | None
    units: int | None  # UTF-16 code units of the whole file
    truncated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """The assembled text of a turn, and what went in and what stayed out."""

    text: str
    manifest: tuple[ManifestEntry, ...]
    warnings: tuple[str, ...] = ()


class AuditRecord(NamedTuple):
    """One line of the audit. `kind` is "access" (a request) or "decision" (an answer of the policy).

    A tuple, since every request makes several. Its order is that of the bodies on disk: a new field goes to the end.
    """

    at: datetime
    kind: str
    tenant: TenantId
    request: str  # req_…
    surface: str  # "rest", "cli"
    operation: str  # "sessions.history"
    effect: str  # "allow", "deny", "error"
    code: str
    epoch: int
    profile: str | None = None
    principal: str | None = None
    agent: str | None = None
    session: str | None = None
    action: str | None = None
    resource: str | None = None
    relation: str | None = None
    whose: str | None = None
    chat: str | None = None
    subjects: tuple[str, ...] = ()
    target: str | None = None
    rule: str | None = None
    decision: str | None = None
    details: Mapping[str, object] = {}
    policy_version: int | None = None  # of the document that a decision was made by; older records don't say
