"""Turns settings into a running gateway: the only place that builds objects and hands them to each other."""

from __future__ import annotations

import os
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from http.cookiejar import CookieJar, DefaultCookiePolicy
from pathlib import Path

import httpx2
from starlette.applications import Starlette
from starlette.routing import Route

from gateway import VERSION
from gateway.backends.local.audit_buffer import AuditBuffer
from gateway.backends.local.clock import SystemClock
from gateway.backends.local.epochs import Epochs
from gateway.backends.local.periodically import periodically
from gateway.backends.local.refusals import Kind, Refusals
from gateway.backends.redis.replicas import Replicas
from gateway.backends.sql.acting import on_behalf_of
from gateway.backends.sql.agents import SqlAgents
from gateway.backends.sql.audit import SqlAudit
from gateway.backends.sql.channel_events import SqlChannelEvents
from gateway.backends.sql.checkpoints import audit_key
from gateway.backends.sql.database import Database
from gateway.backends.sql.identities import SqlIdentities
from gateway.backends.sql.notes import SqlNotes
from gateway.backends.sql.notices import SqlNotices
from gateway.backends.sql.policies import SqlPolicies
from gateway.backends.sql.postgres import Limits, PostgresDatabase
from gateway.backends.sql.sessions import SqlSessions
from gateway.backends.sql.sign_ins import SqlSignIns
from gateway.backends.sql.tainted_turns import SqlTaintedTurns
from gateway.backends.sql.tenants import SqlTenants
from gateway.backends.sql.transcripts import SqlTranscripts
from gateway.backends.upstream.deliveries import HttpDeliveries
from gateway.channels_in import channels_in
from gateway.founding import Founder
from gateway.identity.channel_accounts import ChannelAccounts
from gateway.identity.merging import Merging
from gateway.identity.owners import Owners
from gateway.identity.people import People
from gateway.identity.profiles import ProfileResolver
from gateway.identity.sign_ins import BrowserSignIns, OwnSignIns
from gateway.identity.tokens import AccessTokens
from gateway.logs import Loggers
from gateway.operations.agents import AgentOperations
from gateway.operations.asking import Asking
from gateway.operations.audit import AuditOperations
from gateway.operations.catalogue import Catalogue
from gateway.operations.channel_turns import ChannelTurns
from gateway.operations.connectors import ConnectorOperations
from gateway.operations.context import context_operation
from gateway.operations.decision_point import DecisionPoint
from gateway.operations.deliveries import Deliveries
from gateway.operations.explaining import ExplainOperations
from gateway.operations.line import LineWebhooks
from gateway.operations.me import MyOperations
from gateway.operations.my_decisions import MyDecisions
from gateway.operations.page_tokens import PageTokens
from gateway.operations.people import PeopleOperations
from gateway.operations.policy import PolicyOperations
from gateway.operations.population import Population
from gateway.operations.preview import PreviewOperations
from gateway.operations.reach import ReachOperations
from gateway.operations.searches import Searches
from gateway.operations.sessions import SessionOperations
from gateway.operations.what_can import WhatCan
from gateway.operations.who_can import WhoCan
from gateway.pipeline import Pipeline
from gateway.policy.in_force import RightsInForce
from gateway.policy.installed import refuse_old_casbin
from gateway.policy.states import TenantStates
from gateway.ports import Clock
from gateway.raising.identities import HeldIdentities
from gateway.raising.people import PeopleAreWeighed
from gateway.raising.publishing import PublishingIsWeighed
from gateway.raising.rows_in_force import RowsInForce
from gateway.raising.sessions import SessionsAreWeighed
from gateway.sessions.channels import ChannelSessions
from gateway.sessions.conversations import Conversations
from gateway.sessions.directory import SessionDirectory
from gateway.sessions.taints import Taints
from gateway.settings import DatabaseServer, Settings
from gateway.stages.assemble_context import AssembleContext
from gateway.stages.authenticate import Authenticate
from gateway.stages.authorize import AuthorizeStage
from gateway.stages.call_tool import CallTool
from gateway.stages.open_session import OpenSession
from gateway.stages.record_audit import RecordAudit
from gateway.stages.resolve_profile import ResolveProfile
from gateway.tools.memory import MemoryTools
from gateway.tools.personal_instructions import PersonalInstructions
from gateway.tools.registry import Registry
from gateway.tools.sessions import SessionTools
from gateway.ways_in import WaysIn, ways_in
from gateway.web.api.for_admins import for_admins
from gateway.web.api.for_connectors import for_connectors
from gateway.web.api.for_explaining import for_explaining
from gateway.web.api.for_people import for_people
from gateway.web.api.for_preview import for_preview
from gateway.web.api.for_reach import for_reach
from gateway.web.api.openapi import Document
from gateway.web.app import starlette_app
from gateway.web.authzen import for_decision_points, metadata_route
from gateway.web.line import line_route
from gateway.web.line_deliveries import LineDeliveries
from gateway.web.metrics import Metrics
from gateway.web.middleware import with_edge
from gateway.web.sign_in.building import build_door
from gateway.web.sign_in.routes import Door, sign_in_routes
from gateway.workspace.folders import AgentFolders
from gateway.workspace.locks import FileLocks, Locks

WORKSPACE_THREADS = 4
TOKEN_USE_EVERY_S = 5.0
REFUSALS_EVERY_S = 1.0


class Stores:
    """The ports over one store: a SQLite file in `folder`, or the PostgreSQL that the settings name."""

    def __init__(self, folder: Path, server: DatabaseServer) -> None:
        self.database = _database(folder, server)
        self.tenants = SqlTenants(self.database)
        self.identities = SqlIdentities(self.database)
        self.agents = SqlAgents(self.database)
        self.sessions = SqlSessions(self.database)
        self.transcripts = SqlTranscripts(self.database)
        self.policies = SqlPolicies(self.database)
        self.audit_key = audit_key(folder)
        self.audit = SqlAudit(self.database, folder / "audit", self.audit_key)
        self.notes = SqlNotes(self.database)
        self.tainted_turns = SqlTaintedTurns(self.database)
        self.sign_ins = SqlSignIns(self.database)
        self.notices = SqlNotices(self.database)
        self.channel_events = SqlChannelEvents(self.database)


def _database(folder: Path, server: DatabaseServer) -> Database | PostgresDatabase:
    if server.url is None:
        return Database(folder / "gateway.sqlite")
    limits = Limits(connections=server.connections, statement_s=server.statement_timeout_s)
    return PostgresDatabase(server.url.get_secret_value(), limits)


@dataclass(frozen=True, kw_only=True)
class Gateway:
    """A gateway that is put together; `running()` opens what it stands on."""

    settings: Settings
    clock: Clock
    stores: Stores
    replicas: Replicas | None
    epochs: Epochs
    buffer: AuditBuffer
    folders: AgentFolders
    threads: ThreadPoolExecutor
    metrics: Metrics
    catalogue: Catalogue
    pipeline: Pipeline
    profiles: ProfileResolver
    ways: WaysIn
    refusals: Refusals
    http: httpx2.AsyncClient
    deliveries: Deliveries

    @property
    def founder(self) -> Founder:
        """What makes tenants."""
        return Founder(
            self.stores.tenants,
            self.stores.identities,
            self.stores.policies,
            self.stores.agents,
            self.folders,
            self.clock,
        )

    def readiness(self) -> list[str]:
        """What is wrong, in words for an operator; empty means ready."""
        wrong = []
        if not self.buffer.healthy:
            wrong.append("The audit can't be written.")
        if not self.epochs.healthy:
            wrong.append(self.epochs.what_is_not_heard)
        return wrong

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Gateway]:
        """Opens the store, follows the epochs, writes the audit; closes all of it, the audit's buffer drained."""
        async with AsyncExitStack() as stack:
            stack.callback(self.threads.shutdown)
            stack.push_async_callback(self.http.aclose)
            stack.push_async_callback(self.ways.aclose)
            await stack.enter_async_context(self.stores.database)
            if self.replicas is not None:
                await stack.enter_async_context(self.replicas)
            await stack.enter_async_context(self.epochs)
            await stack.enter_async_context(self.buffer)
            await stack.enter_async_context(periodically(self.ways.token_use.flush, TOKEN_USE_EVERY_S))
            await stack.enter_async_context(periodically(self.ways.seen.flush, TOKEN_USE_EVERY_S))
            await stack.enter_async_context(periodically(self._log_refusals, REFUSALS_EVERY_S))
            await stack.enter_async_context(self.deliveries)
            yield self

    async def _log_refusals(self) -> None:
        """What was counted since the last line, so that the end of a flood is told without another refusal."""
        self.refusals.flush()


def compose(
    settings: Settings,
    loggers: Loggers,
    *,
    clock: Clock | None = None,
    local_operator: bool = False,
    environ: Mapping[str, str] | None = None,
) -> Gateway:
    """Puts a gateway together; nothing is opened yet. Raises ConfigurationFaults for what can't be used.

    `local_operator` is for the command line on the machine itself, and for nothing that listens. `environ` is where
    secrets are that the settings name a variable for: the process's own, if it is not given.
    """
    refuse_old_casbin()
    clock = clock or SystemClock()
    folder = settings.state.folder
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    stores = Stores(folder, settings.database)
    environ = os.environ if environ is None else environ
    replicas = Replicas.of(settings.redis, environ, clock)
    epochs = Epochs(
        stores.tenants,
        clock,
        elsewhere=stores.database.changes_elsewhere,
        signals=None if replicas is None else replicas.epochs,
        refuse_after_s=settings.policy.refuse_after_s,
    )
    stores.database.when_epoch_rises(epochs.raised)
    if replicas is not None:
        stores.database.when_epoch_rises(replicas.epochs.announce)
    threads = ThreadPoolExecutor(WORKSPACE_THREADS, thread_name_prefix="workspace")
    local_locks = FileLocks(folder / "locks")
    locks: Locks = local_locks if replicas is None else replicas.locks(local_locks)
    folders = AgentFolders(folder / "workspaces", locks, threads)
    directory = SessionDirectory(stores.sessions)  # one alone: what one knows, a change through another would not tell
    epochs.when_changed_elsewhere(directory.forget)
    # A merge gives away any number of sessions: all is forgotten with its epoch, even where nobody waits for the answer
    epochs.when_risen(lambda _tenant, _epoch: directory.forget())
    http = _client()
    ways = ways_in(
        settings,
        stores.identities,
        stores.sign_ins,
        http,
        clock,
        epochs.current,
        environ,
    )
    own_sign_ins = OwnSignIns(stores.sign_ins, ways.seen, clock, idle=timedelta(minutes=settings.login.idle_minutes))
    accounts = channels_in(settings, None)
    taints = Taints(stores.tainted_turns, clock)
    states = TenantStates(
        policies=stores.policies,
        agents=stores.agents,
        identities=stores.identities,
        epoch_of=epochs.current,
        clock=clock,
    )
    catalogue = _catalogue(stores, directory, folders, clock, ways, own_sign_ins, accounts, taints, states)
    metrics = Metrics(dict.fromkeys(operation.name for operation in catalogue.all()))
    buffer = AuditBuffer(
        stores.audit,
        clock,
        reads=settings.audit.reads,
        capacity=settings.audit.buffer_records,
        hold_s=settings.audit.flush_ms / 1000,
        observer=metrics.audit,
    )
    metrics.audit.watch_depth(lambda: buffer.waiting)
    epochs.when_risen(lambda tenant, _epoch: states.heard(tenant))
    states.when_in_force(metrics.in_force)
    metrics.watch_epoch_age(lambda: epochs.age_s)
    refusals = Refusals(_refusal_log(loggers), clock)
    profiles = ProfileResolver(
        stores.identities,
        stores.tenants,
        clock,
        epochs.current,
        buffer.record_durably,
        provisioning=ways.provisioning,
    )
    pipeline = _pipeline(
        stores,
        epochs,
        directory,
        folders,
        clock,
        Authenticate(ways.verifiers, local_operator=local_operator),
        RecordAudit(buffer, refusals.count, clock, epochs.knows),
        profiles,
        taints,
        metrics,
        states,
    )
    return Gateway(
        settings=settings,
        clock=clock,
        stores=stores,
        replicas=replicas,
        epochs=epochs,
        buffer=buffer,
        folders=folders,
        threads=threads,
        metrics=metrics,
        catalogue=catalogue,
        pipeline=pipeline,
        profiles=profiles,
        ways=ways,
        refusals=refusals,
        http=http,
        deliveries=Deliveries(HttpDeliveries(http), loggers("deliveries"), metrics.delivery),
    )


def _client() -> httpx2.AsyncClient:
    """One client for all that is asked outside. It keeps no cookie: what one server sets is nobody else's business."""
    no_cookies = CookieJar(policy=DefaultCookiePolicy(allowed_domains=()))
    return httpx2.AsyncClient(follow_redirects=False, cookies=no_cookies, verify=_trusted())


@cache
def _trusted() -> ssl.SSLContext:
    """The authorities whose certificates hold. Reading them takes 70 ms, so a process does it once."""
    return httpx2.create_ssl_context()


def create_app(gateway: Gateway, loggers: Loggers, *, environ: Mapping[str, str] = os.environ) -> Starlette:
    """The gateway as an ASGI app; its lifespan opens and closes the gateway. `environ` holds the secrets of clients.

    Raises ConfigurationFaults for a client's secret that is not where the settings say: only who serves needs it.
    """

    gateway.ways.check_secrets()

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        async with gateway.running():
            yield

    catalogue = gateway.catalogue
    turns = ChannelTurns(gateway.pipeline, catalogue.sessions, catalogue.context)
    endpoints = (
        *for_people(catalogue),
        *for_admins(catalogue),
        *for_reach(catalogue),
        *for_explaining(catalogue),
        *for_preview(catalogue),
        *for_decision_points(catalogue),
        *for_connectors(catalogue, turns),
    )
    app = starlette_app(
        endpoints,
        gateway.pipeline,
        document=Document(endpoints, catalogue.tools, VERSION),
        metrics=gateway.metrics,
        who_reads_metrics=gateway.settings.server.metrics,
        readiness=gateway.readiness,
        pages=(
            *sign_in_routes(_door(gateway, environ)),
            _line(gateway, turns, loggers, environ),
            metadata_route(gateway.settings),
        ),
        lifespan=lifespan,
    )
    return with_edge(app, gateway.settings.server, gateway.clock, loggers, gateway.ways.guard)


def _line(gateway: Gateway, turns: ChannelTurns, loggers: Loggers, environ: Mapping[str, str]) -> Route:
    """Where LINE brings its messages. Raises ConfigurationFaults for a secret that is not where the settings say."""
    webhooks = LineWebhooks(
        channels_in(gateway.settings, environ),
        gateway.stores.channel_events,
        gateway.catalogue.connectors,
        turns,
        gateway.pipeline,
        gateway.clock,
        longest=timedelta(seconds=gateway.settings.server.request_timeout_s),
    )
    tell = LineDeliveries(turns, gateway.deliveries.offer)
    return line_route(webhooks, tell, gateway.metrics, loggers("web"))


def _door(gateway: Gateway, environ: Mapping[str, str]) -> Door | None:
    """Where browsers sign in; None where they can't."""
    login, ways, epochs = gateway.settings.login, gateway.ways.login, gateway.epochs
    if ways is None:
        return None
    sign_ins = BrowserSignIns(
        gateway.stores.sign_ins,
        gateway.profiles,
        gateway.ways.seen,
        gateway.clock,
        gateway.buffer.record_durably,
        gateway.refusals.count,
        lambda tenant: epochs.current(tenant) if epochs.knows(tenant) else None,
        idle=timedelta(minutes=login.idle_minutes),
        lasts=timedelta(hours=login.absolute_hours),
    )
    return build_door(
        login,
        ways.issuers,
        ways.verifier,
        sign_ins,
        gateway.pipeline,
        gateway.catalogue.me.show,
        gateway.http,
        gateway.clock,
        environ,
    )


def _catalogue(
    stores: Stores,
    directory: SessionDirectory,
    folders: AgentFolders,
    clock: Clock,
    ways: WaysIn,
    own_sign_ins: OwnSignIns,
    accounts: ChannelAccounts,
    taints: Taints,
    states: TenantStates,
) -> Catalogue:
    conversations = Conversations(directory, stores.transcripts, stores.identities, clock)
    instructions = PersonalInstructions(folders)
    tools = Registry(
        [
            *SessionTools(conversations).all(),
            *MemoryTools(folders, stores.notes, clock).all(),
            instructions.tool(),
        ]
    )
    owners = Owners(stores.identities)
    asking = Asking(stores.identities, conversations, tools, clock)
    rights = RightsInForce()
    who_can, what_can = WhoCan(stores.identities), WhatCan(stores.sessions, rights)
    held = HeldIdentities(stores.identities, stores.sign_ins, clock)
    rows = RowsInForce(states.current)
    weighing = PeopleAreWeighed(stores.identities, stores.sessions, held, rows, clock)
    tokens = AccessTokens(stores.identities, weighing, clock)
    publishing = PublishingIsWeighed(stores.identities, held)
    return Catalogue(
        tools=tools,
        context=context_operation(conversations, ways.turn_tokens, taints),
        instructions=instructions,
        sessions=SessionOperations(conversations, SessionsAreWeighed(stores.sessions, held, rows, clock)),
        me=MyOperations(tokens, own_sign_ins, stores.notices, tools),
        agents=AgentOperations(stores.agents, folders, clock),
        people=PeopleOperations(
            People(stores.identities, owners, weighing, clock),
            Merging(stores.identities, owners, weighing, clock),
            tokens,
            stores.identities,
        ),
        policy=PolicyOperations(stores.policies, publishing, clock),
        preview=PreviewOperations(
            policies=stores.policies,
            audit=stores.audit,
            sessions=stores.sessions,
            population=Population(stores.identities),
            publishing=publishing,
            rights=rights,
        ),
        reach=ReachOperations(
            stores.identities,
            conversations,
            who_can,
            what_can,
        ),
        decision_point=DecisionPoint(asking),
        searches=Searches(
            asking,
            stores.identities,
            conversations,
            tools,
            who_can,
            what_can,
            PageTokens(stores.audit_key),
            clock,
        ),
        explain=ExplainOperations(asking, stores.audit, stores.policies),
        my_decisions=MyDecisions(stores.audit),
        audit=AuditOperations(stores.audit),
        connectors=ConnectorOperations(
            accounts, ChannelSessions(directory, stores.transcripts, clock), stores.identities
        ),
    )


def _pipeline(
    stores: Stores,
    epochs: Epochs,
    directory: SessionDirectory,
    folders: AgentFolders,
    clock: Clock,
    authenticate: Authenticate,
    record_audit: RecordAudit,
    profiles: ProfileResolver,
    taints: Taints,
    metrics: Metrics,
    states: TenantStates,
) -> Pipeline:
    authorize = AuthorizeStage(metrics.decision)
    return Pipeline(
        authenticate=authenticate,
        resolve_profile=ResolveProfile(
            profiles=profiles, states=states, freshness=epochs, authorize=authorize, clock=clock
        ),
        open_session=OpenSession(directory, taints),
        assemble_context=AssembleContext(folders, directory, stores.identities, clock),
        authorize=authorize,
        call_tool=CallTool(record_audit.intent, epochs.current, on_behalf_of),
        record_audit=record_audit,
        hear=epochs.hear,
        epoch_of=epochs.current_or_none_yet,
    )


def _refusal_log(loggers: Loggers) -> Callable[[Mapping[Kind, int]], None]:
    log = loggers("access")

    def write(counts: Mapping[Kind, int]) -> None:
        for (code, surface), count in counts.items():
            log.warning("refused", code=code, surface=surface, count=count)

    return write
