"""What callers see: the objects of the interface, and how ours become them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import (
    Any,
    NotRequired,  # pydantic reads this one on Python 3.11
    TypeVar,
)

from typing_extensions import TypedDict

from gateway.keys import channel_account
from gateway.model import (
    AccessToken,
    Agent,
    Identity,
    Message,
    Principal,
    Profile,
    RoleAssignment,
    SessionFacts,
)
from gateway.operations.channel_turns import ChannelTurn
from gateway.operations.context import SessionContext
from gateway.operations.me import Myself, MySignIn
from gateway.operations.people_arguments import NewToken, Person
from gateway.operations.policy import InForce, Published
from gateway.ports import ChainReport, MergeReport, Page, PolicyVersion, StoredRecord
from gateway.tools.registry import Tool
from gateway.web.api.shapes_ends import EndShape, ends
from gateway.workspace.personal import INSTRUCTIONS_LIMIT, Instructions

ItemT = TypeVar("ItemT")


def time(at: datetime | None) -> str | None:
    """RFC 3339, in UTC."""
    return at.isoformat().replace("+00:00", "Z") if at is not None else None


def page(found: Page[ItemT], shape: Callable[[ItemT], Any]) -> dict[str, Any]:
    """`{"items": […], "next_cursor": …}`."""
    return {"items": [shape(one) for one in found.items], "next_cursor": found.next_cursor}


class RoleShape(TypedDict):
    """A role, on one agent or on all ("*")."""

    role: str
    agent: str


def roles(held: Iterable[RoleAssignment]) -> list[RoleShape]:
    """Roles."""
    return [{"role": one.role, "agent": one.agent} for one in held]


class ProfileShape(TypedDict):
    """A person or a service."""

    id: str
    name: str
    kind: str
    emails: list[str]
    roles: list[RoleShape]
    disabled: bool
    created_at: str | None


def profile(one: Profile) -> ProfileShape:
    """A profile as an admin sees it."""
    return {
        "id": one.id,
        "name": one.name,
        "kind": one.kind,
        "emails": list(one.emails),
        "roles": roles(one.roles),
        "disabled": one.disabled,
        "created_at": time(one.created_at),
    }


class IdentityShape(TypedDict):
    """A sign-in that is linked to a profile."""

    issuer: str
    subject: str
    channel: NotRequired[str]
    account: NotRequired[str]
    sender: NotRequired[str]


def identity(one: Identity) -> IdentityShape:
    """A sign-in; of a sender of a channel also what it is linked by."""
    found = channel_account(one.issuer)
    shape: IdentityShape = {"issuer": one.issuer, "subject": one.subject}
    if found is not None:
        shape |= {"channel": found[0], "account": found[1], "sender": one.subject}
    return shape


class PersonShape(ProfileShape):
    """A profile with its sign-ins."""

    identities: list[IdentityShape]


def person(one: Person) -> PersonShape:
    """A profile with its sign-ins."""
    return {**profile(one.profile), "identities": [identity(each) for each in one.identities]}


class MovedSessionsShape(TypedDict):
    """What a merge does to sessions, without a word that anybody wrote in one."""

    owned: int
    shared: int
    private: list[str]
    groups_of_both: list[str]


class MergeShape(TypedDict):
    """What a merge moved and ended, or would."""

    retired: str
    survivor: str
    preview: bool
    merged_at: str | None
    identities: list[IdentityShape]
    emails: list[str]
    aliases: list[str]
    tokens_revoked: list[str]
    sign_ins_ended: list[str]
    roles_ended: list[RoleShape]
    sessions: MovedSessionsShape


def merge(one: MergeReport) -> MergeShape:
    """A merge, or its preview."""
    return {
        "retired": one.retired,
        "survivor": one.survivor,
        "preview": one.merged_at is None,
        "merged_at": time(one.merged_at),
        "identities": [identity(each) for each in one.identities],
        "emails": list(one.emails),
        "aliases": list(one.aliases),
        "tokens_revoked": list(one.tokens),
        "sign_ins_ended": list(one.sign_ins),
        "roles_ended": roles(one.roles_ended),
        "sessions": {
            "owned": one.sessions_owned,
            "shared": one.sessions_shared,
            "private": list(one.private_sessions),
            "groups_of_both": list(one.groups_of_both),
        },
    }


class MyRole(RoleShape):
    """A role, and where it is from: `assigned` by hand, or a `claim` of this credential, with which it ends."""

    source: str


class MyProfile(TypedDict):
    """Oneself."""

    id: str
    name: str
    emails: list[str]
    roles: list[MyRole]


class CredentialShape(TypedDict):
    """What one signed in with."""

    kind: str
    expires_at: str | None
    csrf_token: NotRequired[str]


class MeShape(TypedDict):
    """`GET /v1/me`."""

    profile: MyProfile
    tenant: str
    credential: CredentialShape
    notices: int


def me(one: Myself) -> MeShape:
    """Who the caller is."""
    asking, mine = one.requester, one.requester.profile
    return {
        "profile": {"id": mine.id, "name": mine.name, "emails": list(mine.emails), "roles": _my_roles(mine)},
        "tenant": asking.tenant,
        "credential": _credential(asking.principal),
        "notices": one.notices,
    }


def _credential(one: Principal) -> CredentialShape:
    """What one came with; a browser is told what its writes have to show."""
    shown: CredentialShape = {"kind": one.credential, "expires_at": time(one.expires_at)}
    token = next((each.csrf_token for each in (one, *one.beside) if each.csrf_token is not None), None)
    return shown if token is None else {**shown, "csrf_token": token}


def _my_roles(mine: Profile) -> list[MyRole]:
    return [
        {"role": one.role, "agent": one.agent, "source": "claim" if one in mine.claimed else "assigned"}
        for one in mine.roles
    ]


class AgentShape(TypedDict):
    """An agent."""

    id: str
    name: str
    workspace: str
    timezone: str


def agent(one: Agent) -> AgentShape:
    """An agent; `id` is what paths and keys call it."""
    return {"id": one.name, "name": one.title, "workspace": one.workspace, "timezone": one.timezone}


class ToolShape(TypedDict):
    """A tool that the caller's roles include."""

    name: str
    description: str
    input_schema: dict[str, Any]
    action: str
    actions: list[str]
    resource: str
    resources: list[str]


def tool(one: Tool) -> ToolShape:
    """A tool, with what the policy is asked before it runs."""
    actions = list(dict.fromkeys(str(operation.action) for operation in one.operations))
    resources = list(dict.fromkeys(str(resource) for operation in one.operations for resource in operation.family))
    return {
        "name": one.name,
        "description": one.description,
        "input_schema": dict(one.input_schema),
        "action": actions[0],
        "actions": actions,
        "resource": resources[0],
        "resources": resources,
    }


class SessionShape(TypedDict):
    """A session."""

    key: str
    id: str
    agent: str
    kind: str
    private: bool
    title: str | None
    owner: str
    creator: str
    parent: str | None
    participants: list[str]
    created_at: str | None
    last_message_at: str | None
    archived: bool
    incognito: bool
    sandboxed: bool


def session(facts: SessionFacts) -> SessionShape:
    """A session that the caller may see."""
    one = facts.session
    return {
        "key": one.key,
        "id": one.id,
        "agent": one.agent,
        "kind": one.kind,
        "private": one.private,
        "title": one.title,
        "owner": one.owner,
        "creator": one.creator,
        "parent": one.parent_key,
        "participants": [participant.profile for participant in facts.participants],
        "created_at": time(one.created_at),
        "last_message_at": time(one.last_message_at),
        "archived": one.archived_at is not None,
        "incognito": one.incognito,
        "sandboxed": one.sandboxed,
    }


class MessageShape(TypedDict):
    """A message."""

    id: str
    role: str
    name: str | None
    content: str
    created_at: str | None
    sender: str | None


def message(one: Message) -> MessageShape:
    """A message."""
    return {
        "id": one.id,
        "role": one.role,
        "name": one.name,
        "content": one.content,
        "created_at": time(one.created_at),
        "sender": one.sender,
    }


class ManifestShape(TypedDict):
    """One candidate file of a turn."""

    path: str
    kind: str
    included: bool
    reason: str | None
    sha256: str | None
    units: int | None
    truncated: bool


class ContextShape(TypedDict):
    """`POST /v1/sessions/{s}/context`."""

    session: str
    text: str
    manifest: list[ManifestShape]
    warnings: list[str]
    epoch: int
    turn_token: NotRequired[str]  # where one was asked for
    turn_token_expires_at: NotRequired[str | None]


def context(made: SessionContext) -> ContextShape:
    """An assembled context, and the turn token where one was asked for."""
    manifest: list[ManifestShape] = [
        {
            "path": entry.path,
            "kind": entry.kind,
            "included": entry.included,
            "reason": entry.reason,
            "sha256": entry.sha256,
            "units": entry.units,
            "truncated": entry.truncated,
        }
        for entry in made.context.manifest
    ]
    shape: ContextShape = {
        "session": made.session,
        "text": made.context.text,
        "manifest": manifest,
        "warnings": list(made.context.warnings),
        "epoch": made.epoch,
    }
    if made.turn_token is not None:
        shape["turn_token"] = made.turn_token.secret
        shape["turn_token_expires_at"] = time(made.turn_token.expires_at)
    return shape


class SessionKey(TypedDict):
    """A session of which the caller may know no more."""

    key: str


class ChannelTurnShape(TypedDict):
    """`POST /v1/connectors/{channel}/turns`."""

    session: SessionShape | SessionKey
    profile: str | None
    context: ContextShape
    turn_token: str | None
    turn_token_expires_at: str | None


def channel_turn(one: ChannelTurn) -> ChannelTurnShape:
    """A sender's turn; a guest has no profile and no token."""
    seen: SessionShape | SessionKey = {"key": one.key} if one.session is None else session(one.session)
    shape = context(one.context)
    return {
        "session": seen,
        "profile": one.profile,
        "turn_token": shape.pop("turn_token", None),
        "turn_token_expires_at": shape.pop("turn_token_expires_at", None),
        "context": shape,
    }


class ToolAnswer(TypedDict):
    """What a tool returned."""

    status: str
    result: Any
    decision: str | None


class InstructionsShape(TypedDict):
    """One's own instructions for an agent."""

    content: str
    sha256: str | None
    units: int
    limit: int


def instructions(one: Instructions) -> InstructionsShape:
    """One's own instructions; `sha256` is null where there are none yet."""
    return {"content": one.content, "sha256": one.sha256, "units": one.units, "limit": INSTRUCTIONS_LIMIT}


class TokenShape(TypedDict):
    """An access token, without its secret."""

    id: str
    name: str
    scopes: list[str]
    created_at: str | None
    expires_at: str | None
    last_used_at: str | None
    secret: NotRequired[str]


def token(one: AccessToken) -> TokenShape:
    """An access token."""
    return {
        "id": one.id,
        "name": one.name,
        "scopes": sorted(one.scopes),
        "created_at": time(one.created_at),
        "expires_at": time(one.expires_at),
        "last_used_at": time(one.last_used_at),
    }


def new_token(one: NewToken) -> TokenShape:
    """A new token with its secret, this once."""
    return {**token(one.token), "secret": one.secret}


class SignInShape(TypedDict):
    """A browser that somebody is signed in with."""

    id: str
    issuer: str
    created_at: str | None
    last_seen_at: str | None
    expires_at: str | None
    user_agent: str
    current: bool


def sign_in(one: MySignIn) -> SignInShape:
    """A browser; `current` is the one that asks."""
    mine = one.sign_in
    return {
        "id": mine.id,
        "issuer": mine.issuer,
        "created_at": time(mine.created_at),
        "last_seen_at": time(mine.last_seen_at),
        "expires_at": time(mine.expires_at),
        "user_agent": mine.user_agent,
        "current": one.current,
    }


class PolicyShape(TypedDict):
    """The document in force, and the rows of it that end within thirty days, the soonest first."""

    version: int
    epoch: int
    text: str
    ends: list[EndShape]


def policy(one: InForce) -> PolicyShape:
    """The document in force."""
    return {"version": one.version.version, "epoch": one.epoch, "text": one.version.text, "ends": ends(one.ends)}


class VersionShape(TypedDict):
    """A published version."""

    version: int
    comment: str
    author: str
    published_at: str | None
    rolled_back_to: int | None
    text: str


def version(one: PolicyVersion) -> VersionShape:
    """A published version."""
    return {
        "version": one.version,
        "comment": one.comment,
        "author": one.author,
        "published_at": time(one.published_at),
        "rolled_back_to": one.rolled_back_to,
        "text": one.text,
    }


class ListedVersionShape(VersionShape):
    """A published version in the history; where it is in force, also when a row of it ends next."""

    next_end: str | None


def listed_version(one: Published) -> ListedVersionShape:
    """A published version in the history."""
    return {**version(one.version), "next_end": time(one.next_end)}


class AuditShape(TypedDict):
    """A line of the audit."""

    id: str
    at: str | None
    kind: str
    tenant: str
    request: str
    operation: str
    profile: str | None
    principal: str | None
    agent: str | None
    session: str | None
    action: str | None
    resource: str | None
    relation: str | None
    whose: str | None
    chat: str | None
    subjects: list[str]
    target: str | None
    effect: str
    code: str
    rule: str | None
    epoch: int
    policy_version: int | None
    decision: str | None
    details: dict[str, Any]
    surface: str
    hash: str


def record(stored: StoredRecord) -> AuditShape:
    """A line of the audit; its id is its place in the chain."""
    one = stored.record
    return {
        "id": str(stored.sequence),
        "at": time(one.at),
        "kind": one.kind,
        "tenant": one.tenant,
        "request": one.request,
        "operation": one.operation,
        "profile": one.profile,
        "principal": one.principal,
        "agent": one.agent,
        "session": one.session,
        "action": one.action,
        "resource": one.resource,
        "relation": one.relation,
        "whose": one.whose,
        "chat": one.chat,
        "subjects": list(one.subjects),
        "target": one.target,
        "effect": one.effect,
        "code": one.code,
        "rule": one.rule,
        "epoch": one.epoch,
        "policy_version": one.policy_version,
        "decision": one.decision,
        "details": dict(one.details),
        "surface": one.surface,
        "hash": stored.hash,
    }


class VerifyShape(TypedDict):
    """What a reading of the whole chain found."""

    records: int
    sound: bool
    faults: list[str]


def report(one: ChainReport) -> VerifyShape:
    """What a reading of the whole chain found."""
    return {"records": one.records, "sound": not one.faults, "faults": list(one.faults)}
